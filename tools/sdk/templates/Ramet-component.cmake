# The component "@NAME@" of Ramet @VERSION@; RametConfig.cmake includes it.
@FINDS@
if(NOT _ramet_missing AND NOT TARGET Ramet::@NAME@)
  if(_ramet_shared)
    add_library(Ramet::@NAME@ @SHARED_KIND@ IMPORTED)
    set_target_properties(Ramet::@NAME@ PROPERTIES
      @SHARED@)
  else()
    add_library(Ramet::@NAME@ @KIND@ IMPORTED)
    # A plug-in that holds the archive shows none of it: another one may hold it too. A program holds what it calls.
    set_target_properties(Ramet::@NAME@ PROPERTIES
      @ARCHIVE@
      INTERFACE_LINK_LIBRARIES "@LINKS@"
      INTERFACE_LINK_OPTIONS "@OPTIONS@")
  endif()
  set_target_properties(Ramet::@NAME@ PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${Ramet_INCLUDE_DIR}"
    INTERFACE_COMPILE_FEATURES cxx_std_17)
endif()
