#include "parallel/distributed/ddp/replicate.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include "autograd/graph/forward_context.h"
#include "nn/module/module_hooks.h"
#include "nn/module/replica_meeting.h"
#include "parallel/distributed/ddp/gradient_reducer_internal.h"
#include "parallel/distributed/ddp/replicated_internal.h"
#include "parallel/distributed/model/contract.h"
#include "parallel/distributed/model/managed.h"

namespace ramet::distributed {

namespace detail {
namespace {

constexpr const char* kApi = "replicate";

// Returns the reducer that modules of one group and device share, while one of them lives. Null if
// isolated, or if there is none yet and `make` is false.
std::shared_ptr<GradientReducer> shared_reducer(const std::shared_ptr<ProcessGroup>& group,
                                                Device device, const ReplicateOptions& o,
                                                bool make) {
  if (o.isolated) return nullptr;
  RAMET_CHECK(o.stages.empty(), kApi, "stages: expected none, or isolated");
  using Key = std::pair<const ProcessGroup*, int>;
  // Never destroyed: modules may outlive static objects.
  static auto* const reducers = new std::map<Key, std::weak_ptr<GradientReducer>>;
  static auto* const mutex = new std::mutex;
  const std::lock_guard lock(*mutex);
  std::erase_if(*reducers, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<GradientReducer>& kept = (*reducers)[{group.get(), device.ordinal()}];
  if (auto reducer = kept.lock()) {
    const DdpOptions& theirs = reducer->options();
    RAMET_CHECK(theirs.order == o.order && theirs.average == o.average &&
                    theirs.division == o.division && theirs.sync_mode == o.sync_mode &&
                    theirs.bucket_bytes == o.bucket_bytes,
                kApi,
                "order, average, division, sync_mode or bucket_bytes differ from those of the "
                "modules replicated over this group before: expected the same, or isolated");
    return reducer;
  }
  if (!make) return nullptr;
  // The reducer keeps the group alive, so no other group gets its address.
  auto made = std::make_shared<GradientReducer>(group, o, std::vector<NamedLeaf>());
  kept = made;
  return made;
}

}  // namespace

/// The state of a replicated module. The module's hooks own it.
struct Replicated {
  Replicated(const std::shared_ptr<nn::Module>& m, const std::shared_ptr<ProcessGroup>& group,
             const ReplicateOptions& options)
      : module(m.get()),
        life(m),
        core(group, m, options, shared_reducer(group, m->parameters()[0].device(), options, true)) {
    find_layers();
  }
  void find_layers() {
    const std::lock_guard lock(mutex);
    norms.clear();
    replicas.clear();
    layers.clear();
    module->apply(nn::Module::ModuleApplyFunction([this](nn::Module& below) {
      if (core.merges(below)) norms.push_back({&below, {&below}});
      if (!core.merges(below) && !core.synchronises(below)) return;
      replicas.push_back(&below);
      if (&below != module) layers.push_back(below.weak_from_this().lock());
    }));
  }
  // In forward, layers act as in a replica. Parts that backwards compute again may overlap.
  void begin_replica() {
    const std::lock_guard lock(mutex);
    if (users++ > 0) return;
    for (nn::Module* m : replicas) {
      m->set_replica(true);
      m->discard_deposits();
    }
  }
  void end_replica(bool discard) {
    const std::lock_guard lock(mutex);
    if (--users > 0) return;
    for (nn::Module* m : replicas) {
      m->set_replica(false);
      if (discard) m->discard_deposits();
    }
  }
  class Call;
  nn::Module* const module;  // the owner of this state
  const std::weak_ptr<nn::Module> life;
  DdpCore core;
  DdpCore::Replicas norms;                          // that deposit statistics
  std::vector<nn::Module*> replicas;                // that act in forward as in a replica
  std::vector<std::shared_ptr<nn::Module>> layers;  // keeps layers alive that the module removes
  std::mutex mutex;
  int users = 0;         // of begin_replica()
  Call* call = nullptr;  // the current call
};

/// Lives from before the pre-hooks until the call ends, in whatever way it ends.
class Replicated::Call {
 public:
  explicit Call(const std::shared_ptr<Replicated>& owner)
      : state_(*owner), again_(std::make_shared<Again>(owner)) {
    Replicated& r = state_;
    RAMET_CHECK(!r.call, kApi, "a forward of this module runs already, expected one at a time");
    if (r.core.begin_forward()) r.find_layers();
    if (r.core.elsewhere()) {
      meeting_.emplace(1, /*in_turns=*/false, r.core.elsewhere());
      seat_.emplace(&*meeting_, 0);
    }
    began_ = r.core.forwards_meet();
    if (began_) r.begin_replica();
    r.call = this;  // must be last: the destructor does not run if this constructor throws
  }
  void ends_well() {
    if (state_.core.forwards_meet()) state_.core.merge(state_.norms);
    well_ = true;
  }
  ~Call() {
    state_.call = nullptr;
    if (began_) state_.end_replica(/*discard=*/!well_);
    if (!well_) state_.core.forward_failed();
  }

