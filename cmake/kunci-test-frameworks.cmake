# The two test frameworks, and one program per folder of tests.

find_package(GTest REQUIRED)
include(GoogleTest)

find_package(Catch2 3 QUIET)
if(NOT Catch2_FOUND)
    find_package(Catch2 2 REQUIRED)
endif()
include(Catch)

# What every test includes, compiled once per program.
function(kunci_precompile target framework)
    target_precompile_headers(${target} PRIVATE ${framework}
        <chrono> <condition_variable> <functional> <mutex> <optional> <string> <thread> <vector>)
endfunction()

# kunci_add_gtest(<folder> TIMEOUT <seconds per test> SOURCES <file>...)
function(kunci_add_gtest folder)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "SOURCES")
    if(arg_SOURCES)
        set(target kunci_${folder}_tests)
        kunci_add_program(${target} 20 ${arg_SOURCES})
        target_link_libraries(${target} PRIVATE GTest::gtest GTest::gtest_main)
        kunci_precompile(${target} <gtest/gtest.h>)
        gtest_discover_tests(${target} TEST_PREFIX ${folder}. NO_PRETTY_VALUES DISCOVERY_TIMEOUT 60
            PROPERTIES LABELS ${folder} TIMEOUT ${arg_TIMEOUT})
    endif()
endfunction()

# kunci_add_catch2(<folder> TIMEOUT <seconds per test> SOURCES <file>...)
function(kunci_add_catch2 folder)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "SOURCES")
    if(arg_SOURCES)
        set(target kunci_${folder}_tests)
        kunci_add_program(${target} 20 ${arg_SOURCES})
        if(Catch2_VERSION VERSION_GREATER_EQUAL 3)
            target_link_libraries(${target} PRIVATE Catch2::Catch2WithMain)
            kunci_precompile(${target} <catch2/catch_all.hpp>)
        else()
            target_link_libraries(${target} PRIVATE Catch2::Catch2)
            target_sources(${target} PRIVATE support/catch_main.cpp)
            set_source_files_properties(support/catch_main.cpp PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
            kunci_precompile(${target} <catch2/catch.hpp>)
        endif()
        catch_discover_tests(${target} TEST_PREFIX ${folder}.
            PROPERTIES LABELS ${folder} TIMEOUT ${arg_TIMEOUT})
    endif()
endfunction()
