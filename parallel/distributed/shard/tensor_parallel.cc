#include "parallel/distributed/shard/tensor_parallel.h"

#include <ostream>

#include "autograd/grad_mode.h"
#include "autograd/graph/node.h"
#include "autograd/ops.h"
#include "nn/functional/functional.h"
#include "nn/module/class_name.h"

namespace ramet::distributed {

using autograd::in_turn;
using autograd::Node;
using autograd::record;
using autograd::recording;
using Group = std::shared_ptr<ProcessGroup>;

// ---- functions: each one's backward is another one of them --------------------------------------

Tensor copy_to_group(const Tensor& x, const Group& group) {
  RAMET_CHECK(x.defined(), "copy_to_group", "x is undefined");
  Tensor y = x.detach();
  if (!recording(x)) return y;
  return in_turn(
      record("CopyToGroupBackward0", {x}, std::move(y),
             [group](const Node&, const Tensor& g) { return reduce_from_group(g, group); }));
}

Tensor reduce_from_group(const Tensor& x, const Group& group) {
  RAMET_CHECK(x.defined(), "reduce_from_group", "x is undefined");
  Tensor y;
  {
    const NoGradGuard off;
    y = x.detach().clone(MemoryFormat::Contiguous);
    group->all_reduce(y, "reduce_from_group").wait();
  }
  if (!recording(x)) return y;
  return record("ReduceFromGroupBackward0", {x}, std::move(y),
                [group](const Node&, const Tensor& g) { return copy_to_group(g, group); });
}

Tensor gather_from_group(const Tensor& x, const Group& group, int64_t dim) {
  RAMET_CHECK(x.defined() && x.dim() > 0, "gather_from_group",
              "x: expected a tensor of at least one dimension");
  dim = wrap_dim("gather_from_group", dim, x.dim());
  Tensor y;
  {
    const NoGradGuard off;
    const Tensor mine = x.detach().contiguous();
    std::vector<Tensor> parts;
    for (int r = 0; r < group->size(); ++r) parts.push_back(empty_like(mine));
    group->all_gather(parts, mine, "gather_from_group").wait();
    y = cat(parts, dim);
  }
  if (!recording(x)) return y;
  return record(
      "GatherFromGroupBackward0", {x}, std::move(y),
      [group, dim](const Node&, const Tensor& g) { return scatter_to_group(g, group, dim); });
}

Tensor scatter_to_group(const Tensor& x, const Group& group, int64_t dim) {
  RAMET_CHECK(x.defined() && x.dim() > 0, "scatter_to_group",
              "x: expected a tensor of at least one dimension");
  dim = wrap_dim("scatter_to_group", dim, x.dim());
  const int64_t n = group->size(), extent = x.size(dim);
  RAMET_CHECK(extent % n == 0, "scatter_to_group", "dimension ", dim, " of ", describe(x),
              ": expected a multiple of the ", n, " ranks");
  Tensor y;
  {
    const NoGradGuard off;
    const int64_t part = extent / n, first = part * group->rank();
    y = x.detach().slice(dim, first, first + part).clone(MemoryFormat::Contiguous);
  }
  if (!recording(x)) return y;
  return in_turn(record(
      "ScatterToGroupBackward0", {x}, std::move(y),
      [group, dim](const Node&, const Tensor& g) { return gather_from_group(g, group, dim); }));
}

// ---- layers -------------------------------------------------------------------------------------

TensorParallel::~TensorParallel() = default;
TensorParallel::TensorParallel(Group group) : group_(std::move(group)) {
  RAMET_CHECK(group_, "TensorParallel", "group: got a null pointer");
}

Tensor TensorParallel::slice_of(const Tensor& whole, int64_t dim) const {
  const NoGradGuard off;
  Tensor mine = scatter_to_group(whole.detach(), group_, dim);
  std::vector<Tensor> all;
  if (group_->rank() == 0)
    for (const Tensor& slice : whole.detach().split(mine.size(dim), dim))
      all.push_back(slice.contiguous());
  group_->scatter(mine, all, 0, "slices of a layer").wait();
  return mine;
}
Tensor TensorParallel::copy_of(const Tensor& whole) const {
  const NoGradGuard off;
  Tensor mine = whole.detach().clone(MemoryFormat::Contiguous);
  group_->broadcast(mine, 0, "a layer").wait();
  return mine;
}

namespace {

// Registers `part` for the parameter `whole`: a slice or a copy of it. An undefined one stays
// undefined.
Tensor add(nn::Module& m, const char* name, const Tensor& part, const Tensor& whole) {
  return m.register_parameter(name, part, whole.defined() && whole.requires_grad());
}

// The layer's weight is all of it.
const Tensor& weight_of(const char* op, const nn::Linear& whole) {
  RAMET_CHECK(!whole->lora(), op, "the layer: got ", *whole,
              ", expected one without a LoRA branch. merge_lora() folds it into the weight");
  return whole->weight;
}

}  // namespace

ColumnParallelLinearImpl::ColumnParallelLinearImpl(const nn::Linear& whole, Group group,
                                                   bool gather)
    : TensorParallel(std::move(group)), gather_output(gather) {
  weight =
      add(*this, "weight", slice_of(weight_of("ColumnParallelLinear", whole), 0), whole->weight);
  bias =
      add(*this, "bias", whole->bias.defined() ? slice_of(whole->bias, 0) : Tensor(), whole->bias);
}

Tensor ColumnParallelLinearImpl::forward(const Tensor& x) {
  const Tensor y = nn::functional::linear(copy_to_group(x, group_), weight, bias);
  return gather_output ? gather_from_group(y, group_) : y;
}
int64_t ColumnParallelLinearImpl::cut_dim(const std::string&) const { return 0; }
void ColumnParallelLinearImpl::pretty_print(std::ostream& stream) const {
  stream << std::boolalpha
         << nn::detail::qualified("distributed::ColumnParallelLinear(in_features=")
         << weight.size(1) << ", out_features=" << weight.size(0) * group_->size()
         << ", bias=" << bias.defined() << ", ranks=" << group_->size() << ")";
}

RowParallelLinearImpl::RowParallelLinearImpl(const nn::Linear& whole, Group group, bool parallel)
    : TensorParallel(std::move(group)), input_is_parallel(parallel) {
  weight = add(*this, "weight", slice_of(weight_of("RowParallelLinear", whole), 1), whole->weight);
  bias = add(*this, "bias", whole->bias.defined() ? copy_of(whole->bias) : Tensor(), whole->bias);
}

Tensor RowParallelLinearImpl::forward(const Tensor& x) {
  const Tensor mine = input_is_parallel ? x : scatter_to_group(x, group_);
  const Tensor y = reduce_from_group(nn::functional::linear(mine, weight, Tensor()), group_);
  return bias.defined() ? y + bias : y;
}
int64_t RowParallelLinearImpl::cut_dim(const std::string& parameter) const {
  return parameter == "weight" ? 1 : -1;
}
void RowParallelLinearImpl::pretty_print(std::ostream& stream) const {
  stream << std::boolalpha << nn::detail::qualified("distributed::RowParallelLinear(in_features=")
         << weight.size(1) * group_->size() << ", out_features=" << weight.size(0)
         << ", bias=" << bias.defined() << ", ranks=" << group_->size() << ")";
}

ParallelEmbeddingImpl::ParallelEmbeddingImpl(const nn::Embedding& whole, Group group)
    : TensorParallel(std::move(group)), options(whole->options) {
  RAMET_CHECK(!options.scale_grad_by_freq(), "ParallelEmbedding",
              "scale_grad_by_freq is not implemented: the ranks do not know each other's indices");
  weight = add(*this, "weight", slice_of(whole->weight, 0), whole->weight);
}

Tensor ParallelEmbeddingImpl::forward(const Tensor& indices) {
  const int64_t rows = weight.size(0), first = rows * group_->rank(), all = rows * group_->size();
  Tensor local, away;
  {
    const NoGradGuard off;
    if (indices.numel() > 0) {
      const int64_t low = indices.min().item<int64_t>(), high = indices.max().item<int64_t>();
      if (low < 0 || high >= all)
        throw IndexError("[ParallelEmbedding] index out of range: got " +
                         std::to_string(low < 0 ? low : high) + ", expected 0 to " +
                         std::to_string(all - 1));
    }
    local = indices - first;
    away = local.lt(0).logical_or(local.ge(rows));
    local = local.masked_fill(away, 0);
  }
  nn::functional::EmbeddingFuncOptions how;
  if (const auto padding = options.padding_idx();
      padding && *padding >= first && *padding < first + rows)
    how.padding_idx(*padding - first);
  const Tensor y = nn::functional::embedding(local, weight, how);
  return reduce_from_group(y.masked_fill(away.unsqueeze(-1), 0), group_);
}
int64_t ParallelEmbeddingImpl::cut_dim(const std::string&) const { return 0; }
void ParallelEmbeddingImpl::pretty_print(std::ostream& stream) const {
  stream << nn::detail::qualified("distributed::ParallelEmbedding(num_embeddings=")
         << options.num_embeddings() << ", embedding_dim=" << options.embedding_dim()
         << ", ranks=" << group_->size() << ")";
}

}  // namespace ramet::distributed
