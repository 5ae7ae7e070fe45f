// Communication hooks: they make DistributedDataParallel send fewer bytes.
//
//   DdpOptions options;
//   PowerSgdOptions low_rank;
//   low_rank.rank = 4;
//   options.stages = {power_sgd_stage(low_rank), fp16_stage()};   // factors, in 16 bits
//   DistributedDataParallel<Net> ddp(net, group, options);
//   ...
//   checkpoint.add("stages", ddp.comm_stages());
//
// Note [Communication stages] in comm_stage.h describes a chain of hooks.
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

/// IEEE binary16, half the bytes. The relative error of a rounding is at most 2^-11 for magnitudes
/// down to 2^-14; below, the absolute error is at most 2^-25. A contribution beyond 65504 arrives
/// as infinity, so that a check of the gradients detects it. Sums of smaller ones do not overflow
/// (Note [Communication stages]).
RAMET_API std::shared_ptr<CommStage> fp16_stage();
/// The upper half of a binary32, half the bytes: float32's range, relative error at most 2^-8.
RAMET_API std::shared_ptr<CommStage> bf16_stage();
/// 8-bit integers with one float32 scale for each `block` elements (a power of two, 8 to 65536): a
/// quarter of the bytes, and 4 / block. The scale is the block's largest magnitude / 127. Values
/// are rounded up or down at random, so that the expectation is the value. Stochastic rounding:
/// Gupta et al., Deep Learning with Limited Numerical Precision, 2015. Scales by block: Alistarh et
/// al., QSGD, 2017. Random numbers are keyed by (seed, step, parameter, rank, element), so a run
/// repeats bit for bit. A block with a value that is not finite arrives as NaNs. A block with all
/// values below 127 * 2^-126 arrives as zeros.
RAMET_API std::shared_ptr<CommStage> int8_stage(int64_t block = 256, uint64_t seed = 0);

struct PowerSgdOptions {
  /// The rank of the approximation, at least 1. PyTorch's matrix_approximation_rank.
  int64_t rank = 1;
  /// The number of synchronised backwards before it begins: gradients of the first steps differ
  /// much. PyTorch's start_powerSGD_iter. 0 is as good as any value, because the state does not
  /// depend on buckets.
  int64_t start = 1000;
  /// An [n, m] gradient is compressed if (n + m) * rank * min_compression_rate < n * m.
  double min_compression_rate = 2;
  /// Add what the approximation of the step before left out.
  bool error_feedback = true;
  /// Begin with the factor of the step before, not with a random one.
  bool warm_start = true;
  /// The seed of the first factors; the same on all ranks.
  uint64_t seed = 0;
};
/// Low-rank gradients: Vogels, Karimireddy, Jaggi: PowerSGD: Practical Low-Rank Gradient
/// Compression for Distributed Optimization, 2019, algorithms 1 and 2. A gradient of [n, ...] is
/// viewed as a matrix M of [n, m]. E is this rank's error of the step before. Q is [m, r] with
/// orthonormal columns:
///   D = M + E;  P = orthonormal(mean(D Q));  R = D' P;  Q = mean(R);  gradient = P Q';
///   E = D - P R'
///
/// with r = min(rank, n, m). It sends n r + m r numbers in place of n m. Gradients that are not
/// compressed, and those of fewer than two dimensions, pass unchanged to the next hook. A rank
/// without a gradient keeps its error for later. A gradient that is not finite makes the result NaN
/// and leaves Q and E unchanged. Rounding errors of a wire format after it are not fed back.
/// Exclusive.
RAMET_API std::shared_ptr<CommStage> power_sgd_stage(const PowerSgdOptions& options = {});

/// The mean over all ranks for the first `start` synchronised backwards, then over this rank's
/// `subgroup` only. Source: Lin, Stich, Patel, Jaggi: Don't Use Large Mini-Batches, Use Local SGD,
/// 2020. Then the parameters of different subgroups drift away from each other;
/// PeriodicModelAverager (model_averager.h) averages them. Every rank belongs to one subgroup, and
/// all ranks of a subgroup pass that one (new_subgroups). A subgroup of one rank: no reduction at
/// all. Exclusive.
RAMET_API std::shared_ptr<CommStage> post_local_sgd_stage(std::shared_ptr<ProcessGroup> subgroup,
                                                          int64_t start);
/// Makes subgroups of `ranks_each` consecutive ranks, and returns the one of this rank.
/// `ranks_each` must divide the group's size. Collective over the group.
RAMET_API std::shared_ptr<ProcessGroup> new_subgroups(ProcessGroup& group, int ranks_each);

/// The effect of a hook on this rank's gradients: bytes, as float32, of its input values and of its
/// output. The bytes that are sent also depend on the number of ranks: ProcessGroup::wire_bytes.
struct StageBytes {
  /// The hook's name.
  std::string stage;
  /// This rank's bytes without and with the hook.
  uint64_t before = 0, after = 0;
};

namespace detail {
class GradientReducer;
}

/// The chain of communication hooks of a DistributedDataParallel or of a replicated module, which
/// makes it: ddp.comm_stages(), replicate_handle(net).comm_stages().
class RAMET_API CommStages {
 public:
  CommStages(std::shared_ptr<ProcessGroup> group, std::string name, Average average,
             ReduceOrder order, std::map<std::string, std::vector<int64_t>> parameters);
  ~CommStages();
  CommStages(const CommStages&) = delete;

  /// Appends a hook to the chain. Collective; while no backward runs. Errors, on every rank, with
  /// nothing registered:
  /// - a second exclusive hook ("can only be called once")
  /// - a hook that is registered already
  /// - a hook that is not lossless under tree(V): those bits must not depend on which rank adds
  /// - ranks with different hooks
  void add(const std::shared_ptr<CommStage>& stage);
  /// Is there no hook?
  bool empty() const { return stages_.empty(); }
  /// One text for each hook, as errors and manifests name it.
  std::vector<std::string> descriptions() const;
  /// The number of synchronised backwards so far.
  int64_t step() const;
  /// Bytes since the hooks were registered, one entry for each hook.
  std::vector<StageBytes> bytes() const;

  /// For Checkpoint::add, or DistributedCheckpoint::add_own. The state of hooks (errors of its
  /// gradients) is each rank's own, so with Checkpoint::add each rank writes a file of its own.
  void save(serialize::OutputArchive& archive) const;
  /// Throws an Error, with nothing changed, if the hooks or their parameters have changed. If hooks
  /// have state, the rank and the number of ranks must be the same too. Buckets may have changed.
  void load(serialize::InputArchive& archive);

 private:
  friend class detail::GradientReducer;
  bool computes() const;
  bool routes() const;
  std::shared_ptr<ProcessGroup> group_now() const;
  // As ProcessGroup::all_reduce_members, for the gradients of these names. If the chain computes,
  // it also weighs and divides. Then the result is a mean even if `options` ask for a sum. It is
  // over the ranks that have inputs (rows not below 0).
  Work all_reduce(std::vector<Tensor> members, const std::vector<std::string>& names,
                  CollectiveOptions options, const std::vector<bool>& present, double rows,
                  const std::shared_ptr<MemberReport>& report);
  // Called after a synchronised backward. If it failed in a subgroup, the whole group ends: other
  // ranks would wait for this one at their next common operation.
  void step_done(bool failed);
  void abort(const std::string& reason) const;  // notifies all ranks that wait for this one
  // The parameters of a module that has changed, for hooks that are registered later.
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
