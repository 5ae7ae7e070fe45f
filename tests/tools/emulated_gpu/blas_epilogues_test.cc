// What cuBLASLt's double adds to a product: GELU with its auxiliary matrix, its derivative, and
// gradients of biases. Against float64 loops.
#include <cmath>
#include <limits>

#include "tests/tools/emulated_gpu/blas_matrices.h"

namespace ramet::testing {
namespace {

constexpr int kM = 16, kN = 6, kK = 12;  // D is kM x kN

double gelu_of(double x) {
  return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}
// By differences: independent of the formula.
double gelu_slope(double x) { return (gelu_of(x + 1e-6) - gelu_of(x - 1e-6)) / 2e-6; }

template <class T> class Epilogue {
 public:
  explicit Epilogue(const Case& which = {})
      : a(kM, kK, which, 1),
        b(kK, kN, which, 2),
        d(kM, kN, which, 3),
        aux(Matrices<T>::drawn(size_t(kLd * kN), 4)),
        vector(Matrices<T>::drawn(32, 5)) {
    const bool wide = std::is_same_v<T, double>;
    EXPECT_EQ(cublasLtMatmulDescCreate(&desc, wide ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F,
                                       wide ? CUDA_R_64F : CUDA_R_32F),
              CUBLAS_STATUS_SUCCESS);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, int64_t{kLd});
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, static_cast<void*>(&aux[0]));
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<void*>(&vector[0]));
  }
  ~Epilogue() { EXPECT_EQ(cublasLtMatmulDescDestroy(desc), CUBLAS_STATUS_SUCCESS); }

  template <class V> void set(cublasLtMatmulDescAttributes_t attribute, const V& value) {
    EXPECT_EQ(cublasLtMatmulDescSetAttribute(desc, attribute, &value, sizeof value),
              CUBLAS_STATUS_SUCCESS);
  }
  void take(uint32_t epilogue) { set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue); }
  cublasStatus_t search() {
    cublasLtMatmulPreference_t preference = nullptr;
    EXPECT_EQ(cublasLtMatmulPreferenceCreate(&preference), CUBLAS_STATUS_SUCCESS);
    int count = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        lt.handle, desc, a.layout, b.layout, d.layout, d.layout, preference, 1, &found, &count);
    EXPECT_EQ(cublasLtMatmulPreferenceDestroy(preference), CUBLAS_STATUS_SUCCESS);
    return status;
  }
  cublasStatus_t run() {
    using Scale = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const Scale one = 1, zero = 0;
    T* const to = d.device;
    return cublasLtMatmul(lt.handle, desc, &one, a.device, a.layout, b.device, b.layout, &zero, to,
                          d.layout, to, d.layout, &found.algo, nullptr, 0, nullptr);
  }
  double product(int i, int j) const {
    double sum = 0;
    for (int t = 0; t < kK; ++t) sum += a.value(0, i, t) * b.value(0, t, j);
    return sum;
  }
  static constexpr int kLd = 24;  // more than D's rows: what lies between is not touched

  Handle lt;
  Matrices<T> a, b, d;
  DeviceArray<T> aux, vector;
  cublasLtMatmulDesc_t desc = nullptr;
  cublasLtMatmulHeuristicResult_t found{};
};

