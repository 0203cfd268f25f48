# clang-format over all sources; clang-tidy over the library, as the programs that instantiate it show it. The
# test suites are left out: the frameworks' macros make each of them take a minute.

find_program(KUNCI_CLANG_FORMAT clang-format REQUIRED)
find_program(KUNCI_CLANG_TIDY clang-tidy REQUIRED)

file(GLOB_RECURSE formatted CONFIGURE_DEPENDS
    "${PROJECT_SOURCE_DIR}/include/*.hpp"
    "${PROJECT_SOURCE_DIR}/tests/*.hpp" "${PROJECT_SOURCE_DIR}/tests/*.cpp"
    "${PROJECT_SOURCE_DIR}/examples/*.cpp")
list(FILTER formatted EXCLUDE REGEX "/tests/usage/")  # given from outside, to be compiled unchanged
kunci_add_test(lint.clang_format LABEL lint COMMAND "${KUNCI_CLANG_FORMAT}" --dry-run -Werror ${formatted})

file(GLOB tidied CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/examples/*.cpp")
list(APPEND tidied tests/odr/second.cpp)
foreach(file IN LISTS tidied)
    kunci_add_test(lint.clang_tidy.${file} LABEL lint TIMEOUT 300 COMMAND "${KUNCI_CLANG_TIDY}"
        -p "${PROJECT_BINARY_DIR}" --quiet "${PROJECT_SOURCE_DIR}/${file}")
endforeach()
