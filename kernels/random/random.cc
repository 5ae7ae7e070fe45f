#include "kernels/random/random.h"

#include "kernels/copy/chunk.h"
#include "kernels/random/philox.h"
#include "kernels/simd/independent.h"
#include "runtime/base/thread_pool.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

constexpr int64_t kTaskElements = 16 * 1024;  // whole groups

// Words of blocks first..first + 15, word by word: out[w * 16 + lane]. The ten rounds are written
// out here and not taken from Random123, because the lanes have to become vector code.
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
    for (int l = 0; l < kLanes; ++l) philox_round(c0[l], c1[l], c2[l], c3[l], k0, k1);
    k0 += kPhiloxStep0, k1 += kPhiloxStep1;
  }
  memcpy(out, c0, sizeof c0), memcpy(out + kLanes, c1, sizeof c1);
  memcpy(out + 2 * kLanes, c2, sizeof c2), memcpy(out + 3 * kLanes, c3, sizeof c3);
}

// Runs make(group, values) for the groups of kElements that cover [base, base + n). Then calls
// put(i, values + skip, count) with the values inside the range, for elements i.. of the output. C
// is the type of a value.
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

template <int kBits> void uniform_floats(const RandomArgs& a) {
  const FloatRange<kBits> range(a.a, a.b);
  by_group<kGroup, float>(
      a.key, a.n, a.n * bytes_of(a.dtype),
      [&](int64_t group, float* v) {
        uint32_t w[kGroup];
        philox(static_cast<uint64_t>(group) * kLanes, a.key, w);
        for (int j = 0; j < kGroup; ++j) { v[j] = range.at(w[j]); }
      },
      StoreValues<float>{a.out, a.dtype});
}

// A value of 64 bits is value_of(two words).
template <class C, class Args, class F> void from_two_words(const Args& a, const F& value_of) {
  by_group<2 * kLanes, C>(
      a.key, a.n, a.n * 8,
      [&](int64_t group, C* v) {
        uint32_t w[kGroup];
        philox(static_cast<uint64_t>(group) * kLanes, a.key, w);
        for (int q = 0; q < 2; ++q)
          for (int l = 0; l < kLanes; ++l)
            v[q * kLanes + l] = value_of(w[2 * q * kLanes + l], w[(2 * q + 1) * kLanes + l]);
      },
      StoreValues<C>{a.out, a.dtype});
}

void uniform_doubles(const RandomArgs& a) {
  const DoubleRange range(a.a, a.b);
  from_two_words<double>(a, [&](uint32_t u, uint32_t v) { return range.at(u, v); });
}

void normals_of(const RandomArgs& a, float) {
  by_group<kGroup, float>(
      a.key, a.n, a.n * 4 * bytes_of(a.dtype),
      [&](int64_t group, float* v) {
        uint32_t w[kGroup];
        philox(static_cast<uint64_t>(group) * kLanes, a.key, w);
        for (int q = 0; q < 4; q += 2)
          for (int l = 0; l < kLanes; ++l) {
            double z0, z1;
            normals(w[q * kLanes + l], w[(q + 1) * kLanes + l], &z0, &z1);
            v[q * kLanes + l] = static_cast<float>(a.a + a.b * z0);
            v[(q + 1) * kLanes + l] = static_cast<float>(a.a + a.b * z1);
          }
      },
      StoreValues<float>{a.out, a.dtype});
}
void normals_of(const RandomArgs& a, double) {
  by_group<2 * kLanes, double>(
      a.key, a.n, a.n * 32,
      [&](int64_t group, double* v) {
        uint32_t w[kGroup];
        philox(static_cast<uint64_t>(group) * kLanes, a.key, w);
        for (int l = 0; l < kLanes; ++l) {
          double z0, z1;
          normals(w[l], w[kLanes + l], w[2 * kLanes + l], w[3 * kLanes + l], &z0, &z1);
          v[l] = a.a + a.b * z0, v[kLanes + l] = a.a + a.b * z1;
        }
      },
      StoreValues<double>{a.out, a.dtype});
}

}  // namespace

void random_uniform(const RandomArgs& a) {
  by_uniform_bits(a.dtype, [&](auto bits) {
    if constexpr (bits() == 53) uniform_doubles(a);
    else uniform_floats<bits()>(a);
  });
}

void random_normal(const RandomArgs& a) {
  by_floating_type(a.dtype, [&](auto t) { normals_of(a, t); });
}

void random_integers(const RandomIntegersArgs& a) {
  from_two_words<int64_t>(a, [&](uint32_t u, uint32_t v) { return integer(a.low, a.range, u, v); });
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
        RAMET_INDEPENDENT
        for (int64_t j = 0; j < count; ++j) mask[j] = v[j] < limit;
        RAMET_INDEPENDENT
        for (int64_t j = 0; j < count; ++j) y[j] = x[j] * (v[j] < limit ? scale : C(0));
        chunk_done(at(a.y, a.dtype, i), a.dtype, 1, count, out);
      });
}

}  // namespace

void dropout_forward(const DropoutArgs& a) {
  by_floating_type(a.dtype, [&](auto t) { dropout_as<decltype(t)>(a); });
}

void random_pick(const RandomPickArgs& a) {
  for (int64_t r = 0; r < a.rows; ++r)
    for (int64_t s = r * a.samples; s < (r + 1) * a.samples; ++s)
      a.out[s] = picked(a.cumulative + r * a.n, a.probabilities + r * a.n, a.n, a.draws[s]);
}

}  // namespace ramet::kernels::RAMET_VARIANT
