// Declares the small functions of kernel files as always inlined, so that no variant leaves a weak
// symbol in the program (kernel.h). Files with GPU code define it first (gpu_math.h).
#pragma once

#if !defined(RAMET_INLINE)
#define RAMET_INLINE inline __attribute__((always_inline))
#endif
