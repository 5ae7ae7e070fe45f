// The functions that formulas (pointwise/rows) may call on a GPU, where a thread computes one
// float, double or int64. This is the first header of a .cu file. It makes the helpers that GPU and
// CPU kernels share (scalar_math.h, cast.h, util.h) device code in the namespace `cuda`.
//
// Floats use CUDA's accurate functions, at most 2 ulp, like the CPU's own (vmath.h). Nothing here
// uses the fast, approximate ones (attention on tensor cores has one, in ptx.h).
#pragma once
#include "runtime/cuda/gpu.h"

#define RAMET_GPU_MATH
#define RAMET_VARIANT cuda
#define RAMET_INLINE __host__ __device__ __forceinline__
#define RAMET_LIBM(function) ::function
#include "kernels/copy/cast.h"
#include "kernels/simd/scalar_math.h"

namespace ramet::kernels::RAMET_VARIANT {

RAMET_SCALAR_OPS(float)

RAMET_INLINE float vadd(float a, float b) { return a + b; }
RAMET_INLINE float vsub(float a, float b) { return a - b; }
RAMET_INLINE float vmul(float a, float b) { return a * b; }
RAMET_INLINE float fma(float a, float b, float c) { return ::fmaf(a, b, c); }
RAMET_INLINE float vabs(float x) { return ::fabsf(x); }
RAMET_INLINE float sqrt(float x) { return ::sqrtf(x); }
RAMET_INLINE float vround(float x) { return ::rintf(x); }
RAMET_INLINE float vfloor(float x) { return ::floorf(x); }
RAMET_INLINE float vceil(float x) { return ::ceilf(x); }
RAMET_INLINE float vtrunc(float x) { return ::truncf(x); }
RAMET_INLINE float vexp(float x) { return ::expf(x); }
RAMET_INLINE float vexpm1(float x) { return ::expm1f(x); }
RAMET_INLINE float vlog(float x) { return ::logf(x); }
RAMET_INLINE float vlog1p(float x) { return ::log1pf(x); }
RAMET_INLINE float vlog2(float x) { return ::log2f(x); }
RAMET_INLINE float vsin(float x) { return ::sinf(x); }
RAMET_INLINE float vcos(float x) { return ::cosf(x); }
RAMET_INLINE float vtanh(float x) { return ::tanhf(x); }
RAMET_INLINE float verf(float x) { return ::erff(x); }
RAMET_INLINE float vsigmoid(float x) { return 1.0f / (1.0f + ::expf(-x)); }
RAMET_INLINE float vpow(float a, float b) { return ::powf(a, b); }
RAMET_INLINE float vfmod(float a, float b) { return ::fmodf(a, b); }

}  // namespace ramet::kernels::RAMET_VARIANT
