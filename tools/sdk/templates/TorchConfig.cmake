# find_package(Torch) that finds Ramet @VERSION@: for projects that were written for LibTorch, which compile as they are.
#
#   cmake -DCMAKE_PREFIX_PATH=@WHERE@ ...
#
# Only builds that name that folder get it. RAMET_TORCH_COMPONENTS ("processes;cuda"): components that the program also links, for
# <torch/csrc/distributed/c10d/...> and GPUs.
include(CMakeFindDependencyMacro)

get_filename_component(_ramet_prefix "${CMAKE_CURRENT_LIST_DIR}/../../../../../.." ABSOLUTE)
find_package(Ramet @VERSION@ EXACT CONFIG QUIET COMPONENTS ${RAMET_TORCH_COMPONENTS} PATHS "${_ramet_prefix}" NO_DEFAULT_PATH)
if(NOT Ramet_FOUND)
  set(Torch_FOUND FALSE)
  set(TORCH_FOUND FALSE)
  set(Torch_NOT_FOUND_MESSAGE "this is Ramet's stand-in for LibTorch, and: ${Ramet_NOT_FOUND_MESSAGE}")
  return()
endif()

set(TORCH_INSTALL_PREFIX "${_ramet_prefix}/share/ramet/libtorch")
set(TORCH_INCLUDE_DIRS "${_ramet_prefix}/include/ramet/libtorch" "${_ramet_prefix}/include")
set(TORCH_CXX_FLAGS "")
set(_ramet_libraries Ramet::ramet)
foreach(_ramet_component IN LISTS RAMET_TORCH_COMPONENTS)
  list(APPEND _ramet_libraries Ramet::${_ramet_component})
endforeach()

# LibTorch's targets: each is all of it.
foreach(_ramet_target IN ITEMS torch torch_cpu torch_library c10)
  if(NOT TARGET ${_ramet_target})
    add_library(${_ramet_target} INTERFACE IMPORTED)
    set_target_properties(${_ramet_target} PROPERTIES
      INTERFACE_INCLUDE_DIRECTORIES "${TORCH_INCLUDE_DIRS}"
      INTERFACE_LINK_LIBRARIES "${_ramet_libraries}"
      INTERFACE_COMPILE_FEATURES cxx_std_17)
  endif()
endforeach()
set(TORCH_LIBRARY torch)
set(TORCH_LIBRARIES torch torch_library c10)
set(TORCH_FOUND TRUE)
set(Torch_FOUND TRUE)
unset(_ramet_component)
unset(_ramet_libraries)
unset(_ramet_target)
