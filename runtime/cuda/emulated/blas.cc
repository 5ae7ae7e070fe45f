// cuBLASLt's descriptors and calls over matrix_product.h.
#include <cstring>
#include <new>

#include "runtime/cuda/emulated/capture.h"
#include "runtime/cuda/emulated/engine.h"
#include "runtime/cuda/emulated/matrix_product.h"

struct cublasLtContext {};

namespace ramet::emulated {
namespace {

/// What a cublasLtMatmulDesc_t holds.
struct Description {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  cublasOperation_t transpose_a, transpose_b;
  uint32_t epilogue;
  const void* bias;
};

/// What a cublasLtMatmulPreference_t holds, and a cublasLtMatmulAlgo_t.
struct Preference {
  uint32_t reductions;
};
struct Algorithm {
  bool halves;
};

static_assert(sizeof(Layout) <= sizeof(cublasLtMatrixLayoutOpaque_t));
static_assert(sizeof(Description) <= sizeof(cublasLtMatmulDescOpaque_t));

// The opaque structures are plain bytes: objects are copied in and out of them.
template <class T, class Opaque> T get(const Opaque* opaque) {
  T value;
  std::memcpy(&value, opaque->data, sizeof value);
  return value;
}
template <class T, class Opaque> void put(Opaque* opaque, const T& value) {
  std::memcpy(opaque->data, &value, sizeof value);
}

/// An attribute's value, where the caller's size is the attribute's.
template <class T> bool take(const void* value, size_t bytes, T* attribute) {
  if (!value || bytes != sizeof(T)) return false;
  std::memcpy(attribute, value, sizeof(T));
  return true;
}

bool holds(const void* data, int64_t elements, size_t element_bytes) {
  if (!elements) return true;
  Allocation allocation;
  if (!find_allocation(data, &allocation)) return false;
  const auto before =
      size_t(static_cast<const char*>(data) - static_cast<const char*>(allocation.base));
  return size_t(elements) * element_bytes <= allocation.bytes - before;
}

double scalar(cudaDataType_t type, const void* value) {
  if (type == CUDA_R_64F) return *static_cast<const double*>(value);
  return double(*static_cast<const float*>(value));
}

// Long sums of few elements, as the library does.
constexpr int64_t kLongSum = 512, kFewElements = 4096;
bool takes_halves(const MatrixProduct& p, const Preference& preference) {
  constexpr uint32_t narrow =
      CUBLASLT_REDUCTION_SCHEME_INPLACE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
  const int64_t k = p.transpose_a ? p.a.rows : p.a.columns;
  return (preference.reductions & narrow) && k >= kLongSum &&
         p.d.rows * p.d.columns <= kFewElements;
}

bool computes(const Description& description, cudaDataType_t type) {
  if (type == CUDA_R_64F)
    return description.compute == CUBLAS_COMPUTE_64F && description.scale == CUDA_R_64F;
  return description.compute != CUBLAS_COMPUTE_64F && description.scale == CUDA_R_32F;
}

MatrixProduct product_of(const Description& description, cublasLtMatrixLayout_t a,
                         cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                         cublasLtMatrixLayout_t d) {
  MatrixProduct product;
  product.a = get<Layout>(a);
  product.b = get<Layout>(b);
  product.c = get<Layout>(c);
  product.d = get<Layout>(d);
  product.transpose_a = description.transpose_a != CUBLAS_OP_N;
  product.transpose_b = description.transpose_b != CUBLAS_OP_N;
  product.relu = description.epilogue & CUBLASLT_EPILOGUE_RELU;
  if (description.epilogue & CUBLASLT_EPILOGUE_BIAS) product.bias = description.bias;
  return product;
}

}  // namespace
}  // namespace ramet::emulated

using namespace ramet::emulated;

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  if (!this_thread.bound) return CUBLAS_STATUS_NOT_INITIALIZED;
  {
    Call call;
    if (!call.driver_has_memory()) return CUBLAS_STATUS_ALLOC_FAILED;
    if (captures_here(call.engine)) return CUBLAS_STATUS_NOT_INITIALIZED;
  }
  *handle = new (std::nothrow) cublasLtContext;
  return *handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

const char* cublasLtGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "success";
    case CUBLAS_STATUS_NOT_INITIALIZED: return "the library was not initialized";
    case CUBLAS_STATUS_ALLOC_FAILED: return "the resource allocation failed";
    case CUBLAS_STATUS_INVALID_VALUE: return "an unsupported value or parameter was passed";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "the function failed to launch on the GPU";
    case CUBLAS_STATUS_INTERNAL_ERROR: return "an internal operation failed";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "the functionality requested is not supported";
    default: return "unknown status";
  }
}

