// The algorithms of the emulated cuBLASLt: how one is chosen, and what it requires of every call
// that uses it. The real ones read or write out of bounds, or refuse, where a call breaks a
// promise. These refuse every such call with a report.
#pragma once
#include <string>

#include "tools/emulated_gpu/blas/matrix_product.h"

namespace ramet::emulated {

/// The values of a cublasLtMatmulPreference_t: the library's defaults.
struct Preference {
  uint64_t workspace = 0;
  uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
  uint32_t alignment[4] = {256, 256, 256, 256};  // of A, B, C and D
};

/// The values of a cublasLtMatmulAlgo_t.
struct Algorithm {
  uint32_t workspace;    // bytes
  uint16_t pointers[4];  // alignment that was promised of A, B, C and D
  uint16_t lines[4];     // and that their strides then kept, to each line and each matrix
  uint16_t bias, aux;    // alignment of the epilogue's addresses when it was chosen, at most 16
  bool halves;           // MatrixProduct::halves
};

/// Workspaces begin at a multiple of this.
constexpr size_t kWorkspaceUnit = 256;

/// The addresses of the epilogue decide the alignment on which the algorithm counts, as cublasLt.h
/// says of CUBLASLT_MATMUL_DESC_BIAS_POINTER and ..._EPILOGUE_AUX_POINTER.
Algorithm algorithm_for(const MatrixProduct& product, const Preference& preference);
/// For a call without an algorithm: the library asks itself, for these operands and without a
/// workspace.
Algorithm algorithm_for_call(const MatrixProduct& product);

/// A call's memory.
struct ProductMemory {
  const void *a, *b, *c;
  void *d, *workspace;
  size_t workspace_bytes;
};

/// What is wrong with a call on `device`; empty where nothing is.
std::string objection(const Algorithm& algorithm, const MatrixProduct& product,
                      const ProductMemory& memory, int device);

/// run_product() that also overwrites the workspace before and after the product.
void run_with_workspace(const Algorithm& algorithm, const MatrixProduct& product,
                        const ProductMemory& memory);

}  // namespace ramet::emulated
