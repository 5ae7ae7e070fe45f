// Ring 2: broadcast, reduce_add and their coalesced forms as recorded operations. They are each
// other's gradient, differentiable to any order. Values, rules, options and errors are those of
// parallel/move/comm.h.
//
// A tensor that requires no gradient takes part in no node. A gradient that was not delivered is
// skipped, not replaced by zeros.
#pragma once
#include "parallel/move/comm.h"

namespace ramet {
namespace parallel {

/// One result for each device. A result on t's own device shares t's memory, and is copied at the
/// first in-place operation on it.
RAMET_API std::vector<Tensor> broadcast(const Tensor& t, ArrayRef<Device> devices);
/// result[device][tensor], one node for all.
RAMET_API std::vector<std::vector<Tensor>> broadcast_coalesced(
    ArrayRef<Tensor> tensors, ArrayRef<Device> devices, int64_t buffer_size = kDefaultBufferSize,
    GroupRule rule = GroupRule::ours);

/// The recorded sum of tensors of equal sizes and dtypes on several devices. It is on
/// `destination`, by default the device of the first tensor.
RAMET_API Tensor reduce_add(ArrayRef<Tensor> inputs,
                            std::optional<Device> destination = std::nullopt,
                            const ReduceOptions& options = {});
/// inputs[device][tensor]; the tensors of one list are on one device.
RAMET_API std::vector<Tensor> reduce_add_coalesced(ArrayRef<std::vector<Tensor>> inputs,
                                                   std::optional<Device> destination = std::nullopt,
                                                   int64_t buffer_size = kDefaultBufferSize,
                                                   const ReduceOptions& options = {});

namespace detail {
/// The recorded sum of contributions by position; undefined ones are skipped. Undefined if all are.
/// A single contribution that is already in place is moved, not copied. `tree`: Note [Order of
/// sums] in parallel/move/options.h.
Tensor sum_of_slots(const Tensor* slots, size_t count, Device destination, ReduceOrder order);
}  // namespace detail

}  // namespace parallel
}  // namespace ramet
