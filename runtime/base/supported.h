// Requirements on the compilation of a file that includes Ramet. Others get one clear error.
#pragma once

#if __SIZEOF_POINTER__ != 8 && !defined(__EMSCRIPTEN__)
#error "Ramet wants a 64-bit target: compile this unit without -m32"
#endif
#if !defined(__GXX_RTTI)
#error "Ramet wants run-time type information: compile this unit without -fno-rtti"
#endif
#if !defined(__cpp_exceptions)
#error "Ramet reports errors by exceptions: compile this unit without -fno-exceptions"
#endif
#include <cstddef>
#if defined(_LIBCPP_VERSION) && !defined(__EMSCRIPTEN__)
#error "Ramet wants libstdc++: compile this unit without -stdlib=libc++"
#endif
