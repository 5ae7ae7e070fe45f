// cuBLASLt's descriptors and calls over matrix_product.h.
#include <cstring>
#include <new>

#include "tools/emulated_gpu/blas/blas_algorithm.h"
#include "tools/emulated_gpu/runtime/capture.h"
#include "tools/emulated_gpu/runtime/engine.h"

/// Belongs to the device on which it was made.
struct cublasLtContext {
  int device;
};

namespace ramet::emulated {
namespace {

/// The contents of a cublasLtMatmulDesc_t.
struct Description {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  cublasOperation_t transpose_a, transpose_b;
  uint32_t epilogue;
  void *bias, *aux;
  int64_t aux_stride, aux_batch_stride;
};

bool is_epilogue(uint32_t value) {
  switch (value) {
    case CUBLASLT_EPILOGUE_DEFAULT:
    case CUBLASLT_EPILOGUE_RELU:
    case CUBLASLT_EPILOGUE_BIAS:
    case CUBLASLT_EPILOGUE_RELU_BIAS:
    case CUBLASLT_EPILOGUE_GELU:
    case CUBLASLT_EPILOGUE_GELU_BIAS:
    case CUBLASLT_EPILOGUE_GELU_AUX:
    case CUBLASLT_EPILOGUE_GELU_AUX_BIAS:
    case CUBLASLT_EPILOGUE_DGELU:
    case CUBLASLT_EPILOGUE_DGELU_BGRAD:
    case CUBLASLT_EPILOGUE_BGRADA:
    case CUBLASLT_EPILOGUE_BGRADB: return true;
    default: return false;
  }
}

static_assert(sizeof(Layout) <= sizeof(cublasLtMatrixLayoutOpaque_t));
static_assert(sizeof(Description) <= sizeof(cublasLtMatmulDescOpaque_t));
static_assert(sizeof(Preference) <= sizeof(cublasLtMatmulPreferenceOpaque_t));
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));

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

Sums sums_in(uint32_t epilogue) {
  switch (epilogue) {
    case CUBLASLT_EPILOGUE_DGELU_BGRAD: return Sums::kOfD;
    case CUBLASLT_EPILOGUE_BGRADA: return Sums::kOfA;
    case CUBLASLT_EPILOGUE_BGRADB: return Sums::kOfB;
    default: return Sums::kNone;
  }
}

Activation activation_in(uint32_t epilogue) {
  switch (epilogue & ~uint32_t(CUBLASLT_EPILOGUE_BIAS)) {
    case CUBLASLT_EPILOGUE_RELU: return Activation::kRelu;
    case CUBLASLT_EPILOGUE_GELU:
    case CUBLASLT_EPILOGUE_GELU_AUX: return Activation::kGelu;
    case CUBLASLT_EPILOGUE_DGELU:
    case CUBLASLT_EPILOGUE_DGELU_BGRAD: return Activation::kGeluBackward;
    default: return Activation::kNone;
  }
}

double scalar(cudaDataType_t type, const void* value) {
  if (type == CUDA_R_64F) return *static_cast<const double*>(value);
  return double(*static_cast<const float*>(value));
}

// Accepts what the table of data types in cuBLAS's documentation ("cublasLtMatmul()") lists, and
// its note on epilogues: none where D is row-major. Of GELU and sums in doubles, and of sums of a
// batch, the table says nothing. They are refused here, so that no caller relies on them.
bool computes(const Description& description, const Layout& d) {
  if (settings().blas_algorithms < (description.epilogue == CUBLASLT_EPILOGUE_DEFAULT ? 1 : 2))
    return false;
  const cudaDataType_t type = d.type;
  if (d.row_major && description.epilogue != CUBLASLT_EPILOGUE_DEFAULT) return false;
  if (description.epilogue > CUBLASLT_EPILOGUE_RELU_BIAS && type == CUDA_R_64F) return false;
  if (sums_in(description.epilogue) != Sums::kNone && d.batch > 1) return false;
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
  product.activation = activation_in(description.epilogue);
  if (description.epilogue & CUBLASLT_EPILOGUE_BIAS) product.bias = description.bias;
  product.sums = sums_in(description.epilogue);
  if (product.sums != Sums::kNone) product.sums_to = description.bias;
  constexpr uint32_t aux = 128;  // of all epilogues that have an auxiliary matrix
  product.has_aux = description.epilogue & aux;
  if (product.has_aux) {
    product.aux = description.aux;
    product.aux_stride = description.aux_stride;
    product.aux_batch_stride = description.aux_batch_stride;
  }
  return product;
}

