// A thread computes one block of the stream, and the two or four elements made of its words.
#include "kernels/gpu/gpu_elements.h"
#include "kernels/gpu/gpu_launch.h"
// clang-format off: the first two decide what the others mean
#include "kernels/random/philox.h"
#include "kernels/random/random.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {
namespace {

// The elements [0, n) that have global indices base + i; each takes kEach words of a block.
template <int kEach> struct Elements {
  static constexpr int kOfBlock = 4 / kEach, kOfGroup = kOfBlock * kLanes;
  RandomKey key;
  int64_t n;
  // On the host.
  int64_t blocks() const {
    if (n <= 0) return 0;
    return ((key.base + n - 1) / kOfGroup - key.base / kOfGroup + 1) * kLanes;
  }
  // put(i, words, q) for the elements of the item-th block, of which i is the q-th. (A block
  // outside the range calls nothing.)
  template <class Put> RAMET_INLINE void of_block(int64_t item, const Put& put) const {
    const int64_t group = key.base / kOfGroup + item / kLanes, lane = item % kLanes;
    const Words words = philox_block(static_cast<uint64_t>(group * kLanes + lane), key);
    for (int q = 0; q < kOfBlock; ++q) {
      const int64_t i = group * kOfGroup + q * kLanes + lane - key.base;
      if (i >= 0 && i < n) put(i, words, q);
    }
  }
};

template <int kBits>
__global__ void uniform_kernel(Elements<1> e, int64_t blocks, FloatRange<kBits> range, void* out,
                               ScalarType dtype) {
  for (int64_t b = first_item(); b < blocks; b += item_step())
    e.of_block(b, [&](int64_t i, const Words& words, int q) {
      store_element(out, dtype, i, range.at(words.w[q]));
    });
}
__global__ void uniform_double_kernel(Elements<2> e, int64_t blocks, DoubleRange range,
                                      double* out) {
  for (int64_t b = first_item(); b < blocks; b += item_step())
    e.of_block(b, [&](int64_t i, const Words& words, int q) {
      out[i] = range.at(words.w[2 * q], words.w[2 * q + 1]);
    });
}

__global__ void normal_kernel(Elements<1> e, int64_t blocks, double mean, double std, void* out,
                              ScalarType dtype) {
  for (int64_t b = first_item(); b < blocks; b += item_step())
    e.of_block(b, [&](int64_t i, const Words& words, int q) {
      double z[2];
      normals(words.w[q / 2 * 2], words.w[q / 2 * 2 + 1], &z[0], &z[1]);
      store_element(out, dtype, i, static_cast<float>(mean + std * z[q % 2]));
    });
}
__global__ void normal_double_kernel(Elements<2> e, int64_t blocks, double mean, double std,
                                     double* out) {
  for (int64_t b = first_item(); b < blocks; b += item_step())
    e.of_block(b, [&](int64_t i, const Words& words, int q) {
      double z[2];
      normals(words.w[0], words.w[1], words.w[2], words.w[3], &z[0], &z[1]);
      out[i] = mean + std * z[q];
    });
}

__global__ void integers_kernel(Elements<2> e, int64_t blocks, RandomIntegersArgs a) {
  for (int64_t b = first_item(); b < blocks; b += item_step())
    e.of_block(b, [&](int64_t i, const Words& words, int q) {
      store_element(a.out, a.dtype, i, integer(a.low, a.range, words.w[2 * q], words.w[2 * q + 1]));
    });
}

__global__ void bernoulli_kernel(Elements<1> e, int64_t blocks, BernoulliArgs a, int32_t limit) {
  for (int64_t b = first_item(); b < blocks; b += item_step())
    e.of_block(b, [&](int64_t i, const Words& words, int q) {
      const int32_t most =
          a.probability ? threshold24(load_element<double>(a.probability, a.p_type, i)) : limit;
      store_element(a.out, a.dtype, i, static_cast<int32_t>(words.w[q] >> 8) < most ? 1.0f : 0.0f);
    });
}

template <class C>
__global__ void dropout_kernel(Elements<1> e, int64_t blocks, DropoutArgs a, int32_t limit) {
  const C scale = static_cast<C>(a.scale);
  for (int64_t b = first_item(); b < blocks; b += item_step())
    e.of_block(b, [&](int64_t i, const Words& words, int q) {
      const bool kept = static_cast<int32_t>(words.w[q] >> 8) < limit;
      static_cast<uint8_t*>(a.mask)[i] = kept;
      const C x = load_element<C>(a.x, a.dtype, i);
      store_element(a.y, a.dtype, i, x * (kept ? scale : C(0)));
    });
}

__global__ void pick_kernel(RandomPickArgs a, Divisor<int64_t> by_samples) {
  for (int64_t s = first_item(); s < a.rows * a.samples; s += item_step()) {
    const int64_t row = by_samples(s) * a.n;
    a.out[s] = picked(a.cumulative + row, a.probabilities + row, a.n, a.draws[s]);
  }
}

}  // namespace

void random_uniform(const RandomArgs& a, Stream where) {
  by_uniform_bits(a.dtype, [&](auto bits) {
    if constexpr (bits() == 53) {
      const Elements<2> e{a.key, a.n};
      start_for("random_uniform", where, e.blocks(), uniform_double_kernel, e, e.blocks(),
                DoubleRange(a.a, a.b), static_cast<double*>(a.out));
    } else {
      const Elements<1> e{a.key, a.n};
      start_for("random_uniform", where, e.blocks(), uniform_kernel<bits()>, e, e.blocks(),
                FloatRange<bits()>(a.a, a.b), a.out, a.dtype);
    }
  });
}

void random_normal(const RandomArgs& a, Stream where) {
  by_floating_type(a.dtype, [&](auto t) {
    if constexpr (sizeof t == 8) {
      const Elements<2> e{a.key, a.n};
      start_for("random_normal", where, e.blocks(), normal_double_kernel, e, e.blocks(), a.a, a.b,
                static_cast<double*>(a.out));
    } else {
      const Elements<1> e{a.key, a.n};
      start_for("random_normal", where, e.blocks(), normal_kernel, e, e.blocks(), a.a, a.b, a.out,
                a.dtype);
    }
  });
}

void random_integers(const RandomIntegersArgs& a, Stream where) {
  const Elements<2> e{a.key, a.n};
  start_for("random_integers", where, e.blocks(), integers_kernel, e, e.blocks(), a);
}

void random_bernoulli(const BernoulliArgs& a, Stream where) {
  const Elements<1> e{a.key, a.n};
  start_for("random_bernoulli", where, e.blocks(), bernoulli_kernel, e, e.blocks(), a,
            threshold24(a.p));
}

void dropout_forward(const DropoutArgs& a, Stream where) {
  const Elements<1> e{a.key, a.n};
  const int32_t limit = threshold24(a.keep);
  by_floating_type(a.dtype, [&](auto t) {
    start_for("dropout", where, e.blocks(), dropout_kernel<decltype(t)>, e, e.blocks(), a, limit);
  });
}

void random_pick(const RandomPickArgs& a, Stream where) {
  start_for("random_pick", where, a.rows * a.samples, pick_kernel, a, Divisor<int64_t>(a.samples));
}

}  // namespace ramet::kernels::RAMET_VARIANT
