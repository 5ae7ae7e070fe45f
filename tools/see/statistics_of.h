// Numbers about the values of a tensor.
#pragma once
#include "autograd/tensor.h"
#include "tools/see/recording_data.h"

namespace ramet {
namespace see {

/// Takes any dtype, layout and device; waits for a GPU. It makes two passes over the values, on all
/// of a CPU's threads, with the same bits for any number of threads. Sums are in double.
Statistics statistics_of(const Tensor& t);

}  // namespace see
}  // namespace ramet
