// Tensor parallelism: cuts one layer's weight over the ranks of a group, or of one dimension of a
// mesh.
//
//   auto up = ColumnParallelLinear(full_up, mesh.group("tp"));       // outputs stay cut
//   auto down = RowParallelLinear(full_down, mesh.group("tp"));      // inputs are cut already
//   y = down(up(x).relu());                                          // one sum over the ranks
//
// Note [Tensor parallel layers]
// Every rank of the group computes on the same samples and calls the same layers in the same order.
// Between the layers, all ranks compute the same values, or each rank its part of a cut last
// dimension. Gradients are right if each rank's loss is the same number. (Shoeybi et al. 2019,
// Megatron-LM: its functions f and g are copy_to_group and reduce_from_group.) All of this is
// differentiable any number of times. All ranks make the layers together, from rank 0's whole ones.
// The layers' parameters are this rank's slices, as leaves of their own.
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

/// Returns x; the gradient of x is the sum of the ranks' gradients.
RAMET_API Tensor copy_to_group(const Tensor& x, const std::shared_ptr<ProcessGroup>& group);
/// The sum of all ranks' x, added in the order of the ranks; its gradient is passed on unchanged.
RAMET_API Tensor reduce_from_group(const Tensor& x, const std::shared_ptr<ProcessGroup>& group);
/// Concatenates all ranks' x, of one shape, in `dim`; its gradient is cut.
RAMET_API Tensor gather_from_group(const Tensor& x, const std::shared_ptr<ProcessGroup>& group,
                                   int64_t dim = -1);
/// This rank's part of x in `dim`; the gradient is gathered. The number of ranks must divide the
/// extent of `dim`.
RAMET_API Tensor scatter_to_group(const Tensor& x, const std::shared_ptr<ProcessGroup>& group,
                                  int64_t dim = -1);

/// A layer with parameters that are slices of whole ones.
class RAMET_API TensorParallel {
 public:
  virtual ~TensorParallel();
  /// The ranks that share the layer.
  const std::shared_ptr<ProcessGroup>& group() const { return group_; }
  /// The dimension in which a parameter is cut; -1: each rank has all of it.
  virtual int64_t cut_dim(const std::string& parameter) const = 0;

 protected:
  explicit TensorParallel(std::shared_ptr<ProcessGroup> group);
  /// slice_of: this rank's slice of rank 0's tensor; copy_of: all of rank 0's tensor. Both are
  /// copies. Collective.
  Tensor slice_of(const Tensor& whole, int64_t dim) const;
  Tensor copy_of(const Tensor& whole) const;
  std::shared_ptr<ProcessGroup> group_;
};

/// y = x weight^T + bias with weight (and bias) cut by outputs. x is (*, in), the same on all
/// ranks. y is (*, out / N), or (*, out) with gather_output. Errors: a number of ranks that does
/// not divide out.
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

/// The same with weight cut by inputs. x is (*, in / N), this rank's part; y is (*, out), the same
/// on all ranks. Without input_is_parallel x is (*, in), and the layer cuts it. The bias is whole,
/// and added after the sum. Errors: a number of ranks that does not divide in.
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

/// An embedding cut by rows. Each rank reads the rows of the indices that it has. The rows are
/// summed, to (*, embedding_dim) on all ranks. Errors: a number of ranks that does not divide
/// num_embeddings; scale_grad_by_freq; an index out of range.
class RAMET_API ParallelEmbeddingImpl : public nn::Module, public TensorParallel {
 public:
  ParallelEmbeddingImpl(const nn::Embedding& whole, std::shared_ptr<ProcessGroup> group);
  Tensor forward(const Tensor& indices);
  void pretty_print(std::ostream& stream) const override;
  int64_t cut_dim(const std::string& parameter) const override;

  const nn::EmbeddingOptions options;  // of the whole embedding
  Tensor weight;                       // this rank's rows
};
RAMET_MODULE(ParallelEmbedding);

}  // namespace distributed
}  // namespace ramet
