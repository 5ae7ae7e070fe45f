// Communication stages: what makes DistributedDataParallel send less.
//
//   DdpOptions options;
//   PowerSgdOptions low_rank;
//   low_rank.rank = 4;
//   options.stages = {power_sgd_stage(low_rank), fp16_stage()};   // factors, in 16 bits
//   DistributedDataParallel<Net> ddp(net, group, options);
//   ...
//   checkpoint.add("stages", ddp.comm_stages());
//
// Note [Communication stages] in comm_stage.h says what a chain does.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "parallel/distributed/stages/comm_stage.h"

namespace ramet {
namespace serialize {
class OutputArchive;
class InputArchive;
}  // namespace serialize

namespace distributed {

/// IEEE binary16, half the bytes: relative error at most 2^-11 a rounding down to 2^-14, absolute
/// 2^-25 below. A contribution beyond 65504 arrives as infinity, so that a check of the gradients
/// sees it; sums of smaller ones do not overflow (Note [Communication stages]).
RAMET_API std::shared_ptr<CommStage> fp16_stage();
/// The upper half of a binary32, half the bytes: float32's range, relative error at most 2^-8.
RAMET_API std::shared_ptr<CommStage> bf16_stage();
/// 8-bit integers with one float32 scale for each `block` elements (a power of two, 8 to 65536): a
/// quarter of the bytes, and 4 / block. The scale is the block's largest magnitude / 127; values
/// are rounded up or down at random, so that the expectation is the value (stochastic rounding:
/// Gupta et al., Deep Learning with Limited Numerical Precision, 2015; scales by block: Alistarh et
/// al., QSGD, 2017). Random numbers are keyed by (seed, step, parameter, rank, element): a run
/// repeats bit for bit. A block with a value that is not finite arrives as NaNs; a block whose
/// values are all below 127 * 2^-126 as zeros.
RAMET_API std::shared_ptr<CommStage> int8_stage(int64_t block = 256, uint64_t seed = 0);

struct PowerSgdOptions {
  /// Of the approximation, at least 1. PyTorch's matrix_approximation_rank.
  int64_t rank = 1;
  /// Synchronised backwards before it begins: gradients of the first steps are not alike. PyTorch's
  /// start_powerSGD_iter; 0 is as good as any, for the state does not depend on buckets.
  int64_t start = 1000;
  /// An [n, m] gradient is compressed where (n + m) * rank * min_compression_rate < n * m.
  double min_compression_rate = 2;
  /// Add what the approximation of the step before left out.
  bool error_feedback = true;
  /// Begin with the factor of the step before, not with a random one.
  bool warm_start = true;
  /// Of the first factors; the same on all ranks.
  uint64_t seed = 0;
};
/// Low-rank gradients: Vogels, Karimireddy, Jaggi: PowerSGD: Practical Low-Rank Gradient
/// Compression for Distributed Optimization, 2019, algorithms 1 and 2. A gradient of [n, ...] is
/// seen as a matrix M of [n, m]; E is this rank's error of before, Q [m, r] of orthonormal columns:
///   D = M + E;  P = orthonormal(mean(D Q));  R = D' P;  Q = mean(R);  gradient = P Q';  E = D - P
///   R'
/// with r = min(rank, n, m), and n r + m r numbers sent where n m were. What is not compressed, and
/// tensors of fewer than two dimensions, goes to the next stage as it is. A rank without a gradient
/// keeps its error for later. A gradient that is not finite makes the result NaN and leaves Q and E
/// as they were. What a wire format after it rounds away is not fed back. Exclusive.
RAMET_API std::shared_ptr<CommStage> power_sgd_stage(const PowerSgdOptions& options = {});

/// The mean over all ranks for the first `start` synchronised backwards, then over this rank's
/// `subgroup` only: Lin, Stich, Patel, Jaggi: Don't Use Large Mini-Batches, Use Local SGD, 2020.
/// Parameters drift apart between the subgroups: PeriodicModelAverager (model_averager.h) brings
/// them together. Every rank is in one subgroup, all ranks of which name it (new_subgroups). A
/// subgroup of one rank: no reduction at all. Exclusive.
RAMET_API std::shared_ptr<CommStage> post_local_sgd_stage(std::shared_ptr<ProcessGroup> subgroup,
                                                          int64_t start);
/// Subgroups of `ranks_each` consecutive ranks, which divides the group's size: the one that this
/// rank is in. Collective over the group.
RAMET_API std::shared_ptr<ProcessGroup> new_subgroups(ProcessGroup& group, int ranks_each);

/// What a stage did to this rank's gradients: bytes, as float32, of the values it was given, and of
/// what it made of them. What went over the wire besides depends on the number of ranks:
/// ProcessGroup::wire_bytes.
struct StageBytes {
  std::string stage;
  /// Of this rank, without and with the stage.
  uint64_t before = 0, after = 0;
};

namespace detail {
class GradientReducer;
}

/// The chain of a DistributedDataParallel or of a replicated module, which makes it:
/// ddp.comm_stages(), replicate_handle(net).comm_stages().
class RAMET_API CommStages {
 public:
  CommStages(std::shared_ptr<ProcessGroup> group, std::string name, Average average,
             ReduceOrder order, std::map<std::string, std::vector<int64_t>> parameters);
  ~CommStages();
  CommStages(const CommStages&) = delete;

