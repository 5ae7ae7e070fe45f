#include "parallel/distributed/shard/fully_shard.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <set>
#include <sstream>

#include "autograd/grad_mode.h"
#include "nn/module/module_hooks.h"
#include "parallel/distributed/group/agree_internal.h"
#include "parallel/distributed/group/group_state_internal.h"
#include "parallel/distributed/model/contract.h"
#include "parallel/distributed/model/model_table_internal.h"
#include "parallel/distributed/shard/shard_context_internal.h"
#include "runtime/capture/capture.h"

namespace ramet::distributed {

using detail::FoundParameter;
using detail::ShardContext;
using detail::ShardGroup;
using detail::ShardLanes;

namespace {

constexpr const char* kOp = "fully_shard";

// Runs around each forward of the module. It owns the group.
struct Gathered {
  std::shared_ptr<ShardGroup> group;
  std::shared_ptr<void> operator()(nn::Module& module) const {
    group->context->begin_forward(*group);
    return {&module, [g = group](nn::Module*) { g->context->end_forward(); }};
  }
};

// Casts the floating-point tensors that a call of the module takes or gives.
void cast_floating(std::vector<Tensor>& tensors, ScalarType dtype) {
  for (Tensor& t : tensors)
    if (t.defined() && t.is_floating_point() && t.scalar_type() != dtype) t = t.to(dtype);
}
// As in PyTorch, inputs are cast before all other hooks, outputs after those that are there.
void add_casts(nn::Module& module, const MixedPrecisionPolicy& policy) {
  if (policy.param_dtype && policy.cast_forward_inputs) {
    module.register_forward_pre_hook(
        [to = *policy.param_dtype](nn::Module&, std::vector<Tensor>& inputs) {
          cast_floating(inputs, to);
        });
    nn::ModuleHooks hooks = *module.forward_hooks();
    std::rotate(hooks.pre.begin(), std::prev(hooks.pre.end()), hooks.pre.end());
    module.set_forward_hooks(std::make_shared<const nn::ModuleHooks>(std::move(hooks)));
  }
  if (policy.output_dtype)
    module.register_forward_hook(
        [to = *policy.output_dtype](nn::Module&, const std::vector<Tensor>&,
                                    std::vector<Tensor>& outputs) { cast_floating(outputs, to); });
}

// Makes backwards take the engine's general path. If all parameters are frozen, they do not cause
// it themselves. A backward that needs their values must know its task.
void mark(nn::Module&, const std::vector<Tensor>&, std::vector<Tensor>& outputs) {
  for (const Tensor& y : outputs)
    if (y.defined() && autograd::wants_grad(y.impl()))
      if (const autograd::NodePtr node = y.grad_fn()) node->flags |= autograd::Node::kSpans;
}

}  // namespace

std::shared_ptr<ShardGroup> detail::shard_group_of(const nn::Module& module) {
  if (!module.forward_hooks()) return nullptr;
  for (const auto& scope : module.forward_hooks()->scopes)
    if (const auto* gathered = scope.second.target<Gathered>()) return gathered->group;
  return nullptr;
}

namespace {

// Returns a second group of the same ranks, one for all modules that are sharded over them.
std::shared_ptr<ProcessGroup> second_lane(const std::shared_ptr<ProcessGroup>& group) {
  static std::mutex mutex;
  static std::map<const ProcessGroup*, std::weak_ptr<ProcessGroup>> lanes;
  {
    const std::lock_guard lock(mutex);
    if (auto known = lanes[group.get()].lock()) return known;
  }
  auto made = detail::twin_of(*group, "reductions of " + group->name());
  const std::lock_guard lock(mutex);
  return (lanes[group.get()] = made).lock();
}

class Collector {
 public:
  void add(nn::Module& root, const std::string& prefix) {
    detail::check_not_applied(kOp, root);
    RAMET_CHECK(!detail::is_applied("replicate", root), kOp,
                "Cannot apply `fully_shard()` on a Module already managed by `replicate`");
    visit(root, prefix);
  }
  std::vector<FoundParameter> found;
  std::set<std::shared_ptr<ShardGroup>> below;
  // what the ranks compare: a line for each name of a parameter
  std::ostringstream table = ramet::detail::classic<std::ostringstream>();

