// The part of the toolkit's header of this name, and of runtime/cuda/gpu.h's dialect, that the
// emulated GPUs have. A build for them finds it here; a build with the toolkit finds the toolkit's.
#pragma once
#include "tools/emulated_gpu/executor/arithmetic.h"
#include "tools/emulated_gpu/executor/hopper.h"
#include "tools/emulated_gpu/executor/synchronize.h"
#include "tools/emulated_gpu/executor/tensor_core.h"
#include "tools/emulated_gpu/runtime/dialect.h"
#include "tools/emulated_gpu/runtime/launch.h"
#include "tools/emulated_gpu/runtime/runtime_api.h"
