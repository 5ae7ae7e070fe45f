// The processes that train one model together: one alone, or those of --ddp.
#pragma once
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "tools/training/replicas.h"

namespace ramet::training {

/// Rank 0 writes and prints; the others only compute. Every process reads the whole batch and
/// computes its own rows of it. This one is alone.
class Processes {
 public:
  virtual ~Processes() = default;

  virtual int rank() const { return 0; }
  virtual int size() const { return 1; }
  bool writes() const { return rank() == 0; }

  /// As make_replicas; all processes have rank 0's parameters then.
  virtual std::unique_ptr<Replicas> replicate(const nn::Sequential& model,
                                              const std::vector<Device>& devices,
                                              const std::string& reduce);
  /// The last batch's targets of this process's rows.
  virtual Tensor own_rows(const Tensor& targets) const { return targets; }
  /// Sums over all processes, in place.
  virtual void sum(std::vector<double>&) const {}
  /// Returns rank 0's numbers; all ranks give equally many.
  virtual std::vector<int64_t> of_rank_0(std::vector<int64_t> numbers) const { return numbers; }
  /// Returns one text of each rank, in their order.
  virtual std::vector<std::string> of_all_ranks(const std::string& mine) const { return {mine}; }
  /// Waits for all; an Error where their digests differ.
  virtual void finish(const std::string&) const {}
};

/// Finds the others by the variables that tools/launch, mpirun or srun set; their operations end
/// within `timeout`. Null in a program that is linked without process groups
/// (//tools/training:train and :train_gpus). Errors: distributed::rendezvous.
[[gnu::weak]] std::unique_ptr<Processes> join_processes(std::chrono::milliseconds timeout);

/// Values from the environment of one of several processes: the number of threads that each may use
/// on this host, and its number there. Also: has the launcher started the processes again after a
/// failure, and the launcher's name for all of its attempts.
int threads_beside_others();
int number_on_host();
bool started_again();
std::string launch_id();

}  // namespace ramet::training
