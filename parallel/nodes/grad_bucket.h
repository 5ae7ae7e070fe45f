// GradBucket: parameters with gradients that are summed over the replicas together.
//
// reduce() is called once in a backward pass, by the thread that delivered the bucket's last
// gradient. It takes the first case that applies:
//
//   1. The pass runs inside a replica's own: the gradients go to the outer pass, nothing is summed.
//   2. create_graph: each parameter is summed alone, and its sum is recorded.
//   3. One shard: its gradient is the sum. It is copied only where it lies on another device.
//   4. A 16-bit leaf with a sum that goes on to other processes: summed in float32, rounded once.
//   5. All others: parameters that lie next to one another are summed by one kernel call.
//
// On a GPU the kernels of case 5 run on the communication stream, concurrently with the backward
// pass, where nothing reads the sums before its end. That is so if the sums are the first and only
// gradients of their leaves, and no hook or Function of the program runs. The end of the pass
// orders the stream before all that follows. So does another thread's pass that reaches one of the
// leaves.
#pragma once
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "autograd/graph/reduce_bucket.h"
#include "parallel/move/options.h"

namespace ramet {
namespace parallel {

class ReduceAdd;
namespace detail {
class ConcurrentSums;
}

/// Parameters that are reduced together. Owned by a replica set.
class RAMET_API GradBucket final : public autograd::ReduceBucket {
 public:
  GradBucket(int shards, ReduceOrder order) : shards_(shards), order_(order) {}
  /// The gradients of some members, [member][slot].
  using Contributions = std::vector<std::pair<autograd::Node*, std::vector<Tensor>>>;
  std::vector<Tensor> reduce(const Contributions& in, autograd::GraphTask& task) override;
  /// Informs the leaf's own bucket, long before the sum goes there with those of all members.
  void on_last_contribution(autograd::Node* member, size_t parts) override;
  void on_reduced(autograd::Node* member, Tensor& sum) override;
  void on_backward_ended() override;

  /// In order of registration. For inspection; changed only while no backward pass runs.
  const std::vector<ReduceAdd*>& members() const { return members_; }
  /// How often it was reduced.
  uint64_t reductions() const { return reductions_; }
  /// Times of the last reduction, by monotonic_ns(): when its last gradient came.
  uint64_t ready_at() const { return ready_; }
  /// When its sum was complete, or queued on a GPU.
  uint64_t done_at() const { return done_; }

 private:
  friend class ReduceAdd;
  class Reduction;
  void mark_leaves(bool sum_under_way);
  bool leave_to_outer_backward(const Contributions& in, autograd::GraphTask& task) const;
  std::vector<Tensor> sum_with_history(const Contributions& in) const;
  std::vector<Tensor> sum(const Contributions& in, autograd::GraphTask& task);
  detail::ConcurrentSums* begin_concurrent_sums(const Contributions& in, autograd::GraphTask& task);
  const int shards_;
  const ReduceOrder order_;
  std::vector<ReduceAdd*> members_;
  std::shared_ptr<detail::ConcurrentSums> concurrent_;  // no stream waits for them yet
  bool sum_under_way_ = false;                          // the state with which the leaves are
                                                        // marked
  std::atomic<uint64_t> reductions_{0}, ready_{0}, done_{0};
};

}  // namespace parallel
}  // namespace ramet