  /// At the end of the chain. Collective; while no backward runs. Errors on every rank, and nothing
  /// registered: a second exclusive stage ("can only be called once"), a stage that has a place
  /// already, one that is not lossless under tree(V), whose bits must not depend on who adds; ranks
  /// with different stages.
  void add(const std::shared_ptr<CommStage>& stage);
  /// Is there no stage?
  bool empty() const { return stages_.empty(); }
  /// One text a stage, as errors and manifests name it.
  std::vector<std::string> descriptions() const;
  /// Synchronised backwards so far.
  int64_t step() const;
  /// Since the stages were registered, one entry a stage.
  std::vector<StageBytes> bytes() const;

  /// For Checkpoint::add, or DistributedCheckpoint::add_own. What stages remember is this rank's
  /// own (errors of its gradients), so with the first each rank writes a file of its own.
  void save(serialize::OutputArchive& archive) const;
  /// An Error, and nothing changed, where the stages, their parameters, or, if stages remember
  /// something, the rank or the number of ranks are others. Buckets may be others.
  void load(serialize::InputArchive& archive);

 private:
  friend class detail::GradientReducer;
  bool computes() const;
  bool routes() const;
  std::shared_ptr<ProcessGroup> group_now() const;
  // As ProcessGroup::all_reduce_members, for the gradients of these names. Where the chain
  // computes, it weighs and divides too: a mean that asks for a sum, by the ranks that have inputs
  // (rows not below 0).
  Work all_reduce(std::vector<Tensor> members, const std::vector<std::string>& names,
                  CollectiveOptions options, const std::vector<bool>& present, double rows,
                  const std::shared_ptr<MemberReport>& report);
  // After a synchronised backward. Where it failed in a subgroup, the whole group ends: others
  // would wait for this one at their next meeting.
  void step_done(bool failed);
  void abort(const std::string& reason) const;  // whoever waits for this rank
  // Of a module that has changed, for stages that come later.
  void set_parameters(std::map<std::string, std::vector<int64_t>> parameters) {
    parameters_ = std::move(parameters);
  }

  const std::shared_ptr<ProcessGroup> group_;
  const std::string name_;
  const Average average_;
  const ReduceOrder order_;
  std::map<std::string, std::vector<int64_t>> parameters_;
  std::vector<std::shared_ptr<CommStage>> stages_;
  mutable std::mutex mutex_;
  int64_t step_ = 0;
  struct Counts;
  std::shared_ptr<Counts> counts_;
};

}  // namespace distributed
}  // namespace ramet
