// Ring 1: moves values between devices. No gradients: results have no history.
// (parallel/nodes/scatter_gather.h and parallel/nodes/broadcast_reduce.h have the same functions as
// recorded operations.)
//
// Devices may be of one kind or mixed; a device that appears twice gets two results. Results come
// in the order of the devices or inputs. All checks run on the calling thread before any work. If
// an operand is pending, the movement queues on its destination's worker (Note [Movements do not
// wait] in parallel/move/movement_internal.h). So every function returns at once. Memory order
// (channels-last and any other dense permutation) is kept. Counters: parallel/move/counters.h.
#pragma once
#include <optional>
#include <vector>

#include "autograd/tensor.h"
#include "parallel/move/bucket.h"
#include "parallel/move/options.h"

namespace ramet {
namespace parallel {
namespace comm {

/// One result for each device. The first entry on t's own device is t itself; further ones are
/// copies.
RAMET_API std::vector<Tensor> broadcast(const Tensor& t, ArrayRef<Device> devices);
/// Copies t into each tensor of `out`, which must have its shape and dtype. Returns `out`.
RAMET_API std::vector<Tensor>& broadcast_out(const Tensor& t, std::vector<Tensor>& out);

/// result[device][tensor]. All `tensors` must be on one device; the first row for that device holds
/// the tensors themselves. In other rows the tensors of one group (plan_buckets) share one
/// allocation, and each has its own version counter. `buffer_size` in bytes.
RAMET_API std::vector<std::vector<Tensor>> broadcast_coalesced(
    ArrayRef<Tensor> tensors, ArrayRef<Device> devices, int64_t buffer_size = kDefaultBufferSize,
    GroupRule rule = GroupRule::ours);

/// The sum of the inputs (at most kMaxLeaves, of one shape and dtype) on `destination`, by default
/// the current device of the first input's type. float16 and bfloat16 accumulate in float32 and are
/// rounded once; bool is "or". The result does not depend on the destination.
RAMET_API Tensor reduce_add(ArrayRef<Tensor> inputs,
                            std::optional<Device> destination = std::nullopt,
                            const ReduceOptions& options = {});
/// inputs[device][tensor] -> one sum for each tensor. Rows have equal length. One kernel call sums
/// all neighbours in memory.
RAMET_API std::vector<Tensor> reduce_add_coalesced(ArrayRef<std::vector<Tensor>> inputs,
                                                   std::optional<Device> destination = std::nullopt,
                                                   int64_t buffer_size = kDefaultBufferSize,
                                                   const ReduceOptions& options = {});

/// How a contribution reaches the place where a sum is formed.
enum class Route : uint8_t {
  local,   ///< It is there; CPU devices read each other's memory.
  peer,    ///< The kernel that adds reads it in another GPU's memory.
  staged,  ///< It is copied first, because the destination cannot read it.
  library  ///< NCCL forms the sum (ReduceOrder::any)
};
/// The route of each contribution when reduce_add sums `inputs` of `dtype` on `destination`. The
/// first question about a pair of GPUs tests whether they reach each other.
RAMET_API std::vector<Route> plan(ArrayRef<Device> inputs, Device destination,
                                  ReduceOrder order = ReduceOrder::fixed(),
                                  ScalarType dtype = kFloat);

/// Pieces of t along a dimension, piece i on devices[i]. There may be fewer pieces than devices
/// (Split).
RAMET_API std::vector<Tensor> scatter(const Tensor& t, ArrayRef<Device> devices,
                                      const ScatterOptions& options);
/// With PyTorch's arguments: sizes of the pieces, or the chunk rule.
RAMET_API std::vector<Tensor> scatter(
    const Tensor& t, ArrayRef<Device> devices,
    const std::optional<std::vector<int64_t>>& chunk_sizes = std::nullopt, int64_t dim = 0);
/// Cuts t into `out`. The extents of `out` along `dim` must sum to t's. Always copies, unless an
/// output is the piece already.
RAMET_API std::vector<Tensor>& scatter_out(const Tensor& t, std::vector<Tensor>& out,
                                           int64_t dim = 0);

/// Concatenation along `dim` on `destination`, by default the current device of the first tensor's
/// type. 0-dim tensors form a vector. All have one dtype; with `promote`, the result has the
/// promoted one.
RAMET_API Tensor gather(ArrayRef<Tensor> tensors, int64_t dim = 0,
                        std::optional<Device> destination = std::nullopt, bool promote = false);
/// Concatenates into `out`, which must have the result's shape and dtype. Returns `out`.
RAMET_API Tensor& gather_out(ArrayRef<Tensor> tensors, Tensor& out, int64_t dim = 0);

}  // namespace comm
}  // namespace parallel
}  // namespace ramet
