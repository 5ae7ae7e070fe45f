#pragma once
#include "tools/benchmarks/rows.h"

/// The rows that other libraries also have.
BenchArm open_ramet_arm(int threads);
/// Rows of the parallel primitives. Rows of the same names have the plain work without them, for
/// comparison.
BenchArm open_parallel_arm(int threads);
BenchArm open_plain_arm(int threads);
/// Training steps of models and larger operations (rows_models.cc), and those steps captured.
extern "C" BenchArm open_models_arm(int threads);
BenchArm open_captured_arm(int threads);
