// What other people's headers define: windows.h, X11, Objective-C, Qt, Arduino, sys/sysmacros.h, GNU C.
// No include guard and no undefining: it stands before kunci's headers, whose names must not meet these.

#define major(device) ((device) >> 8)
#define minor(device) ((device)&255)
#define interface struct
#define small char
#define near
#define far
#define ERROR 0
#define NO_ERROR 0
#define OK 0
#define DELETE 0x10000
#define IN
#define OUT
#define TRUE 1
#define FALSE 0
#define Bool int
#define Success 0
#define None 0
#define Always 2
#define KeyPress 2
#define YES 1
#define NO 0
#define Nil 0
#define emit
#define slots
#define signals public
#define foreach for
#define forever for (;;)
#undef unix
#undef linux
#define unix 1
#define linux 1
