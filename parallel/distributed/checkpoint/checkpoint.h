// Checkpoints of processes: all that a run over ranks needs to continue, with the same number of
// ranks or another.
//
//   DistributedCheckpoint checkpoint(group);
//   checkpoint.add("model", *model).add("optimizer", adam, *model).add("schedule", schedule)
//             .add("step", step);
//   if (const auto found = checkpoint.try_load("runs/checkpoints")) ...   // from found->step on
//   checkpoint.save("runs/checkpoints", step);                            // every rank calls it
//
// Note [Checkpoints of processes]
// Like ramet::Checkpoint, it is a tree of keys with tensors and values as leaves
// (nn/serialize/archive.h). It is in a folder that all ranks can access. Tensors of which ranks
// hold parts (TensorPart) are saved in parts. If several ranks hold the same data, it is written
// once, with its bytes spread evenly over those ranks. Each rank writes one safetensors file, with
// whole tensors as entries where possible. The manifest makes the files a checkpoint. It is a JSON
// text that rank 0 writes when all files are on disk. It holds the values, and names the files with
// their checksums. So a step exists as a whole or not at all, whichever process is killed and when.
// No file of an earlier step is changed before that. File names contain a number that counts up and
// is never used again. The next save removes the files that belong to no kept manifest.
//
// A load takes the newest step with whole files. Every rank reads what it holds now, wherever that
// is in the files. The ranks, the cuts, and what is replicated may have changed. Everything that is
// read is compared with checksums before the first tensor is written.
//
// Every rank calls save() and load() with the same parts, added in the same way. A failure on one
// rank is the same Error on all ranks. A rank that is lost or late is a CommError, as in any
// collective.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "nn/module/checkpoint.h"
#include "nn/module/module.h"
#include "nn/optim/optimizer.h"
#include "parallel/distributed/group/process_group.h"
#include "parallel/distributed/shard/tensor_part.h"

namespace ramet::distributed {

namespace detail {
struct CheckpointContent;
class StoredStep;
}  // namespace detail

struct SaveOptions {
  /// How many complete steps to keep, this one included; rank 0's number counts. During a save the
  /// disk holds one more.
  int keep = 2;
  /// How late ranks may be, also in writing their files; by default the group's timeout.
  std::optional<Milliseconds> timeout;
  /// Called when a phase of the save begins, for logs and tests. Phases: "data", "data written",
  /// "data in place", and on rank 0 "manifest", "manifest written", "committed", "removing",
  /// "removed".
  std::function<void(const std::string& stage)> at;
};

struct LoadOptions {
  /// Load this step, even if there are newer ones; by default the newest that is whole.
  std::optional<int64_t> step;
  /// With strict, an Error lists tensors that the checkpoint lacks, and tensors that modules and
  /// lists of tensors do not have. Without it, both are in the report, and tensors that the
  /// checkpoint lacks keep their values.
  bool strict = true;
  /// How late ranks may be; nothing: the timeout of the group's operations.
  std::optional<Milliseconds> timeout;
};

/// The result of a load.
struct LoadReport {
  /// The step that was read.
  int64_t step = 0;
  int world_size = 0;  // of the ranks that saved it
  /// Newer steps that are not whole, with the reason: "step 40: ...".
  std::vector<std::string> passed_over;
  /// The keys concerned, without strict.
  std::vector<std::string> missing, surplus;
  /// Parts of add_own, or "generators", that differed between the ranks, if there are more or fewer
  /// ranks now. These parts are unchanged.
  std::vector<std::string> not_restored;
};

/// Holds references: the parts must outlive it. One thread of each rank uses it. The states of the
/// default generators are saved too, as if by add_own("generators", ...). These are the generators
/// of CPU devices, and of the GPUs that hold parameters of the added modules. Their order is that
/// in which the modules name them. So ranks that each have another GPU, but have drawn the same
/// numbers, save the same.
class RAMET_API DistributedCheckpoint {
 public:
  using Plan = std::vector<std::vector<std::string>>;  // names of parameters

  explicit DistributedCheckpoint(std::shared_ptr<ProcessGroup> group);

