// Averages parameters over the ranks from time to time. Local SGD does this in place of averaging
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

/// Like PyTorch's class: call average_parameters() after every optimizer step, on every rank.
class RAMET_API PeriodicModelAverager {
 public:
  /// Averages at every `period`-th call, the first time in call number `warmup_steps` (counted from
  /// 0).
  PeriodicModelAverager(std::shared_ptr<ProcessGroup> group, int64_t period,
                        int64_t warmup_steps = 0);

  /// Counts the call. If it is time, sets the parameters to their mean over the group's ranks and
  /// returns true. Such a call is collective. Parameters may have any floating-point dtypes; the
  /// bits are the same on every rank. After an error the parameters are as before.
  bool average_parameters(const std::vector<Tensor>& parameters);
  /// The number of calls so far.
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