bool is_of_this_device(const char* call, cublasLtHandle_t handle) {
  if (handle->device == this_thread.device) return true;
  note_report(std::string("[emulated CUDA] ") + call +
              " on cuda:" + std::to_string(this_thread.device) +
              ": the handle was made on cuda:" + std::to_string(handle->device));
  return false;
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
  *handle = new (std::nothrow) cublasLtContext{this_thread.device};
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
  Description fresh{};
  fresh.compute = compute;
  fresh.scale = scale;
  fresh.transpose_a = fresh.transpose_b = CUBLAS_OP_N;
  fresh.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  put(*desc, fresh);
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
      taken = take(value, bytes, &changed.epilogue) && is_epilogue(changed.epilogue);
      break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER: taken = take(value, bytes, &changed.aux); break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
      taken = take(value, bytes, &changed.aux_stride);
      break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE:
      taken = take(value, bytes, &changed.aux_batch_stride);
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
  put(*preference, Preference{});
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, size_t bytes) {
  auto changed = get<Preference>(preference);
  bool taken = false;
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      taken = take(value, bytes, &changed.workspace);
      break;
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      taken = take(value, bytes, &changed.reductions);
      break;
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES: {
      uint32_t& alignment =
          changed.alignment[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES];
      taken = take(value, bytes, &alignment) && alignment && !(alignment & (alignment - 1));
      break;
    }
    default: return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  if (!taken) return CUBLAS_STATUS_INVALID_VALUE;
  put(preference, changed);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int* count) {
  *count = 0;
  if (!handle || !this_thread.bound) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (wanted < 1 || !is_of_this_device("cublasLtMatmulAlgoGetHeuristic", handle))
    return CUBLAS_STATUS_INVALID_VALUE;
  const auto description = get<Description>(desc);
  const MatrixProduct product = product_of(description, a, b, c, d);
  if (!fits(product)) return CUBLAS_STATUS_INVALID_VALUE;
  if (!computes(description, product.d)) return CUBLAS_STATUS_NOT_SUPPORTED;
  const Algorithm algorithm = algorithm_for(product, get<Preference>(preference));
  results[0] = {};
  results[0].state = CUBLAS_STATUS_SUCCESS;
  results[0].wavesCount = 1;
  results[0].workspaceSize = algorithm.workspace;
  put(&results[0].algo, algorithm);
  *count = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void* alpha,
                              const void* A, cublasLtMatrixLayout_t a, const void* B,
                              cublasLtMatrixLayout_t b, const void* beta, const void* C,
                              cublasLtMatrixLayout_t c, void* D, cublasLtMatrixLayout_t d,
                              const cublasLtMatmulAlgo_t* algo, void* workspace,
                              size_t workspace_bytes, cudaStream_t stream) {
  if (!handle || !this_thread.bound) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!is_of_this_device("cublasLtMatmul", handle)) return CUBLAS_STATUS_INVALID_VALUE;
  const auto description = get<Description>(desc);
  MatrixProduct product = product_of(description, a, b, c, d);
  if (!fits(product)) return CUBLAS_STATUS_INVALID_VALUE;
  if (!computes(description, product.d)) return CUBLAS_STATUS_NOT_SUPPORTED;
  // The scalars are on the host, so they are read now: they may be gone when the stream gets here.
  product.alpha = scalar(description.scale, alpha);
  product.beta = scalar(description.scale, beta);
  const Algorithm algorithm = algo ? get<Algorithm>(algo) : algorithm_for_call(product);
  product.halves = algorithm.halves;
  const ProductMemory memory{A, B, C, D, workspace, workspace_bytes};
  const std::string wrong = objection(algorithm, product, memory, handle->device);
  if (!wrong.empty()) {
    note_report("[emulated CUDA] cublasLtMatmul: " + wrong);
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (!product.d.extent()) return CUBLAS_STATUS_SUCCESS;
  {
    Call call;
    if (!call.driver_has_memory()) return CUBLAS_STATUS_ALLOC_FAILED;
    if (!call.refused && call.engine.load(reinterpret_cast<const void*>(&cublasLtMatmul),
                                          call.device(), call.lock, "cublasLtMatmul"))
      return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  const cudaError_t error = enqueue_work(stream, "cublasLtMatmul", [algorithm, product, memory] {
    run_with_workspace(algorithm, product, memory);
  });
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // extern "C"
