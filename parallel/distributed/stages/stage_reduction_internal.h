// The reduction of one bucket through a chain of communication hooks, on the group's thread: Note
// [Communication stages].
#pragma once
#include <memory>
#include <vector>

#include "parallel/distributed/stages/stages.h"
#include "parallel/distributed/wire/channel_internal.h"

namespace ramet::distributed::detail {

/// What all ranks of an operation know.
struct StageRun {
  std::vector<std::shared_ptr<CommStage>> stages;
  int64_t step;
  Average average;
  ReduceOrder order;
  bool by_active;            // a mean over the ranks that have inputs
  std::vector<double> rows;  // [rank]; negative: the rank has no inputs any more (join)
};

/// The hooks from number `at` on.
class StageChain final : public StageNext {
 public:
  /// `bytes`: a count for each hook, to which this adds.
  StageChain(Channel& channel, const StageRun& run, std::vector<StageBytes>& bytes, size_t at = 0,
             std::vector<const WireFormat*> formats = {})
      : channel_(channel), run_(run), bytes_(bytes), at_(at), formats_(std::move(formats)) {}

  int rank() const override { return channel_.rank(); }
  int size() const override { return channel_.size(); }
  int64_t step() const override { return run_.step; }
  void reduce(std::vector<StageValues>& list) const override;

 private:
  Channel& channel_;
  const StageRun& run_;
  std::vector<StageBytes>& bytes_;
  const size_t at_;
  const std::vector<const WireFormat*> formats_;  // of the hooks before
};

/// The end of a chain: sends, adds and divides. Without a format, it sends float32 unchanged.
void reduce_over_wire(Channel& channel, const StageRun& run,
                      const std::vector<const WireFormat*>& formats,
                      std::vector<StageValues>& list);

}  // namespace ramet::distributed::detail
