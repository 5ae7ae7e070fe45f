// Numbers about the values of a tensor.
#pragma once
#include "autograd/tensor.h"
#include "tools/see/recording_data.h"

namespace ramet {
namespace see {

/// Of any dtype, layout and device; waits for a GPU. Two passes over the values, by all of a CPU's
/// threads, with the same bits for any number of them; sums are in double.
Statistics statistics_of(const Tensor& t);

}  // namespace see
}  // namespace ramet
