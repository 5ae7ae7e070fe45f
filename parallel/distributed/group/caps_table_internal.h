// The table from which BackendCaps answers, for use by the operations.
#pragma once
#include "parallel/distributed/group/caps.h"
#include "parallel/distributed/wire/header_internal.h"

namespace ramet::distributed::detail {

/// Do its messages go from GPU to GPU, where NCCL is the backend for tensors of GPUs?
bool goes_over_cards(Op op);
/// Throws an Error that says what the operation, or the reduction, takes.
void check_reduction(Op op, ReduceOp reduction, ScalarType dtype);

}  // namespace ramet::distributed::detail
