// Ring 1: values move between devices. No gradients: results have no history
// (parallel/nodes/scatter_gather.h and parallel/nodes/broadcast_reduce.h have the same functions as
// recorded operations).
//
// Devices may be any, of one kind or mixed; one that appears twice gets two results. Results come
// in the order of the devices or inputs. All checks run on the calling thread before any work. A
// pending operand makes a movement queue on its destination's worker (Note [Movements do not wait]
// in parallel/move/movement.h): every function returns at once. Memory order (channels-last and any
// other dense permutation) is kept. Counters: parallel/move/counters.h.
#pragma once
#include <optional>
#include <vector>

#include "autograd/tensor.h"
#include "parallel/move/bucket.h"
#include "parallel/move/options.h"

namespace ramet {
namespace parallel {
namespace comm {

/// One result a device. The first entry on t's own device is t itself; further ones are copies.
RAMET_API std::vector<Tensor> broadcast(const Tensor& t, ArrayRef<Device> devices);
/// Copies t into every one of `out`, which must have its shape and dtype. Returns `out`.
RAMET_API std::vector<Tensor>& broadcast_out(const Tensor& t, std::vector<Tensor>& out);

/// result[device][tensor]. All of `tensors` are on one device; the first row there holds the
/// tensors themselves. In other rows the tensors of one group (plan_buckets) share one allocation,
/// each with a version counter of its own. `buffer_size` in bytes.
RAMET_API std::vector<std::vector<Tensor>> broadcast_coalesced(
    ArrayRef<Tensor> tensors, ArrayRef<Device> devices, int64_t buffer_size = kDefaultBufferSize,
    GroupRule rule = GroupRule::ours);

/// Sum of the inputs (at most kMaxLeaves, one shape and dtype) on `destination`, by default the
/// current device of the first input's type. float16 and bfloat16 accumulate in float and are
/// rounded once; bool is "or". The result does not depend on the destination.
RAMET_API Tensor reduce_add(ArrayRef<Tensor> inputs,
                            std::optional<Device> destination = std::nullopt,
                            const ReduceOptions& options = {});
/// inputs[device][tensor] -> one sum a tensor. Rows have equal length. Neighbours in memory are
/// summed by one call.
RAMET_API std::vector<Tensor> reduce_add_coalesced(ArrayRef<std::vector<Tensor>> inputs,
                                                   std::optional<Device> destination = std::nullopt,
                                                   int64_t buffer_size = kDefaultBufferSize,
                                                   const ReduceOptions& options = {});

/// How a contribution comes to where a sum is formed.
enum class Route : uint8_t {
  local,   ///< it lies there; CPU devices read each other's memory
  peer,    ///< the kernel that adds reads it in another GPU's memory
  staged,  ///< it is copied first: what the destination cannot read
  library  ///< NCCL forms the sum (ReduceOrder::any)
};
/// The routes on which reduce_add takes contributions of `dtype` on `inputs` to `destination`, one
/// each. Whether GPUs reach each other is tried at the first question about a pair.
RAMET_API std::vector<Route> plan(ArrayRef<Device> inputs, Device destination,
                                  ReduceOrder order = ReduceOrder::fixed(),
                                  ScalarType dtype = kFloat);

/// Pieces of t along a dimension, piece i on devices[i]; there may be fewer pieces than devices
/// (Split).
RAMET_API std::vector<Tensor> scatter(const Tensor& t, ArrayRef<Device> devices,
                                      const ScatterOptions& options);
/// With PyTorch's arguments: sizes of the pieces, or the chunk rule.
RAMET_API std::vector<Tensor> scatter(
    const Tensor& t, ArrayRef<Device> devices,
    const std::optional<std::vector<int64_t>>& chunk_sizes = std::nullopt, int64_t dim = 0);
/// Cuts t into `out`, whose extents along `dim` sum to t's. Always copies, but where an output is
/// the piece already.
RAMET_API std::vector<Tensor>& scatter_out(const Tensor& t, std::vector<Tensor>& out,
                                           int64_t dim = 0);

/// Concatenation along `dim` on `destination`, by default the current device of the first tensor's
/// type. 0-dim tensors make a vector. One dtype, unless `promote`: then the promoted one.
RAMET_API Tensor gather(ArrayRef<Tensor> tensors, int64_t dim = 0,
                        std::optional<Device> destination = std::nullopt, bool promote = false);
/// Into `out`, whose shape and dtype must be the result's. Returns `out`.
RAMET_API Tensor& gather_out(ArrayRef<Tensor> tensors, Tensor& out, int64_t dim = 0);

}  // namespace comm
}  // namespace parallel
}  // namespace ramet
