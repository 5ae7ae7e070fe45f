// Small pictures side by side.
#pragma once
#include <string>

#include "autograd/tensor.h"

namespace ramet::training {

/// `pictures`: (N, 1 or 3 channels, height, width), from 0 to 1, on any device; they stand in rows
/// of `columns`, enlarged where they are small. PNG bytes.
std::string draw_grid(const Tensor& pictures, int64_t columns);

}  // namespace ramet::training
