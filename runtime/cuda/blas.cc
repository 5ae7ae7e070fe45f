#include "runtime/cuda/blas.h"

#include <cublasLt.h>
#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "runtime/base/logging.h"
#include "runtime/cuda/check.h"
#include "runtime/cuda/device_state.h"
#include "runtime/cuda/graphs.h"
#include "runtime/cuda/libraries.h"
#include "runtime/cuda/per_device.h"
#include "runtime/cuda/scratch.h"

namespace ramet {
namespace cuda {
namespace {

#define RAMET_BLAS_FUNCTIONS(X)   \
  X(Create)                       \
  X(Destroy)                      \
  X(GetStatusString)              \
  X(MatrixLayoutCreate)           \
  X(MatrixLayoutDestroy)          \
  X(MatrixLayoutSetAttribute)     \
  X(MatmulDescCreate)             \
  X(MatmulDescDestroy)            \
  X(MatmulDescSetAttribute)       \
  X(MatmulPreferenceCreate)       \
  X(MatmulPreferenceDestroy)      \
  X(MatmulPreferenceSetAttribute) \
  X(MatmulAlgoGetHeuristic)       \
  X(Matmul)

struct Functions {
#define RAMET_BLAS_MEMBER(name) decltype(&cublasLt##name) name = nullptr;
  RAMET_BLAS_FUNCTIONS(RAMET_BLAS_MEMBER)
#undef RAMET_BLAS_MEMBER
  std::string why_none;
};

Functions open() {
  Functions f;
#if RAMET_GPU_EMULATED
#define RAMET_BLAS_TAKE(name) f.name = &cublasLt##name;
  RAMET_BLAS_FUNCTIONS(RAMET_BLAS_TAKE)
#undef RAMET_BLAS_TAKE
  if (!cublasLtGetVersion()) f.why_none = "RAMET_EMULATED_CUBLASLT=0";
#else
  void* library = nullptr;
  for (const auto& [file, wheel] :
       {std::pair("libcublasLt.so.13", "cu13"), std::pair("libcublasLt.so.12", "cublas")})
    if (!library) library = open_library(file, wheel, &f.why_none);
  if (!library) return f;
  f.why_none.clear();
#define RAMET_BLAS_TAKE(name)                                                    \
  f.name = reinterpret_cast<decltype(f.name)>(dlsym(library, "cublasLt" #name)); \
  if (!f.name && f.why_none.empty()) f.why_none = "libcublasLt has no function cublasLt" #name;
  RAMET_BLAS_FUNCTIONS(RAMET_BLAS_TAKE)
#undef RAMET_BLAS_TAKE
#endif
  return f;
}
// Opened once.
const Functions& functions() {
  static const Functions f = open();
  return f;
}
bool can_be_used() {
  const std::string& why_not = functions().why_none;
  if (RAMET_LIKELY(why_not.empty())) return true;
  RAMET_WARN_ONCE("cuBLASLt cannot be used, matrix products on GPUs run as kernels: ", why_not);
  return false;
}

[[noreturn]] void refuse(const char* op, int device, const char* call, cublasStatus_t status) {
  fail(op, "cublasLt", call, " on cuda:", device, " failed: ", functions().GetStatusString(status),
       " (status ", static_cast<int>(status), ")");
}
#define RAMET_BLAS(op, device, name, ...)                            \
  do {                                                               \
    if (const cublasStatus_t status = functions().name(__VA_ARGS__); \
        RAMET_UNLIKELY(status != CUBLAS_STATUS_SUCCESS))             \
      refuse(op, device, #name, status);                             \
  } while (0)

// A call that may find no memory on the GPU; its status says so. The same as RAMET_CUDA_ALLOCATING.
template <class F>
cublasStatus_t allocating(const char* op, int device, const char* call, const F& f) {
  cublasStatus_t status = f();
  if (RAMET_LIKELY(status != CUBLAS_STATUS_ALLOC_FAILED)) return status;
  free_caches(cudaErrorMemoryAllocation, op, call, device);
  status = f();
  if (status == CUBLAS_STATUS_ALLOC_FAILED)
    raise_again(cudaErrorMemoryAllocation, op, call, device);
  return status;
}

// Hopper's kernels need 32 MiB to split long sums.
constexpr size_t kWorkspace = size_t{32} << 20;

// All that the choice of an algorithm depends on.
using Key = std::array<int64_t, 23>;
struct Choice {
  bool found;
  cublasLtMatmulAlgo_t algorithm;
  size_t workspace;
};
// No thread calls the library under the lock: such a call may allocate, and wait for the GPU.
struct DeviceBlas {
  std::atomic<cublasLtHandle_t> handle{nullptr};
  std::mutex mutex;  // of the choices
  std::map<Key, Choice> choices;
};
DeviceBlas& blas_of(int device) {
  static constinit PerDevice<DeviceBlas> all;
  return all.get(device, [] { return new DeviceBlas; });
}
std::atomic<uint64_t> searches{0};

cublasLtHandle_t handle_of(const char* op, int device, DeviceBlas& blas) {
  cublasLtHandle_t made = blas.handle.load(std::memory_order_acquire);
  if (RAMET_LIKELY(made != nullptr)) return made;
  if (ComputeStreamGuard::captures())
    throw BeforeAGraph{[op, device, &blas] { handle_of(op, device, blas); }};
  cublasLtHandle_t fresh = nullptr;
  const cublasStatus_t status =
      allocating(op, device, "cublasLtCreate", [&] { return functions().Create(&fresh); });
  if (status != CUBLAS_STATUS_SUCCESS) refuse(op, device, "Create", status);
  if (blas.handle.compare_exchange_strong(made, fresh)) return fresh;
  functions().Destroy(fresh);  // another thread was quicker
  return made;
}

cudaDataType_t type_of(ScalarType t) {
  switch (t) {
    case ScalarType::Double: return CUDA_R_64F;
    case ScalarType::Half: return CUDA_R_16F;
    case ScalarType::BFloat16: return CUDA_R_16BF;
    default: return CUDA_R_32F;
  }
}

// The largest power of two, at most 16, that divides all addresses of rows. The library never
// learns of a larger one. A member of flat memory and a separate tensor, or a replica's copy, may
// have other alignments. They must get the same algorithm, and bits.
uint32_t alignment(const void* p, int64_t ld, int64_t batch, ScalarType t) {
  const auto bytes = static_cast<uint64_t>(item_size(t));
  uint64_t all = reinterpret_cast<uint64_t>(p) | 16;
  for (int64_t stride : {ld, batch}) all |= static_cast<uint64_t>(stride) * bytes;
  return static_cast<uint32_t>(all & (~all + 1));
}

ScalarType c_type_of(const BlasProduct& p) { return p.float_c ? ScalarType::Float : p.dtype; }

// The descriptors of one product. cuBLASLt's matrices are column-major, so it gets C' = B' A'.
class Descriptors {
 public:
  Descriptors(const char* op, int device, const BlasProduct& p) : op_(op), device_(device) {
    const bool wide = p.dtype == ScalarType::Double;
    RAMET_BLAS(op, device, MatmulDescCreate, &product,
               wide ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F, wide ? CUDA_R_64F : CUDA_R_32F);
    const cublasOperation_t first = p.tb ? CUBLAS_OP_T : CUBLAS_OP_N,
                            second = p.ta ? CUBLAS_OP_T : CUBLAS_OP_N;
    set(CUBLASLT_MATMUL_DESC_TRANSA, first);
    set(CUBLASLT_MATMUL_DESC_TRANSB, second);
    set_epilogue(p);
    layout(0, p, p.dtype, p.tb ? p.k : p.n, p.tb ? p.n : p.k, p.ldb, p.b_batch);
    layout(1, p, p.dtype, p.ta ? p.m : p.k, p.ta ? p.k : p.m, p.lda, p.a_batch);
    layout(2, p, c_type_of(p), p.n, p.m, p.ldc, p.c_batch);
  }
  ~Descriptors() {
    for (cublasLtMatrixLayout_t l : matrix)
      if (l) functions().MatrixLayoutDestroy(l);
    if (product) functions().MatmulDescDestroy(product);
  }
  Descriptors(const Descriptors&) = delete;

  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t matrix[3] = {};

 private:
  // What is a row here is a column there. So a bias and the sums of C's columns have an element for
  // each row of its D. Its second matrix is op(A).
  void set_epilogue(const BlasProduct& p) {
    uint32_t epilogue = p.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    switch (p.epilogue) {
      case BlasEpilogue::kNone: break;
      case BlasEpilogue::kGelu:
        epilogue = p.bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
        break;
      case BlasEpilogue::kGeluBackward:
        epilogue = p.sums ? CUBLASLT_EPILOGUE_DGELU_BGRAD : CUBLASLT_EPILOGUE_DGELU;
        break;
      case BlasEpilogue::kRowSums: epilogue = CUBLASLT_EPILOGUE_BGRADB; break;
    }
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    if (const void* vector = p.sums ? p.sums : p.bias)
      set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, vector);
    if (!p.aux) return;
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, p.aux);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, p.n);
  }
  template <class T> void set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    RAMET_BLAS(op_, device_, MatmulDescSetAttribute, product, attribute, &value, sizeof value);
  }
  void layout(int i, const BlasProduct& p, ScalarType t, int64_t rows, int64_t columns, int64_t ld,
              int64_t batch_stride) {
    RAMET_BLAS(op_, device_, MatrixLayoutCreate, &matrix[i], type_of(t),
               static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), ld);
    if (p.batch == 1) return;
    const auto count = static_cast<int32_t>(p.batch);
    RAMET_BLAS(op_, device_, MatrixLayoutSetAttribute, matrix[i],
               CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count);
    RAMET_BLAS(op_, device_, MatrixLayoutSetAttribute, matrix[i],
               CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &batch_stride, sizeof batch_stride);
  }
  const char* op_;
  int device_;
};

Choice search(const char* op, int device, const Descriptors& d, cublasLtHandle_t handle,
              const uint32_t (&aligned)[3]) {
  struct Preference {
    cublasLtMatmulPreference_t p = nullptr;
    ~Preference() {
      if (p) functions().MatmulPreferenceDestroy(p);
    }
  } preference;
  RAMET_BLAS(op, device, MatmulPreferenceCreate, &preference.p);
  const uint64_t most = kWorkspace;
  RAMET_BLAS(op, device, MatmulPreferenceSetAttribute, preference.p,
             CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof most);
  // The other schemes add the parts of a long sum in the output's type. A 16-bit one rounds each.
  const uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  RAMET_BLAS(op, device, MatmulPreferenceSetAttribute, preference.p,
             CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions, sizeof reductions);
  constexpr cublasLtMatmulPreferenceAttributes_t kAlignments[] = {
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
  for (int i = 0; i < 4; ++i)
    RAMET_BLAS(op, device, MatmulPreferenceSetAttribute, preference.p, kAlignments[i],
               &aligned[i < 3 ? i : 2], sizeof(uint32_t));
  ++searches;
  cublasLtMatmulHeuristicResult_t result{};
  int count = 0;
  const cublasStatus_t status =
      functions().MatmulAlgoGetHeuristic(handle, d.product, d.matrix[0], d.matrix[1], d.matrix[2],
                                         d.matrix[2], preference.p, 1, &result, &count);
  // There is none for these operands. Both statuses mean the same.
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE ||
      (status == CUBLAS_STATUS_SUCCESS && (count == 0 || result.state != CUBLAS_STATUS_SUCCESS))) {
    if (status == CUBLAS_STATUS_INVALID_VALUE)
      log(LogLevel::Warning, "[", op,
          "] cuBLASLt finds a product's description invalid: Ramet's own kernel computes it");
    return {false, {}, 0};
  }
  if (status != CUBLAS_STATUS_SUCCESS) refuse(op, device, "MatmulAlgoGetHeuristic", status);
  return {true, result.algo, result.workspaceSize};
}

std::atomic<bool>& enabled() {
  static std::atomic<bool> on = [] {
    const char* value = std::getenv("RAMET_CUDA_BLAS");
    return !value || std::strcmp(value, "0") != 0;
  }();
  return on;
}

}  // namespace

