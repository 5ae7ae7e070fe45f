// Tensor parallelism: one layer's weight cut over the ranks of a group, or of one dimension of a
// mesh.
//
//   auto up = ColumnParallelLinear(full_up, mesh.group("tp"));       // outputs stay cut
//   auto down = RowParallelLinear(full_down, mesh.group("tp"));      // inputs are cut already
//   y = down(up(x).relu());                                          // one sum over the ranks
//
// Note [Tensor parallel layers]
// Every rank of the group computes on the same samples and calls the same layers in the same order;
// what lies between them is computed alike on all ranks, or on a cut last dimension. Gradients are
// right when each rank's loss is the same number (Shoeybi et al. 2019, Megatron-LM: its functions f
// and g are copy_to_group and reduce_from_group). All of this is differentiable any number of
// times. The layers are made on all ranks together, from rank 0's whole ones; their parameters are
// this rank's slices, leaves of their own.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "nn/layers/basic/linear.h"
#include "nn/layers/sequence/embedding.h"
#include "nn/module/module_holder.h"
#include "parallel/distributed/group/process_group.h"
#include "parallel/distributed/shard/tensor_part.h"

namespace ramet {
namespace distributed {

// The functions. All ranks call them together; so do their backwards.

/// x itself; its gradient is the sum over the ranks.
RAMET_API Tensor copy_to_group(const Tensor& x, const std::shared_ptr<ProcessGroup>& group);
/// The sum of all ranks' x, added in the order of the ranks; its gradient is handed through.
RAMET_API Tensor reduce_from_group(const Tensor& x, const std::shared_ptr<ProcessGroup>& group);
/// All ranks' x of one shape side by side in `dim`; its gradient is cut.
RAMET_API Tensor gather_from_group(const Tensor& x, const std::shared_ptr<ProcessGroup>& group,
                                   int64_t dim = -1);
/// This rank's part of x in `dim`, whose extent the number of ranks must divide; its gradient is
/// gathered.
RAMET_API Tensor scatter_to_group(const Tensor& x, const std::shared_ptr<ProcessGroup>& group,
                                  int64_t dim = -1);

/// A layer whose parameters are slices of whole ones.
class RAMET_API TensorParallel {
 public:
  virtual ~TensorParallel();
  /// The ranks that share the layer.
  const std::shared_ptr<ProcessGroup>& group() const { return group_; }
  /// The dimension that a parameter is cut in; -1: each rank has all of it.
  virtual int64_t cut_dim(const std::string& parameter) const = 0;

 protected:
  explicit TensorParallel(std::shared_ptr<ProcessGroup> group);
  /// This rank's slice of rank 0's tensor, and all of that: copies. Collective.
  Tensor slice_of(const Tensor& whole, int64_t dim) const;
  Tensor copy_of(const Tensor& whole) const;
  std::shared_ptr<ProcessGroup> group_;
};

/// y = x weight^T + bias with weight (and bias) cut by outputs: x (*, in), the same on all ranks,
/// to (*, out / N), or to (*, out) with gather_output. Errors: ranks that do not divide out.
class RAMET_API ColumnParallelLinearImpl : public nn::Module, public TensorParallel {
 public:
  ColumnParallelLinearImpl(const nn::Linear& whole, std::shared_ptr<ProcessGroup> group,
                           bool gather_output = false);
  Tensor forward(const Tensor& x);
  void pretty_print(std::ostream& stream) const override;
  int64_t cut_dim(const std::string& parameter) const override;

  const bool gather_output;
  Tensor weight, bias;
};
RAMET_MODULE(ColumnParallelLinear);

/// The same with weight cut by inputs: x (*, in / N), this rank's part, to (*, out), the same on
/// all ranks. Without input_is_parallel x is (*, in) and cut here. The bias is whole, and added
/// after the sum. Errors: ranks that do not divide in.
class RAMET_API RowParallelLinearImpl : public nn::Module, public TensorParallel {
 public:
  RowParallelLinearImpl(const nn::Linear& whole, std::shared_ptr<ProcessGroup> group,
                        bool input_is_parallel = true);
  Tensor forward(const Tensor& x);
  void pretty_print(std::ostream& stream) const override;
  int64_t cut_dim(const std::string& parameter) const override;

  const bool input_is_parallel;
  Tensor weight, bias;
};
RAMET_MODULE(RowParallelLinear);

/// An embedding cut by rows: each rank looks up the indices it has, and the rows are summed, to
/// (*, embedding_dim) on all ranks. Errors: ranks that do not divide num_embeddings;
/// scale_grad_by_freq; an index out of range.
class RAMET_API ParallelEmbeddingImpl : public nn::Module, public TensorParallel {
 public:
  ParallelEmbeddingImpl(const nn::Embedding& whole, std::shared_ptr<ProcessGroup> group);
  Tensor forward(const Tensor& indices);
  void pretty_print(std::ostream& stream) const override;
  int64_t cut_dim(const std::string& parameter) const override;

  const nn::EmbeddingOptions options;  // of the whole one
  Tensor weight;                       // this rank's rows
};
RAMET_MODULE(ParallelEmbedding);

}  // namespace distributed
}  // namespace ramet