 private:
  void visit(nn::Module& m, const std::string& prefix) {
    const bool again = !seen_.insert(&m).second;
    if (!m.holds_shards())
      for (const auto& item : m.own_parameters())
        if (item.value().defined()) add(m, item.key(), prefix + item.key(), item.value(), again);
    for (const auto& child : m.own_children()) {
      if (!child.value()) continue;
      if (auto group = detail::shard_group_of(*child.value())) below.insert(std::move(group));
      // There may be sharded modules inside a sharded module: their groups belong to this tree too.
      visit(*child.value(), prefix + child.key() + ".");
    }
  }
  void add(nn::Module& m, const std::string& key, const std::string& name, const Tensor& t,
           bool again) {
    const auto [at, fresh] = index_.emplace(t.impl(), found.size());
    if (!fresh) {
      table << name << " tied to " << found[at->second].name << '\n';
      if (!again) found[at->second].places.emplace_back(&m, key);
      return;
    }
    RAMET_CHECK(!t->is(TensorImpl::kReplica), kOp, "Parameter '", name,
                "' is shared with a parameter already managed by another FSDP group. For "
                "shared/tied parameters, use fully_shard([module_a, module_b]) with all modules "
                "that share it");
    RAMET_CHECK(t.is_leaf() && !t.is_view(), kOp, "parameter '", name, "': got ", describe(t),
                ", which is no leaf");
    const auto* leaf = static_cast<const autograd::AccumulateGrad*>(t->node);
    // Otherwise its reducer would keep a member that gets no gradient any more.
    RAMET_CHECK(!leaf || !leaf->reduce, kOp, "parameter '", name, "' of module ", m.name(),
                " is reduced by a DistributedDataParallel or a replicate() of this module or of "
                "one above it: expected fully_shard() before these");
    RAMET_CHECK(!leaf || (!leaf->grad.defined() && !leaf->extra), kOp, "parameter '", name,
                "' has a gradient or hooks: expected a module that is not being trained yet");
    found.push_back({name, t, {{&m, key}}});
    table << name << ' ' << short_name_of(t.scalar_type()) << t.sizes()
          << (t.requires_grad() ? " requires grad\n" : "\n");
  }
  std::map<const TensorImpl*, size_t> index_;
  std::set<const nn::Module*> seen_;
};

// For all groups of a tree: one stream orders all uses of their memory.
void check_one_device(const Collector& collector) {
  std::pair<std::string, Tensor> first;
  const auto check = [&first](const std::string& name, const Tensor& t) {
    if (!first.second.defined()) first = {name, t};
    RAMET_CHECK(t.device() == first.second.device() || (t.is_cpu() && first.second.is_cpu()), kOp,
                "parameters on several devices: got '", first.first, "' ", describe(first.second),
                " and '", name, "' ", describe(t),
                ", expected all that a rank has in host memory or on one GPU");
  };
  for (const FoundParameter& f : collector.found) check(f.name, f.tensor);
  for (const auto& group : collector.below)
    for (const ShardGroup::Unit& unit : group->units)
      check(unit.members[0].name, unit.members[0].full);
}

void check_policy(const MixedPrecisionPolicy& policy, const Collector& collector) {
  const std::pair<const char*, std::optional<ScalarType>> dtypes[] = {
      {"param_dtype", policy.param_dtype},
      {"reduce_dtype", policy.reduce_dtype},
      {"output_dtype", policy.output_dtype}};
  for (const auto& [name, dtype] : dtypes)
    RAMET_CHECK(!dtype || is_floating(*dtype), kOp, "mp_policy: ", name, ": got ", name_of(*dtype),
                ", expected a floating-point dtype");
  if (!policy.param_dtype && !policy.reduce_dtype) return;
  const auto floating = [](const ShardGroup::Unit& unit) { return is_floating(unit.dtype); };
  RAMET_CHECK(
      std::ranges::any_of(collector.found,
                          [](const FoundParameter& f) { return f.tensor.is_floating_point(); }) ||
          std::ranges::any_of(
              collector.below,
              [&](const auto& group) { return std::ranges::any_of(group->units, floating); }),
      kOp, "mp_policy: got ", policy.param_dtype ? "param_dtype" : "reduce_dtype",
      " for a module without floating-point parameters, expected at least one such parameter");
}

std::string text_of(const MixedPrecisionPolicy& policy) {
  const auto name = [](std::optional<ScalarType> t) {
    return std::string(t ? name_of(*t) : "as it is");
  };
  return "param_dtype " + name(policy.param_dtype) + "\nreduce_dtype " + name(policy.reduce_dtype) +
         "\noutput_dtype " + name(policy.output_dtype) + "\ncast_forward_inputs " +
         detail::text_of(policy.cast_forward_inputs) + "\n";
}

std::string table_of(const FullyShardOptions& options) {
  auto text = ramet::detail::classic<std::ostringstream>();
  const auto& reshard = options.reshard_after_forward;
  text << "average " << detail::text_of(options.average) << "\norder "
       << detail::text_of(options.order) << "\nreshard_after_forward "
       << (reshard ? detail::text_of(*reshard) : "by default") << "\ninit_sync "
       << detail::text_of(options.init_sync) << '\n'
       << text_of(options.mp_policy);
  return text.str();
}

// `checked` returns this rank's table, or throws if this rank cannot take part. Such an exception
// is an Error on all ranks, and so are tables that differ.
void check_same(const ShardLanes& lanes, const std::string& name,
                const std::function<std::string()>& checked) {
  std::string mine, problem;
  const auto compare = [&](ProcessGroup& group) {
    std::vector<std::string> all;
    try {
      all = detail::agree(group, kOp, name + "/parameters", {}, [&] {
        if (!problem.empty()) throw Error(problem);
        if (mine.empty()) mine = checked();
        return mine;
      });
    } catch (const CommError&) { throw; } catch (const Error& e) {
      problem = e.what();
    }
    for (size_t r = 0; r < all.size() && problem.empty(); ++r) {
      if (all[r] == mine) continue;
      auto ours = ramet::detail::classic<std::istringstream>(mine);
      auto theirs = ramet::detail::classic<std::istringstream>(all[r]);
      std::string a, b;
      while (a == b) {
        if (!std::getline(ours, a)) a = "nothing";
        if (!std::getline(theirs, b)) b = "nothing";
      }
      problem = ramet::detail::join(
          "[fully_shard] the ranks have different parameters or options: ", "rank ", group.rank(),
          " of '", group.name(), "' has ", a, " where rank ", r, " has ", b);
    }
  };
  compare(*lanes.gather);
  // If a row of the mesh has found an error, its columns see it here.
  if (lanes.outer) compare(*lanes.outer);
  if (!problem.empty()) throw Error(problem);
}

}  // namespace

void fully_shard(const std::vector<std::shared_ptr<nn::Module>>& modules, const DeviceMesh& mesh,
                 const FullyShardOptions& options) {
  capture::refuse(kOp, "parameters are moved");
  RAMET_CHECK(mesh.ndim() <= 2, kOp, "mesh: got ", mesh.str(),
              ", expected one dimension (shard) or two (replicate, shard)");
  ShardLanes lanes;
  lanes.gather = mesh.group(-1);
  if (mesh.ndim() == 2 && mesh.size(0) > 1) lanes.outer = mesh.group(0);
  Collector collector;
  check_same(lanes, options.name, [&] {
    RAMET_CHECK(!modules.empty(), kOp, "modules: got none");
    RAMET_CHECK(options.average != Average::weighted, kOp,
                "average: got weighted, expected mean or sum");
    RAMET_CHECK(!options.order.is_tree() || options.order.leaves() == lanes.ranks(), kOp,
                "order: got tree(", options.order.leaves(), "), expected tree(", lanes.ranks(),
                "): one leaf for each rank");
    for (const auto& module : modules) {
      RAMET_CHECK(module, kOp, "module: got an empty pointer");
      collector.add(*module, "");
    }
    for (const auto& child : collector.below)
      RAMET_CHECK(child->lanes.gather == lanes.gather && child->lanes.outer == lanes.outer, kOp,
                  "a module below is sharded over another mesh than ", mesh.str(),
                  ": expected one for the whole tree");
    check_one_device(collector);
    check_policy(options.mp_policy, collector);
    return table_of(options) + collector.table.str();
  });
  lanes.reduce = second_lane(lanes.gather);
  for (const auto& child : collector.below) child->context->settle();

  const auto group = ShardGroup::make(lanes, options, std::move(collector.found));
  group->context = std::make_shared<ShardContext>();
  for (const auto& child : collector.below) group->context->adopt(child->context);
  group->context->add(group.get());
  for (const auto& module : modules) {
    module->register_forward_scope(Gathered{group});
    add_casts(*module, options.mp_policy);
    module->register_forward_hook(mark);
    set_fully_sharded(*module, true);
  }
}

// ---- the handle ---------------------------------------------------------------------------------

FullyShardHandle::FullyShardHandle(std::shared_ptr<nn::Module> module)
    : module_(std::move(module)) {
  RAMET_CHECK(module_, "fully_shard_handle", "module: got an empty pointer");
  group_ = detail::shard_group_of(*module_);
  RAMET_CHECK(group_, "fully_shard_handle", "fully_shard was not called on ", module_->name());
}

template <class F> void FullyShardHandle::each(bool recurse, const F& f) const {
  const std::lock_guard lock(group_->context->mutex);
  f(*group_);
  if (!recurse) return;
  module_->apply([&](const nn::Module& m) {
    if (const auto group = detail::shard_group_of(m)) f(*group);
  });
}

ShardState FullyShardHandle::state() const {
  const std::lock_guard lock(group_->context->mutex);
  return group_->state();
}
int64_t FullyShardHandle::local_numel() const {
  int64_t n = 0;
  for (const auto& unit : group_->units)
    for (const auto& m : unit.members) n += m.shard.numel();
  return n;
}
void FullyShardHandle::set_requires_gradient_sync(bool on, bool recurse) const {
  each(recurse, [on](ShardGroup& g) { g.sync = on; });
}
void FullyShardHandle::set_requires_all_reduce(bool on, bool recurse) const {
  each(recurse, [on](ShardGroup& g) { g.all_reduce = on; });
}
void FullyShardHandle::set_reshard_after_forward(bool on, bool recurse) const {
  each(recurse, [on](ShardGroup& g) { g.reshard_after_forward = on; });
}
void FullyShardHandle::set_reshard_after_backward(bool on, bool recurse) const {
  each(recurse, [on](ShardGroup& g) { g.reshard_after_backward = on; });
}
void FullyShardHandle::set_unshard_in_backward(bool on) const {
  each(false, [on](ShardGroup& g) { g.unshard_in_backward = on; });
}
void FullyShardHandle::set_is_last_backward(bool on) const {
  const std::lock_guard lock(group_->context->mutex);
  group_->context->is_last_backward = on;
}
void FullyShardHandle::finalize_backward() const { group_->context->settle(); }

std::vector<ShardGroup*> FullyShardHandle::groups_of(
    const std::vector<FullyShardHandle>& modules) const {
  std::vector<ShardGroup*> groups;
  for (size_t i = 0; i < modules.size(); ++i) {
    const FullyShardHandle& h = modules[i];
    RAMET_CHECK(h.group_->context == group_->context, kOp, "modules to prefetch for ",
                module_->name(), ": at index ", i, " got ", h.module_->name(),
                " of another tree, expected modules below one that fully_shard was called on");
    groups.push_back(h.group_.get());
  }
  return groups;
}
void FullyShardHandle::set_modules_to_forward_prefetch(
    const std::vector<FullyShardHandle>& modules) const {
  const std::lock_guard lock(group_->context->mutex);
  group_->forward_prefetch = groups_of(modules);
}
void FullyShardHandle::set_modules_to_backward_prefetch(
    const std::vector<FullyShardHandle>& modules) const {
  const std::lock_guard lock(group_->context->mutex);
  group_->backward_prefetch = groups_of(modules);
}

void FullyShardHandle::unshard(bool async) const {
  each(false, [async](ShardGroup& g) {
    g.launch_gather();
    if (!async) g.finish_gather();
    g.held = true;
  });
}
void FullyShardHandle::reshard() const {
  each(false, [](ShardGroup& g) {
    RAMET_CHECK(g.uses == 0, "fully_shard", "reshard() in the middle of a forward of the module");
    g.held = false;
    g.reshard();
  });
}

}  // namespace ramet::distributed