 private:
  // A part that a backward computes again: its deposits are discarded.
  class Again final : public autograd::ForwardContext {
   public:
    explicit Again(const std::weak_ptr<Replicated>& owner) : owner_(owner) {}
    std::shared_ptr<void> enter() override {
      auto owner = owner_.lock();
      auto module = owner ? owner->life.lock() : nullptr;
      if (!module || !owner->core.forwards_meet() || owner->call) return nullptr;
      owner->begin_replica();
      return std::shared_ptr<void>(
          owner.get(), [owner, module](void*) { owner->end_replica(/*discard=*/true); });
    }

   private:
    const std::weak_ptr<Replicated> owner_;
  };

  Replicated& state_;
  const autograd::ForwardContextGuard again_;
  bool began_ = false, well_ = false;
  std::optional<nn::ReplicaMeeting> meeting_;
  std::optional<nn::ReplicaMeeting::Seat> seat_;
};

namespace {

// Maps modules to their state, for the handles. The hooks own the state.
struct Handles {
  std::mutex mutex;
  std::map<const nn::Module*, std::weak_ptr<Replicated>> of;
};
Handles& handles() {
  static auto* const h = new Handles;
  return *h;
}

std::shared_ptr<Replicated> find(const nn::Module& m) {
  if (!is_applied(kApi, m)) return nullptr;  // also not one at the address of a module that is gone
  Handles& h = handles();
  const std::lock_guard lock(h.mutex);
  const auto at = h.of.find(&m);
  return at == h.of.end() ? nullptr : at->second.lock();
}

void check_options(const nn::Module& module, const ProcessGroup& group, const ReplicateOptions& o) {
  RAMET_CHECK(!module.parameters().empty(), kApi, "module ", module.name(), " has no parameter");
  const Device home = home_of(kApi, module);
  RAMET_CHECK(o.devices.size() <= 1, kApi,
              "device_ids can only be None or contain a single element: got ", o.devices.size(),
              " devices");
  RAMET_CHECK(o.devices.empty() || resolve(o.devices[0]) == home, kApi, "device: got ",
              o.devices.empty() ? home : o.devices[0], ", expected the module's, ", home);
  for (const auto& item : module.named_parameters())
    RAMET_CHECK(item.value().device() == home, kApi, "parameter '", item.key(), "' is on ",
                item.value().device(), ", expected all on one device, ", home);
  RAMET_CHECK(o.batch == Batch::local, kApi,
              "Batch::whole: expected Batch::local, or DistributedDataParallel");
  RAMET_CHECK(!o.order.is_tree() || o.order.leaves() == group.size(), kApi,
              "tree(V): got V = ", o.order.leaves(), " and ", group.size(),
              " ranks, expected as many, or DistributedDataParallel");
}

void install(const std::shared_ptr<nn::Module>& module, const std::shared_ptr<Replicated>& state) {
  // Copies and replicas of the module have the hooks too.
  module->register_forward_scope([state](nn::Module& m) -> std::shared_ptr<void> {
    if (&m == state->module) return std::make_shared<Replicated::Call>(state);
    RAMET_CHECK(!m.is_replica() || !state->core.forwards_meet(), kApi,
                "the module is replicated over processes and in this one too, and has buffers that "
                "all of them share: expected DistributedDataParallel with several devices");
    return nullptr;
  });
  module->register_forward_pre_hook([state](nn::Module& m, std::vector<Tensor>& inputs) {
    if (&m != state->module) return;
    if (inputs.empty() || !inputs[0].defined()) state->core.set_rows(std::nullopt);
    else state->core.set_rows(inputs[0].dim() > 0 ? inputs[0].size(0) : 1);
  });
  module->register_forward_hook(
      [state, mark = state->core.on_result()](nn::Module& m, const std::vector<Tensor>&,
                                              std::vector<Tensor>& results) {
        if (&m != state->module) return;
        state->call->ends_well();
        for (Tensor& t : results)
          if (mark) t = mark(t);
      });
  Handles& h = handles();
  const std::lock_guard lock(h.mutex);
  std::erase_if(h.of, [](const auto& entry) { return entry.second.expired(); });
  h.of[module.get()] = state;
}

}  // namespace

std::vector<DdpCore*> replicated_below(const nn::Module& module) {
  std::vector<DdpCore*> out;
  module.apply(nn::Module::ConstModuleApplyFunction([&](const nn::Module& m) {
    if (&m == &module) return;
    if (const auto below = find(m)) out.push_back(&below->core);
  }));
  std::ranges::reverse(out);
  return out;
}

void replicate(const std::shared_ptr<nn::Module>& module, std::shared_ptr<ProcessGroup> group,
               const ReplicateOptions& options) {
  RAMET_CHECK(module, kApi, "module: got an empty pointer");
  DdpCore::verify(kApi, group, *module, options, [&] {
    RAMET_CHECK(!is_fully_sharded(*module), kApi,
                "Cannot apply `replicate()` on a Module already managed by `fully_shard`");
    check_not_applied(kApi, *module);
    check_options(*module, *group, options);
    (void)shared_reducer(group, module->parameters()[0].device(), options, false);
  });
  apply_once(kApi, *module, [&](nn::Module&) {
    install(module, std::make_shared<Replicated>(module, group, options));
  });
}

}  // namespace detail

ReplicateHandle replicate_handle(const nn::Module& module) {
  auto state = detail::find(module);
  RAMET_CHECK(state, "replicate_handle", "module ", module.name(),
              ": expected one that replicate() was applied to");
  return ReplicateHandle(std::move(state));
}

std::vector<detail::DdpCore*> ReplicateHandle::cores(bool recurse) const {
  std::vector<detail::DdpCore*> out = {&state_->core};
  if (recurse)
    for (detail::DdpCore* below : detail::replicated_below(*state_->module)) out.push_back(below);
  return out;
}

const std::shared_ptr<ProcessGroup>& ReplicateHandle::group() const { return state_->core.group(); }
void ReplicateHandle::set_requires_gradient_sync(bool on, bool recurse) {
  for (detail::DdpCore* core : cores(recurse)) core->set_sync(on);
}
detail::NoSync ReplicateHandle::no_sync(bool recurse) { return detail::NoSync(cores(recurse)); }
detail::DdpCore& ReplicateHandle::isolated(const char* op) const {
  RAMET_CHECK(state_->core.options().isolated, op, "module ", state_->module->name(),
              " shares its reducer, which has no stages: expected one replicated with isolated");
  return state_->core;
}
void ReplicateHandle::register_comm_stage(const std::shared_ptr<CommStage>& stage) {
  isolated("register_comm_stage").register_stage(stage);
}
CommStages& ReplicateHandle::comm_stages() const { return isolated("comm_stages").stages(); }
const std::vector<std::string>& ReplicateHandle::replicated_param_names() const {
  return state_->core.names();
}
std::vector<std::string> ReplicateHandle::unused_parameters() const {
  return state_->core.unused();
}
StepTimeline ReplicateHandle::last_step() const { return state_->core.last_step(); }
BucketPlan ReplicateHandle::plan() const { return state_->core.plan(); }
unsigned ReplicateHandle::register_post_sync_hook(PostSyncHook hook) {
  return state_->core.register_hook(std::move(hook));
}
void ReplicateHandle::remove_post_sync_hook(unsigned hook) { state_->core.remove_hook(hook); }
void ReplicateHandle::set_plan(const BucketPlan& plan) { state_->core.set_plan(plan); }
void ReplicateHandle::join(const std::function<void()>& loop, const JoinOptions& options) {
  state_->core.join(loop, options);
}

}  // namespace ramet::distributed
