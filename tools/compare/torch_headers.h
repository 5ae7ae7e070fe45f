// LibTorch's headers for its arm of the comparison; ./tools/compare_torch compiles them once.
#pragma once
#include <ATen/Parallel.h>
#include <torch/torch.h>
#include <torch/version.h>
