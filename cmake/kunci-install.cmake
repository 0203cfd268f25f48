# Install rules: headers, CMake package and pkg-config files. Nothing here depends on the architecture, so
# all but the headers goes under share/, and the whole prefix may be moved afterwards.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(kunci_package_dir "${CMAKE_INSTALL_DATADIR}/cmake/kunci")
set(kunci_pkgconfig_dir "${CMAKE_INSTALL_DATADIR}/pkgconfig")

install(TARGETS kunci EXPORT kunci-targets FILE_SET HEADERS)
install(EXPORT kunci-targets NAMESPACE kunci:: DESTINATION "${kunci_package_dir}")

configure_package_config_file(
    "${CMAKE_CURRENT_LIST_DIR}/kunci-config.cmake.in" "${PROJECT_BINARY_DIR}/kunci-config.cmake"
    INSTALL_DESTINATION "${kunci_package_dir}"
    NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(
    "${PROJECT_BINARY_DIR}/kunci-config-version.cmake" COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES
        "${PROJECT_BINARY_DIR}/kunci-config.cmake"
        "${PROJECT_BINARY_DIR}/kunci-config-version.cmake"
    DESTINATION "${kunci_package_dir}")

# The .pc files find the headers from their own place.
set(kunci_pc_prefix "/prefix")
cmake_path(ABSOLUTE_PATH CMAKE_INSTALL_INCLUDEDIR BASE_DIRECTORY "${kunci_pc_prefix}" OUTPUT_VARIABLE kunci_pc_include)
cmake_path(ABSOLUTE_PATH kunci_pkgconfig_dir BASE_DIRECTORY "${kunci_pc_prefix}" OUTPUT_VARIABLE kunci_pc_place)
cmake_path(IS_PREFIX kunci_pc_prefix "${kunci_pc_include}" kunci_pc_relocatable)
if(kunci_pc_relocatable)
    cmake_path(RELATIVE_PATH kunci_pc_include BASE_DIRECTORY "${kunci_pc_place}")
    set(kunci_pc_include "\${pcfiledir}/${kunci_pc_include}")
endif()

function(kunci_install_pc name)
    configure_file("${CMAKE_CURRENT_FUNCTION_LIST_DIR}/${name}.pc.in" "${PROJECT_BINARY_DIR}/${name}.pc" @ONLY)
    install(FILES "${PROJECT_BINARY_DIR}/${name}.pc" DESTINATION "${kunci_pkgconfig_dir}")
endfunction()

kunci_install_pc(kunci)

if(KUNCI_HAS_HIREDIS)
    install(TARGETS kunci_hiredis EXPORT kunci-hiredis-targets FILE_SET HEADERS FILE_SET tls_headers)
    install(EXPORT kunci-hiredis-targets NAMESPACE kunci:: DESTINATION "${kunci_package_dir}")
    install(FILES "${CMAKE_CURRENT_LIST_DIR}/kunci-find-hiredis.cmake" DESTINATION "${kunci_package_dir}")

    if(KUNCI_HIREDIS_HAS_TLS)
        set(kunci_pc_hiredis_requires "hiredis hiredis_ssl")
        set(kunci_pc_hiredis_cflags "-DKUNCI_HIREDIS_TLS=1")
    else()
        set(kunci_pc_hiredis_requires "hiredis")
        set(kunci_pc_hiredis_cflags "")
    endif()
    kunci_install_pc(kunci-hiredis)
endif()
