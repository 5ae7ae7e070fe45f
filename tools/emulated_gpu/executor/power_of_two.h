// 2^x as the emulated GPUs compute it (ptx::ex2).
//
// Note [Approximations]: For ex2.approx.ftz.f32, PTX specifies the error: 2 units in the last
// place. It also specifies the results for infinities, NaN, zeros and subnormal numbers. It does
// not specify the bits (PTX ISA, "ex2"). They are the same from run to run on one GPU model, no
// more. So a digest of results that use it holds for one device model. The same is true of
// mma.sync: PTX does not specify its order of summing inside an instruction.
//
// The emulated GPU is a device model of its own. This source, and not the C library of some
// machine, defines its digests. So the function uses arithmetic that IEEE 754 defines to the last
// bit: double precision without contraction, rounded once. It is within half a unit (and 1e-6 of
// one). So tests of formulas see the same error as on a GPU, or a smaller one. (Accurate functions,
// such as the logarithm of a row's sum in attention, are the C library's here and CUDA's there.)
//
// The rejected option: a polynomial in float on the GPU, too, with the same bits on both. It takes
// ten instructions where the processor has one, and the products before and after it differ anyway.
#pragma once
#include <cstdint>

#include "tools/emulated_gpu/executor/half_types.h"

namespace ramet::emulated {

inline float power_of_two(float x) {
  if (x != x) return float_of(0x7fffffffu);
  if (x >= 128) return float_of(0x7f800000u);
  if (x < -126) return 0;  // the result would be subnormal
  // x = n + r, |r| <= 1/2, both exact.
  const double shifted = x + 0x1.8p52, n = shifted - 0x1.8p52, y = (x - n) * 0x1.62e42fefa39efp-1;
  // e^y by its series: |y| <= 0.347, so that what is left out is below 7e-15.
  const double y2 = y * y, y4 = y2 * y2, a = (1 + y) + y2 * (1.0 / 2 + y * (1.0 / 6)),
               b = (1.0 / 24 + y * (1.0 / 120)) + y2 * (1.0 / 720 + y * (1.0 / 5040)),
               c = (1.0 / 40320 + y * (1.0 / 362880)) + y2 * (1.0 / 3628800 + y * (1.0 / 39916800));
  const auto exponent = static_cast<uint64_t>(static_cast<int64_t>(n) + 1023) << 52;
  double scale;
  std::memcpy(&scale, &exponent, sizeof scale);
  return static_cast<float>((a + y4 * (b + y4 * c)) * scale);
}

}  // namespace ramet::emulated
