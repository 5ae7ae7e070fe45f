# An overlay port of this tree: vcpkg install ramet --overlay-ports=tools/cmake/packaging/vcpkg
get_filename_component(SOURCE_PATH "${CURRENT_PORT_DIR}/../../../../.." ABSOLUTE)

set(components "")
foreach(feature IN ITEMS formats script c)
  if(feature IN_LIST FEATURES)
    list(APPEND components ${feature})
  endif()
endforeach()
list(JOIN components "\\;" components)

vcpkg_find_acquire_program(PYTHON3)
vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}/tools/cmake"
  OPTIONS
    "-DPython3_EXECUTABLE=${PYTHON3}"
    -DRAMET_VARIANTS=all
    "-DRAMET_COMPONENTS=${components}"
)
vcpkg_cmake_install()

# The CMake package finds its tree from where it stands, which is lib/cmake/Ramet: it stays there.
set(VCPKG_POLICY_SKIP_MISPLACED_CMAKE_FILES_CHECK enabled)
set(VCPKG_POLICY_SKIP_LIB_CMAKE_MERGE_CHECK enabled)
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
