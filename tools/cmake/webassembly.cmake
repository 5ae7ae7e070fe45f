# WebAssembly by Emscripten: `emcmake cmake -S tools/cmake -B build` (NOTES.md).

# Nothing loads such a program's code at another place.
set(ramet_position_independent OFF)
# Exceptions are the processor's own: calls that catch cost nothing. A consumer's objects need the option, too.
set(ramet_compile_options -fwasm-exceptions)
add_compile_options(-fwasm-exceptions)
# The vector layer is that of x86-64's base variant, with the same bits (kernels/simd/vec_sse2.h).
add_compile_options(-msimd128 -msse2)
set(ramet_eigen_definitions EIGEN_DONT_VECTORIZE) # it takes -msse2 for an x86

# Libraries that are headers alone (Eigen, JSON, xxHash) are the machine's own. The rest of /usr/include is another C library's, so
# the compiler sees a folder of links.
set(ramet_headers_are_at PATHS /usr/include NO_CMAKE_FIND_ROOT_PATH)
function(ramet_take_header name header folder)
  string(REGEX REPLACE "/.*" "" first "${header}")
  file(MAKE_DIRECTORY "${ramet_out}/others/${name}")
  file(CREATE_LINK "${folder}/${first}" "${ramet_out}/others/${name}/${first}" SYMBOLIC)
  target_include_directories(ramet_external_${name} SYSTEM INTERFACE "${ramet_out}/others/${name}")
endfunction()
# A program's memory grows as it asks for it. Deep graphs are destroyed without recursion, so a megabyte of stack is enough.
set(ramet_link_options -fwasm-exceptions -sALLOW_MEMORY_GROWTH=1 -sTOTAL_STACK=1MB)
# Debian's Node.js 18 and later have fetch(), by which this Emscripten then reads the program, and which reads no files.
set(CMAKE_CROSSCOMPILING_EMULATOR "${NODE_JS_EXECUTABLE}" --no-experimental-fetch)
# Debian's Emscripten wants a package that a Node.js of other origin does not look for there.
if(EXISTS /usr/share/nodejs/acorn AND NOT DEFINED ENV{NODE_PATH})
  set_property(GLOBAL PROPERTY RULE_LAUNCH_LINK "\"${CMAKE_COMMAND}\" -E env NODE_PATH=/usr/share/nodejs")
endif()
