// Checkpoints of processes: everything a run over ranks needs to go on, with as many ranks or
// others.
//
//   DistributedCheckpoint checkpoint(group);
//   checkpoint.add("model", *model).add("optimizer", adam, *model).add("schedule", schedule)
//             .add("step", step);
//   if (const auto found = checkpoint.try_load("runs/checkpoints")) ...   // goes on from
//   found->step checkpoint.save("runs/checkpoints", step);                            // every rank
//   calls it
//
// Note [Checkpoints of processes]
// As ramet::Checkpoint, it is a tree of keys whose leaves are tensors and values
// (nn/serialize/archive.h), but in a folder that all ranks reach. What ranks hold in parts
// (TensorPart) is saved in parts; what several hold alike is written once, its bytes spread evenly
// over those ranks. Each rank writes one safetensors file, whose entries are whole tensors where
// they can be. The manifest, a JSON text that rank 0 writes when all files are on disk, makes them
// a checkpoint: it names the files with their checksums and holds the values. So a step is there as
// a whole or not at all, whenever who is killed, and nothing that belongs to an earlier one is
// touched before. Names of files count up and are never used again; what no kept manifest belongs
// to goes at the next save.
//
// A load takes the newest step whose files are whole. Every rank reads what it holds now, wherever
// that lies in the files: ranks, cuts and replicated or not may have changed. Everything read is
// compared with checksums before the first tensor is written.
//
// Every rank calls save() and load() with the same parts, added in the same way. What fails on one
// rank is the same Error on all; a rank that is lost or late is a CommError, as in any collective.
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
  /// Complete steps that stay, this one included; rank 0's counts. Disks hold one more meanwhile.
  int keep = 2;
  /// How long ranks may be late, to write their file among others; by default the group's.
  std::optional<Milliseconds> timeout;
  /// Called when a stage begins, for logs and for tests: "data", "data written", "data in place",
  /// and on rank 0 "manifest", "manifest written", "committed", "removing", "removed".
  std::function<void(const std::string& stage)> at;
};

struct LoadOptions {
  /// This step, whatever is newer; by default the newest that is whole.
  std::optional<int64_t> step;
  /// Tensors that the checkpoint lacks, or that modules and lists of tensors do not have, are an
  /// Error that lists them. Otherwise they are in the report, and the first keep their values.
  bool strict = true;
  /// How long ranks may be late; none: as the group's operations.
  std::optional<Milliseconds> timeout;
};

/// What a load has found.
struct LoadReport {
  /// The step that was read.
  int64_t step = 0;
  int world_size = 0;  // of those that saved it
  /// Newer steps that are not whole, with what is wrong: "step 40: ...".
  std::vector<std::string> passed_over;
  /// Without strict: keys.
  std::vector<std::string> missing, surplus;
  /// Parts of add_own, or "generators", which were not the same on all ranks, of which there are
  /// more or fewer now. They are as before.
  std::vector<std::string> not_restored;
};

/// Keeps references: the parts must outlive it. Belongs to one thread of its rank. The states of
/// the default generators are saved besides, as if by add_own("generators", ...): of CPU devices,
/// and of the GPUs that hold parameters of the modules added, in the order in which those name
/// them. So ranks that each have another GPU, and have drawn alike, save the same.
class RAMET_API DistributedCheckpoint {
 public:
  using Plan = std::vector<std::vector<std::string>>;  // names of parameters

  explicit DistributedCheckpoint(std::shared_ptr<ProcessGroup> group);

  /// What is the same on all ranks; the Error of a save names what is not. A part is what
  /// ramet::Checkpoint::add takes.
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
  /// What each rank has for itself. Where ranks differ, it comes back only in as many ranks.
  template <class Part> DistributedCheckpoint& add_own(const std::string& name, Part& part) {
    parts_.add(name, part);
    note(name);
    own_.insert(name);
    return *this;
  }
  /// A module of whose parameters and buffers this rank has parts: `spread` says which. The others
  /// are whole. An Error unless the names are the module's.
  DistributedCheckpoint& add(const std::string& name, nn::Module& module,
                             std::vector<TensorPart> spread);
  /// An optimizer over the module's parameters, which are whole. Its state is saved under the
  /// parameters' names, so groups may be ordered anew.
  DistributedCheckpoint& add(const std::string& name, optim::Optimizer& optimizer,
                             const nn::Module& module);
  /// An optimizer over parts of parameters: each of its parameters is some `local`. State of the
  /// shape of a part is cut as that.
  DistributedCheckpoint& add(const std::string& name, optim::Optimizer& optimizer,
                             std::vector<TensorPart> parameters);
  /// Tensors of which each rank has parts.
  DistributedCheckpoint& add_tensors(const std::string& name, std::vector<TensorPart> tensors);
  /// The plan of the buckets of what has plan() and set_plan(): DistributedDataParallel. A load
  /// sets it last, on all ranks.
  template <class Ddp> DistributedCheckpoint& add_plan(const std::string& name, Ddp& ddp) {
    return add_plan(
        name, [&ddp] { return ddp.plan(); }, [&ddp](const Plan& plan) { ddp.set_plan(plan); });
  }

  /// Collective; it is on disk when this returns. Errors, on every rank, before anything is
  /// written: parts that do not fit or leave elements to nobody, ranks that differ in step, in
  /// shapes, in values, or in tensors that all of them have. Then those of the disk: checkpoints
  /// before are as they were, and the files of this one go, by the next save at the latest. After
  /// an error in writing the manifest the step may be there, and then it is whole.
  void save(const std::string& folder, int64_t step, const SaveOptions& options = {}) const;

  /// Collective. A step that is damaged or incomplete is passed over, with a warning. Errors, on
  /// every rank, before anything is written: no step is whole (the text says of each why not), or
  /// the one that is does not fit what was added. Where a part's own load() throws, parts may be
  /// half loaded.
  LoadReport load(const std::string& folder, const LoadOptions& options = {});
  /// As load(); nothing where there is no checkpoint, or no folder.
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
  void restore(detail::CheckpointContent content);

  std::shared_ptr<ProcessGroup> group_;
  Checkpoint parts_;
  std::set<std::string> names_, modules_, own_;  // of parts; add_tensors counts as a module
  std::map<std::string, TensorPart> spread_;     // by full key
  std::vector<States> optimizers_;
  // Whose devices' generators are saved.
  std::shared_ptr<std::vector<const nn::Module*>> homes_;
  std::vector<std::shared_ptr<void>> lists_;  // of add_tensors and add_plan
  std::vector<std::function<void()>> last_;   // of a load, when all ranks have loaded the rest
};

}  // namespace ramet::distributed
