// The loops that run a row's formula (row.h) over a GPU's memory. For pointwise_*.cu only.
//
// Each operation becomes two kernels per compute type. One is for dense operands, eight elements a
// thread by 16-byte accesses, and one for strides. Element types are checked at run time
// (gpu_elements.h).
#pragma once
#include "kernels/gpu/gpu_elements.h"
#include "kernels/gpu/gpu_launch.h"
#include "kernels/pointwise/formula.h"
#include "kernels/pointwise/pointwise.h"

namespace ramet::kernels::RAMET_VARIANT {

template <class C> RAMET_INLINE C number_as(Number x) {
  if constexpr (sizeof(C) == 4) return static_cast<C>(x.d);
  else if constexpr (std::is_integral<C>::value) return x.i;
  else return x.d;
}

// In compute type C, because the output may have any type; also for truth values.
template <class Row, class C> RAMET_INLINE C result(const C (&x)[3], C s, C t) {
  return static_cast<C>(formula<Row, C>(x[0], x[1], x[2], s, t));
}

template <class Row, class C> __global__ void dense_kernel(PointwiseArgs a, bool packed) {
  constexpr int kOperands = Row::kOperands;
  const void* const in[3] = {a.a, a.b, a.c};
  const ScalarType type[3] = {a.a_type, a.b_type, a.c_type};
  const C s = number_as<C>(a.s), t = number_as<C>(a.t);
  const int64_t packs = packed ? a.n / kPack : 0;
  for (int64_t i = first_item(); i < packs; i += item_step()) {
    C x[3][kPack], y[kPack];
    for (int o = 0; o < kOperands; ++o) {
      if (in[o]) load_pack(in[o], type[o], i * kPack, x[o]);
      else
        for (int j = 0; j < kPack; ++j) x[o][j] = t;
    }
    for (int j = 0; j < kPack; ++j) {
      C one[3] = {};
      for (int o = 0; o < kOperands; ++o) one[o] = x[o][j];
      y[j] = result<Row>(one, s, t);
    }
    store_pack(a.out, a.out_type, i * kPack, y);
  }
  for (int64_t i = packs * kPack + first_item(); i < a.n; i += item_step()) {
    C x[3] = {};
    for (int o = 0; o < kOperands; ++o) x[o] = in[o] ? load_element<C>(in[o], type[o], i) : t;
    store_element(a.out, a.out_type, i, result<Row>(x, s, t));
  }
}

/// The operands of PointwiseStridedArgs, without the part that Offsets already holds.
struct StridedOperands {
  void* data[4];
  ScalarType type[4];
  Number s, t;
  int64_t n;
};

template <class Row, class C>
__global__ void strided_kernel(StridedOperands a, Offsets<Row::kOperands + 1> offsets) {
  constexpr int kOperands = Row::kOperands;
  const C s = number_as<C>(a.s), t = number_as<C>(a.t);
  for (int64_t i = first_item(); i < a.n; i += item_step()) {
    int64_t offset[kOperands + 1];
    offsets.at(i, offset);
    C x[3] = {};
    for (int o = 0; o < kOperands; ++o)
      x[o] = a.data[o + 1] ? load_element<C>(a.data[o + 1], a.type[o + 1], offset[o + 1]) : t;
    store_element(a.data[0], a.type[0], offset[0], result<Row>(x, s, t));
  }
}

/// f(compute type) for the types of the operation.
template <int kTypes, class F> void by_compute(ScalarType compute, const F& f) {
  if constexpr (kTypes == kOnFloating) by_dtype<float, double>(compute, f);
  else if constexpr (kTypes == kOnInteger) by_dtype<int64_t>(compute, f);
  else by_dtype<float, double, int64_t>(compute, f);
}

template <class Row> void run_dense(const char* name, const PointwiseArgs& a, Stream where) {
  constexpr int kOperands = Row::kOperands;
  const void* const in[3] = {a.a, a.b, a.c};
  const ScalarType type[3] = {a.a_type, a.b_type, a.c_type};
  bool packed = packs_fit(a.out, a.out_type);
  for (int o = 0; o < kOperands; ++o) packed = packed && packs_fit(in[o], type[o]);
  by_compute<Row::kTypes>(a.compute, [&](auto c) {
    start_for(name, where, packed ? ceil_div(a.n, kPack) : a.n, dense_kernel<Row, decltype(c)>, a,
              packed);
  });
}

template <class Row>
void run_strided(const char* name, const PointwiseStridedArgs& a, Stream where) {
  constexpr int kOperands = Row::kOperands;
  StridedOperands operands{{}, {}, a.s, a.t, product(a.sizes, a.rank)};
  Offsets<kOperands + 1> offsets;
  offsets.set(a.rank, a.sizes, operands.n);
  for (int o = 0; o <= kOperands; ++o) {
    operands.data[o] = a.data[o];
    operands.type[o] = a.type[o];
    for (int d = 0; d < a.rank; ++d) offsets.strides[o][d] = a.strides[o][d];
  }
  by_compute<Row::kTypes>(a.compute, [&](auto c) {
    start_for(name, where, operands.n, strided_kernel<Row, decltype(c)>, operands, offsets);
  });
}

#define RAMET_DEFINE_POINTWISE(name, Row)                                              \
  void name(const PointwiseArgs& a, Stream where) { run_dense<Row>(#name, a, where); } \
  void name##_strided(const PointwiseStridedArgs& a, Stream where) {                   \
    run_strided<Row>(#name, a, where);                                                 \
  }

}  // namespace ramet::kernels::RAMET_VARIANT
