# What is checked with next to nothing of kunci being run.

# Mostly static_asserts: compiling is the test.
kunci_add_gtest(static TIMEOUT 60 SOURCES ${static_tests})

# Every header compiles alone. Usually built before (tests/run does), so that this has nothing left to do.
add_test(NAME static.headers_compile_alone
    COMMAND "${CMAKE_COMMAND}" --build "${PROJECT_BINARY_DIR}" --target all_verify_interface_header_sets)
set_tests_properties(static.headers_compile_alone PROPERTIES LABELS static TIMEOUT 600 COST 2000)

# The whole library in two units, one as C++20 after hostile macros and the other as C++23.
set(outside "")
foreach(header IN LISTS KUNCI_CORE_HEADERS KUNCI_HIREDIS_HEADERS)
    file(STRINGS "${PROJECT_SOURCE_DIR}/${header}" includes REGEX "^#include <")
    list(APPEND outside ${includes})
endforeach()
list(FILTER outside EXCLUDE REGEX "<(kunci|hiredis)/")
list(REMOVE_DUPLICATES outside)
list(SORT outside)
if(TARGET kunci::hiredis)
    list(APPEND outside "#include <hiredis/hiredis.h>")
endif()
list(JOIN outside "\n" outside)
file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/odr/outside_headers.hpp" CONTENT "@outside@\n" @ONLY)

add_library(kunci_odr_first OBJECT odr/first.cpp)
add_executable(kunci_odr odr/second.cpp $<TARGET_OBJECTS:kunci_odr_first>)
set_target_properties(kunci_odr_first PROPERTIES CXX_STANDARD 20 CXX_EXTENSIONS ON)  # defines unix and linux
set_target_properties(kunci_odr PROPERTIES CXX_STANDARD 23 CXX_EXTENSIONS OFF)
add_executable(kunci_core_alone odr/core_alone.cpp)
foreach(target kunci_odr_first kunci_odr kunci_core_alone)
    target_link_libraries(${target} PRIVATE kunci::kunci kunci_dev_settings)
    target_include_directories(${target} PRIVATE odr "${CMAKE_CURRENT_BINARY_DIR}/odr")
endforeach()
if(TARGET kunci::hiredis)
    foreach(target kunci_odr_first kunci_odr)
        target_link_libraries(${target} PRIVATE kunci::hiredis)
        target_compile_definitions(${target} PRIVATE KUNCI_TEST_HIREDIS)
    endforeach()
endif()
kunci_add_test(static.one_definition_in_two_units LABEL static COMMAND kunci_odr)
kunci_add_test(static.core_brings_no_third_party LABEL static COMMAND kunci_core_alone)

foreach(file IN LISTS compile_fail_tests)
    cmake_path(GET file STEM name)
    set(compile "${CMAKE_CXX_COMPILER};-std=c++20;-I${PROJECT_SOURCE_DIR}/include;-Wall;-Wextra;-Werror=unused-result")
    kunci_add_test(static.compile_fail.${name} LABEL static COMMAND "${CMAKE_COMMAND}"
        "-DCOMPILE=${compile}" -DSOURCE=${CMAKE_CURRENT_SOURCE_DIR}/compile_fail/${file}
        -P "${PROJECT_SOURCE_DIR}/cmake/check-compile-fail.cmake")
    set_property(TEST static.compile_fail.${name} APPEND PROPERTY LABELS compile_fail)
endforeach()

# Each check is first tested itself.
set(layering "${PROJECT_SOURCE_DIR}/cmake/check-layering.sh")
set(readme "${PROJECT_SOURCE_DIR}/cmake/check-readme.sh")
kunci_add_test(static.layering_check_works LABEL static
    COMMAND bash "${CMAKE_CURRENT_SOURCE_DIR}/static/layering_test.sh" "${layering}")
kunci_add_test(static.layering LABEL static COMMAND bash "${layering}" "${PROJECT_SOURCE_DIR}/include")
kunci_add_test(static.readme_check_works LABEL static
    COMMAND bash "${CMAKE_CURRENT_SOURCE_DIR}/static/readme_test.sh" "${readme}")
kunci_add_test(static.readme LABEL static COMMAND bash "${readme}" "${PROJECT_SOURCE_DIR}")
kunci_add_test(static.every_report_is_answered LABEL static
    COMMAND bash "${CMAKE_CURRENT_SOURCE_DIR}/static/cases_test.sh" "${CMAKE_CURRENT_SOURCE_DIR}")
