#include "parallel/distributed/ddp/data_parallel.h"

#include <algorithm>
#include <optional>
#include <thread>

#include "autograd/graph/function.h"
#include "parallel/distributed/ddp/batch_statistics_internal.h"
#include "parallel/distributed/ddp/buffer_sync_internal.h"
#include "parallel/distributed/ddp/forward_mark_internal.h"
#include "parallel/distributed/ddp/gradient_reducer_internal.h"
#include "parallel/distributed/ddp/replicated_internal.h"
#include "parallel/distributed/model/model_table_internal.h"
#include "runtime/capture/capture.h"

namespace ramet::distributed::detail {

namespace {

void check_options(const ProcessGroup& group, const DdpOptions& o) {
  RAMET_CHECK(o.sync_from >= 0 && o.sync_from < group.size(), "ddp", "sync_from: got ", o.sync_from,
              ", expected 0 to ", group.size() - 1);
  RAMET_CHECK(o.bucket_bytes >= 0, "ddp", "bucket_bytes: got ", o.bucket_bytes,
              ", expected 0 or more");
  RAMET_CHECK(o.division == Division::post || o.average == Average::mean, "ddp",
              "division: got one before the sum, expected Average::mean with it");
}

// The options by which each rank computes its part of the common result. If they differed, ranks
// would continue with different gradients, and nothing later would reveal it.
SharedOptions shared_options(const DdpOptions& o) {
  static const char* const divisions[] = {"post", "pre", "split_sqrt"};
  static const char* const modes[] = {"at_backward", "at_forward"};
  std::string stages;
  for (const auto& s : o.stages)
    stages += (stages.empty() ? "" : ", ") + (s ? s->description() : std::string("none"));
  SharedOptions out = {
      {"order", text_of(o.order)},
      {"average", text_of(o.average)},
      {"division", divisions[static_cast<size_t>(o.division)]},
      {"sync_mode", modes[static_cast<size_t>(o.sync_mode)]},
      {"batch", o.batch == Batch::whole ? "whole" : "local"},
      {"bucket_bytes", std::to_string(o.bucket_bytes)},
      {"stages", "[" + stages + "]"},
      {"init_sync", text_of(o.init_sync)},
      {"sync_from", std::to_string(o.sync_from)},
      {"isolated", text_of(o.isolated)},
  };
  // Each rank cuts the whole batch for all ranks. tree(V) has V / N replicas on any devices.
  if (o.batch == Batch::whole && !o.order.is_tree())
    out.emplace_back("number of devices", std::to_string(std::max<size_t>(o.devices.size(), 1)));
  return out;
}

std::vector<std::string> names_of(const std::vector<NamedLeaf>& leaves) {
  std::vector<std::string> names;
  for (const NamedLeaf& l : leaves) names.insert(names.end(), l.names.begin(), l.names.end());
  return names;
}

}  // namespace

void DdpCore::verify(const char* op, const std::shared_ptr<ProcessGroup>& group,
                     const nn::Module& module, const DdpOptions& options,
                     const std::function<void()>& own) {
  RAMET_CHECK(group, op, "group: got an empty pointer");
  const auto checked = [&] {
    check_options(*group, options);
    own();
    Exceptions exceptions(module, options.ignored);
    RAMET_CHECK(!leaves_of(module, exceptions).empty(), op,
                "all parameters of the module are ignored, or are reduced by "
                "another DistributedDataParallel or replicate(): expected one that is not");
    return exceptions;
  };
  verify_model(*group, op, module, checked, shared_options(options), options.name);
}

nn::parallel::DataParallelOptions DdpCore::local_options(const std::shared_ptr<ProcessGroup>& group,
                                                         const nn::Module& module,
                                                         const DdpOptions& options) {
  nn::parallel::DataParallelOptions local;
  verify("ddp", group, module, options, [&] {
    const Device home = home_of("ddp", module);
    local.devices = options.devices.empty() ? std::vector<Device>{home} : options.devices;
    for (Device& d : *local.devices) d = resolve(d);
    local.bucket_bytes = options.bucket_bytes;
    local.order = options.order;
    if (!options.order.is_tree()) return;
    const int v = options.order.leaves(), n = group->size();
    RAMET_CHECK(v % n == 0, "ddp", "tree(V): got V = ", v, " and ", n,
                " ranks, expected a number of ranks that divides V");
    const size_t devices = local.devices->size();
    RAMET_CHECK(static_cast<size_t>(v / n) % devices == 0, "ddp", "tree(V): got V = ", v, ", ", n,
                " ranks and ", devices, " devices here, expected devices that divide V / ranks");
    local.order = ReduceOrder::tree(v / n);
  });
  return local;
}

DdpCore::DdpCore(std::shared_ptr<ProcessGroup> group, const std::shared_ptr<nn::Module>& module,
                 const DdpOptions& options, std::shared_ptr<GradientReducer> shared)
    : group_(std::move(group)),
      module_(module),
      options_(options),
      exceptions_(std::make_unique<Exceptions>(*module, options.ignored)) {
  const std::vector<NamedLeaf> leaves = leaves_of(*module, *exceptions_);
  if (options_.init_sync)
    copy_model(*group_, *module, *exceptions_, options_.sync_from, options_.name);
  names_ = names_of(leaves);
  find_forward_meetings(*module);
  remember_values(*module);
  reducer_ =
      shared ? std::move(shared) : std::make_shared<GradientReducer>(group_, options_, leaves);
  unit_ = reducer_->add(leaves, module);
  abort_companion_on_failure();
  for (const auto& stage : options_.stages) register_stage(stage);
}

// Finds out why the module's forwards communicate with the other ranks.
void DdpCore::find_forward_meetings(const nn::Module& module) {
  buffers_ = std::make_unique<BufferSync>(module, *exceptions_);
  bool norms = false, synchronised = false;
  module.apply(nn::Module::ConstModuleApplyFunction([&](const nn::Module& m) {
    norms = norms || merges(m);
    synchronised = synchronised || synchronises(m);
  }));
  if (!companion_ && group_->size() > 1 && (norms || synchronised || !buffers_->empty()))
    companion_ = std::make_shared<Companion>(group_, options_.name);
  if (companion_ && !elsewhere_ && synchronised)
    elsewhere_ = std::make_shared<RankShards>(companion_);
}

// Records that all ranks have the values of these parameters and buffers.
void DdpCore::remember_values(const nn::Module& module) {
  known_ = module.parameters();
  for (Tensor& b : module.buffers()) known_.push_back(std::move(b));
}

void DdpCore::abort_companion_on_failure() {
  if (companion_)
    reducer_->on_failure(unit_, [c = companion_](const std::string& why) { c->abort(why); });
}

DdpCore::~DdpCore() {
  if (reducer_) reducer_->remove(unit_);
}

std::shared_ptr<nn::Module> DdpCore::module() const {
  auto m = module_.lock();
  RAMET_CHECK(m, "ddp", "the module is gone");
  return m;
}

void DdpCore::attach(nn::parallel::ReplicaSet& set) {
  set_ = &set;
  set.set_elsewhere(elsewhere_);
  if (companion_) set.set_merger([this](const auto& modules) { merge(modules); });
}

bool DdpCore::begin_forward() {
  // This check comes first: after it, a failure on one rank alone would end the group.
  capture::refuse("ddp", "ranks meet in its forward and backward");
  if (group_->size() > 1) autograd::note_meeting();
  follow_changes();
  reducer_->begin_forward(unit_);
  if (companion_ && !buffers_->empty() && module()->is_training())
    buffers_->synchronise(*companion_);
  return std::exchange(changed_, false);
}

namespace {

// For two errors of one call: does this one give the cause, and not just say that other ranks have
// given up?
bool says_why(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const CommError& e) { return e.kind() == CommError::Kind::mismatch; } catch (...) {
  }
  return true;
}

}  // namespace

