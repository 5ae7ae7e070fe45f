#include "tools/see/statistics_of.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "autograd/grad_mode.h"
#include "kernels/simd/shuffle.h"
#include "runtime/base/thread_pool.h"

namespace ramet {
namespace see {
namespace {

// Two passes over pieces of the values, a vector at a time. The pieces are the same for any number
// of threads, and so are the bits. Values are float or double, whichever can hold all values of the
// dtype. Sums are double.
constexpr int64_t kBuffer = 4096, kPiece = 8 * kBuffer;
template <class V> struct Wide {
  static constexpr int64_t kLanes = 32 / sizeof(V);
  using Int = std::conditional_t<sizeof(V) == 4, int32_t, int64_t>;
  using Values [[gnu::vector_size(32)]] = V;
  using Ints [[gnu::vector_size(32)]] = Int;  // and what comparing gives: -1 or 0
};
using Doubles = Wide<double>::Values;
using Bytes [[gnu::vector_size(32)]] = uint8_t;

// Results of the first pass. All but the counts are of the finite values.
struct Extent {
  double sum = 0, low = HUGE_VAL, high = -HUGE_VAL;
  int64_t zeros = 0, nans = 0, finite = 0;
  void add(const Extent& o) {
    sum += o.sum;
    low = std::min(low, o.low), high = std::max(high, o.high);
    zeros += o.zeros, nans += o.nans, finite += o.finite;
  }
};
// The second pass's input: it first multiplies values by `unit`.
struct Scale {
  double unit = 1, low = 0, mean = 0, per_range = 0, per_bin = 0;
};
struct Spread {
  double squares = 0;  // of (value - mean) / range
  std::array<int64_t, 32> histogram{};
  void add(const Spread& o) {
    squares += o.squares;
    for (size_t i = 0; i < histogram.size(); ++i) histogram[i] += o.histogram[i];
  }
};

#define RAMET_ALWAYS [[gnu::always_inline]] inline

// The sum of all lanes, in two that do not wait for each other.
struct Sum {
  Doubles a{}, b{};
  RAMET_ALWAYS void add(const Doubles& v) {
    a += v;
    std::swap(a, b);
  }
  RAMET_ALWAYS void add(const Wide<float>::Values& v) {
    a += __builtin_convertvector(RAMET_SHUFFLE(v, v, 0, 1, 2, 3), Doubles);
    b += __builtin_convertvector(RAMET_SHUFFLE(v, v, 4, 5, 6, 7), Doubles);
  }
  double get() const {
    const Doubles c = a + b;
    return (c[0] + c[1]) + (c[2] + c[3]);
  }
};

// `n` is a multiple of 32, as below.
template <class V> RAMET_ALWAYS void extent_of(const V* x, int64_t n, Extent& e) {
  using W = Wide<V>;
  constexpr V kLargest = std::numeric_limits<V>::max();
  Sum sum;
  typename W::Values low = std::numeric_limits<V>::infinity() - typename W::Values{}, high = -low;
  typename W::Ints zeros{}, nans{}, all{};
  for (int64_t i = 0; i < n; i += W::kLanes) {
    typename W::Values v;
    std::memcpy(&v, x + i, sizeof v);
    const typename W::Ints finite = (v <= kLargest) & (v >= -kLargest);
    sum.add(finite ? v : typename W::Values{});
    low = (finite & (v < low)) ? v : low;
    high = (finite & (v > high)) ? v : high;
    zeros -= v == 0;
    nans -= v != v;
    all -= finite;
  }
  e.sum += sum.get();
  for (int64_t k = 0; k < W::kLanes; ++k) {
    e.low = std::min<double>(e.low, low[k]), e.high = std::max<double>(e.high, high[k]);
    e.zeros += zeros[k], e.nans += nans[k], e.finite += all[k];
  }
}

// At most kBuffer values. Values that are not finite are in bin 32. The order of bins is not that
// of the values.
template <class V>
RAMET_ALWAYS void bins_of(const V* x, int64_t n, const Scale& s, double& squares, uint8_t* bins) {
  using W = Wide<V>;
  using Halves [[gnu::vector_size(W::kLanes * 4)]] = int32_t;  // what conversions are fast to
  constexpr V kLargest = std::numeric_limits<V>::max();
  const V unit = static_cast<V>(s.unit), low = static_cast<V>(s.low), mean = static_cast<V>(s.mean),
          per_range = static_cast<V>(s.per_range), per_bin = static_cast<V>(s.per_bin);
  Sum sum;
  for (int64_t i = 0; i < n; i += 32) {
    typename W::Ints packed{};  // each lane has bytes for that lane of several vectors
    for (int64_t k = 0; k < 32; k += W::kLanes) {
      typename W::Values v;
      std::memcpy(&v, x + i + k, sizeof v);
      const typename W::Ints finite = (v <= kLargest) & (v >= -kLargest);
      v *= unit;
      const typename W::Values off = (v - mean) * per_range;
      sum.add(finite ? off * off : typename W::Values{});
      typename W::Values bin = (v - low) * per_bin;
      bin = bin < 31 ? bin : 31 + typename W::Values{};
      bin = finite ? bin : 32 + typename W::Values{};
      packed <<= 8;
      packed |= __builtin_convertvector(__builtin_convertvector(bin, Halves), typename W::Ints);
    }
    std::memcpy(bins + i, &packed, sizeof packed);
  }
  squares += sum.get();
}

// Counts in several histograms at once: values are often alike, and updates of one counter would
// wait for each other.
RAMET_ALWAYS void count_bins(const uint8_t* bins, int64_t n, std::array<int64_t, 32>& histogram) {
  static_assert(kBuffer / 32 < 256);
  for (size_t bin = 0; bin < 32; bin += 4) {
    Bytes counts[4] = {};
    const auto wanted = static_cast<uint8_t>(bin);
    for (int64_t i = 0; i < n; i += 32) {
      Bytes b;
      std::memcpy(&b, bins + i, sizeof b);
      b -= wanted;
      counts[0] -= static_cast<Bytes>(b == 0);
      counts[1] -= static_cast<Bytes>(b == 1);
      counts[2] -= static_cast<Bytes>(b == 2);
      counts[3] -= static_cast<Bytes>(b == 3);
    }
    for (size_t k = 0; k < 4; ++k) {
      uint64_t words[4], sums = 0;  // four of 16 bits
      std::memcpy(words, &counts[k], sizeof counts[k]);
      for (const uint64_t w : words)
        sums += (w & 0x00ff00ff00ff00ff) + (w >> 8 & 0x00ff00ff00ff00ff);
      histogram[bin + k] += static_cast<int64_t>(sums * 0x0001000100010001 >> 48);
    }
  }
}

template <class V>
RAMET_ALWAYS void spread_of(const V* x, int64_t n, const Scale& s, Spread& spread) {
  uint8_t bins[kBuffer];
  bins_of(x, n, s, spread.squares, bins);
  count_bins(bins, n, spread.histogram);
}

// Compiled twice: most processors have wider vectors than the minimum that a program may assume.
template <class V> struct Passes {
  void (*extent)(const V*, int64_t, Extent&);
  void (*spread)(const V*, int64_t, const Scale&, Spread&);
};
template <class V> void extent_narrow(const V* x, int64_t n, Extent& e) { extent_of(x, n, e); }
template <class V> void spread_narrow(const V* x, int64_t n, const Scale& s, Spread& spread) {
  spread_of(x, n, s, spread);
}
#if defined(__x86_64__)
template <class V> [[gnu::target("avx2")]] void extent_avx2(const V* x, int64_t n, Extent& e) {
  extent_of(x, n, e);
}
template <class V>
[[gnu::target("avx2")]] void spread_avx2(const V* x, int64_t n, const Scale& s, Spread& spread) {
  spread_of(x, n, s, spread);
}
#endif
template <class V> Passes<V> passes() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return {extent_avx2<V>, spread_avx2<V>};
#endif
  return {extent_narrow<V>, spread_narrow<V>};
}

// Calls f(values, n) for at most kBuffer values at a time. NaN fill the last buffer up to a
// multiple of kLanes; the result is their number.
template <class V, class T, class F> int64_t over_buffers(const T* x, int64_t n, const F& f) {
  alignas(32) V buffer[kBuffer];
  int64_t more = 0;
  for (int64_t at = 0; at < n; at += kBuffer) {
    const int64_t here = std::min(n - at, kBuffer);
    if constexpr (std::is_same_v<V, T>)
      if (here % 32 == 0) {
        f(x + at, here);
        continue;
      }
    more = (here + 31) / 32 * 32 - here;
    for (int64_t i = 0; i < here; ++i) buffer[i] = static_cast<V>(x[at + i]);
    std::fill_n(buffer + here, more, std::numeric_limits<V>::quiet_NaN());
    f(buffer, here + more);
  }
  return more;
}

// What piece(values, n) gives, added up in the order of the pieces.
template <class Result, class T, class F>
Result over_pieces(const T* x, int64_t n, const F& piece) {
  const int64_t tasks = (n + kPiece - 1) / kPiece;
  if (tasks == 1) return piece(x, n);
  std::vector<Result> results(static_cast<size_t>(tasks));
  parallel_tasks(tasks, [&](int64_t task, int) {
    const int64_t first = task * kPiece;
    results[static_cast<size_t>(task)] = piece(x + first, std::min(n - first, kPiece));
  });
  for (size_t i = 1; i < results.size(); ++i) results[0].add(results[i]);
  return results[0];
}

template <class V, class T> Statistics of(const T* values, int64_t n) {
  Statistics s;
  s.count = n;
  const Passes pass = passes<V>();
  const Extent e = over_pieces<Extent>(values, n, [&](const T* x, int64_t count) {
    Extent of_piece;
    const int64_t more = over_buffers<V>(
        x, count, [&](const V* v, int64_t here) { pass.extent(v, here, of_piece); });
    of_piece.nans -= more;
    return of_piece;
  });
  s.zeros = e.zeros, s.nans = e.nans, s.infinities = n - e.nans - e.finite;
  if (e.finite == 0) return s;
  s.min = e.low, s.max = e.high;
  const auto finite = static_cast<double>(e.finite);
  s.mean = e.sum / finite;
  if (!std::isfinite(s.mean)) {  // the sum alone is too large
    s.mean = 0;
    for (int64_t i = 0; i < n; ++i)
      if (const auto v = static_cast<double>(values[i]); std::isfinite(v)) s.mean += v / finite;
  }
  s.mean = std::clamp(s.mean, s.min, s.max);  // whatever was rounded
  // Neither the range, nor 32 over it, may be infinite.
  Scale scale;
  const auto range = static_cast<V>(e.high) - static_cast<V>(e.low);
  constexpr bool kSingle = sizeof(V) == 4;
  if (!std::isfinite(range)) scale.unit = 0.25;
  else if (range > 0 && range < (kSingle ? 1e-28 : 1e-290))
    scale.unit = std::ldexp(1.0, kSingle ? 90 : 200);
  scale.low = e.low * scale.unit, scale.mean = s.mean * scale.unit;
  const double scaled = e.high * scale.unit - scale.low;
  if (scaled > 0) scale.per_range = 1 / scaled, scale.per_bin = 32 / scaled;
  const Spread spread = over_pieces<Spread>(values, n, [&](const T* x, int64_t count) {
    Spread of_piece;
    over_buffers<V>(x, count,
                    [&](const V* v, int64_t here) { pass.spread(v, here, scale, of_piece); });
    return of_piece;
  });
  s.histogram = spread.histogram;
  // The mean that they are the squares around was rounded to V.
  const double off = (static_cast<V>(scale.mean) - scale.mean) * scale.per_range;
  const double variance = std::max(spread.squares / finite - off * off, 0.0);
  s.deviation = std::sqrt(variance) * scaled / scale.unit;
  return s;
}

Statistics of(const Tensor& t) {
  const void* const x = t.ptr();
  const int64_t n = t.numel();
  switch (t.scalar_type()) {
    case kBool: return of<float>(static_cast<const bool*>(x), n);
    case kByte: return of<float>(static_cast<const uint8_t*>(x), n);
    case kChar: return of<float>(static_cast<const int8_t*>(x), n);
    case kShort: return of<float>(static_cast<const int16_t*>(x), n);
    case kInt: return of<double>(static_cast<const int32_t*>(x), n);
    case kLong: return of<double>(static_cast<const int64_t*>(x), n);
    case kUInt16: return of<float>(static_cast<const uint16_t*>(x), n);
    case kUInt32: return of<double>(static_cast<const uint32_t*>(x), n);
    case kFloat: return of<float>(static_cast<const float*>(x), n);
    case kDouble: return of<double>(static_cast<const double*>(x), n);
    default: return of(t.to(kFloat));  // has all values of half and bfloat16
  }
}

}  // namespace

Statistics statistics_of(const Tensor& t) {
  const NoGradGuard off;
  // Uses a shallow copy: a channels-last tensor keeps its layout, and so the bits of the next
  // operation (Note [Internal layout]).
  const Tensor host = t.shallow().to(Device(kCPU, 0)).contiguous();
  if (host.numel() == 0) return {};
  Statistics s = of(host);
  s.digest = std::max<uint64_t>(XXH64(host.ptr(), host.nbytes(), 0), 1);
  return s;
}

}  // namespace see
}  // namespace ramet
