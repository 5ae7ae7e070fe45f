// Draws that need a known number of random numbers: uniform, integers, by inversion, permutations.
#include <cmath>
#include <numeric>
#include <utility>

#include "autograd/ops/random/mersenne_fill_internal.h"
#include "autograd/ops/shape/view.h"

namespace ramet {
namespace autograd {
namespace mersenne {

namespace {

template <class T, class V> void store_as(void* elements, int64_t at, const V* values, int64_t n) {
  T* const to = static_cast<T*>(elements) + at;
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
      to[i] = T(static_cast<float>(values[i]));
    else if constexpr (std::is_same_v<T, bool>) to[i] = values[i] != 0;
    else if constexpr (std::is_integral_v<T> && !std::is_integral_v<V>)
      // What does not fit becomes the smallest int64, as a conversion on x86-64 does.
      to[i] = static_cast<T>(
          values[i] >= -0x1p63 && values[i] < 0x1p63 ? static_cast<int64_t>(values[i]) : INT64_MIN);
    else to[i] = static_cast<T>(values[i]);
  }
}
template <class V>
void store_all(void* elements, ScalarType dtype, int64_t at, const V* values, int64_t n) {
  switch (dtype) {
    case kBool: return store_as<bool>(elements, at, values, n);
    case kByte: return store_as<uint8_t>(elements, at, values, n);
    case kChar: return store_as<int8_t>(elements, at, values, n);
    case kShort: return store_as<int16_t>(elements, at, values, n);
    case kInt: return store_as<int32_t>(elements, at, values, n);
    case kUInt16: return store_as<uint16_t>(elements, at, values, n);
    case kUInt32: return store_as<uint32_t>(elements, at, values, n);
    case kHalf: return store_as<Half>(elements, at, values, n);
    case kBFloat16: return store_as<BFloat16>(elements, at, values, n);
    case kFloat: return store_as<float>(elements, at, values, n);
    case kDouble: return store_as<double>(elements, at, values, n);
    default: return store_as<int64_t>(elements, at, values, n);
  }
}

// A uniform number of [from, to) from one of [0, 1), in the arithmetic of T.
template <class T> T stretched(T u, T from, T to) { return std::fma(u, to - from, from); }

// `value` as the dtype rounds it.
double rounded(double value, ScalarType dtype) {
  switch (dtype) {
    case kHalf: return Half(static_cast<float>(value));
    case kBFloat16: return BFloat16(static_cast<float>(value));
    case kFloat: return static_cast<float>(value);
    default: return value;
  }
}

// How many integers random_() chooses among; 0 is 2^64.
uint64_t count_of(ScalarType dtype) {
  switch (dtype) {
    case kBool: return 2;
    case kByte: return 256;
    case kChar: return 128;
    case kShort: return 1 << 15;
    case kInt: return uint64_t{1} << 31;
    case kUInt16: return 1 << 16;
    case kUInt32: return uint64_t{1} << 32;
    case kHalf: return (1 << 11) + 1;
    case kBFloat16: return (1 << 8) + 1;
    case kFloat: return (1 << 24) + 1;
    case kDouble: return (uint64_t{1} << 53) + 1;
    default: return uint64_t{1} << 63;
  }
}

}  // namespace

void store(void* elements, ScalarType dtype, int64_t at, const double* values, int64_t n) {
  store_all(elements, dtype, at, values, n);
}
void store(void* elements, ScalarType dtype, int64_t at, const int64_t* values, int64_t n) {
  store_all(elements, dtype, at, values, n);
}

std::vector<double> loaded(const Tensor& dense) {
  const Tensor wide = dense.detach().to(kDouble).contiguous();
  const auto* p = static_cast<const double*>(wide.ptr());
  return std::vector<double>(p, p + wide.numel());
}

Tensor in_memory_order(const Tensor& x, const Tensor& of) {
  const IntArrayRef strides = of.strides();
  std::vector<int64_t> dims(static_cast<size_t>(of.dim()));
  std::iota(dims.begin(), dims.end(), 0);
  std::stable_sort(dims.begin(), dims.end(), [&](int64_t a, int64_t b) {
    return strides[static_cast<size_t>(a)] > strides[static_cast<size_t>(b)];
  });
  return x.detach().permute(dims);
}

void uniform(const char* op, const Tensor& x, double from, double to, const Generator& generator) {
  const ScalarType dtype = x.scalar_type();
  const double low = rounded(from, dtype), high = rounded(to, dtype);
  // A number that the dtype rounds to the upper bound becomes the lower one.
  if (dtype == kDouble)
    return fill<double>(op, x, generator, [&](Mersenne& engine, int64_t) {
      const double u = stretched(engine.uniform(), from, to);
      return u == high ? low : u;
    });
  const auto first = static_cast<float>(from), last = static_cast<float>(to);
  fill<double>(op, x, generator, [&](Mersenne& engine, int64_t) {
    const double u = rounded(stretched(engine.uniform_float(), first, last), dtype);
    return u == high ? low : u;
  });
}

void integers(const char* op, const Tensor& x, int64_t low, uint64_t count,
              const Generator& generator) {
  const auto base = static_cast<uint64_t>(low);
  if (count != 0 && count < (uint64_t{1} << 28))
    return fill<int64_t>(op, x, generator, [&](Mersenne& engine, int64_t) {
      return static_cast<int64_t>(engine.random() % static_cast<uint32_t>(count) + base);
    });
  fill<int64_t>(op, x, generator, [&](Mersenne& engine, int64_t) {
    const uint64_t draw = engine.random64();
    return static_cast<int64_t>(count == 0 ? draw : draw % count + base);
  });
}

void integers(const char* op, const Tensor& x, const Generator& generator) {
  const ScalarType dtype = x.scalar_type();
  const uint64_t count = count_of(dtype);
  if (dtype == kLong || dtype == kDouble) return integers(op, x, 0, count, generator);
  fill<int64_t>(op, x, generator, [&](Mersenne& engine, int64_t) {
    return static_cast<int64_t>(engine.random() % count);
  });
}

void bernoulli(const char* op, const Tensor& x, double p, const Generator& generator) {
  fill<double>(op, x, generator,
               [&](Mersenne& engine, int64_t) { return engine.uniform() < p ? 1.0 : 0.0; });
}

void bernoulli(const char* op, const Tensor& x, const Tensor& p, const Generator& generator) {
  const std::vector<double> values = loaded(in_memory_order(p.detach().expand(x.sizes()), x));
  const bool wide = p.scalar_type() == kDouble;
  fill<double>(op, x, generator, [&](Mersenne& engine, int64_t i) {
    const double u = wide ? engine.uniform() : engine.uniform_float();
    return u < values[static_cast<size_t>(i)] ? 1.0 : 0.0;
  });
}

void exponential(const char* op, const Tensor& x, double lambda, const Generator& generator) {
  fill<double>(op, x, generator, [&](Mersenne& engine, int64_t) {
    return -1.0 / lambda * std::log1p(-engine.uniform());
  });
}

void log_normal(const char* op, const Tensor& x, double mean, double std,
                const Generator& generator) {
  fill<double>(op, x, generator, [&](Mersenne& engine, int64_t) {
    return std::exp(std::fma(engine.normal(), std, mean));
  });
}

void cauchy(const char* op, const Tensor& x, double median, double sigma,
            const Generator& generator) {
  fill<double>(op, x, generator, [&](Mersenne& engine, int64_t) {
    return std::fma(sigma, std::tan(M_PI * (engine.uniform() - 0.5)), median);
  });
}

void geometric(const char* op, const Tensor& x, double p, const Generator& generator) {
  fill<double>(op, x, generator, [&](Mersenne& engine, int64_t) {
    return std::ceil(std::log(engine.uniform()) / std::log1p(-p));
  });
}

void permutation(const char* op, const Tensor& x, const Generator& generator) {
  const int64_t n = x.numel();
  if (n == 0) return;
  auto* const order = static_cast<int64_t*>(x.ptr());
  const MersenneDraw engine(op, generator);
  constexpr int64_t kFew = UINT32_MAX / 20;
  if (n < kFew) {
    std::iota(order, order + n, 0);
    for (int64_t i = 0; i < n - 1; ++i)
      std::swap(order[i], order[i + engine->random() % static_cast<uint32_t>(n - i)]);
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    const auto j = static_cast<int64_t>(engine->random64() % static_cast<uint64_t>(i + 1));
    order[i] = i;
    order[i] = order[j];
    order[j] = i;
  }
}

void slopes(const char* op, const Tensor& x, const Tensor& where, double low, double high,
            const Generator& generator) {
  const std::vector<double> values = loaded(where);
  // LibTorch's bounds are numbers of x's dtype.
  const ScalarType dtype = x.scalar_type();
  const double first = rounded(low, dtype), width = rounded(high, dtype) - first;
  fill<double>(op, x, generator, [&](Mersenne& engine, int64_t i) {
    // Rounded twice, as in LibTorch's builds.
    return values[static_cast<size_t>(i)] <= 0 ? engine.uniform() * width + first : 1.0;
  });
}

}  // namespace mersenne
}  // namespace autograd
}  // namespace ramet
