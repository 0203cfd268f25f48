# What only the project's own tests and examples need. Nothing here touches the library's targets.

set(KUNCI_SANITIZE "" CACHE STRING "Sanitizer of the tests: empty, address (with undefined behaviour), thread")
set_property(CACHE KUNCI_SANITIZE PROPERTY STRINGS "" address thread)

# An error if the files of a list are not exactly those on disk: a file that nobody builds looks tested.
# kunci_check_list(<folder> <pattern> <file>...), the files relative to the folder.
function(kunci_check_list folder pattern)
    file(GLOB_RECURSE on_disk CONFIGURE_DEPENDS RELATIVE "${folder}" "${folder}/${pattern}")
    set(unlisted ${on_disk})
    list(REMOVE_ITEM unlisted ${ARGN})
    set(absent ${ARGN})
    list(REMOVE_ITEM absent ${on_disk})
    if(unlisted)
        message(SEND_ERROR "kunci: in ${folder}, but in no list of ${CMAKE_CURRENT_LIST_FILE}: ${unlisted}")
    endif()
    if(absent)
        message(SEND_ERROR "kunci: listed in ${CMAKE_CURRENT_LIST_FILE}, but not in ${folder}: ${absent}")
    endif()
endfunction()

kunci_check_list("${PROJECT_SOURCE_DIR}" "include/*.hpp"
    ${KUNCI_CORE_HEADERS} ${KUNCI_HIREDIS_HEADERS} ${KUNCI_HIREDIS_TLS_HEADERS})

# The flags of everything that is compiled here, as a target to link privately. Instrumented code is not asked
# for warnings: what the optimiser then makes of the standard library looks suspicious to it.
add_library(kunci_dev_settings INTERFACE)
target_compile_options(kunci_dev_settings INTERFACE -UNDEBUG)  # a test's assert() is there to be evaluated
if(KUNCI_SANITIZE STREQUAL "address")
    set(kunci_sanitizers -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
elseif(KUNCI_SANITIZE STREQUAL "thread")
    set(kunci_sanitizers -fsanitize=thread -fno-omit-frame-pointer)
elseif(KUNCI_SANITIZE)
    message(FATAL_ERROR "kunci: KUNCI_SANITIZE is '${KUNCI_SANITIZE}'; it may be empty, 'address' or 'thread'")
else()
    target_compile_options(kunci_dev_settings INTERFACE
        -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror
        # g++ 12 suspects the insides of std::string and std::variant where it inlines much (GCC bug 105651).
        $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict -Wno-array-bounds -Wno-stringop-overread -Wno-stringop-overflow>)
endif()
target_compile_options(kunci_dev_settings INTERFACE ${kunci_sanitizers})
target_link_options(kunci_dev_settings INTERFACE ${kunci_sanitizers})

# kunci_add_program(<target> <standard> <source>...): one program in the house's settings, over all of kunci
# that there is.
function(kunci_add_program target standard)
    add_executable(${target} ${ARGN})
    target_link_libraries(${target} PRIVATE kunci::kunci kunci_dev_settings)
    if(TARGET kunci::hiredis)
        target_link_libraries(${target} PRIVATE kunci::hiredis)
    endif()
    set_target_properties(${target} PROPERTIES
        CXX_STANDARD ${standard} CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF)
endfunction()

# kunci_add_test(<name> LABEL <label> [TIMEOUT <seconds>] [REDIS] COMMAND <command>...): a test that is not
# found by a test framework. REDIS: gives it a server of its own, whose URL is added as the last argument.
function(kunci_add_test name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "REDIS" "LABEL;TIMEOUT" "COMMAND")
    if(NOT arg_TIMEOUT)
        set(arg_TIMEOUT 60)
    endif()
    if(arg_REDIS)
        set(with_redis bash "${PROJECT_SOURCE_DIR}/cmake/with-redis.sh")
    endif()
    add_test(NAME ${name} COMMAND ${with_redis} ${arg_COMMAND})
    set_tests_properties(${name} PROPERTIES LABELS ${arg_LABEL} TIMEOUT ${arg_TIMEOUT})
endfunction()
