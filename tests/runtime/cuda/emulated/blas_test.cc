// cuBLASLt's products on emulated GPUs, against float64 loops.
#include <cmath>
#include <thread>

#include "runtime/cuda/emulated/blas_api.h"
#include "tests/runtime/cuda/emulated/emulated_devices.h"

namespace ramet::testing {
namespace {

/// One product: shapes of op(A) m x k and op(B) k x n, and everything that can differ.
struct Case {
  int m = 5, n = 7, k = 3, batch = 1;
  bool transpose_a = false, transpose_b = false, row_major = false, bias = false, relu = false;
  float alpha = 1, beta = 0;
  int padding = 0;  // of each leading dimension
};

template <class T> constexpr cudaDataType_t kType = CUDA_R_32F;
template <> constexpr cudaDataType_t kType<double> = CUDA_R_64F;
template <> constexpr cudaDataType_t kType<__half> = CUDA_R_16F;
template <> constexpr cudaDataType_t kType<__nv_bfloat16> = CUDA_R_16BF;

/// A batch of matrices on the device and on the host.
template <class T> struct Matrices {
  int rows, columns, stride;
  bool row_major;
  std::vector<T> host;
  DeviceArray<T> device;
  cublasLtMatrixLayout_t layout = nullptr;

  Matrices(int r, int c, const Case& which, unsigned seed)
      : rows(r),
        columns(c),
        stride((which.row_major ? c : r) + which.padding),
        row_major(which.row_major),
        host(drawn(size_t(elements()) * size_t(which.batch), seed)),
        device(host) {
    EXPECT_EQ(cublasLtMatrixLayoutCreate(&layout, kType<T>, uint64_t(r), uint64_t(c), stride),
              CUBLAS_STATUS_SUCCESS);
    const int32_t order = row_major ? CUBLASLT_ORDER_ROW : CUBLASLT_ORDER_COL, count = which.batch;
    const int64_t offset = elements();
    set(CUBLASLT_MATRIX_LAYOUT_ORDER, order);
    set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, count);
    set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, offset);
  }
  ~Matrices() { EXPECT_EQ(cublasLtMatrixLayoutDestroy(layout), CUBLAS_STATUS_SUCCESS); }

  template <class V> void set(cublasLtMatrixLayoutAttribute_t attribute, const V& value) {
    EXPECT_EQ(cublasLtMatrixLayoutSetAttribute(layout, attribute, &value, sizeof value),
              CUBLAS_STATUS_SUCCESS);
  }
  static std::vector<T> drawn(size_t count, unsigned seed) {
    const auto values = uniform(count, seed);
    return std::vector<T>(values.begin(), values.end());
  }
  int elements() const { return stride * (row_major ? rows : columns); }
  size_t at(int batch, int row, int column) const {
    return size_t(batch * elements() + (row_major ? row * stride + column : column * stride + row));
  }
  double value(int batch, int row, int column) const {
    return double(host[at(batch, row, column)]);
  }
};

struct Handle {
  Handle() {
    EXPECT_EQ(cudaSetDevice(0), cudaSuccess);  // the thread's context
    EXPECT_EQ(cublasLtCreate(&handle), CUBLAS_STATUS_SUCCESS);
  }
  ~Handle() { EXPECT_EQ(cublasLtDestroy(handle), CUBLAS_STATUS_SUCCESS); }
  cublasLtHandle_t handle = nullptr;
};

