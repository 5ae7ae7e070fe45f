// Normal numbers as LibTorch draws them: one by one in doubles, or in blocks of 16.
//
// A block takes 16 uniform numbers. The first eight give the radii, the others the angles, of Box
// and Muller's method. Where the size is no multiple of 16, the last 16 elements are drawn again.
// In floats, logarithm, sine and cosine are S. Moshier's polynomials (Cephes library: logf, sinf,
// cosf). LibTorch's builds for processors with AVX2 or AVX-512 use them, with fused multiply-adds.
#include <cmath>
#include <cstring>

#include "autograd/ops/random/mersenne_fill_internal.h"
#include "runtime/base/half.h"

namespace ramet {
namespace autograd {
namespace mersenne {

namespace {

constexpr int64_t kBlock = 16, kPairs = 8;

// log(x) for normal x > 0.
float log_of(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  float e = static_cast<float>(static_cast<int32_t>(bits >> 23) - 126);
  bits = (bits & 0x807fffffu) | 0x3f000000u;  // the fraction, in [1/2, 1)
  std::memcpy(&x, &bits, sizeof bits);
  const bool small = x < 0.707106781186547524f;
  const float before = x;
  x -= 1;
  if (small) {
    e -= 1;
    x += before;
  }
  constexpr float kTerms[] = {-1.1514610310e-1f, 1.1676998740e-1f,  -1.2420140846e-1f,
                              1.4249322787e-1f,  -1.6668057665e-1f, 2.0000714765e-1f,
                              -2.4999993993e-1f, 3.3333331174e-1f};
  const float z = x * x;
  float y = 7.0376836292e-2f;
  for (const float term : kTerms) y = std::fma(y, x, term);
  y = std::fma(y * x, z, e * -2.12194440e-4f);
  y = std::fma(z, -0.5f, y);
  return std::fma(e, 0.693359375f, x + y);
}

// The sine and cosine of x in [0, 8192).
struct Turn {
  float sine, cosine;
};
Turn turn_of(float x) {
  const int32_t octant = (static_cast<int32_t>(x * 1.27323954473516f) + 1) & ~1;
  const auto y = static_cast<float>(octant);
  x = std::fma(y, -0.78515625f, x);
  x = std::fma(y, -2.4187564849853515625e-4f, x);
  x = std::fma(y, -3.77489497744594108e-8f, x);
  const float z = x * x;
  float c = std::fma(2.443315711809948e-5f, z, -1.388731625493765e-3f);
  c = std::fma(c, z, 4.166664568298827e-2f);
  c = std::fma(c * z, z, z * -0.5f) + 1.0f;
  float s = std::fma(-1.9515295891e-4f, z, 8.3321608736e-3f);
  s = std::fma(s, z, -1.6666654611e-1f);
  s = std::fma(s * z, x, x);
  const bool swapped = (octant & 2) != 0;
  const float sine = swapped ? c : s, cosine = swapped ? s : c;
  return {(octant & 4) ? -sine : sine, ((octant - 2) & 4) ? cosine : -cosine};
}

void make_normal(float* block, float mean, float std) {
  for (int64_t i = 0; i < kPairs; ++i) {
    const float radius = std::sqrt(-2.0f * log_of(1.0f - block[i]));
    const Turn turn = turn_of(static_cast<float>(2.0 * M_PI) * block[i + kPairs]);
    block[i] = std::fma(radius * turn.cosine, std, mean);
    block[i + kPairs] = std::fma(radius * turn.sine, std, mean);
  }
}
void make_normal(double* block, double mean, double std) {
  for (int64_t i = 0; i < kPairs; ++i) {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - block[i]));
    const double angle = 2.0 * M_PI * block[i + kPairs];
    block[i] = std::fma(radius * std::cos(angle), std, mean);
    block[i + kPairs] = std::fma(radius * std::sin(angle), std, mean);
  }
}

float uniform_of(Mersenne& engine, float*) { return engine.uniform_float(); }
double uniform_of(Mersenne& engine, double*) { return engine.uniform(); }

// Uniform numbers for all elements come first, then blocks.
template <class T> void fill_wide(T* x, int64_t n, T mean, T std, Mersenne& engine) {
  for (int64_t i = 0; i < n; ++i) x[i] = uniform_of(engine, x);
  for (int64_t i = 0; i + kBlock <= n; i += kBlock) make_normal(x + i, mean, std);
  if (n % kBlock == 0) return;
  x += n - kBlock;
  for (int64_t i = 0; i < kBlock; ++i) x[i] = uniform_of(engine, x);
  make_normal(x, mean, std);
}
// 16-bit types: block by block, computed in floats.
void fill_narrow(void* x, ScalarType dtype, int64_t n, float mean, float std, Mersenne& engine) {
  const auto block_at = [&](int64_t at) {
    float block[kBlock];
    for (float& u : block) u = engine.uniform_float();
    make_normal(block, mean, std);
    double values[kBlock];
    std::copy(block, block + kBlock, values);
    store(x, dtype, at, values, kBlock);
  };
  for (int64_t i = 0; i + kBlock <= n; i += kBlock) block_at(i);
  if (n % kBlock) block_at(n - kBlock);
}

}  // namespace

void normal(const char* op, const Tensor& x, double mean, double std, const Generator& generator) {
  const int64_t n = x.numel();
  if (n < kBlock || !x.is_contiguous())
    return fill<double>(op, x, generator, [&](Mersenne& engine, int64_t) {
      return std::fma(engine.normal(), std, mean);
    });
  written(x, [&](void* elements) {
    const MersenneDraw engine(op, generator);
    const auto narrow_mean = static_cast<float>(mean), narrow_std = static_cast<float>(std);
    switch (x.scalar_type()) {
      case kDouble: return fill_wide(static_cast<double*>(elements), n, mean, std, *engine);
      case kFloat:
        return fill_wide(static_cast<float*>(elements), n, narrow_mean, narrow_std, *engine);
      default: return fill_narrow(elements, x.scalar_type(), n, narrow_mean, narrow_std, *engine);
    }
  });
}

}  // namespace mersenne
}  // namespace autograd
}  // namespace ramet
