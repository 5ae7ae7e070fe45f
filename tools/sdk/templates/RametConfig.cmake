# find_package(Ramet [0.1] CONFIG [COMPONENTS processes ...]): Ramet @VERSION@.
#
# Targets: Ramet::ramet, and Ramet::<component> for each component that is asked for, which brings Ramet::ramet along.
# Ramet_SHARED, set to ON before: the targets are the shared library (./tools/install --shared) instead of the archives.
cmake_minimum_required(VERSION 3.16)
include(CMakeFindDependencyMacro)

get_filename_component(Ramet_PREFIX "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(Ramet_INCLUDE_DIR "${Ramet_PREFIX}/include")
if(Ramet_SHARED)
  set(Ramet_COMPONENTS_THERE @SHARED_COMPONENTS@)  # emulated GPUs are an archive only
else()
  set(Ramet_COMPONENTS_THERE @COMPONENTS@)
endif()

set(_ramet_missing "")
if(Ramet_SHARED AND NOT EXISTS "${Ramet_PREFIX}/lib/libramet.so")
  set(_ramet_missing "the shared library: Ramet was installed without --shared")
endif()
foreach(_ramet_component IN LISTS Ramet_FIND_COMPONENTS)
  if(NOT _ramet_component IN_LIST Ramet_COMPONENTS_THERE)
    if(Ramet_FIND_REQUIRED_${_ramet_component})
      set(_ramet_missing "the component \"${_ramet_component}\": Ramet was installed with ${Ramet_COMPONENTS_THERE}")
    endif()
    set(Ramet_${_ramet_component}_FOUND FALSE)
  endif()
endforeach()

foreach(_ramet_component IN ITEMS ramet LISTS Ramet_FIND_COMPONENTS)
  if(NOT _ramet_missing AND _ramet_component IN_LIST Ramet_COMPONENTS_THERE)
    include("${CMAKE_CURRENT_LIST_DIR}/Ramet-${_ramet_component}.cmake")
    set(Ramet_${_ramet_component}_FOUND TRUE)
  endif()
endforeach()

if(_ramet_missing)
  set(Ramet_FOUND FALSE)
  set(Ramet_NOT_FOUND_MESSAGE "Ramet in ${Ramet_PREFIX} lacks ${_ramet_missing}")
endif()
unset(_ramet_component)
