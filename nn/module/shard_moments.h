// Means and variances over all shards of a batch, with gradients, for a batch norm that
// synchronises.
//
// Note [Moments of all shards]
// Each shard (a replica's part of the batch) computes the mean and the sum of squared deviations of
// its own values. These are combined in the order of the shards, in double, by Chan's formula
// (Chan, Golub, LeVeque 1979). Every shard gets the same mean and variance. Let n_i be the number
// of values in shard i, and N the number of all values. G is the sum, over all shards in their
// order, of the gradients of the shards' results. The gradients are:
//   mean_i: n_i / N (G_mean + 2 (mean_i - mean) G_var).   m2_i: G_var / N.
// The sum over shards is a recorded operation, and its gradient is the same sum of gradients. So
// derivatives of any order exist. One node serves all shards of a process. The processes meet once
// in the forward and once in each backward; every process must reach the node in that backward.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "autograd/tensor.h"

namespace ramet {
namespace nn {

/// The shards of other processes. All processes call it equally often, in the same order.
class RAMET_API ShardsElsewhere {
 public:
  virtual ~ShardsElsewhere();
  /// `mine` holds the numbers of each shard of this process; it may be empty. Returns the numbers
  /// of all shards of all processes, in the order of processes. Waits for the other processes; an
  /// Error where one of them does not come. `what` must be the same everywhere.
  virtual std::vector<std::vector<double>> gather(const std::string& what,
                                                  const std::vector<std::vector<double>>& mine) = 0;
};

namespace detail {

/// Of `count` values for each of C channels: their means [C] and sums of squared deviations [C].
struct ShardMoments {
  Tensor mean, m2;
  double count = 0;
};
/// Means and (biased) variances over all shards: one for each given shard, in its dtype and on its
/// device. They are zero where no shard has a value. `total`: the number of values.
struct MergedMoments {
  std::vector<Tensor> mean, var;
  double total = 0;
};
/// `shards`: those of this process, at least one. `elsewhere` may be null.
MergedMoments merge_moments_of_shards(const std::shared_ptr<ShardsElsewhere>& elsewhere,
                                      const std::string& what,
                                      const std::vector<ShardMoments>& shards);

}  // namespace detail
}  // namespace nn
}  // namespace ramet
