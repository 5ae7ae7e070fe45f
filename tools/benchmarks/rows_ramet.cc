// This library's arm.
#define RAMET_BENCH_API ramet
#include "ramet.h"
#include "tools/benchmarks/arms.h"
#include "tools/benchmarks/rows_ops.inc"

BenchArm open_ramet_arm(int threads) {
  ramet::set_num_threads(threads);
  return {"Ramet", kRows, static_cast<int>(sizeof kRows / sizeof *kRows)};
}