  /// Adds a part that is the same on all ranks; a save throws an Error that names what differs. The
  /// part may be anything that ramet::Checkpoint::add takes.
  template <class Part> DistributedCheckpoint& add(const std::string& name, Part& part) {
    static_assert(!std::is_base_of<optim::Optimizer, Part>::value,
                  "say whose parameters it has: add(name, optimizer, module)");
    parts_.add(name, part);
    note(name);
    if constexpr (std::is_base_of<nn::Module, Part>::value) {
      modules_.insert(name);
      homes_->push_back(&part);
    }
    return *this;
  }
  /// Adds a part that each rank has for itself. If ranks differ, it is restored only with the same
  /// number of ranks.
  template <class Part> DistributedCheckpoint& add_own(const std::string& name, Part& part) {
    parts_.add(name, part);
    note(name);
    own_.insert(name);
    return *this;
  }
  /// Adds a module of which this rank holds only parts: `spread` lists the parameters and buffers
  /// concerned. The others are whole. An Error if a name is not the module's.
  DistributedCheckpoint& add(const std::string& name, nn::Module& module,
                             std::vector<TensorPart> spread);
  /// Adds an optimizer over the module's parameters, which are whole. Its state is saved under the
  /// parameters' names, so the order of its groups may change.
  DistributedCheckpoint& add(const std::string& name, optim::Optimizer& optimizer,
                             const nn::Module& module);
  /// Adds an optimizer over parts of parameters: each of its parameters is the `local` of one part.
  /// State with the shape of a part is cut as that part.
  DistributedCheckpoint& add(const std::string& name, optim::Optimizer& optimizer,
                             std::vector<TensorPart> parameters);
  /// Adds tensors of which each rank has parts.
  DistributedCheckpoint& add_tensors(const std::string& name, std::vector<TensorPart> tensors);
  /// Adds the plan of the buckets of an object with plan() and set_plan(): DistributedDataParallel.
  /// A load sets it last, on all ranks.
  template <class Ddp> DistributedCheckpoint& add_plan(const std::string& name, Ddp& ddp) {
    return add_plan(
        name, [&ddp] { return ddp.plan(); }, [&ddp](const Plan& plan) { ddp.set_plan(plan); });
  }

  /// Saves; collective. The step is on disk when this returns. Errors, on every rank, before
  /// anything is written: parts that do not fit, or with elements that no rank holds. Also ranks
  /// that differ in step, in shapes, in values, or in tensors that all of them have. Then errors of
  /// the disk: earlier checkpoints are unchanged, and the files of this one are removed, by the
  /// next save at the latest. After an error in writing the manifest the step may exist, and then
  /// it is whole.
  void save(const std::string& folder, int64_t step, const SaveOptions& options = {}) const;

  /// Loads; collective. A damaged or incomplete step is skipped, with a warning. Errors, on every
  /// rank, before anything is written: no step is whole, or the step does not fit what was added.
  /// The first error gives the reason for each step. If a part's own load() throws, parts may be
  /// half loaded.
  LoadReport load(const std::string& folder, const LoadOptions& options = {});
  /// As load(); returns nothing if there is no checkpoint, or no folder.
  std::optional<LoadReport> try_load(const std::string& folder, const LoadOptions& options = {});

 private:
  struct States {
    std::string name;
    const optim::Optimizer* optimizer;
    std::vector<TensorPart> parameters;
    std::vector<std::string> names() const;
  };
  void note(const std::string& name);
  DistributedCheckpoint& add_plan(const std::string& name, std::function<Plan()> get,
                                  std::function<void(const Plan&)> set);
  detail::CheckpointContent collect() const;
  const TensorPart* state_of(const std::string& key) const;
  TensorPart described(const std::string& key, const Tensor& tensor) const;
  bool fixed(const std::string& key) const;
  detail::CheckpointContent read(const detail::StoredStep& step, bool strict,
                                 LoadReport& report) const;
  std::map<std::string, std::string> find_own_parts(const detail::CheckpointContent& now,
                                                    detail::CheckpointContent& found,
                                                    LoadReport& report) const;
  void compare_keys(const detail::CheckpointContent& now, const detail::CheckpointContent& found,
                    LoadReport& report) const;
  Tensor read_tensor(const detail::StoredStep& step, const std::string& name,
                     const std::string& key, const detail::CheckpointContent& now) const;
  void restore(detail::CheckpointContent content);

  std::shared_ptr<ProcessGroup> group_;
  Checkpoint parts_;
  std::set<std::string> names_, modules_, own_;  // of parts; add_tensors counts as a module
  std::map<std::string, TensorPart> spread_;     // by full key
  std::vector<States> optimizers_;
  // The modules that determine which devices' generators are saved.
  std::shared_ptr<std::vector<const nn::Module*>> homes_;
  std::vector<std::shared_ptr<void>> lists_;  // of add_tensors and add_plan
  std::vector<std::function<void()>> last_;   // run at the end of a load, when all ranks have
                                              // loaded the rest
};

}  // namespace ramet::distributed
