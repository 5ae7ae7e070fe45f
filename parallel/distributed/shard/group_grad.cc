#include "parallel/distributed/shard/group_grad.h"

#include "autograd/autograd.h"
#include "autograd/ops.h"
#include "parallel/distributed/group/agree_internal.h"
#include "parallel/distributed/shard/tensor_parallel.h"

namespace ramet::distributed {

Tensor sum_over_group(const Tensor& x, const std::shared_ptr<ProcessGroup>& group) {
  RAMET_CHECK(group, "sum_over_group", "group: got an empty pointer");
  return reduce_from_group(copy_to_group(x, group), group);
}

std::vector<Tensor> grad(const std::shared_ptr<ProcessGroup>& group,
                         const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                         const std::vector<Tensor>& grad_outputs, std::optional<bool> retain_graph,
                         bool create_graph, bool allow_unused, ReduceOp op) {
  constexpr const char* kOp = "distributed.grad";
  RAMET_CHECK(group, kOp, "group: got an empty pointer");
  RAMET_CHECK(op == ReduceOp::average || op == ReduceOp::sum, kOp,
              "op: got another one, expected average or sum");
  std::vector<Tensor> gradients;
  const std::vector<std::string> used =
      detail::agree(*group, kOp, "inputs that were used", {}, [&] {
        gradients = autograd::grad(outputs, inputs, grad_outputs, retain_graph, create_graph,
                                   /*allow_unused=*/true);
        std::string mine;
        for (const Tensor& g : gradients) mine += g.defined() ? '1' : '0';
        return mine;
      });
  for (size_t r = 0; r < used.size(); ++r)
    RAMET_CHECK(used[r].size() == used[0].size(), kOp, "inputs: got ", used[r].size(), " on rank ",
                r, ", expected ", used[0].size(), " as on rank 0");
  const auto by_someone = [&](size_t i) {
    for (const std::string& of_rank : used)
      if (of_rank[i] == '1') return true;
    return false;
  };
  for (size_t i = 0; i < inputs.size(); ++i)
    RAMET_CHECK(
        allow_unused || by_someone(i), kOp, "input ", i,
        " takes no part in the outputs of any rank (allow_unused gives an undefined tensor)");
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!by_someone(i)) continue;
    Tensor& g = gradients[i];
    if (!g.defined()) g = zeros_like(inputs[i]);
    // On every rank, so that all ranks meet in its backward.
    if (create_graph && !g.requires_grad()) g = g.detach().requires_grad_(true);
    g = sum_over_group(g, group);
    if (op == ReduceOp::average) g = g.div(group->size());
  }
  return gradients;
}

}  // namespace ramet::distributed