// A rank with an unchanged module may wait in the companion, where its forward meets the others. Or
// it may bring a bucket to the group. Such a rank must get the error in both cases.
void DdpCore::wait_for_all_ranks(const std::string& name) {
  constexpr const char* why = "the module has changed, and not on all ranks";
  std::exception_ptr here, beside;
  std::thread other;
  try {
    if (companion_)
      other = std::thread([&] {
        try {
          companion_->exchange(name, {});
        } catch (...) {
          beside = std::current_exception();
          reducer_->abort(why);
        }
      });
    group_->exchange({}, name);
  } catch (...) {
    here = std::current_exception();
    reducer_->abort(why);  // aborts the companion too
  }
  if (other.joinable()) other.join();
  if (here && beside) std::rethrow_exception(says_why(here) ? here : beside);
  if (here || beside) std::rethrow_exception(here ? here : beside);
}

// Parameters that the module got since the last forward differ between the ranks, and no reducer
// handles their gradients. If no gradients are recorded, ranks need not meet.
void DdpCore::follow_changes() {
  const auto m = module();
  if (RAMET_LIKELY(!autograd::is_recorded() || !may_have_leaves(*m, *exceptions_))) return;
  // New parameters of a part that has its own replicate() belong to that part.
  for (DdpCore* below : replicated_below(*m)) below->follow_changes();
  if (leaves_of(*m, *exceptions_).empty()) return;
  std::optional<Exceptions> now;
  const std::string name = options_.name + "/changed module";
  bool met = false;
  try {
    wait_for_all_ranks(name);
    if (companion_) buffers_->synchronise(*companion_);
    verify_model(
        *group_, "ddp", *m,
        [&] {
          const auto added = leaves_of(*m, now.emplace(*m, options_.ignored));
          const auto stages = reducer_->stages().descriptions();
          RAMET_CHECK(added.empty() || stages.empty(), "ddp", "the module has got '",
                      added[0].names[0], "' since it was wrapped, and a communication stage, ",
                      stages[0],
                      ", knows the parameters of then: expected the same ones; wrap it "
                      "again, on all ranks");
          return *now;
        },
        shared_options(options_), name);
    met = true;
    exceptions_ = std::make_unique<Exceptions>(*now);
    reducer_->update(unit_, [&] {
      const auto leaves = leaves_of(*m, *exceptions_);
      names_ = names_of(leaves);
      return leaves;
    });
    const auto is_new = [&](const Tensor& t) {
      return std::ranges::none_of(known_, [&](const Tensor& k) { return k.is_same(t); });
    };
    if (options_.init_sync)
      copy_model(*group_, *m, *exceptions_, options_.sync_from, options_.name, is_new);
    find_forward_meetings(*m);
    remember_values(*m);
    abort_companion_on_failure();
    if (set_) attach(*set_);
    changed_ = true;
  } catch (...) {
    if (met) reducer_->abort("a changed module could not be followed on this rank");
    else forward_failed();
    throw;
  }
}
void DdpCore::forward_failed() noexcept {
  if (!companion_) return;
  try {
    // Notifies the others only if a forward communicates: a rank may evaluate alone, and go on
    // after a failure.
    const auto m = module();
    bool waits = m->is_training() && !buffers_->empty();
    std::as_const(*m).apply(nn::Module::ConstModuleApplyFunction([&](const nn::Module& below) {
      waits = waits || (below.is_training() && (merges(below) || synchronises(below)));
    }));
    if (waits) companion_->abort("a forward failed on this rank");
  } catch (const std::exception&) {}  // the companion's group has ended
}
std::function<Tensor(const Tensor&)> DdpCore::on_result() const {
  if (group_->size() == 1) return {};
  return [weak = std::weak_ptr<GradientReducer>(reducer_), unit = unit_](const Tensor& t) {
    const auto reducer = weak.lock();
    return reducer ? marked(t, reducer, unit) : t;
  };
}
void DdpCore::set_sync(bool on) { reducer_->set_sync(unit_, on); }
bool DdpCore::sync() const { return reducer_->sync(unit_); }
void DdpCore::set_rows(std::optional<int64_t> rows) { reducer_->set_rows(unit_, rows); }
std::vector<std::string> DdpCore::unused() const { return reducer_->unused(); }
StepTimeline DdpCore::last_step() const { return reducer_->last_step(); }
unsigned DdpCore::register_hook(PostSyncHook hook) {
  RAMET_CHECK(hook, "register_post_sync_hook", "got an empty function");
  return reducer_->add_hook(unit_, std::move(hook));
}
void DdpCore::remove_hook(unsigned id) {
  RAMET_CHECK(reducer_->remove_hook(unit_, id), "remove_post_sync_hook", "got ", id,
              ", expected a number that a registration returned");
}
CommStages& DdpCore::stages() const { return reducer_->stages(); }
void DdpCore::register_stage(const std::shared_ptr<CommStage>& stage) {
  reducer_->register_stage(stage);
}
BucketPlan DdpCore::plan() const { return reducer_->plan(); }
void DdpCore::set_plan(const BucketPlan& plan) { reducer_->set_plan(plan); }

