# find_package(Ramet [0.1] CONFIG [COMPONENTS processes ...]): Ramet @VERSION@.
#
# Targets: Ramet::ramet, and Ramet::<component> for each component that is asked for, which brings Ramet::ramet along.
# Ramet_SHARED, set to ON before: the targets are the shared library (./tools/install --shared) instead of the archives. Where
# it is not set, targets that are there already decide; both kinds in one folder are an error.
cmake_minimum_required(VERSION 3.16)
include(CMakeFindDependencyMacro)

set(_ramet_shared "${Ramet_SHARED}")
set(_ramet_lacks "")
if(TARGET Ramet::ramet)
  get_target_property(_ramet_type Ramet::ramet TYPE)
  string(COMPARE EQUAL "${_ramet_type}" SHARED_LIBRARY _ramet_shared)
  if(DEFINED Ramet_SHARED AND ((_ramet_shared AND NOT Ramet_SHARED) OR (Ramet_SHARED AND NOT _ramet_shared)))
    set(_ramet_lacks "targets of another kind than those that are there already: Ramet_SHARED must be alike wherever this folder finds Ramet")
  endif()
endif()

get_filename_component(Ramet_PREFIX "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(Ramet_INCLUDE_DIR "${Ramet_PREFIX}/include")
if(_ramet_shared)
  set(Ramet_COMPONENTS_THERE @SHARED_COMPONENTS@)  # emulated GPUs are an archive only
else()
  set(Ramet_COMPONENTS_THERE @COMPONENTS@)
endif()

if(_ramet_shared AND NOT EXISTS "${Ramet_PREFIX}/lib/libramet.so")
  set(_ramet_lacks "the shared library: Ramet was installed without --shared")
endif()
foreach(_ramet_component IN ITEMS ramet LISTS Ramet_FIND_COMPONENTS)
  set(_ramet_missing "${_ramet_lacks}")
  if(NOT _ramet_component IN_LIST Ramet_COMPONENTS_THERE)
    set(_ramet_missing "the component \"${_ramet_component}\": Ramet was installed with ${Ramet_COMPONENTS_THERE}")
  elseif(NOT _ramet_missing)
    include("${CMAKE_CURRENT_LIST_DIR}/Ramet-${_ramet_component}.cmake")  # says what it does not find
  endif()
  if(NOT _ramet_missing)
    set(Ramet_${_ramet_component}_FOUND TRUE)
  else()
    set(Ramet_${_ramet_component}_FOUND FALSE)
    if(_ramet_component STREQUAL "ramet" OR Ramet_FIND_REQUIRED_${_ramet_component})
      set(_ramet_lacks "${_ramet_missing}")
    endif()
  endif()
endforeach()

if(_ramet_lacks)
  set(Ramet_FOUND FALSE)
  set(Ramet_NOT_FOUND_MESSAGE "Ramet in ${Ramet_PREFIX} lacks ${_ramet_lacks}")
endif()
unset(_ramet_component)
unset(_ramet_lacks)
unset(_ramet_missing)
unset(_ramet_shared)
unset(_ramet_type)
