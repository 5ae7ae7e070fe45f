// Averages of parameters over the ranks, now and then: what local SGD does in place of averaging
// gradients at every step.
#pragma once
#include <memory>
#include <vector>

#include "parallel/distributed/group/process_group.h"

namespace ramet {
namespace serialize {
class OutputArchive;
class InputArchive;
}  // namespace serialize

namespace distributed {

/// As PyTorch's: call average_parameters() after every optimizer step, on every rank.
class RAMET_API PeriodicModelAverager {
 public:
  /// Every `period` calls, the first time in call number `warmup_steps` (counted from 0).
  PeriodicModelAverager(std::shared_ptr<ProcessGroup> group, int64_t period,
                        int64_t warmup_steps = 0);

  /// Counts, and where it is time, puts the mean over the group's ranks into the parameters, of any
  /// dtypes, the same bits on every rank. Collective then. After an error the parameters are as
  /// they were. True: they were averaged.
  bool average_parameters(const std::vector<Tensor>& parameters);
  /// Calls so far.
  int64_t step() const { return step_; }

  /// For Checkpoint::add:
  void save(serialize::OutputArchive& archive) const;
  void load(serialize::InputArchive& archive);

 private:
  std::shared_ptr<ProcessGroup> group_;
  int64_t period_, warmup_steps_, step_ = 0;
};

}  // namespace distributed
}  // namespace ramet