bool DdpCore::merges(const nn::Module& m) const {
  return deposits_statistics(m) && !exceptions_->module(m);
}

bool DdpCore::synchronises(const nn::Module& m) const {
  return !exceptions_->module(m) && std::ranges::any_of(m.own_buffers(), [&m](const auto& item) {
    return m.buffer_policy(item.key()) == nn::BufferPolicy::sync;
  });
}

// Merges the statistics of all ranks' shards, in the order of the shards.
void DdpCore::merge(const Replicas& modules) const {
  Replicas norms;
  for (const auto& item : modules) {
    if (companion_ && merges(*item.first)) norms.push_back(item);
    else item.first->merge_replicas(item.second);
  }
  if (!norms.empty()) merge_statistics(*companion_, norms);
}

NoSync::NoSync(std::vector<DdpCore*> cores) {
  for (DdpCore* core : cores) {
    before_.emplace_back(core, core->sync());
    core->set_sync(false);
  }
}
NoSync::~NoSync() {
  for (const auto& [core, on] : before_) core->set_sync(on);
}

DdpCore::Cut DdpCore::cut_whole_batch(int64_t extent, size_t local) const {
  const size_t shards = local * static_cast<size_t>(group_->size());
  RAMET_CHECK(extent >= static_cast<int64_t>(shards), "ddp", "the whole batch: got ",
              std::max<int64_t>(extent, 0), " rows, expected at least one for each of ", shards,
              " shards");
  Cut c;
  c.sizes = parallel::Split::balanced().cut("ddp", extent, shards);
  c.first = static_cast<size_t>(group_->rank()) * local;
  c.last = c.first + local;
  for (size_t i = 0; i < c.first; ++i) c.before += c.sizes[i];
  for (size_t i = c.first; i < c.last; ++i) c.rows += c.sizes[i];
  return c;
}

}  // namespace ramet::distributed::detail

namespace ramet::distributed {

Accumulation::Accumulation(std::vector<detail::DdpCore*> cores, int64_t k)
    : cores_(std::move(cores)), k_(k) {
  RAMET_CHECK(k >= 1, "accumulate", "k: got ", k, ", expected at least 1");
  for (const detail::DdpCore* core : cores_)
    RAMET_CHECK(core->options().sync_mode == SyncMode::at_backward, "accumulate",
                "sync_mode: got at_forward, expected at_backward: a forward that has decided to "
                "synchronise cannot be told otherwise by its backward");
}

bool Accumulation::backward(const Tensor& loss) {
  const bool last = done_ + 1 == k_;
  std::optional<detail::NoSync> quiet;
  if (!last) quiet.emplace(cores_);
  for (const detail::DdpCore* core : cores_)
    RAMET_CHECK(!last || core->sync(), "accumulate", "backward ", k_, " of ", k_,
                ": got gradient synchronisation switched off, expected it on");
  (k_ == 1 ? loss : loss.div(k_)).backward();
  done_ = last ? 0 : done_ + 1;
  return last;
}

}  // namespace ramet::distributed
