// The part of NCCL that the emulated GPUs have.
#pragma once
#include "tools/emulated_gpu/nccl/nccl_api.h"
