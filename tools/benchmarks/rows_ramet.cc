// This library's arm.
#include "ramet.h"
#include "tools/benchmarks/arms.h"

namespace {

void best_layout(ramet::Tensor&) {}  // convolutions choose their own
ramet::Tensor best_stage(ramet::nn::BatchNorm2d& norm, const ramet::Tensor& x) {
  return ramet::batch_norm_relu_max_pool2d(x, norm->weight, norm->bias, norm->running_mean,
                                           norm->running_var, true, 0.1, 1e-5);
}

}  // namespace

#define RAMET_BENCH_API ramet
#include "tools/benchmarks/rows_ops.inc"

BenchArm open_ramet_arm(int threads) {
  ramet::set_num_threads(threads);
  ramet::manual_seed(1);
  return {"Ramet", kRows, static_cast<int>(sizeof kRows / sizeof *kRows)};
}
