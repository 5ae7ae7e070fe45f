// cuBLASLt's products on emulated GPUs, against float64 loops.
#include "tests/tools/emulated_gpu/blas_matrices.h"

namespace ramet::testing {
namespace {

// D: the type of the result.
template <class T, class D = T> void check(const Case& c, double tolerance) {
  using Scale = std::conditional_t<std::is_same_v<T, double>, double, float>;
  Handle lt;
  Matrices<T> a(c.transpose_a ? c.k : c.m, c.transpose_a ? c.m : c.k, c, 1);
  Matrices<T> b(c.transpose_b ? c.n : c.k, c.transpose_b ? c.k : c.n, c, 2);
  Matrices<D> d(c.m, c.n, c, 3);
  // What D holds must not be read where beta is 0.
  const size_t bytes = c.beta == 0 ? d.host.size() * sizeof(D) : 0;
  ASSERT_CUDA(cudaMemset(d.device, 0xff, bytes), cudaSuccess);
  DeviceArray<D> bias(Matrices<D>::drawn(size_t(c.m), 4));
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
  const D* bias_pointer = bias;
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

TEST(EmulatedBlas, FloatSumsOf16Bits) {
  Devices devices;
  Case c;
  check<__half, float>(c, 1e-5);
  c.transpose_a = true, c.beta = 2, c.batch = 3, c.padding = 1;
  check<__nv_bfloat16, float>(c, 1e-5);
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

}  // namespace
}  // namespace ramet::testing
