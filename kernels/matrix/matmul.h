// Products of matrices, batched, and the dot product.
#pragma once
#include "kernels/gpu/gpu_cuts.h"
#include "kernels/kernel.h"
#include "kernels/matrix/gemm_plan.h"

namespace ramet {
namespace kernels {

/// C[s] = act(alpha * A[s] B[s] + beta * C[s] + bias) for s < batch. A[s] is m x k, B[s] is k x n
/// and C[s] is m x n. `bias` is null or n values (unit stride). act is max(0, x) with `relu`
/// (floating types only), which keeps a NaN. C is not read when beta is 0. k = 0 gives beta * C +
/// bias.
///
/// All operands have one dtype, but for C where float_c is set. Floating types: float16 and
/// bfloat16 compute in float, with one rounding at the end. On a CPU, products in bfloat16 are sums
/// of pairs (gemm_bfloat.h). Integers compute modulo 2^64 with ialpha, ibeta; no relu. Strides are
/// in elements. REQUIRES: the column stride of C is 1. For floating types A and B have a unit
/// stride in one of their two dimensions (or an extent of at most 1 there). C overlaps no other
/// operand, and matrices of C do not overlap. The workspace has matmul_workspace bytes, aligned
/// to 64.
///
/// Same bits for any number of threads, and an element's bits do not depend on m, n and batch.
struct MatmulArgs {
  const void *a, *b;
  void* c;
  const void* bias;
  int64_t batch, m, n, k;
  int64_t a_batch, a_row, a_col;
  int64_t b_batch, b_row, b_col;
  int64_t c_batch, c_row;
  double alpha, beta;
  int64_t ialpha, ibeta;
  ScalarType dtype;
  bool relu;
  /// dtype is float16 or bfloat16, and C has float32 elements: nothing is rounded to 16 bits. No
  /// bias, no relu.
  bool float_c = false;
  void* workspace;
};
RAMET_KERNEL(matmul, MatmulArgs);

/// out = sum over i of a[i * a_stride] * b[i * b_stride], one value. Floating sums run over 64
/// lanes in chunks that follow from n. Chunks are added in order in double. A GPU adds everything
/// in double, in pieces that follow from n (dot_cut), and as a tree.
struct DotArgs {
  const void *a, *b;
  void* out;
  int64_t n, a_stride, b_stride;
  ScalarType dtype;
  void* workspace;  // on a GPU dot_workspace() bytes
};
RAMET_KERNEL(dot, DotArgs);

/// How a GPU cuts a sum over n products.
RAMET_PLAN GpuCut dot_cut(int64_t n) { return gpu_cut(n, 1, 2048, 16384); }
/// Bytes of its workspace on a GPU: a sum of 8 bytes for each segment. A CPU needs none.
RAMET_PLAN int64_t dot_workspace(int64_t n) {
  const int64_t segments = dot_cut(n).pieces;
  return segments > 1 ? 8 * segments : 0;
}

/// out[j] = sum over i < rows of a[i * row + j], j < n: the gradient of a bias. Rows are added in
/// blocks of 64, the blocks in order, floats in float. A GPU adds in double, in parts that follow
/// from rows and n (kernels/rows/row_sums_gpu.h). dtype floating; out has out_dtype.
struct SumRowsArgs {
  const void* a;
  void* out;
  int64_t rows, n, row;
  ScalarType dtype, out_dtype;
};
RAMET_KERNEL(sum_rows, SumRowsArgs);

RAMET_PLAN ScalarType c_type_of(const MatmulArgs& g) {
  return g.float_c ? ScalarType::Float : g.dtype;
}

// The layout of a float product's operands for the tile.
struct MatmulLayout {
  int64_t lda, ldb;
  bool ta, tb;
  bool over_batch;  // one task a matrix (small products), else the matrices one after the other
};
RAMET_PLAN MatmulLayout matmul_layout(const MatmulArgs& g) {
  MatmulLayout l;
  l.ta = g.a_col != 1 && g.k > 1;
  l.lda = l.ta ? g.a_col : g.m > 1 ? g.a_row : 1;
  l.tb = g.b_col != 1 && g.n > 1;
  l.ldb = l.tb ? g.b_col : g.k > 1 ? g.b_row : 1;
  const double products =
      static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k);
  l.over_batch = g.batch > 1 && (products <= 262144 || (g.batch >= 8 && products <= 64e6));
  return l;
}

// Sizes, in elements, of the float copies on which a product in float16 is computed. All offsets
// are multiples of 16.
struct MatmulCopies {
  int64_t a, b, c, bias;
};
// with 16 floats of slack
RAMET_PLAN int64_t matmul_round(int64_t n) { return (n + 31) / 16 * 16; }
RAMET_PLAN MatmulCopies matmul_copies(const MatmulArgs& g) {
  return {matmul_round((g.a_batch == 0 ? 1 : g.batch) * g.m * g.k),
          matmul_round((g.b_batch == 0 ? 1 : g.batch) * g.k * g.n),
          g.float_c ? 0 : matmul_round(g.batch * g.m * g.n), matmul_round(g.bias ? g.n : 0)};
}
// The same product on dense float copies (pointers not set): the layouts of A and B are kept, and a
// float C is none.
RAMET_PLAN MatmulArgs matmul_on_copies(const MatmulArgs& g) {
  const MatmulLayout l = matmul_layout(g);
  MatmulArgs f = g;
  f.dtype = ScalarType::Float, f.float_c = false;
  f.a_row = l.ta ? 1 : g.k, f.a_col = l.ta ? g.m : 1, f.a_batch = g.a_batch == 0 ? 0 : g.m * g.k;
  f.b_row = l.tb ? 1 : g.n, f.b_col = l.tb ? g.k : 1, f.b_batch = g.b_batch == 0 ? 0 : g.k * g.n;
  if (!g.float_c) f.c_row = g.n, f.c_batch = g.m * g.n;
  return f;
}

RAMET_PLAN int64_t matmul_float_workspace(const MatmulArgs& g, int slots) {
  const MatmulLayout l = matmul_layout(g);
  const int64_t pack_b =
      gemm_packs_b(g.m, g.n, g.k, l.ldb, l.tb) ? gemm_pack_b_floats(g.n, g.k) : 0;
  const int64_t pack_a = gemm_packs_a(g.m, g.n, g.k, l.lda, l.ta) ? kGemmPackA : 0;
  const int64_t b = pack_b <= kGemmStackFloats ? 0 : matmul_round(pack_b);
  return 4 * (l.over_batch ? slots * (b + pack_a) : b + slots * pack_a);
}

// A product in bfloat16 with one row instead of one column: C is a vector, whose elements are the
// same in either.
RAMET_PLAN MatmulArgs matmul_as_row(const MatmulArgs& g) {
  if (g.n != 1 || g.m == 1 || g.c_row != 1 || g.bias) return g;
  MatmulArgs t = g;
  t.m = 1, t.n = g.m;
  t.a = g.b, t.a_batch = g.b_batch, t.a_row = g.b_col, t.a_col = g.b_row;
  t.b = g.a, t.b_batch = g.a_batch, t.b_row = g.a_col, t.b_col = g.a_row;
  t.c_row = g.m;
  return t;
}
RAMET_PLAN int64_t matmul_bfloat_workspace(const MatmulArgs& args, int slots) {
  const MatmulArgs g = matmul_as_row(args);
  const int64_t once = matmul_round(bfloat_sums(g.m, g.n, g.k) + bfloat_pack_b(g.n, g.k)),
                a = bfloat_pack_a(g.m, g.k);
  return 4 * (matmul_layout(g).over_batch ? slots * (once + a) : once + slots * a);
}

// Packed slivers of the double and integer product, in 8-byte values.
inline constexpr int64_t kWideKC = 256, kWideMC = 64, kWideNC = 512;
inline constexpr int64_t kWidePackA = (kWideMC + 16) * kWideKC;
RAMET_PLAN int64_t wide_pack_b(int64_t n, int64_t k) {
  return ((n < kWideNC ? n : kWideNC) + 16) * (k < kWideKC ? k : kWideKC) + 8;
}

/// Bytes of workspace that `args` needs (pointers are not used) when regions have at most `slots`
/// threads (max_parallel_slots() of runtime/base/thread_pool.h).
RAMET_PLAN int64_t matmul_workspace(const MatmulArgs& args, int slots) {
  if (args.dtype == ScalarType::Float) return matmul_float_workspace(args, slots);
  if (args.dtype == ScalarType::BFloat16) return matmul_bfloat_workspace(args, slots);
  if (args.dtype == ScalarType::Half) {
    const MatmulCopies c = matmul_copies(args);
    return 4 * (c.a + c.b + c.c + c.bias) + matmul_float_workspace(matmul_on_copies(args), slots);
  }
  return 8 * slots * (wide_pack_b(args.n, args.k) + kWidePackA);
}

}  // namespace kernels
}  // namespace ramet
