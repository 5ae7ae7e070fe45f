// The register tile: R rows x NV vectors of C stay in registers during the loop over k. A is read
// by broadcast, either "row" (a[i*as + k]) or "column" (a[k*as + i]: packed or transposed). B is
// read by vectors. The k range may consist of several segments (rows of an image, taps of a
// filter). This one extra loop turns the GEMM tile into a direct convolution without im2col.
//
// An element is one chain of fused multiply-adds in increasing k, segment after segment, in any
// tile.
#pragma once
#include <array>
#include <utility>

#include "kernels/matrix/cut.h"

namespace ramet::kernels::RAMET_VARIANT {

struct Tile {
  const float *a, *b;
  float* c;
  int64_t as, bs, cs;
  int64_t k, segs, aseg, bseg;  // segs runs of k steps; a and b advance by aseg, bseg between runs
  const int64_t* aoff;          // if set: run s starts at a + aoff[s], and aseg is not used
  int64_t n;                    // valid columns of the last vector
  float alpha, beta;
  const float* bias;
  bool relu;
};

template <int R, int NV, bool ACOL, bool EDGE> void micro(const Tile& t) {
  vf acc[R][NV];
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i)
#pragma GCC unroll 2
    for (int j = 0; j < NV; ++j) acc[i][j] = vf{};
  if (t.k >= 64)  // the rows of C are loaded during the loop over k
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
      __builtin_prefetch(t.c + i * t.cs, 1);
      __builtin_prefetch(t.c + i * t.cs + VL * (NV - 1), 1);
    }
  const float *a0 = t.a, *b0 = t.b;
  const int64_t as = t.as, bs = t.bs, n = t.n;
  for (int64_t s = 0; s < t.segs; ++s, a0 += t.aseg, b0 += t.bseg) {
    const float *a = t.aoff ? t.a + t.aoff[s] : a0, *b = b0;
    const float *a4 = a + 4 * as, *a8 = a + 8 * as, *a12 = a + 12 * as;
    const int64_t as3 = 3 * as;
#pragma GCC unroll 2
    for (int64_t k = 0; k < t.k; ++k) {
      vf bv[NV];
#pragma GCC unroll 2
      for (int j = 0; j < NV; ++j)
        bv[j] = EDGE && j == NV - 1 ? loadn(b + j * VL, n) : load(b + j * VL);
#pragma GCC unroll 16
      for (int i = 0; i < R; ++i) {
        const float* g = i < 4 ? a : i < 8 ? a4 : i < 12 ? a8 : a12;
        const vf x = set1(ACOL           ? a[i]
                          : (i & 3) == 0 ? *g
                          : (i & 3) == 1 ? g[as]
                          : (i & 3) == 2 ? g[2 * as]
                                         : g[as3]);
#pragma GCC unroll 2
        for (int j = 0; j < NV; ++j) acc[i][j] = fma(x, bv[j], acc[i][j]);
      }
      b += bs;
      a += ACOL ? as : 1;
      if (!ACOL) ++a4, ++a8, ++a12;
    }
  }
  float* c = t.c;
  if (t.alpha != 1) {
    const vf al = set1(t.alpha);
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 2
      for (int j = 0; j < NV; ++j) acc[i][j] *= al;
  }
  if (t.beta != 0) {
    const vf be = set1(t.beta);
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 2
      for (int j = 0; j < NV; ++j) {
        const float* p = c + i * t.cs + j * VL;
        acc[i][j] = fma(be, j == NV - 1 ? loadn(p, n) : load(p), acc[i][j]);
      }
  }
  if (t.bias) {
#pragma GCC unroll 2
    for (int j = 0; j < NV; ++j) {
      const vf v = j == NV - 1 ? loadn(t.bias + j * VL, n) : load(t.bias + j * VL);
#pragma GCC unroll 16
      for (int i = 0; i < R; ++i) acc[i][j] += v;
    }
  }
  if (t.relu) {
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 2
      for (int j = 0; j < NV; ++j) acc[i][j] = max(vf{}, acc[i][j]);  // this order keeps a NaN
  }
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i)
#pragma GCC unroll 2
    for (int j = 0; j < NV; ++j) {
      float* p = c + i * t.cs + j * VL;
      j == NV - 1 ? storen(p, acc[i][j], n) : store(p, acc[i][j]);
    }
}

using Micro = void (*)(const Tile&);
template <int NV, bool ACOL, bool EDGE, int... R>
constexpr std::array<Micro, kMR> micro_rows(std::integer_sequence<int, R...>) {
  return {micro<R + 1, NV, ACOL, EDGE>...};
}
template <int NV, bool ACOL, bool EDGE>
inline constexpr std::array<Micro, kMR> micro_of =
    micro_rows<NV, ACOL, EDGE>(std::make_integer_sequence<int, kMR>{});

// [A by column][B edge masked][vectors - 1] -> functions by rows - 1. Masks are free in AVX-512, so
// every tile there is the masked one: same speed, half the code.
constexpr bool kFree = VL == 16;
inline constexpr const Micro* micro_table[2][2][2] = {
    {{micro_of<1, false, kFree>.data(), micro_of<2, false, kFree>.data()},
     {micro_of<1, false, true>.data(), micro_of<2, false, true>.data()}},
    {{micro_of<1, true, kFree>.data(), micro_of<2, true, kFree>.data()},
     {micro_of<1, true, true>.data(), micro_of<2, true, true>.data()}}};

// The functions for a sliver of nr <= kNR columns, by rows - 1; sets t.n. `padded`: whole vectors
// of b may be read.
RAMET_INLINE const Micro* micro_for(Tile& t, bool a_by_column, int64_t nr, bool padded) {
  const int nv = nr > VL ? 2 : 1;
  t.n = nr - (nv - 1) * VL;
  return micro_table[a_by_column][padded || nr == nv * VL ? 0 : 1][nv - 1];
}

}  // namespace ramet::kernels::RAMET_VARIANT
