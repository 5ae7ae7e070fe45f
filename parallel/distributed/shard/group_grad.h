// Gradients over the ranks of a group, with a history. They serve penalties on gradients, for
// example, since the sums of backward() have no history.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "parallel/distributed/group/process_group.h"

namespace ramet {
namespace distributed {

/// The sum of all ranks' x, of one shape, added in the order of the ranks. Its gradient is the sum
/// of all ranks' gradients. That is right if the function to minimise is the sum, or the mean, of
/// the ranks' losses. Differentiable any number of times. All ranks call it together; so do their
/// backwards.
RAMET_API Tensor sum_over_group(const Tensor& x, const std::shared_ptr<ProcessGroup>& group);

/// autograd::grad() of every rank's outputs with respect to its inputs, reduced over the ranks
/// (`op`: average or sum). The inputs are each rank's own tensors of one model. All ranks get the
/// same gradients. With create_graph these have a history that leads to the inputs of all ranks. An
/// input that some rank did not use counts as zeros there. An input that no rank used is undefined
/// with `allow_unused`, else an Error. Does not change grad(). Collective; an exception on one rank
/// is an Error on all.
RAMET_API std::vector<Tensor> grad(const std::shared_ptr<ProcessGroup>& group,
                                   const std::vector<Tensor>& outputs,
                                   const std::vector<Tensor>& inputs,
                                   const std::vector<Tensor>& grad_outputs = {},
                                   std::optional<bool> retain_graph = std::nullopt,
                                   bool create_graph = false, bool allow_unused = false,
                                   ReduceOp op = ReduceOp::average);

}  // namespace distributed
}  // namespace ramet
