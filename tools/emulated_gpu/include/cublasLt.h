// What the emulated GPUs have of cuBLASLt.
#pragma once
#include "tools/emulated_gpu/blas/blas_api.h"
