#include "kernels/random.h"

#include "kernels/chunk.h"
#include "runtime/thread_pool.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

constexpr int kLanes = 16;                    // blocks computed together
constexpr int kGroup = 4 * kLanes;            // their words: elements of a one-word kind
constexpr int64_t kTaskElements = 16 * 1024;  // whole groups

// Words of blocks first..first + 15, word by word: out[w * 16 + lane]. The ten rounds are written
// out here rather than taken from Random123 because the lanes have to become vector code.
[[gnu::noinline]] void philox(uint64_t first, const RandomKey& key, uint32_t* out) {
  uint32_t c0[kLanes], c1[kLanes], c2[kLanes], c3[kLanes];
  for (int l = 0; l < kLanes; ++l) {
    c0[l] = static_cast<uint32_t>(first + static_cast<uint64_t>(l));
    c1[l] = static_cast<uint32_t>((first + static_cast<uint64_t>(l)) >> 32);
    c2[l] = static_cast<uint32_t>(key.stream), c3[l] = static_cast<uint32_t>(key.stream >> 32);
  }
  uint32_t k0 = static_cast<uint32_t>(key.seed), k1 = static_cast<uint32_t>(key.seed >> 32);
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round) {
    for (int l = 0; l < kLanes; ++l) {
      const uint64_t p = uint64_t{0xD2511F53} * c0[l], q = uint64_t{0xCD9E8D57} * c2[l];
      const uint32_t n0 = static_cast<uint32_t>(q >> 32) ^ c1[l] ^ k0,
                     n2 = static_cast<uint32_t>(p >> 32) ^ c3[l] ^ k1;
      c0[l] = n0, c1[l] = static_cast<uint32_t>(q), c2[l] = n2, c3[l] = static_cast<uint32_t>(p);
    }
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
  memcpy(out, c0, sizeof c0), memcpy(out + kLanes, c1, sizeof c1);
  memcpy(out + 2 * kLanes, c2, sizeof c2), memcpy(out + 3 * kLanes, c3, sizeof c3);
}

// Runs make(group, values) for the groups of kElements that cover [base, base + n) and hands on
// what lies inside: put(i, values + skip, count) for elements i.. of the output. C is the type of a
// value.
template <int kElements, class C, class Make, class Put>
void by_group(const RandomKey& key, int64_t n, int64_t bytes, const Make& make, const Put& put) {
  auto part = [&](int64_t begin, int64_t end) {
    C values[kElements];
    for (int64_t i = begin; i < end;) {
      const int64_t element = key.base + i, skip = element % kElements,
                    count = imin(kElements - skip, end - i);
      make(element / kElements, values);
      put(i, values + skip, count);
      i += count;
    }
  };
  if (bytes < parallel_grain()) return part(0, n);
  // Tasks begin at whole groups of the global index.
  const int64_t first = imin(n, kTaskElements - key.base % kTaskElements);
  parallel_tasks(1 + ceil_div(n - first, kTaskElements), [&](int64_t t, int) {
    part(t == 0 ? 0 : first + (t - 1) * kTaskElements, imin(n, first + t * kTaskElements));
  });
}

template <class C> struct StoreValues {
  void* out;
  ScalarType dtype;
  RAMET_INLINE void operator()(int64_t i, const C* values, int64_t count) const {
    if (dtype == ComputeTag<C>::value)
      memcpy(at(out, dtype, i), values, static_cast<size_t>(count) * sizeof(C));
    else store_chunk(at(out, dtype, i), dtype, 1, count, values);
  }
};

// ---- the normal distribution, in double without fma ----

// log x for normal x > 0: x = 2^k m, log m = 2 atanh((m - 1) / (m + 1)) by its series up to s^21.
RAMET_INLINE double log_plain(double x) {
  uint64_t b;
  memcpy(&b, &x, 8);
  // exponent + 1024, m in [sqrt(1/2), sqrt(2))
  const uint64_t k = (b - 0x3fe6a09e667f3bcdull + (uint64_t{1024} << 52)) >> 52;
  b -= (k - 1024) << 52;
  double m;
  memcpy(&m, &b, 8);
  const double e = static_cast<double>(static_cast<int32_t>(k) - 1024), s = (m - 1) / (m + 1),
               z = s * s;
  double p = 2.0 / 21;
  p = p * z + 2.0 / 19, p = p * z + 2.0 / 17, p = p * z + 2.0 / 15, p = p * z + 2.0 / 13,
  p = p * z + 2.0 / 11;
  p = p * z + 2.0 / 9, p = p * z + 2.0 / 7, p = p * z + 2.0 / 5, p = p * z + 2.0 / 3;
  return e * 6.93147180369123816490e-01 + (e * 1.90821492927058770002e-10 + (s * z * p + 2 * s));
}

