# Ramet's examples, each one file. From here:
#
#   cmake -S . -B /tmp/examples && cmake --build /tmp/examples && /tmp/examples/first_program
#
# The default target is first_program alone; `cmake --build /tmp/examples --target examples` makes all.
cmake_minimum_required(VERSION 3.16)
project(RametExamples CXX)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

# Where this folder stands; a copy of it elsewhere finds Ramet by CMAKE_PREFIX_PATH.
find_package(Ramet CONFIG REQUIRED OPTIONAL_COMPONENTS processes formats cuda HINTS "${CMAKE_CURRENT_LIST_DIR}/../../..")

find_package(Eigen3 QUIET CONFIG)

enable_testing()
add_custom_target(examples)
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
  if(name STREQUAL "exchange")
    list(APPEND libraries Eigen3::Eigen)
  endif()
  set(there TRUE)
  foreach(library IN LISTS libraries)
    if(NOT TARGET ${library})
      set(there FALSE)
    endif()
  endforeach()
  if(there)
    add_executable(${name} EXCLUDE_FROM_ALL ${name}.cc)
    target_link_libraries(${name} PRIVATE ${libraries})
    add_dependencies(examples ${name})
    add_test(NAME ${name} COMMAND ${name})
  endif()
endforeach()
set_target_properties(first_program PROPERTIES EXCLUDE_FROM_ALL FALSE)
