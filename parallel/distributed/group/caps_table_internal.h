// The table behind BackendCaps, as operations look into it.
#pragma once
#include "parallel/distributed/group/caps.h"
#include "parallel/distributed/wire/header_internal.h"

namespace ramet::distributed::detail {

/// Do its messages go from card to card, where the backend of GPUs' tensors is NCCL?
bool goes_over_cards(Op op);
/// An Error that says what the operation, or the reduction, takes.
void check_reduction(Op op, ReduceOp reduction, ScalarType dtype);

}  // namespace ramet::distributed::detail