// Radius from u1 in (0, 1], angle 2 pi u2: the nearest quarter turn q and the rest by Taylor series
// on [-pi/4, pi/4].
RAMET_INLINE void box_muller(double u1, double u2, double* z0, double* z1) {
  const double radius = __builtin_sqrt(-2 * log_plain(u1));
  const double t = 4 * u2;
  const int32_t q = static_cast<int32_t>(t + 0.5);
  const double x = (t - static_cast<double>(q)) * 1.57079632679489661923, z = x * x;
  double s = -1.0 / 1307674368000, c = 1.0 / 20922789888000;
  s = s * z + 1.0 / 6227020800, s = s * z - 1.0 / 39916800, s = s * z + 1.0 / 362880,
  s = s * z - 1.0 / 5040;
  s = s * z + 1.0 / 120, s = s * z - 1.0 / 6, s = s * z * x + x;
  c = c * z - 1.0 / 87178291200, c = c * z + 1.0 / 479001600, c = c * z - 1.0 / 3628800,
  c = c * z + 1.0 / 40320;
  c = c * z - 1.0 / 720, c = c * z + 1.0 / 24, c = c * z - 0.5, c = c * z + 1;
  const double cosine = q & 1 ? s : c, sine = q & 1 ? c : s;
  *z0 = radius * ((q + 1) & 2 ? -cosine : cosine);
  *z1 = radius * (q & 2 ? -sine : sine);
}

RAMET_INLINE double unit53(uint32_t high, uint32_t low) {  // [0, 1)
  return static_cast<double>((static_cast<int64_t>(high) << 21) | (low >> 11)) * 0x1p-53;
}

template <int kBits> void uniform_floats(const RandomArgs& a) {
  const float low = static_cast<float>(a.a), width = static_cast<float>(a.b) - low,
              high = static_cast<float>(a.b);
  // The largest value below b: the rounding of low + width * u may reach b. (16-bit types round
  // once more at the store.)
  const float below = __builtin_nextafterf(high, low);
  by_group<kGroup, float>(
      a.key, a.n, a.n * bytes_of(a.dtype),
      [&](int64_t group, float* v) {
        uint32_t w[kGroup];
        philox(static_cast<uint64_t>(group) * kLanes, a.key, w);
        for (int j = 0; j < kGroup; ++j) {
          const float u = static_cast<float>(static_cast<int32_t>(w[j] >> (32 - kBits))) *
                          (1.0f / static_cast<float>(1 << kBits));
          const float y = low + width * u;
          v[j] = y >= high && width > 0 ? below : y;
        }
      },
      StoreValues<float>{a.out, a.dtype});
}

// u < p as a comparison of the 24-bit integer: u = j / 2^24 < p  <=>  j < ceil(p 2^24).
RAMET_INLINE int32_t threshold24(double p) {
  return static_cast<int32_t>(__builtin_ceil(p * 16777216.0));
}

}  // namespace

void random_uniform(const RandomArgs& a) {
  if (a.dtype == ScalarType::Half) return uniform_floats<11>(a);
  if (a.dtype == ScalarType::BFloat16) return uniform_floats<8>(a);
  if (a.dtype != ScalarType::Double) return uniform_floats<24>(a);
  const double width = a.b - a.a, below = __builtin_nextafter(a.b, a.a);
  by_group<2 * kLanes, double>(
      a.key, a.n, a.n * 8,
      [&](int64_t group, double* v) {
        uint32_t w[kGroup];
        philox(static_cast<uint64_t>(group) * kLanes, a.key, w);
        for (int q = 0; q < 2; ++q)
          for (int l = 0; l < kLanes; ++l) {
            const double y =
                a.a + width * unit53(w[2 * q * kLanes + l], w[(2 * q + 1) * kLanes + l]);
            v[q * kLanes + l] = y >= a.b && width > 0 ? below : y;
          }
      },
      StoreValues<double>{a.out, a.dtype});
}

