// How the ranks' values are combined: tensors of a collective, gradients of a training step.
#pragma once
#include <cstdint>

#include "parallel/move/options.h"

namespace ramet {
namespace distributed {

using parallel::ReduceOrder;

/// `average` divides the sum by the number of ranks (floating point only). product, min and max go
/// from left to right by rank. bool: sum is "or".
enum class ReduceOp : uint8_t { sum, average, product, min, max };

/// How the gradients of N ranks are combined. `weighted`: their mean, weighted by the rows of the
/// forwards that each rank's backward goes through. That is the true mean if the loss is the mean
/// over the rank's rows. A rank without rows does not contribute. If backwards without
/// synchronisation are reduced with a later one, all of them must have the same number of rows on
/// their rank.
enum class Average : uint8_t { mean, sum, weighted };

}  // namespace distributed
}  // namespace ramet
