// The processes that train one model together (--ddp): one alone where there are no others.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "parallel/distributed/data_parallel.h"
#include "tools/training/replicas.h"

namespace ramet::training {

/// Rank 0 writes and prints; the others only compute. Every process reads the whole batch and
/// computes its own rows of it.
class Processes {
 public:
  Processes() = default;
  /// Finds the others by the variables that tools/launch, mpirun or srun set; their operations end
  /// within `timeout`. Errors: distributed::rendezvous.
  static Processes join(distributed::Milliseconds timeout);

  bool several() const { return group_ != nullptr; }
  int rank() const { return group_ ? group_->rank() : 0; }
  int size() const { return group_ ? group_->size() : 1; }
  bool writes() const { return rank() == 0; }

  /// As make_replicas; all processes have rank 0's parameters then.
  std::unique_ptr<Replicas> replicate(const nn::Sequential& model,
                                      const std::vector<Device>& devices,
                                      const std::string& reduce);
  /// Of the last batch: this process's first row and how many.
  std::pair<int64_t, int64_t> rows() const;
  /// Over all processes, in place.
  void sum(std::vector<double>& values) const;
  /// Rank 0's numbers; as many everywhere.
  std::vector<int64_t> of_rank_0(std::vector<int64_t> numbers) const;
  /// Waits for all; an Error where their digests differ.
  void finish(const std::string& digest) const;

 private:
  std::shared_ptr<distributed::ProcessGroup> group_;
  const distributed::DistributedDataParallel<nn::Sequential>* model_ = nullptr;
};

/// What the environment of one of several processes says: threads each may use on this host, its
/// number there, whether the launcher has started them again after a failure, and what it calls all
/// of its attempts.
int threads_beside_others();
int number_on_host();
bool started_again();
std::string launch_id();

}  // namespace ramet::training
