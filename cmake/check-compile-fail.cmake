# cmake -DCOMPILE=<compiler;flag;...> -DSOURCE=<file> -P check-compile-fail.cmake
#
# Compiles one source twice. As it stands it must compile, which shows that the misuse in it is all that is
# wrong; with REJECT defined it must not, and the compiler must say what the source's line
# "// EXPECT: <regular expression>" expects, so that another error is not taken for the right one.

file(STRINGS "${SOURCE}" expected REGEX "^// EXPECT: " LIMIT_COUNT 1)
string(REGEX REPLACE "^// EXPECT: " "" expected "${expected}")
if(NOT expected)
    message(FATAL_ERROR "${SOURCE} has no line '// EXPECT: <regular expression>'")
endif()

set(ENV{LC_ALL} C)
execute_process(COMMAND ${COMPILE} -fsyntax-only "${SOURCE}" RESULT_VARIABLE failed ERROR_VARIABLE said)
if(failed)
    message(FATAL_ERROR "${SOURCE} must compile, and does not:\n${said}")
endif()

execute_process(COMMAND ${COMPILE} -DREJECT -fsyntax-only "${SOURCE}" RESULT_VARIABLE failed ERROR_VARIABLE said)
if(NOT failed)
    message(FATAL_ERROR "${SOURCE} must not compile with REJECT, and does")
endif()
string(REGEX MATCHALL "[^\n]*error: [^\n]*" errors "${said}")
if(NOT errors MATCHES "${expected}")
    message(FATAL_ERROR "${SOURCE} is refused, but not for '${expected}':\n${said}")
endif()
