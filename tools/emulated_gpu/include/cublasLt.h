// The part of cuBLASLt that the emulated GPUs have.
#pragma once
#include "tools/emulated_gpu/blas/blas_api.h"
