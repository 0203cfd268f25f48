# The program of every consumer project here: consumer(<target of kunci>...)
function(consumer)
    add_executable(consumer
        "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/main.cpp" "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/other.cpp")
    target_link_libraries(consumer PRIVATE ${ARGN})
    target_compile_options(consumer PRIVATE -Wall -Wextra -Wpedantic -Werror)
    if("kunci::hiredis" IN_LIST ARGN)
        target_compile_definitions(consumer PRIVATE CONSUMER_WITH_HIREDIS)
    endif()
endfunction()

# Embedding kunci must bring its two targets, and none of its tests, examples and install rules.
function(consumer_expects_only_the_library)
    foreach(option KUNCI_BUILD_TESTS KUNCI_BUILD_EXAMPLES KUNCI_INSTALL)
        if(${option})
            message(FATAL_ERROR "${option} is on in a project that only uses kunci")
        endif()
    endforeach()
endfunction()
