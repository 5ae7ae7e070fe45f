// What a tensor holds, in one line.
#pragma once
#include <string>

#include "autograd/tensor.h"

namespace ramet {
namespace see {

/// "float32[2] {1.5, -2}" where there are at most eight elements. Otherwise "float32[64, 10] from
/// -0.1 to 0.4, mean 0.02, 12 % zeros, 3 NaN": range and mean of the finite ones, the last two
/// where there are any. Waits for the values. "none" of an undefined tensor.
std::string value_text(const Tensor& t);

}  // namespace see
}  // namespace ramet
