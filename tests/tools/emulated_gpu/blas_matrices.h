// Matrices for the emulated cuBLASLt.
#pragma once
#include "tests/tools/emulated_gpu/emulated_devices.h"
#include "tools/emulated_gpu/blas/blas_api.h"

namespace ramet::testing {

/// One product: shapes of op(A) m x k and op(B) k x n, and everything that can differ.
struct Case {
  int m = 5, n = 7, k = 3, batch = 1;
  bool transpose_a = false, transpose_b = false, row_major = false, bias = false, relu = false;
  float alpha = 1, beta = 0;
  int padding = 0;  // of each leading dimension
};

template <class T> inline constexpr cudaDataType_t kType = CUDA_R_32F;
template <> inline constexpr cudaDataType_t kType<double> = CUDA_R_64F;
template <> inline constexpr cudaDataType_t kType<__half> = CUDA_R_16F;
template <> inline constexpr cudaDataType_t kType<__nv_bfloat16> = CUDA_R_16BF;

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

}  // namespace ramet::testing