void random_normal(const RandomArgs& a) {
  if (a.dtype != ScalarType::Double) {
    by_group<kGroup, float>(
        a.key, a.n, a.n * 4 * bytes_of(a.dtype),
        [&](int64_t group, float* v) {
          uint32_t w[kGroup];
          philox(static_cast<uint64_t>(group) * kLanes, a.key, w);
          for (int q = 0; q < 4; q += 2)
            for (int l = 0; l < kLanes; ++l) {
              double z0, z1;
              box_muller((static_cast<double>(w[q * kLanes + l]) + 1) * 0x1p-32,
                         static_cast<double>(w[(q + 1) * kLanes + l]) * 0x1p-32, &z0, &z1);
              v[q * kLanes + l] = static_cast<float>(a.a + a.b * z0);
              v[(q + 1) * kLanes + l] = static_cast<float>(a.a + a.b * z1);
            }
        },
        StoreValues<float>{a.out, a.dtype});
    return;
  }
  by_group<2 * kLanes, double>(
      a.key, a.n, a.n * 32,
      [&](int64_t group, double* v) {
        uint32_t w[kGroup];
        philox(static_cast<uint64_t>(group) * kLanes, a.key, w);
        for (int l = 0; l < kLanes; ++l) {
          double z0, z1;
          box_muller(unit53(w[l], w[kLanes + l]) + 0x1p-53,
                     unit53(w[2 * kLanes + l], w[3 * kLanes + l]), &z0, &z1);
          v[l] = a.a + a.b * z0, v[kLanes + l] = a.a + a.b * z1;
        }
      },
      StoreValues<double>{a.out, a.dtype});
}

void random_integers(const RandomIntegersArgs& a) {
  by_group<2 * kLanes, int64_t>(
      a.key, a.n, a.n * 8,
      [&](int64_t group, int64_t* v) {
        uint32_t w[kGroup];
        philox(static_cast<uint64_t>(group) * kLanes, a.key, w);
        for (int q = 0; q < 2; ++q)
          for (int l = 0; l < kLanes; ++l) {
            const uint64_t r =
                (static_cast<uint64_t>(w[2 * q * kLanes + l]) << 32) | w[(2 * q + 1) * kLanes + l];
            const uint64_t y =
                a.range ? static_cast<uint64_t>((static_cast<unsigned __int128>(r) * a.range) >> 64)
                        : r;
            v[q * kLanes + l] = static_cast<int64_t>(static_cast<uint64_t>(a.low) + y);
          }
      },
      StoreValues<int64_t>{a.out, a.dtype});
}

void random_bernoulli(const BernoulliArgs& a) {
  const int32_t limit = threshold24(a.p);
  by_group<kGroup, int32_t>(
      a.key, a.n, a.n * 4,
      [&](int64_t group, int32_t* v) {
        uint32_t w[kGroup];
        philox(static_cast<uint64_t>(group) * kLanes, a.key, w);
        for (int j = 0; j < kGroup; ++j) v[j] = static_cast<int32_t>(w[j] >> 8);
      },
      [&](int64_t i, const int32_t* v, int64_t count) {
        float y[kGroup];
        if (a.probability) {
          double p[kGroup];
          load_chunk(at(a.probability, a.p_type, i), a.p_type, 1, count, p);
          for (int64_t j = 0; j < count; ++j) y[j] = v[j] < threshold24(p[j]) ? 1.0f : 0.0f;
        } else {
          for (int64_t j = 0; j < count; ++j) y[j] = v[j] < limit ? 1.0f : 0.0f;
        }
        store_chunk(at(a.out, a.dtype, i), a.dtype, 1, count, y);
      });
}

namespace {

template <class C> void dropout_as(const DropoutArgs& a) {
  const int32_t limit = threshold24(a.keep);
  const C scale = static_cast<C>(a.scale);
  by_group<kGroup, int32_t>(
      a.key, a.n, a.n * 2 * bytes_of(a.dtype),
      [&](int64_t group, int32_t* v) {
        uint32_t w[kGroup];
        philox(static_cast<uint64_t>(group) * kLanes, a.key, w);
        for (int j = 0; j < kGroup; ++j) v[j] = static_cast<int32_t>(w[j] >> 8);
      },
      [&](int64_t i, const int32_t* v, int64_t count) {
        C in[kGroup], out[kGroup];
        uint8_t* mask = static_cast<uint8_t*>(a.mask) + i;
        const C* x = chunk_in(at(a.x, a.dtype, i), a.dtype, 1, count, in);
        C* y = chunk_out(at(a.y, a.dtype, i), a.dtype, 1, out);
#pragma GCC ivdep
        for (int64_t j = 0; j < count; ++j) mask[j] = v[j] < limit;
#pragma GCC ivdep
        for (int64_t j = 0; j < count; ++j) y[j] = x[j] * (v[j] < limit ? scale : C(0));
        chunk_done(at(a.y, a.dtype, i), a.dtype, 1, count, out);
      });
}

}  // namespace

void dropout_forward(const DropoutArgs& a) {
  if (a.dtype == ScalarType::Double) dropout_as<double>(a);
  else dropout_as<float>(a);
}

}  // namespace ramet::kernels::RAMET_VARIANT
