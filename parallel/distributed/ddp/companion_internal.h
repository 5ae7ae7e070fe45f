// Messages between ranks that are not buckets of gradients.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nn/module/shard_moments.h"
#include "parallel/distributed/group/process_group.h"

namespace ramet::distributed::detail {

/// Exchanges statistics, buffers and moments of batch norms, in forwards and in the middle of
/// backwards. It uses a group of its own, so that its operations need no fixed place among the
/// buckets. A rank that has run out of inputs (join()) keeps answering that it has nothing to
/// report, until all ranks have run out.
class Companion {
 public:
  /// Collective.
  Companion(const std::shared_ptr<ProcessGroup>& group, const std::string& name);
  /// Returns [rank]: what each rank passed; nothing for ranks that have run out of inputs.
  /// Collective. An Error if `what` differs between the ranks.
  std::vector<std::optional<std::string>> exchange(const std::string& what,
                                                   const std::string& mine);
  /// Collective: ends when all ranks call it.
  void answer_until_all_are_here();
  void abort(const std::string& why) { beside_->abort(why); }
  int rank() const { return beside_->rank(); }

 private:
  std::vector<std::string> round(const std::string& message);
  const std::shared_ptr<ProcessGroup> group_, beside_;
};

/// Reaches the shards of the other ranks.
class RankShards final : public nn::ShardsElsewhere {
 public:
  explicit RankShards(std::shared_ptr<Companion> companion) : companion_(std::move(companion)) {}
  std::vector<std::vector<double>> gather(const std::string& what,
                                          const std::vector<std::vector<double>>& mine) override;

 private:
  const std::shared_ptr<Companion> companion_;
};

}  // namespace ramet::distributed::detail
