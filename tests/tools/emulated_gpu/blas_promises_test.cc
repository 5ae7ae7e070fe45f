// What cuBLASLt's double refuses: what does not keep what was promised, as the library would not.
#include <cmath>
#include <thread>

#include "tests/tools/emulated_gpu/blas_matrices.h"

namespace ramet::testing {
namespace {

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
  // The product has used it, and nothing after it.
  const auto left = workspace.host();
  for (size_t i = 0; i < left.size(); ++i) ASSERT_EQ(std::isnan(left[i]), i * 4 < bytes) << i;
  // As small as it was preferred: none.
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{255});
  ASSERT_EQ(search(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(found.workspaceSize, 0u);
  EXPECT_EQ(run(nullptr, 0), CUBLAS_STATUS_SUCCESS);
}

// Planted: other work uses the workspace before the product and after it.
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

// A handle belongs to its device, and so do matrices, unless they were opened to another device.
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
  const uint32_t none_such = 1024, gelu = CUBLASLT_EPILOGUE_GELU;
  EXPECT_EQ(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &none_such, 4),
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
