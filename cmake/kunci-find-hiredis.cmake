# Finds hiredis, however it was installed, and wraps what was found in one target: kunci::hiredis_client
# (with hiredis_ssl and KUNCI_HIREDIS_TLS=1 where there is TLS). No such target afterwards: hiredis was not
# found. Sets KUNCI_HIREDIS_HAS_TLS. Used by kunci's own build and, installed with it, by kunci-config.cmake.
#
# KUNCI_HIREDIS_SCOPE: GLOBAL to make the targets visible in every folder of the project, else empty.

# The names that hiredis's own package defines, in the order of preference; `found` gets the first there is.
function(kunci_pick_target found)
    set(${found} "" PARENT_SCOPE)
    foreach(candidate IN LISTS ARGN)
        if(TARGET ${candidate})
            set(${found} ${candidate} PARENT_SCOPE)
            return()
        endif()
    endforeach()
endfunction()

# Looks for one library of hiredis (hiredis or hiredis_ssl); `found` gets the name of a target or "".
# A macro: find_package's imported targets must be born in the folder that asks.
macro(kunci_find_hiredis_library library found)
    kunci_pick_target(${found} hiredis::${library} hiredis::${library}_static)
    if(NOT ${found})
        # In lower case on purpose: Debian 12 has a HiredisConfig.cmake without targets, whose version file
        # is a hard error when no version is asked for.
        find_package(${library} CONFIG QUIET)
        kunci_pick_target(${found} hiredis::${library} hiredis::${library}_static)
        if(${found} AND KUNCI_HIREDIS_SCOPE)
            set_target_properties(${${found}} PROPERTIES IMPORTED_GLOBAL TRUE)
        endif()
    endif()
    if(NOT ${found})
        find_package(PkgConfig QUIET)
        if(PkgConfig_FOUND)
            pkg_check_modules(KUNCI_PC_${library} QUIET IMPORTED_TARGET ${KUNCI_HIREDIS_SCOPE} ${library})
            kunci_pick_target(${found} PkgConfig::KUNCI_PC_${library})
        endif()
    endif()
    if(NOT ${found})
        find_library(KUNCI_${library}_LIBRARY ${library})
        mark_as_advanced(KUNCI_${library}_LIBRARY)
        if(KUNCI_${library}_LIBRARY)
            add_library(kunci::found_${library} UNKNOWN IMPORTED ${KUNCI_HIREDIS_SCOPE})
            set_target_properties(kunci::found_${library} PROPERTIES
                IMPORTED_LOCATION "${KUNCI_${library}_LIBRARY}")
            set(${found} kunci::found_${library})
        endif()
    endif()
endmacro()

# The folder from which <hiredis/hiredis.h> is found: the headers of that very library, lest one version is
# compiled against and another linked. Its own include path need not do: in hiredis's source tree, and in old
# pkg-config files, that is the folder of hiredis.h itself.
function(kunci_find_hiredis_headers target folder)
    set(places "")
    if(target)
        get_target_property(places ${target} INTERFACE_INCLUDE_DIRECTORIES)
        string(REGEX REPLACE "\\$<BUILD_INTERFACE:([^>]*)>" "\\1" places "${places}")
    endif()
    set(parents "")
    foreach(place IN LISTS places)
        if(IS_DIRECTORY "${place}")
            list(APPEND parents "${place}" "${place}/..")
        endif()
    endforeach()
    find_path(KUNCI_HIREDIS_INCLUDE_DIR hiredis/hiredis.h PATHS ${parents} NO_DEFAULT_PATH)
    foreach(place IN LISTS places)
        if(NOT KUNCI_HIREDIS_INCLUDE_DIR AND EXISTS "${place}/hiredis.h")
            file(MAKE_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/kunci-hiredis-include")
            file(CREATE_LINK "${place}" "${CMAKE_CURRENT_BINARY_DIR}/kunci-hiredis-include/hiredis" SYMBOLIC)
            find_path(KUNCI_HIREDIS_INCLUDE_DIR hiredis/hiredis.h
                PATHS "${CMAKE_CURRENT_BINARY_DIR}/kunci-hiredis-include" NO_DEFAULT_PATH)
        endif()
    endforeach()
    find_path(KUNCI_HIREDIS_INCLUDE_DIR hiredis/hiredis.h)
    mark_as_advanced(KUNCI_HIREDIS_INCLUDE_DIR)
    set(${folder} "${KUNCI_HIREDIS_INCLUDE_DIR}" PARENT_SCOPE)
endfunction()

set(KUNCI_HIREDIS_HAS_TLS OFF)
if(NOT TARGET kunci::hiredis_client)
    kunci_find_hiredis_library(hiredis kunci_hiredis_target)
    kunci_find_hiredis_headers("${kunci_hiredis_target}" kunci_hiredis_include)
    if(kunci_hiredis_target AND kunci_hiredis_include)
        add_library(kunci::hiredis_client INTERFACE IMPORTED ${KUNCI_HIREDIS_SCOPE})
        target_link_libraries(kunci::hiredis_client INTERFACE ${kunci_hiredis_target})
        target_include_directories(kunci::hiredis_client INTERFACE "${kunci_hiredis_include}")
        # TLS came with hiredis 1.0, as a library of its own that a distribution may leave out.
        if(EXISTS "${kunci_hiredis_include}/hiredis/hiredis_ssl.h")
            kunci_find_hiredis_library(hiredis_ssl kunci_hiredis_ssl_target)
            if(kunci_hiredis_ssl_target)
                target_link_libraries(kunci::hiredis_client INTERFACE ${kunci_hiredis_ssl_target})
                target_compile_definitions(kunci::hiredis_client INTERFACE KUNCI_HIREDIS_TLS=1)
                set(KUNCI_HIREDIS_HAS_TLS ON)
            endif()
        endif()
    endif()
endif()
