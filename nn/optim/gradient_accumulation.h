// Several backwards as one step of an optimizer, for batches that do not fit at once:
//
//   optim::GradientAccumulation step(4);   // or step(4, ddp)
//   for (auto& part : parts)
//     if (step.backward(loss_of(net(part)))) optimizer.step(), optimizer.zero_grad();
//
// Replicas of one process (nn::parallel::DataParallel) need nothing else: each backward adds their
// sums to the module's gradients. Between processes every backward would exchange gradients with
// the other ranks. Modules with set_requires_gradient_sync() avoid this: DistributedDataParallel,
// and the handles of replicate() and fully_shard(). Their first k - 1 backwards stay on the rank,
// as under no_sync(), and the last one reduces the sum. DistributedDataParallel::accumulate() does
// the same.
#pragma once
#include <functional>

#include "autograd/tensor.h"
#include "runtime/capture/capture.h"

namespace ramet::optim {

/// Several backwards as one step: the gradients of the mean of k losses.
class RAMET_API GradientAccumulation {
 public:
  /// k from 1.
  explicit GradientAccumulation(int64_t k) : GradientAccumulation(k, Sync()) {}
  /// `parallel`, which must outlive it, synchronises in every k-th backward only. Between these
  /// calls its synchronisation is on.
  template <class Parallel>
  GradientAccumulation(int64_t k, Parallel& parallel)
      : GradientAccumulation(
            k, Sync([&parallel](bool on) { parallel.set_requires_gradient_sync(on); })) {}

  /// Runs (loss / k).backward(). Returns true at the k-th call: the gradients are then those of the
  /// mean of the k losses, and the next call begins anew. A call that throws does not count. A
  /// captured step gets one capture for each position at which its calls begin.
  bool backward(const Tensor& loss);

 private:
  using Sync = std::function<void(bool)>;
  GradientAccumulation(int64_t k, Sync sync);
  int64_t k_, done_ = 0;
  Sync sync_;
  capture::Life life_;
};

}  // namespace ramet::optim