template <class T> void check(const Case& c, double tolerance) {
  using Scale = std::conditional_t<std::is_same_v<T, double>, double, float>;
  Handle lt;
  Matrices<T> a(c.transpose_a ? c.k : c.m, c.transpose_a ? c.m : c.k, c, 1);
  Matrices<T> b(c.transpose_b ? c.n : c.k, c.transpose_b ? c.k : c.n, c, 2);
  Matrices<T> d(c.m, c.n, c, 3);
  // What D holds must not be read where beta is 0.
  const size_t bytes = c.beta == 0 ? d.host.size() * sizeof(T) : 0;
  ASSERT_CUDA(cudaMemset(d.device, 0xff, bytes), cudaSuccess);
  DeviceArray<T> bias(Matrices<T>::drawn(size_t(c.m), 4));
  const auto bias_host = bias.host();

  cublasLtMatmulDesc_t desc = nullptr;
  const bool wide = std::is_same_v<T, double>;
  ASSERT_EQ(cublasLtMatmulDescCreate(&desc, wide ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F,
                                     wide ? CUDA_R_64F : CUDA_R_32F),
            CUBLAS_STATUS_SUCCESS);
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    EXPECT_EQ(cublasLtMatmulDescSetAttribute(desc, attribute, &value, sizeof value),
              CUBLAS_STATUS_SUCCESS);
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, c.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_TRANSB, c.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  uint32_t epilogue = c.bias || c.relu ? 0 : CUBLASLT_EPILOGUE_DEFAULT;
  if (c.bias) epilogue |= CUBLASLT_EPILOGUE_BIAS;
  if (c.relu) epilogue |= CUBLASLT_EPILOGUE_RELU;
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
  const T* bias_pointer = bias;
  set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias_pointer);

  cublasLtMatmulPreference_t preference = nullptr;
  cublasLtMatmulHeuristicResult_t found;
  int count = 0;
  ASSERT_EQ(cublasLtMatmulPreferenceCreate(&preference), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasLtMatmulAlgoGetHeuristic(lt.handle, desc, a.layout, b.layout, d.layout, d.layout,
                                           preference, 1, &found, &count),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(count, 1);
  {
    const Scale alpha = c.alpha, beta = c.beta;  // gone before the product runs
    ASSERT_EQ(
        cublasLtMatmul(lt.handle, desc, &alpha, a.device, a.layout, b.device, b.layout, &beta,
                       d.device, d.layout, d.device, d.layout, &found.algo, nullptr, 0, nullptr),
        CUBLAS_STATUS_SUCCESS);
  }
  EXPECT_EQ(cublasLtMatmulPreferenceDestroy(preference), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasLtMatmulDescDestroy(desc), CUBLAS_STATUS_SUCCESS);
  const auto result = d.device.host();
  for (int batch = 0; batch < c.batch; ++batch)
    for (int i = 0; i < c.m; ++i)
      for (int j = 0; j < c.n; ++j) {
        double expected = 0;
        for (int t = 0; t < c.k; ++t)
          expected += (c.transpose_a ? a.value(batch, t, i) : a.value(batch, i, t)) *
                      (c.transpose_b ? b.value(batch, j, t) : b.value(batch, t, j));
        expected = double(c.alpha) * expected + double(c.beta) * d.value(batch, i, j);
        if (c.bias) expected += double(bias_host[size_t(i)]);
        if (c.relu) expected = std::max(expected, 0.0);
        ASSERT_NEAR(double(result[d.at(batch, i, j)]), expected, tolerance)
            << batch << " " << i << " " << j;
      }
}

TEST(EmulatedBlas, Products) {
  for (const Schedule& schedule : schedules()) {
    Devices devices(schedule.settings);
    SCOPED_TRACE(schedule.name);
    check<float>({}, 1e-5);
    check<double>({}, 1e-13);
    check<__half>({}, 3e-3);
    check<__nv_bfloat16>({}, 2e-2);
  }
}

TEST(EmulatedBlas, EveryForm) {
  Devices devices;
  for (const bool ta : {false, true})
    for (const bool tb : {false, true})
      for (const bool row_major : {false, true}) {
        Case c;
        c.m = 17;
        c.n = 9;
        c.k = 33;
        c.transpose_a = ta;
        c.transpose_b = tb;
        c.row_major = row_major;
        c.padding = 2;
        check<float>(c, 1e-5);
        c.batch = 3;
        c.alpha = 0.5f;
        c.beta = -2;
        check<float>(c, 1e-5);
        c.bias = !row_major;  // WhatHasNoEpilogue
        check<double>(c, 1e-12);
        c.relu = !row_major;
        check<float>(c, 1e-5);
      }
}

