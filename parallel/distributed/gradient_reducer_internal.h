// Buckets over the ranks: Note [Data-parallel processes].
#pragma once
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "parallel/distributed/data_parallel.h"

namespace ramet::distributed::detail {

class GradientReducer final : public parallel::GradReducer {
 public:
  GradientReducer(std::shared_ptr<ProcessGroup> group, const DdpOptions& options,
                  const nn::Module& module);

  void attach(nn::parallel::ReplicaSet& set) { set_ = &set; }
  void set_sync(bool on);
  bool sync() const;
  void set_rows(int64_t rows);
  std::vector<std::string> unused() const;
  CommStages& stages() { return stages_; }
  void register_stage(const std::shared_ptr<CommStage>& stage);

  void backward_begins(autograd::GraphTask& task) override;
  void bucket_ready(size_t bucket, const std::vector<parallel::ReduceAdd*>& defined,
                    bool settled) override;

 private:
  struct Member {
    std::string name;
    Tensor source;
    autograd::AccumulateGrad* leaf;
    bool reached = false;  // has a gradient of this backward, or one that no rank has seen yet
    Tensor sent;           // what is reduced, in place
    Tensor before;         // a gradient that is the same on all ranks already
  };
  struct Bucket {
    std::vector<Member> members;
    bool ready = false, settled = false, launched = false;
    Work work;
    std::shared_ptr<MemberReport> report;
  };

  bool launch_settled(Bucket& bucket, size_t index);
  void launch_last(Bucket& bucket, size_t index);
  void launch(Bucket& bucket, size_t index, bool fresh);  // fresh: only of this backward
  void set_aside(Bucket& bucket, bool arrived) const;     // those that have: new ones stay
  void end(bool failed);
  void take_back(Bucket& bucket);
  void finish(Bucket& bucket, std::vector<std::string>& unused);
  // By rows, here and not in a stage?
  bool weighs() const { return options_.average == Average::weighted && !stages_.computes(); }

  const std::shared_ptr<ProcessGroup> group_;
  const DdpOptions options_;
  CommStages stages_;
  nn::parallel::ReplicaSet* set_ = nullptr;
  mutable std::mutex mutex_;
  bool sync_ = true;
  int64_t rows_ = 1;
  std::vector<std::string> unused_;
  // Leaves whose gradient holds what other ranks do not know of.
  std::set<const autograd::AccumulateGrad*> local_;
  // Of the backward that runs.
  autograd::GraphTask* task_ = nullptr;
  bool syncing_ = false;
  size_t next_ = 0;
  std::vector<Bucket> buckets_;
};

}  // namespace ramet::distributed::detail
