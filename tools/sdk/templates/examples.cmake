# Ramet's examples, each one program. From here:
#
#   cmake -S . -B /tmp/examples && cmake --build /tmp/examples && /tmp/examples/first_program
#
# The default target is first_program alone. `cmake --build /tmp/examples --target examples` makes all examples that find their
# libraries. Those in c/ are of C and Fortran, mpi_* of MPI programs.
cmake_minimum_required(VERSION 3.16)
project(RametExamples C CXX)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

# Where this folder stands; a copy of it elsewhere finds Ramet by CMAKE_PREFIX_PATH.
find_package(Ramet CONFIG REQUIRED OPTIONAL_COMPONENTS processes formats script ledger see c c_processes c_script cuda HINTS "${CMAKE_CURRENT_LIST_DIR}/../../..")

find_package(Eigen3 QUIET CONFIG)

enable_testing()
add_custom_target(examples)

# example(NAME "LIBRARIES" SOURCES... [COMMAND WORDS...] [ARGUMENTS WORDS...]): where all the libraries are there.
function(example name libraries)
  cmake_parse_arguments(PARSE_ARGV 2 example "" "" "COMMAND;ARGUMENTS")
  foreach(library IN LISTS libraries)
    if(NOT TARGET ${library})
      return()
    endif()
  endforeach()
  add_executable(${name} EXCLUDE_FROM_ALL ${example_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE ${libraries} m)  # which programs in C name themselves
  # Modules of Fortran, one folder a program: each compiles them.
  set_target_properties(${name} PROPERTIES Fortran_MODULE_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/modules_${name}")
  add_dependencies(examples ${name})
  add_test(NAME ${name} COMMAND ${example_COMMAND} ${name} ${example_ARGUMENTS})
endfunction()

file(GLOB programs CONFIGURE_DEPENDS *.cc)
foreach(program IN LISTS programs)
  get_filename_component(name "${program}" NAME_WE)
  set(libraries Ramet::ramet)
  if(name MATCHES "^processes_")
    list(APPEND libraries Ramet::processes)
  endif()
  if(name MATCHES "_gpus$")
    list(APPEND libraries Ramet::cuda)
  endif()
  if(name STREQUAL "weights_of_others" OR name STREQUAL "exchange")
    list(APPEND libraries Ramet::formats)
  endif()
  if(name STREQUAL "script" OR name STREQUAL "exported")
    list(APPEND libraries Ramet::script)
  endif()
  if(name STREQUAL "ledger")
    list(APPEND libraries Ramet::ledger)
  endif()
  if(name STREQUAL "recorded_step" OR name STREQUAL "pictures")
    list(APPEND libraries Ramet::see)
  endif()
  if(name STREQUAL "exchange")
    list(APPEND libraries Eigen3::Eigen)
  endif()
  set(arguments "")
  if(name STREQUAL "language_model")  # a text, and a few steps of what would take longer
    set(arguments ARGUMENTS "${CMAKE_CURRENT_SOURCE_DIR}/language_model.cc" 200)
  endif()
  if(name STREQUAL "lora")  # two texts
    set(arguments ARGUMENTS "${CMAKE_CURRENT_SOURCE_DIR}/language_model.cc" "${CMAKE_CURRENT_LIST_FILE}")
  endif()
  example(${name} "${libraries}" ${name}.cc ${arguments})
endforeach()
set_target_properties(first_program PROPERTIES EXCLUDE_FROM_ALL FALSE)

if(NOT TARGET Ramet::c)
  return()
endif()
example(game_loop "Ramet::c" c/game_loop.c)
example(callback_thread "Ramet::c" c/callback_thread.c)

# Fortran's modules are compiled with the program: compilers write them each in a form of its own.
set(fortran "${Ramet_INCLUDE_DIR}/ramet/ramet.f90")
include(CheckLanguage)
check_language(Fortran)
set(languages C)
if(CMAKE_Fortran_COMPILER)
  enable_language(Fortran)
  list(APPEND languages Fortran)
  example(arrays "Ramet::c" c/arrays.f90 ${fortran})
  example(closure "Ramet::c" c/closure.f90 ${fortran})
endif()

if(TARGET Ramet::c_processes)
  # CMake makes the targets MPI::MPI_C and MPI::MPI_Fortran where it finds no MPI, too.
  find_package(MPI QUIET OPTIONAL_COMPONENTS ${languages})
  set(run "${MPIEXEC_EXECUTABLE}" "${MPIEXEC_NUMPROC_FLAG}" 2)
  if(MPI_C_FOUND)
    example(mpi_training "Ramet::c_processes;MPI::MPI_C" c/mpi_training.c COMMAND ${run})
  endif()
  if(MPI_Fortran_FOUND)
    example(mpi_ranks "Ramet::c_processes;MPI::MPI_Fortran" c/mpi_ranks.f90 ${fortran}
      "${Ramet_INCLUDE_DIR}/ramet/ramet_processes.f90" COMMAND ${run})
  endif()
endif()