/// A product of 8 x 16 and 16 x 4 matrices, two of each, and its algorithm.
class OneProduct : public ::testing::Test {
 protected:
  static Case two() {
    Case c;
    c.batch = 2;
    return c;
  }
  OneProduct() : a(8, 16, two(), 1), b(16, 4, two(), 2), d(8, 4, two(), 3), workspace(4096) {
    EXPECT_EQ(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F),
              CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasLtMatmulPreferenceCreate(&preference), CUBLAS_STATUS_SUCCESS);
    const uint64_t most = 1 << 20;
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, most);
  }
  ~OneProduct() override {
    EXPECT_EQ(cublasLtMatmulPreferenceDestroy(preference), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasLtMatmulDescDestroy(desc), CUBLAS_STATUS_SUCCESS);
  }
  template <class V> void prefer(cublasLtMatmulPreferenceAttributes_t attribute, const V& value) {
    EXPECT_EQ(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value),
              CUBLAS_STATUS_SUCCESS);
  }
  cublasStatus_t search() {
    int count = 0;
    return cublasLtMatmulAlgoGetHeuristic(lt.handle, desc, a.layout, b.layout, d.layout, d.layout,
                                          preference, 1, &found, &count);
  }
  cublasStatus_t run(void* memory, size_t bytes) {
    return run(static_cast<float*>(a.device), memory, bytes);
  }
  cublasStatus_t run(const float* first, void* memory, size_t bytes) {
    const float one = 1, zero = 0;
    return cublasLtMatmul(lt.handle, desc, &one, first, a.layout, b.device, b.layout, &zero, to(),
                          d.layout, to(), d.layout, &found.algo, memory, bytes, nullptr);
  }
  float* to() const { return d.device; }
  void expect_refused(cublasStatus_t status, const std::string& text) {
    EXPECT_EQ(status, CUBLAS_STATUS_INVALID_VALUE);
    EXPECT_EQ(emulated::last_report(), "[emulated CUDA] cublasLtMatmul: " + text);
  }
  double expected(int batch, int i, int j) const {
    double sum = 0;
    for (int t = 0; t < 16; ++t) sum += a.value(batch, i, t) * b.value(batch, t, j);
    return sum;
  }

  Devices devices_;
  Handle lt;
  Matrices<float> a, b, d;
  DeviceArray<float> workspace;
  cublasLtMatmulDesc_t desc = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  cublasLtMatmulHeuristicResult_t found;
};

