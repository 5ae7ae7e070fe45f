// Which products cuBLASLt computes, and how they are described to it. For .cu files only.
#pragma once
#include "kernels/gpu/gpu_launch.h"
#include "runtime/cuda/blas.h"
#include "runtime/devices/gpu.h"
// clang-format off: the first decides what the others mean
#include "kernels/matrix/matmul.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {

/// Products of fewer multiplications than this (32^3) end before cuBLASLt has checked its
/// arguments. To be measured. A launch through cuBLASLt costs some microseconds of the host. A tile
/// of product_kernel takes k / 16 steps of about 100 ns.
constexpr double kBlasProducts = 32768;

/// Is the product large enough for cuBLASLt, and does the layout of its matrices suit it? Then it
/// is `product`. (Rows must not overlap; a bias is at a multiple of 16 bytes.)
inline bool suits_blas(const MatmulArgs& g, Stream where, ::ramet::cuda::BlasProduct* product) {
  if (compute_type_of(g.dtype) == ScalarType::Long || where.id != gpu::kCompute) return false;
  const double products =
      static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k);
  if (products < kBlasProducts) return false;
  const MatmulLayout l = matmul_layout(g);
  // Rows and columns as they are stored.
  const int64_t a_rows = l.ta ? g.k : g.m, a_columns = l.ta ? g.m : g.k, b_rows = l.tb ? g.n : g.k,
                b_columns = l.tb ? g.k : g.n;
  const int64_t lda = a_rows > 1 ? l.lda : a_columns, ldb = b_rows > 1 ? l.ldb : b_columns,
                ldc = g.m > 1 ? g.c_row : g.n;
  if (lda < a_columns || ldb < b_columns || ldc < g.n ||
      reinterpret_cast<uintptr_t>(g.bias) % 16 != 0)
    return false;
  *product = {g.a, g.b,       g.bias,    g.c,       g.batch, g.m,    g.n,     g.k,  lda, ldb,
              ldc, g.a_batch, g.b_batch, g.c_batch, g.alpha, g.beta, g.dtype, l.ta, l.tb};
  product->float_c = g.float_c;
  return true;
}

}  // namespace ramet::kernels::RAMET_VARIANT
