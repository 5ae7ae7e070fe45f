// BatchNorm1d, BatchNorm2d, BatchNorm3d.
//
// Note [Batch norm in replicas]
// A replica sees a part of the batch. It normalises with that part's statistics, as LibTorch does,
// but writes no running buffer. Instead each forward in training deposits (count, mean, variance)
// of its part. When all replicas have succeeded, the source module combines the deposits of
// corresponding forwards, in replica order, by Chan's formula (Chan, Golub, LeVeque 1979). From the
// union it makes one running update. So the running buffers are those of one forward over the whole
// batch. With BufferPolicy::sync on its buffers, the replicas instead exchange their statistics
// during forward and normalise with those of the whole batch. Gradients flow through the exchange.
// In data-parallel processes both kinds go over all processes' replicas.
#pragma once
#include <memory>
#include <optional>
#include <typeinfo>
#include <vector>

#include "nn/module/arg.h"
#include "nn/module/cloneable.h"
#include "nn/module/module_holder.h"

namespace ramet::nn {

struct RAMET_API BatchNormOptions {
  BatchNormOptions(int64_t num_features) : num_features_(num_features) {}
  RAMET_ARG(int64_t, num_features);
  RAMET_ARG(double, eps) = 1e-5;
  /// Weight of a new batch in the running statistics; nullopt: the plain average over all batches.
  RAMET_ARG(std::optional<double>, momentum) = 0.1;
  RAMET_ARG(bool, affine) = true;
  RAMET_ARG(bool, track_running_stats) = true;
};
using BatchNorm1dOptions = BatchNormOptions;
using BatchNorm2dOptions = BatchNormOptions;
using BatchNorm3dOptions = BatchNormOptions;

namespace detail {
struct Field;
/// The deposits of a replica, one for each forward.
struct BatchDeposits;

/// The part of the batch norms that depends on neither rank nor class.
struct RAMET_API BatchNormState {
  BatchNormOptions options;
  Tensor weight, bias, running_mean, running_var, num_batches_tracked;
  // in a shared_ptr: a deposit does not change the module's own bytes
  std::shared_ptr<BatchDeposits> deposits;

  explicit BatchNormState(const BatchNormOptions& o) : options(o) {}
  void reset(Module& module);
  void reset_running_stats();
  void reset_parameters();
  /// `policy`: that of the running buffers inside a replica, `first` outside. `pool`: adds ReLU and
  /// 2 x 2 max pooling.
  Tensor forward(const Tensor& input, bool training, BufferPolicy policy, bool pool);
  void merge(ArrayRef<const BatchNormState*> replicas);
  /// A replica's deposit of one training forward, and the same from another process.
  struct Deposit {
    int64_t count;     // values per channel
    Tensor mean, var;  // of the batch; the unbiased variance
  };
  std::vector<Deposit> deposited() const;
  void set_deposits(std::vector<Deposit> entries);
  /// The class and the list of its options (nn/module/listed_module.h).
  using options_t = BatchNormOptions;
  static std::vector<Field> fields(BatchNormOptions& options);
  void print(std::ostream& stream, const std::type_info& type) const;
  void discard();

 private:
  void follow(const Tensor& running, const Tensor& values, double times = 1, double over = 1) const;
  void count_batch();
  Tensor synchronised(const Tensor& input);
};
RAMET_API void check_batch_norm_input(int rank, const Tensor& input);
}  // namespace detail

/// (x - mean) / sqrt(var + eps) * weight + bias per channel (dimension 1): Ioffe and Szegedy 2015.
/// In training mean and variance are the batch's, and running_mean and running_var follow them
/// (with the unbiased variance); in evaluation those are used.
template <int D, class Derived, bool kPool = false>
class BatchNormImplBase : public Cloneable<Derived>, public detail::BatchNormState {
 public:
  BatchNormImplBase(const BatchNormOptions& options_) : BatchNormState(options_) {
    BatchNormImplBase::reset();
  }
  void reset() override { BatchNormState::reset(*this); }
  void pretty_print(std::ostream& stream) const override { print(stream, typeid(Derived)); }
  Tensor forward(const Tensor& input) {
    detail::check_batch_norm_input(D, input);
    return BatchNormState::forward(
        input, this->is_training(),
        this->is_replica() ? this->buffer_policy("running_mean") : BufferPolicy::first, kPool);
  }
  void merge_replicas(ArrayRef<Module*> replicas) override {
    std::vector<const BatchNormState*> states;
    for (Module* replica : replicas)
      states.push_back(dynamic_cast<const BatchNormImplBase*>(replica));
    merge(states);
  }
  void discard_deposits() override { discard(); }
};

/// (N, C) or (N, C, L)
class RAMET_API BatchNorm1dImpl : public BatchNormImplBase<1, BatchNorm1dImpl> {
 public:
  using BatchNormImplBase::BatchNormImplBase;
};
extern template class Cloneable<BatchNorm1dImpl>;
RAMET_MODULE(BatchNorm1d);

/// (N, C, H, W)
class RAMET_API BatchNorm2dImpl : public BatchNormImplBase<2, BatchNorm2dImpl> {
 public:
  using BatchNormImplBase::BatchNormImplBase;
};
extern template class Cloneable<BatchNorm2dImpl>;
RAMET_MODULE(BatchNorm2d);

/// (N, C, D, H, W)
class RAMET_API BatchNorm3dImpl : public BatchNormImplBase<3, BatchNorm3dImpl> {
 public:
  using BatchNormImplBase::BatchNormImplBase;
};
extern template class Cloneable<BatchNorm3dImpl>;
RAMET_MODULE(BatchNorm3d);

/// max_pool2d(relu(batch_norm(x)), 2) of (N, C, H, W), with the same values up to rounding. Forward
/// and backward make one pass over the input each instead of three, and keep nothing in between.
/// Its parameters and buffers are those of BatchNorm2d. LibTorch does not have it.
class RAMET_API BatchNormReLUMaxPool2dImpl
    : public BatchNormImplBase<2, BatchNormReLUMaxPool2dImpl, /*kPool=*/true> {
 public:
  using BatchNormImplBase::BatchNormImplBase;
};
extern template class Cloneable<BatchNormReLUMaxPool2dImpl>;
RAMET_MODULE(BatchNormReLUMaxPool2d);

/// From now on every batch norm of the tree normalises with the statistics of all replicas and
/// processes: BufferPolicy::sync on its buffers. (PyTorch's SyncBatchNorm.convert_sync_batchnorm,
/// which makes other modules.) Call it before the module is replicated. Outside of replicas nothing
/// changes.
RAMET_API void convert_sync_batchnorm(Module& module);

}  // namespace ramet::nn
