#pragma once
#include "tools/benchmarks/rows.h"

BenchArm open_ramet_arm(int threads);
