#pragma once
#include "tools/benchmarks/rows.h"

/// The rows that other libraries have too.
BenchArm open_ramet_arm(int threads);
/// Rows of the parallel primitives, and under the same names what each is measured against: the
/// plain work without them.
BenchArm open_parallel_arm(int threads);
BenchArm open_plain_arm(int threads);
