# The component "@NAME@" of Ramet @VERSION@; RametConfig.cmake includes it.
@FINDS@
if(NOT _ramet_missing AND NOT TARGET Ramet::@NAME@)
  if(Ramet_SHARED)
@SHARED@
  else()
    add_library(Ramet::@NAME@ @KIND@ IMPORTED)
    set_target_properties(Ramet::@NAME@ PROPERTIES
@LOCATION@      INTERFACE_LINK_LIBRARIES "@LINKS@")
  endif()
@MORE@endif()