template <class T> void check(double tolerance) {
  {
    Epilogue<T> e;
    const auto bias = e.vector.host(), before = e.aux.host();
    e.take(CUBLASLT_EPILOGUE_GELU_AUX_BIAS);
    ASSERT_EQ(e.search(), CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(e.run(), CUBLAS_STATUS_SUCCESS);
    const auto y = e.d.device.host(), z = e.aux.host();
    for (int j = 0; j < kN; ++j)
      for (int i = 0; i < e.kLd; ++i) {
        const size_t at = size_t(j * e.kLd + i);
        if (i >= kM) {
          ASSERT_EQ(double(z[at]), double(before[at])) << "between columns";
          continue;
        }
        const double x = e.product(i, j) + double(bias[size_t(i)]);
        ASSERT_NEAR(double(z[at]), x, tolerance);
        ASSERT_NEAR(double(y[e.d.at(0, i, j)]), gelu_of(x), tolerance);
      }
  }
  {
    Epilogue<T> e;
    e.take(CUBLASLT_EPILOGUE_DGELU_BGRAD);
    ASSERT_EQ(e.search(), CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(e.run(), CUBLAS_STATUS_SUCCESS);
    const auto y = e.d.device.host(), z = e.aux.host(), sums = e.vector.host();
    for (int i = 0; i < kM; ++i) {
      double sum = 0;
      for (int j = 0; j < kN; ++j) {
        const double want = e.product(i, j) * gelu_slope(double(z[size_t(j * e.kLd + i)]));
        ASSERT_NEAR(double(y[e.d.at(0, i, j)]), want, tolerance);
        sum += want;
      }
      ASSERT_NEAR(double(sums[size_t(i)]), sum, tolerance);
    }
  }
  for (const bool of_a : {true, false}) {
    Epilogue<T> e;
    e.take(of_a ? CUBLASLT_EPILOGUE_BGRADA : CUBLASLT_EPILOGUE_BGRADB);
    ASSERT_EQ(e.search(), CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(e.run(), CUBLAS_STATUS_SUCCESS);
    const auto y = e.d.device.host(), sums = e.vector.host();
    for (int i = 0; i < (of_a ? kM : kN); ++i) {
      double sum = 0;
      for (int t = 0; t < kK; ++t) sum += of_a ? e.a.value(0, i, t) : e.b.value(0, t, i);
      ASSERT_NEAR(double(sums[size_t(i)]), sum, tolerance);
    }
    for (int i = 0; i < kM; ++i)
      for (int j = 0; j < kN; ++j)
        ASSERT_NEAR(double(y[e.d.at(0, i, j)]), e.product(i, j), tolerance);
  }
}

TEST(BlasEpilogues, Values) {
  Devices devices;
  check<float>(1e-5);
  check<__half>(1e-2);
  check<__nv_bfloat16>(6e-2);
}

// Unlike its ReLU, its GELU keeps a NaN.
TEST(BlasEpilogues, GeluOfNaN) {
  Devices devices;
  Epilogue<float> e;
  std::vector<float> bias(32, 0.0f);
  bias[3] = std::numeric_limits<float>::quiet_NaN();
  const DeviceArray<float> vector(bias);
  e.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<void*>(&vector[0]));
  e.take(CUBLASLT_EPILOGUE_GELU_BIAS);
  ASSERT_EQ(e.search(), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(e.run(), CUBLAS_STATUS_SUCCESS);
  const auto y = e.d.device.host();
  for (int i = 0; i < kM; ++i)
    for (int j = 0; j < kN; ++j) EXPECT_EQ(std::isnan(y[e.d.at(0, i, j)]), i == 3);
}

// The auxiliary matrix as cublasLt.h describes it, and where it may lie.
TEST(BlasEpilogues, TheAuxiliaryMatrix) {
  Devices devices;
  Epilogue<float> e;
  const auto refused = [&](const std::string& text) {
    EXPECT_EQ(e.run(), CUBLAS_STATUS_INVALID_VALUE);
    EXPECT_EQ(emulated::last_report(), "[emulated CUDA] cublasLtMatmul: " + text);
  };
  const auto at = [&](void* p) { e.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, p); };
  e.take(CUBLASLT_EPILOGUE_GELU_AUX_BIAS);
  for (const int64_t ld : {int64_t{0}, int64_t{8}, int64_t{20}}) {
    e.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, ld);  // too small, or no multiple of 8
    EXPECT_EQ(e.search(), CUBLAS_STATUS_INVALID_VALUE) << ld;
  }
  e.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, int64_t{e.kLd});
  ASSERT_EQ(e.search(), CUBLAS_STATUS_SUCCESS);
  at(nullptr);
  refused("the auxiliary matrix has no address");
  at(&e.aux[1]);
  refused(
      "the auxiliary matrix begins at a multiple of 4 bytes, and the algorithm was chosen for one "
      "of 16");
  at(&e.aux[140]);
  refused("the auxiliary matrix does not lie in one allocation");
  const DeviceArray<float> large(1024);
  ASSERT_CUDA(cudaMemset(large, 0, 4096), cudaSuccess);
  at(&large[0]);
  EXPECT_EQ(e.run(), CUBLAS_STATUS_SUCCESS);
  // An algorithm for a matrix that begins at any element takes one that does.
  at(&large[1]);
  ASSERT_EQ(e.search(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(e.run(), CUBLAS_STATUS_SUCCESS);
}

TEST(BlasEpilogues, WhatIsNotSupported) {
  Devices devices;
  Epilogue<double> wide;
  for (auto epilogue : {CUBLASLT_EPILOGUE_GELU, CUBLASLT_EPILOGUE_GELU_AUX_BIAS,
                        CUBLASLT_EPILOGUE_DGELU, CUBLASLT_EPILOGUE_BGRADB}) {
    wide.take(epilogue);
    EXPECT_EQ(wide.search(), CUBLAS_STATUS_NOT_SUPPORTED);
  }
  Case two;
  two.batch = 2;
  Epilogue<float> batch(two);
  for (auto epilogue :
       {CUBLASLT_EPILOGUE_DGELU_BGRAD, CUBLASLT_EPILOGUE_BGRADA, CUBLASLT_EPILOGUE_BGRADB}) {
    batch.take(epilogue);
    EXPECT_EQ(batch.search(), CUBLAS_STATUS_NOT_SUPPORTED);
  }
  Epilogue<float> e;
  e.take(CUBLASLT_EPILOGUE_BGRADB);
  ASSERT_EQ(e.search(), CUBLAS_STATUS_SUCCESS);
  e.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<void*>(nullptr));
  EXPECT_EQ(e.run(), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(emulated::last_report(),
            "[emulated CUDA] cublasLtMatmul: the bias gradient has no address");
}

}  // namespace
}  // namespace ramet::testing
