# What targets.cmake calls.

# A script of this folder; its failure is the configuration's. Nothing is written into the tree.
function(ramet_run_python script)
  execute_process(COMMAND "${Python3_EXECUTABLE}" -B "${CMAKE_CURRENT_SOURCE_DIR}/${script}" ${ARGN}
    RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT failed EQUAL 0)
    message(FATAL_ERROR "Ramet: ${script} failed:\n${output}")
  endif()
endfunction()

# Sources of ours: the standard, the folders of headers, no path of this machine in texts.
function(ramet_compiled target standard)
  set_target_properties(${target} PROPERTIES CXX_STANDARD ${standard} CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF
    CUDA_STANDARD ${standard} CUDA_STANDARD_REQUIRED ON CUDA_EXTENSIONS OFF UNITY_BUILD OFF)
  get_target_property(type ${target} TYPE)
  if(NOT ramet_position_independent)
  elseif(type STREQUAL EXECUTABLE)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fPIC>) # as all objects, so that they share precompiled headers
  else()
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  endif()
  target_include_directories(${target} PRIVATE "${ramet_root}" "${ramet_made}")
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-fmacro-prefix-map=${ramet_root}/=>")
  # Of clang's own warnings: GCC's library itself uses what it calls deprecated, a loop that clang cannot vectorise has the same bits.
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANG_AND_ID:CXX,Clang,AppleClang>:-Wno-deprecated-declarations;-Wno-pass-failed>")
  if(target MATCHES "^ramet_tests_")
    # Tests call operations in each way that C++ allows.
    target_compile_options(${target} PRIVATE
      "$<$<COMPILE_LANG_AND_ID:CXX,Clang,AppleClang>:-Wno-braced-scalar-init;-Wno-literal-conversion>")
  endif()
  # GCC 11 takes a length in its own library for too large.
  target_compile_options(${target} PRIVATE
    "$<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,12>>:-Wno-stringop-overread>")
  target_compile_definitions(${target} PRIVATE $<$<NOT:$<CONFIG:Debug>>:NDEBUG>)
  target_link_libraries(${target} PRIVATE Threads::Threads)
endfunction()

function(ramet_archive target)
  string(REGEX REPLACE "^ramet_" "" name ${target})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ramet_${name} ARCHIVE_OUTPUT_DIRECTORY "$<1:${ramet_out}/lib>" POSITION_INDEPENDENT_CODE ${ramet_position_independent})
endfunction()

function(ramet_begins_with target holder)
  if(RAMET_PRECOMPILED_HEADERS)
    target_precompile_headers(${target} REUSE_FROM ${holder})
  endif()
endfunction()

# Kernels by CMake's CUDA language; the options of tools/cuda/library.bzl.
function(ramet_nvcc target)
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:-lineinfo;${ARGN}>")
endfunction()

function(ramet_program target folder name)
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "$<1:${ramet_out}/${folder}>" OUTPUT_NAME "${name}" LINKER_LANGUAGE CXX)
  target_link_options(${target} PRIVATE LINKER:--gc-sections ${ramet_link_options})
endfunction()

# ---- components ----------------------------------------------------------------------------------

# Ramet::<name>, as find_package(Ramet) of an installed tree has it.
function(ramet_component name)
  add_library(ramet_component_${name} INTERFACE)
  add_library(Ramet::${name} ALIAS ramet_component_${name})
  target_include_directories(ramet_component_${name} SYSTEM INTERFACE "${ramet_out}/include")
  target_compile_features(ramet_component_${name} INTERFACE cxx_std_17)
  target_link_options(ramet_component_${name} INTERFACE LINKER:--gc-sections ${ramet_link_options})
  target_compile_options(ramet_component_${name} INTERFACE ${ramet_compile_options})
endfunction()

# A plug-in that holds the archives shows none of them.
function(ramet_hides name)
  set(ramet_archives_${name} ${ARGN} PARENT_SCOPE)
  if(EMSCRIPTEN)
    return() # its linker has no --exclude-libs, and there are no plug-ins
  endif()
  set(files "")
  foreach(target IN LISTS ARGN)
    list(APPEND files lib${target}.a)
  endforeach()
  list(JOIN files ":" files)
  target_link_options(ramet_component_${name} INTERFACE LINKER:--exclude-libs,${files})
endfunction()

# No program names what is inside.
function(ramet_linked_whole name target)
  target_link_options(ramet_component_${name} INTERFACE "LINKER:--whole-archive,$<TARGET_FILE:${target}>,--no-whole-archive")
endfunction()

# ---- tests ---------------------------------------------------------------------------------------

# Tests run as Bazel runs them: in a folder that has the tree's files, with a folder of their own for what they write.
#   link: where the test is a name of a program, the program
function(ramet_test name target path link timeout labels)
  if(link)
    get_filename_component(folder "${ramet_out}/${path}" DIRECTORY)
    file(MAKE_DIRECTORY "${folder}")
    file(CREATE_LINK "${link}" "${ramet_out}/${path}" SYMBOLIC)
  endif()
  if(NOT EXISTS "${ramet_out}/run")
    file(MAKE_DIRECTORY "${ramet_out}/run")
    file(GLOB entries RELATIVE "${ramet_root}" "${ramet_root}/[a-zA-Z]*")
    foreach(entry IN LISTS entries)
      string(FIND "${ramet_out}/" "${ramet_root}/${entry}/" position) # a build folder in the tree
      if(NOT entry MATCHES "^bazel-" AND NOT position EQUAL 0)
        file(CREATE_LINK "${ramet_root}/${entry}" "${ramet_out}/run/${entry}" SYMBOLIC)
      endif()
    endforeach()
  endif()
  string(REPLACE ":" "/" own "${ramet_out}/tmp/${name}") # lists of paths have colons
  add_test(NAME "${name}" COMMAND sh "${CMAKE_CURRENT_SOURCE_DIR}/run_test.sh" "${own}" "${ramet_out}/${path}")
  set_tests_properties("${name}" PROPERTIES WORKING_DIRECTORY "${ramet_out}/run" TIMEOUT ${timeout} LABELS "${labels}" ENVIRONMENT "${ARGN}")
endfunction()
if(RAMET_TESTS)
  enable_testing()
endif()