void set_blas_enabled(bool on) { enabled().store(on, std::memory_order_relaxed); }
bool blas_enabled() { return enabled().load(std::memory_order_relaxed); }
uint64_t blas_searches() { return searches.load(); }
std::string blas_why_none() { return functions().why_none; }

namespace {

// The state of a call for a product: its descriptors, the algorithm and the key.
struct Asked {
  Asked(const char* op, int device, const BlasProduct& p) : descriptors(op, device, p) {
    const uint32_t aligned[3] = {alignment(p.b, p.ldb, p.b_batch, p.dtype),
                                 alignment(p.a, p.lda, p.a_batch, p.dtype),
                                 alignment(p.c, p.ldc, p.c_batch, c_type_of(p))};
    key = {p.batch,
           p.m,
           p.n,
           p.k,
           p.lda,
           p.ldb,
           p.ldc,
           p.a_batch,
           p.b_batch,
           p.c_batch,
           aligned[0],
           aligned[1],
           aligned[2],
           static_cast<int64_t>(p.dtype),
           p.float_c,
           p.ta,
           p.tb,
           p.bias != nullptr,
           p.sums != nullptr,
           static_cast<int64_t>(reinterpret_cast<uintptr_t>(p.sums ? p.sums : p.bias) % 16),
           static_cast<int64_t>(reinterpret_cast<uintptr_t>(p.aux) % 16),
           static_cast<int64_t>(p.epilogue),
           p.beta != 0};
    DeviceBlas& blas = blas_of(device);
    handle = handle_of(op, device, blas);
    {
      const std::lock_guard<std::mutex> lock(blas.mutex);
      const auto known = blas.choices.find(key);
      if (known != blas.choices.end()) {
        choice = known->second;
        return;
      }
    }
    const Choice found = search(op, device, descriptors, handle, aligned);
    const std::lock_guard<std::mutex> lock(blas.mutex);
    choice = blas.choices.emplace(key, found).first->second;  // another thread's, if it was quicker
  }
  const Descriptors descriptors;
  Key key;
  Choice choice;
  cublasLtHandle_t handle = nullptr;
};

// False if there is no algorithm. Then nothing of it is queued.
bool multiply(const char* op, int device, DeviceState& state, const BlasProduct& p,
              const std::function<void()>& before) {
  const Asked asked(op, device, p);
  const Descriptors& d = asked.descriptors;
  const Choice& choice = asked.choice;
  if (!choice.found) return false;
  if (before) before();
  const Scratch workspace(device, choice.workspace);
  const float narrow[2] = {static_cast<float>(p.alpha), static_cast<float>(p.beta)};
  const double wide[2] = {p.alpha, p.beta};
  const bool is_wide = p.dtype == ScalarType::Double;
  const void *alpha = is_wide ? static_cast<const void*>(&wide[0]) : &narrow[0],
             *beta = is_wide ? static_cast<const void*>(&wide[1]) : &narrow[1];
  const cudaStream_t stream =
      state.launching(op, static_cast<uint64_t>(p.batch * p.m * p.n), Queue::kCompute);
  const cublasStatus_t status = allocating(op, device, "cublasLtMatmul", [&] {
    return functions().Matmul(asked.handle, d.product, alpha, p.b, d.matrix[0], p.a, d.matrix[1],
                              beta, p.c, d.matrix[2], p.c, d.matrix[2], &choice.algorithm,
                              workspace.get(), choice.workspace, stream);
  });
  if (RAMET_UNLIKELY(status == CUBLAS_STATUS_NOT_SUPPORTED)) {  // nothing is queued
    DeviceBlas& blas = blas_of(device);
    const std::lock_guard<std::mutex> lock(blas.mutex);
    blas.choices[asked.key].found = false;
    return false;
  }
  if (RAMET_UNLIKELY(status != CUBLAS_STATUS_SUCCESS)) refuse(op, device, "Matmul", status);
  return true;
}

}  // namespace

BlasResult blas_multiply(const char* op, int device, const BlasProduct& p,
                         const std::function<void()>& before) {
  if (!blas_enabled() || !can_be_used() || p.batch > INT32_MAX) return BlasResult::kNone;
  if (p.epilogue != BlasEpilogue::kNone &&
      (item_size(p.dtype) != 2 || p.batch != 1 || (p.aux && p.n % 8 != 0)))
    return BlasResult::kNone;
  DeviceState& state = device_state(device, op);
  const CardGuard card(op, state);
  if (multiply(op, device, state, p, before)) return BlasResult::kDone;
  if (p.epilogue != BlasEpilogue::kNone || !p.bias || item_size(p.dtype) < 4)
    return BlasResult::kNone;
  BlasProduct without = p;
  without.bias = nullptr;
  return multiply(op, device, state, without, before) ? BlasResult::kWithoutBias
                                                      : BlasResult::kNone;
}

}  // namespace cuda
}  // namespace ramet
