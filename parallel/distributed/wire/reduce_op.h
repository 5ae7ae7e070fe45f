// How what the ranks have becomes one: tensors of a collective, gradients of a training step.
#pragma once
#include <cstdint>

#include "parallel/move/options.h"

namespace ramet {
namespace distributed {

using parallel::ReduceOrder;

/// `average` divides the sum by the number of ranks (floating point only). product, min and max go
/// from left to right by rank. bool: sum is "or".
enum class ReduceOp : uint8_t { sum, average, product, min, max };

/// What becomes of the gradients of N ranks. `weighted`: their mean weighted by the rows of the
/// forwards that each rank's backward goes through, the true mean where the loss is the mean over
/// the rank's rows. A rank without rows has no part in it. Backwards without synchronisation that
/// are reduced with a later one must be of as many rows on their rank.
enum class Average : uint8_t { mean, sum, weighted };

}  // namespace distributed
}  // namespace ramet
