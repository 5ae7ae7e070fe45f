// Ring 2: broadcast, reduce_add and their coalesced forms as recorded operations, each other's
// gradient, differentiable to any order. Values, rules, options and errors are those of
// parallel/move/comm.h.
//
// A tensor that wants no gradient takes part in no node. A gradient that nobody delivered is passed
// over, not replaced by zeros.
#pragma once
#include "parallel/move/comm.h"

namespace ramet {
namespace parallel {

/// One result a device. A result on t's own device shows t's memory (copied at the first in-place
/// operation on it).
RAMET_API std::vector<Tensor> broadcast(const Tensor& t, ArrayRef<Device> devices);
/// result[device][tensor], one node for all.
RAMET_API std::vector<std::vector<Tensor>> broadcast_coalesced(
    ArrayRef<Tensor> tensors, ArrayRef<Device> devices, int64_t buffer_size = kDefaultBufferSize,
    GroupRule rule = GroupRule::ours);

/// The sum of tensors of equal sizes and dtypes on several devices, on `destination` (that of the
/// first, if none is given), recorded.
RAMET_API Tensor reduce_add(ArrayRef<Tensor> inputs,
                            std::optional<Device> destination = std::nullopt,
                            const ReduceOptions& options = {});
/// inputs[device][tensor]; the tensors of one list are on one device.
RAMET_API std::vector<Tensor> reduce_add_coalesced(ArrayRef<std::vector<Tensor>> inputs,
                                                   std::optional<Device> destination = std::nullopt,
                                                   int64_t buffer_size = kDefaultBufferSize,
                                                   const ReduceOptions& options = {});

namespace detail {
/// The recorded sum of contributions by position, some undefined; undefined if all are. A single
/// one is moved, not copied, where it is already in place. `tree`: Note [Order of sums] in
/// parallel/move/options.h.
Tensor sum_of_slots(const Tensor* slots, size_t count, Device destination, ReduceOrder order);
}  // namespace detail

}  // namespace parallel
}  // namespace ramet
