// The library's own softmax kernel (kernels/rows/softmax.cu) on three rows of 40 numbers: a warp a
// row, which meets in shuffles instead of barriers.
//
//   ./tools/step_kernel softmax
#include <cmath>
#include <cstdio>

#include "kernels/rows/softmax.cu"

int main() {
  constexpr int kRows = 3, kCols = 40;
  float host[kRows * kCols], *x = nullptr, *y = nullptr;
  for (int i = 0; i < kRows * kCols; ++i) host[i] = static_cast<float>(i % 7) * 0.5f;
  if (cudaMalloc(&x, sizeof host) != cudaSuccess || cudaMalloc(&y, sizeof host) != cudaSuccess)
    return 1;
  if (cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice) != cudaSuccess) return 2;
  using namespace ramet;
  kernels::RAMET_VARIANT::softmax_forward({x, y, nullptr, kRows, kCols, kFloat, false},
                                          Stream{Device(kCUDA, 0), 0});
  if (cudaDeviceSynchronize() != cudaSuccess) return 3;
  if (cudaMemcpy(host, y, sizeof host, cudaMemcpyDeviceToHost) != cudaSuccess) return 4;
  for (int row = 0; row < kRows; ++row) {
    double sum = 0;
    for (int i = 0; i < kCols; ++i) sum += static_cast<double>(host[row * kCols + i]);
    std::printf("row %d adds up to %.6f\n", row, sum);
    if (std::fabs(sum - 1) > 1e-5) return 5;
  }
  return 0;
}
