// How the small functions of kernel files are declared: always inlined, so that no variant leaves a
// weak symbol behind (kernel.h). Files that are GPU code too define it before (gpu_math.h).
#pragma once

#if !defined(RAMET_INLINE)
#define RAMET_INLINE inline __attribute__((always_inline))
#endif
