// The main function of a Catch2 v2 test program; Catch2 v3 brings its own in a library.

#if !__has_include(<catch2/catch_all.hpp>)
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#endif