TEST_F(OneProduct, WantsItsWorkspace) {
  ASSERT_EQ(search(), CUBLAS_STATUS_SUCCESS);
  ASSERT_GT(found.workspaceSize, 0u);
  const size_t bytes = found.workspaceSize;
  expect_refused(run(nullptr, 0), "the workspace has 0 bytes, and the algorithm wants 256");
  expect_refused(run(nullptr, bytes), "the workspace has 0 bytes, and the algorithm wants 256");
  expect_refused(run(workspace, bytes - 1),
                 "the workspace has 255 bytes, and the algorithm wants 256");
  expect_refused(run(workspace + 1, bytes), "the workspace does not begin at a multiple of 256");
  expect_refused(run(workspace, 4 * 4096 + 1), "the workspace does not lie in one allocation");
  std::vector<float> host(128);
  void* aligned =
      reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(host.data()) + 255) & ~255ull);
  expect_refused(run(aligned, bytes), "the workspace is no device memory");
  ASSERT_CUDA(cudaMemset(workspace, 0, 4 * 4096), cudaSuccess);
  EXPECT_EQ(run(workspace, bytes), CUBLAS_STATUS_SUCCESS);
  const auto result = d.device.host();
  for (int batch = 0; batch < 2; ++batch)
    for (int i = 0; i < 8; ++i)
      for (int j = 0; j < 4; ++j)
        EXPECT_NEAR(result[d.at(batch, i, j)], expected(batch, i, j), 1e-5);
  // The product has used it, and nothing behind it.
  const auto left = workspace.host();
  for (size_t i = 0; i < left.size(); ++i) ASSERT_EQ(std::isnan(left[i]), i * 4 < bytes) << i;
  // As small as it was preferred: none.
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{255});
  ASSERT_EQ(search(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(found.workspaceSize, 0u);
  EXPECT_EQ(run(nullptr, 0), CUBLAS_STATUS_SUCCESS);
}

// Planted: a workspace that somebody else uses meanwhile, before the product and after it.
TEST_F(OneProduct, WhatLiesInTheWorkspaceIsLost) {
  ASSERT_EQ(search(), CUBLAS_STATUS_SUCCESS);
  const DeviceArray<float> shared(std::vector<float>(256, 0.0f));
  EXPECT_EQ(run(shared, shared, found.workspaceSize), CUBLAS_STATUS_SUCCESS);  // half of A is there
  const auto result = d.device.host();
  for (size_t i = 0; i < result.size(); ++i) EXPECT_EQ(std::isnan(result[i]), i < 32) << i;
  EXPECT_EQ(run(d.device, found.workspaceSize), CUBLAS_STATUS_SUCCESS);  // D is
  for (const float x : d.device.host()) EXPECT_TRUE(std::isnan(x));
}

// Planted: an algorithm that is kept for operands that lie otherwise than those it was chosen for.
TEST_F(OneProduct, KeepsWhatWasPromised) {
  const DeviceArray<float> room(1024);
  ASSERT_CUDA(cudaMemset(room, 0, 4096), cudaSuccess);
  ASSERT_EQ(search(), CUBLAS_STATUS_SUCCESS);
  const size_t bytes = found.workspaceSize;
  EXPECT_EQ(run(room + 64, workspace, bytes), CUBLAS_STATUS_SUCCESS);
  expect_refused(run(room + 4, workspace, bytes),
                 "A begins at a multiple of 16 bytes, and the algorithm was chosen for one of 256");
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, uint32_t{16});
  ASSERT_EQ(search(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(run(room + 4, workspace, bytes), CUBLAS_STATUS_SUCCESS);
  expect_refused(run(room + 1, workspace, bytes),
                 "A begins at a multiple of 4 bytes, and the algorithm was chosen for one of 16");
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, uint32_t{1});
  ASSERT_EQ(search(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(run(room + 1, workspace, bytes), CUBLAS_STATUS_SUCCESS);
  const auto* within = reinterpret_cast<float*>(reinterpret_cast<char*>(&room[0]) + 2);
  expect_refused(run(within, workspace, bytes),
                 "A begins at a multiple of 2 bytes, and the algorithm was chosen for one of 4");
  // Strides: between matrices, and between columns.
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, uint32_t{16});
  ASSERT_EQ(search(), CUBLAS_STATUS_SUCCESS);
  a.set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, int64_t{130});
  expect_refused(
      run(room, workspace, bytes),
      "strides of A are multiples of 8 bytes, and the algorithm was chosen for multiples "
      "of 16");
  ASSERT_EQ(search(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(run(room, workspace, bytes), CUBLAS_STATUS_SUCCESS);
  a.set(CUBLASLT_MATRIX_LAYOUT_LD, int64_t{9});
  expect_refused(
      run(room, workspace, bytes),
      "strides of A are multiples of 4 bytes, and the algorithm was chosen for multiples "
      "of 8");
}

TEST_F(OneProduct, LeadingDimensionsAndMatricesThatOverlap) {
  a.set(CUBLASLT_MATRIX_LAYOUT_LD, int64_t{7});
  EXPECT_EQ(search(), CUBLAS_STATUS_INVALID_VALUE);
  a.set(CUBLASLT_MATRIX_LAYOUT_LD, int64_t{8});
  b.set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, int64_t{0});  // one B for all
  ASSERT_EQ(search(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(run(workspace, found.workspaceSize), CUBLAS_STATUS_SUCCESS);
  d.set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, int64_t{24});
  ASSERT_EQ(search(), CUBLAS_STATUS_SUCCESS);
  expect_refused(run(workspace, found.workspaceSize), "the matrices of D overlap");
}

// A handle is its device's, and so are matrices, where nobody has opened them to another.
TEST_F(OneProduct, OnItsDevice) {
  ASSERT_EQ(search(), CUBLAS_STATUS_SUCCESS);
  ASSERT_CUDA(cudaSetDevice(1), cudaSuccess);
  const DeviceArray<float> there(std::vector<float>(1024, 1.0f));
  EXPECT_EQ(search(), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(run(workspace, found.workspaceSize), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(emulated::last_report(),
            "[emulated CUDA] cublasLtMatmul on cuda:1: the handle was made on cuda:0");
  ASSERT_CUDA(cudaSetDevice(0), cudaSuccess);
  ASSERT_EQ(search(), CUBLAS_STATUS_SUCCESS);
  expect_refused(run(there, workspace, found.workspaceSize),
                 "A is memory of cuda:1, to which cuda:0 has no access");
  ASSERT_CUDA(cudaDeviceEnablePeerAccess(1, 0), cudaSuccess);
  EXPECT_EQ(run(there, workspace, found.workspaceSize), CUBLAS_STATUS_SUCCESS);
  // A pool's memory is opened by itself.
  const PoolMemory pooled(1, 4096);
  ASSERT_CUDA(cudaSetDevice(1), cudaSuccess);
  ASSERT_CUDA(cudaMemsetAsync(pooled, 0, 4096, nullptr), cudaSuccess);
  ASSERT_CUDA(cudaDeviceSynchronize(), cudaSuccess);
  ASSERT_CUDA(cudaSetDevice(0), cudaSuccess);
  expect_refused(run(pooled, workspace, found.workspaceSize),
                 "A is memory of cuda:1, to which cuda:0 has no access");
  pooled.open_to(0);
  EXPECT_EQ(run(pooled, workspace, found.workspaceSize), CUBLAS_STATUS_SUCCESS);
  ASSERT_CUDA(cudaDeviceSynchronize(), cudaSuccess);  // before the memory goes
}

// The note of the table of data types: no epilogue of a row-major D.
TEST_F(OneProduct, WhatHasNoEpilogue) {
  const auto with = [&](uint32_t epilogue) {
    EXPECT_EQ(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, 4),
              CUBLAS_STATUS_SUCCESS);
    return search();
  };
  EXPECT_EQ(with(CUBLASLT_EPILOGUE_RELU_BIAS), CUBLAS_STATUS_SUCCESS);
  d.set(CUBLASLT_MATRIX_LAYOUT_ORDER, int32_t{CUBLASLT_ORDER_ROW});
  for (auto e : {CUBLASLT_EPILOGUE_RELU_BIAS, CUBLASLT_EPILOGUE_RELU, CUBLASLT_EPILOGUE_BIAS})
    EXPECT_EQ(with(e), CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(with(CUBLASLT_EPILOGUE_DEFAULT), CUBLAS_STATUS_SUCCESS);
}

TEST(EmulatedBlas, AThreadNeedsAContext) {
  Devices devices;
  std::thread([] {
    cublasLtHandle_t handle = nullptr;
    EXPECT_EQ(cublasLtCreate(&handle), CUBLAS_STATUS_NOT_INITIALIZED);
    EXPECT_EQ(handle, nullptr);
    EXPECT_EQ(cudaFree(nullptr), cudaSuccess);  // the usual way to get one
    ASSERT_EQ(cublasLtCreate(&handle), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasLtDestroy(handle), CUBLAS_STATUS_SUCCESS);
  }).join();
}

TEST(EmulatedBlas, BadArguments) {
  emulated::Settings s = test_settings();
  Devices devices(s);
  Handle lt;
  Case c;
  Matrices<float> a(5, 3, c, 1), b(3, 7, c, 2), d(5, 7, c, 3), other(4, 7, c, 4);
  Matrices<double> wide(3, 7, c, 5);
  cublasLtMatmulDesc_t desc = nullptr;
  ASSERT_EQ(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F), CUBLAS_STATUS_SUCCESS);
  const float one = 1, zero = 0;
  const auto run = [&](const void* from, cublasLtMatrixLayout_t lb, void* to,
                       cublasLtMatrixLayout_t ld) {
    return cublasLtMatmul(lt.handle, desc, &one, a.device, a.layout, from, lb, &zero, to, ld, to,
                          ld, nullptr, nullptr, 0, nullptr);
  };
  EXPECT_EQ(run(b.device, b.layout, d.device, d.layout), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(run(b.device, b.layout, other.device, other.layout), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(run(b.device, d.layout, d.device, d.layout), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(run(wide.device, wide.layout, d.device, d.layout), CUBLAS_STATUS_INVALID_VALUE);
  // Host memory, and an allocation that is too small.
  EXPECT_EQ(run(b.host.data(), b.layout, d.device, d.layout), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(run(b.device + 1, b.layout, d.device, d.layout), CUBLAS_STATUS_INVALID_VALUE);
  const uint32_t gelu = 32;
  EXPECT_EQ(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &gelu, 4),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &gelu, 2),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasLtMatmulDescDestroy(desc), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_64F, CUDA_R_64F), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(run(b.device, b.layout, d.device, d.layout), CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(cublasLtMatmulDescDestroy(desc), CUBLAS_STATUS_SUCCESS);
}

}  // namespace
}  // namespace ramet::testing
