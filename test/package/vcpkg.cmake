# Runs packaging/vcpkg/portfile.cmake as vcpkg does, with these functions in place of vcpkg's own. Variables: TREE, WORK, and
# VCPKG_LIBRARY_LINKAGE (static or dynamic). The package is then in WORK/package.
cmake_minimum_required(VERSION 3.20)
set(PORT tickwheel)
set(CURRENT_PORT_DIR "${TREE}/packaging/vcpkg")
set(CURRENT_BUILDTREES_DIR "${WORK}/buildtrees")
set(CURRENT_PACKAGES_DIR "${WORK}/package")
set(TARGET_TRIPLET x64-linux)

function(run)
    execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# vcpkg gives the compiler's flags by a machine file, and meson a plain build type.
function(vcpkg_configure_meson)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "SOURCE_PATH" "OPTIONS")
    if(arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "vcpkg_configure_meson: ${arg_UNPARSED_ARGUMENTS}")
    endif()
    if(VCPKG_LIBRARY_LINKAGE STREQUAL dynamic)
        set(kind shared)
    else()
        set(kind static)
    endif()
    file(MAKE_DIRECTORY "${CURRENT_BUILDTREES_DIR}")
    file(WRITE "${CURRENT_BUILDTREES_DIR}/machine.ini" "[built-in options]\nc_args = ['-fPIC', '-O3', '-DNDEBUG']\n")
    run(meson setup "${CURRENT_BUILDTREES_DIR}/${TARGET_TRIPLET}-rel" "${arg_SOURCE_PATH}" ${arg_OPTIONS}
        --buildtype plain --backend ninja --wrap-mode nodownload --native "${CURRENT_BUILDTREES_DIR}/machine.ini"
        --libdir lib "-Ddefault_library=${kind}" --prefix "${CURRENT_PACKAGES_DIR}")
endfunction()

function(vcpkg_install_meson)
    run(ninja -C "${CURRENT_BUILDTREES_DIR}/${TARGET_TRIPLET}-rel" install)
endfunction()

function(vcpkg_fixup_pkgconfig)
    if(NOT EXISTS "${CURRENT_PACKAGES_DIR}/lib/pkgconfig/tickwheel.pc")
        message(FATAL_ERROR "no tickwheel.pc")
    endif()
endfunction()

function(vcpkg_install_copyright)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "FILE_LIST")
    file(INSTALL ${arg_FILE_LIST} DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}" RENAME copyright)
endfunction()

include("${CURRENT_PORT_DIR}/portfile.cmake")
