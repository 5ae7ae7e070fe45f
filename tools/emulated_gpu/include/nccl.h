// What the emulated GPUs have of NCCL.
#pragma once
#include "tools/emulated_gpu/nccl/nccl_api.h"