size_t cublasLtGetVersion(void) { return static_cast<size_t>(settings().cublaslt_version); }

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          uint64_t rows, uint64_t cols, int64_t ld) {
  *layout = new (std::nothrow) cublasLtMatrixLayoutOpaque_t{};
  if (!*layout) return CUBLAS_STATUS_ALLOC_FAILED;
  Layout value;
  value.type = type;
  value.rows = int64_t(rows);
  value.columns = int64_t(cols);
  value.stride = ld;
  put(*layout, value);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void* value, size_t bytes) {
  Layout changed = get<Layout>(layout);
  int32_t number = 0;
  bool taken = false;
  switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_ORDER:
      taken = take(value, bytes, &number) &&
              (number == CUBLASLT_ORDER_COL || number == CUBLASLT_ORDER_ROW);
      changed.row_major = number == CUBLASLT_ORDER_ROW;
      break;
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
      taken = take(value, bytes, &number);
      changed.batch = number;
      break;
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
      taken = take(value, bytes, &changed.batch_stride);
      break;
    case CUBLASLT_MATRIX_LAYOUT_LD: taken = take(value, bytes, &changed.stride); break;
    default: return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  if (!taken) return CUBLAS_STATUS_INVALID_VALUE;
  put(layout, changed);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  *desc = new (std::nothrow) cublasLtMatmulDescOpaque_t{};
  if (!*desc) return CUBLAS_STATUS_ALLOC_FAILED;
  put(*desc,
      Description{compute, scale, CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_EPILOGUE_DEFAULT, nullptr});
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  delete desc;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t bytes) {
  auto changed = get<Description>(desc);
  bool taken = false;
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA: taken = take(value, bytes, &changed.transpose_a); break;
    case CUBLASLT_MATMUL_DESC_TRANSB: taken = take(value, bytes, &changed.transpose_b); break;
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: taken = take(value, bytes, &changed.bias); break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      taken = take(value, bytes, &changed.epilogue) &&
              (changed.epilogue == CUBLASLT_EPILOGUE_DEFAULT ||
               (changed.epilogue != 0 &&
                (changed.epilogue & ~uint32_t(CUBLASLT_EPILOGUE_RELU_BIAS)) == 0));
      break;
    default: return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  if (!taken) return CUBLAS_STATUS_INVALID_VALUE;
  put(desc, changed);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = new (std::nothrow) cublasLtMatmulPreferenceOpaque_t{};
  if (!*preference) return CUBLAS_STATUS_ALLOC_FAILED;
  put(*preference, Preference{CUBLASLT_REDUCTION_SCHEME_MASK});
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}

// The algorithms here need no workspace and take any alignment.
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, size_t bytes) {
  uint64_t limit = 0;
  uint32_t alignment = 0;
  Preference allowed{};
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return take(value, bytes, &limit) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      if (!take(value, bytes, &allowed.reductions)) return CUBLAS_STATUS_INVALID_VALUE;
      put(preference, allowed);
      return CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return take(value, bytes, &alignment) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
    default: return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int* count) {
  *count = 0;
  if (!handle || !this_thread.bound) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (wanted < 1) return CUBLAS_STATUS_INVALID_VALUE;
  const auto description = get<Description>(desc);
  const MatrixProduct product = product_of(description, a, b, c, d);
  if (!fits(product)) return CUBLAS_STATUS_INVALID_VALUE;
  if (!computes(description, product.d.type)) return CUBLAS_STATUS_NOT_SUPPORTED;
  results[0] = {};
  results[0].state = CUBLAS_STATUS_SUCCESS;
  results[0].wavesCount = 1;
  put(&results[0].algo, Algorithm{takes_halves(product, get<Preference>(preference))});
  *count = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void* alpha,
                              const void* A, cublasLtMatrixLayout_t a, const void* B,
                              cublasLtMatrixLayout_t b, const void* beta, const void* C,
                              cublasLtMatrixLayout_t c, void* D, cublasLtMatrixLayout_t d,
                              const cublasLtMatmulAlgo_t* algo, void*, size_t,
                              cudaStream_t stream) {
  if (!handle || !this_thread.bound) return CUBLAS_STATUS_NOT_INITIALIZED;
  const auto description = get<Description>(desc);
  MatrixProduct product = product_of(description, a, b, c, d);
  if (!fits(product)) return CUBLAS_STATUS_INVALID_VALUE;
  if (!computes(description, product.d.type)) return CUBLAS_STATUS_NOT_SUPPORTED;
  // On the host, so read now: the caller's scalars may be gone when the stream gets here.
  product.alpha = scalar(description.scale, alpha);
  product.beta = scalar(description.scale, beta);
  // Null: the library asks itself for one, with no preference.
  product.halves =
      algo ? get<Algorithm>(algo).halves : takes_halves(product, {CUBLASLT_REDUCTION_SCHEME_MASK});
  const size_t width = product.d.element_bytes();
  if (!holds(A, product.a.extent(), width) || !holds(B, product.b.extent(), width) ||
      !holds(D, product.d.extent(), width) ||
      (product.beta != 0 && !holds(C, product.c.extent(), width)) ||
      (product.bias && !holds(product.bias, product.d.rows, width))) {
    note_report(
        "[emulated CUDA] cublasLtMatmul: a matrix or the bias does not lie in one allocation");
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (!product.d.extent()) return CUBLAS_STATUS_SUCCESS;
  if (!Call().driver_has_memory()) return CUBLAS_STATUS_ALLOC_FAILED;
  const cudaError_t error = enqueue_work(
      stream, "cublasLtMatmul", [product, A, B, C, D] { run_product(product, A, B, C, D); });
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // extern "C"
