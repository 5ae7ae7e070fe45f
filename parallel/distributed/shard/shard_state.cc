// State and norms of modules that are spread over ranks.
#include <algorithm>
#include <cmath>
#include <map>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "parallel/distributed/shard/shard_context_internal.h"
#include "parallel/distributed/shard/tensor_parallel.h"
#include "runtime/capture/capture.h"

namespace ramet::distributed {

using detail::ShardGroup;

namespace {

// One registered parameter or buffer, and how it is spread.
struct Entry {
  std::string name;
  Tensor local;                 // the registered tensor
  std::vector<int64_t> sizes;   // of the whole tensor
  std::vector<int64_t> sliced;  // of this rank's slice, before it was sharded
  int64_t dim = -1;             // the cut dimension, for tensor parallelism
  std::shared_ptr<ProcessGroup> slices;
  ShardGroup* group = nullptr;  // for fully_shard
  size_t unit = 0, member = 0;
  bool buffer = false;

  ShardGroup::Unit& of() const { return group->units[unit]; }
};

int64_t product(const std::vector<int64_t>& sizes, size_t from, size_t to) {
  int64_t n = 1;
  for (size_t i = from; i < to; ++i) n *= sizes[i];
  return n;
}

std::vector<Entry> entries_of(const nn::Module& module) {
  struct At {
    ShardGroup* group;
    size_t unit, member;
  };
  std::map<std::pair<const nn::Module*, std::string>, At> sharded;
  std::vector<std::pair<std::string, const nn::Module*>> tree;
  module.apply(nn::Module::ConstNamedModuleApplyFunction(
      [&](const std::string& path, const nn::Module& m) { tree.emplace_back(path, &m); }));
  for (const auto& [path, m] : tree) {
    const auto group = detail::shard_group_of(*m);
    for (size_t u = 0; group && u < group->units.size(); ++u)
      for (size_t i = 0; i < group->units[u].members.size(); ++i)
        for (const auto& place : group->units[u].members[i].places)
          sharded[place] = {group.get(), u, i};
  }
  std::vector<Entry> out, buffers;
  for (const auto& [path, m] : tree) {
    const std::string prefix = path.empty() ? "" : path + ".";
    const auto* spread = dynamic_cast<const TensorParallel*>(m);
    for (const auto& item : m->own_parameters()) {
      if (!item.value().defined()) continue;
      Entry e;
      e.name = prefix + item.key();
      e.local = item.value();
      const auto at = sharded.find({m, item.key()});
      RAMET_CHECK(at != sharded.end() || !m->holds_shards(), "tensor_parts", "parameter '", e.name,
                  "' belongs to a group of a module above: expected that module, or the whole one");
      if (at != sharded.end()) {
        e.group = at->second.group;
        e.unit = at->second.unit;
        e.member = at->second.member;
        e.sliced = e.of().members[e.member].full.sizes().vec();
      } else {
        e.sliced = e.local.sizes().vec();
      }
      e.sizes = e.sliced;
      if (spread && spread->cut_dim(item.key()) >= 0) {
        e.dim = spread->cut_dim(item.key());
        e.slices = spread->group();
        e.sizes[static_cast<size_t>(e.dim)] *= e.slices->size();
      }
      out.push_back(std::move(e));
    }
    for (const auto& item : m->own_buffers()) {
      if (!item.value().defined()) continue;
      Entry e;
      e.name = prefix + item.key();
      e.local = item.value();
      e.sizes = e.sliced = e.local.sizes().vec();
      e.buffer = true;
      buffers.push_back(std::move(e));
    }
  }
  out.insert(out.end(), buffers.begin(), buffers.end());
  return out;
}

// All values of a group's unit, flat.
Tensor gathered(const ShardGroup& group, const ShardGroup::Unit& unit) {
  const Tensor flat = empty({unit.layout.total()}, TensorOptions(unit.device).dtype(unit.dtype));
  group.gather(unit, flat, "full state").wait();
  return flat;
}

}  // namespace

std::vector<TensorPart> tensor_parts(const nn::Module& module) {
  std::vector<TensorPart> out;
  for (const Entry& e : entries_of(module)) {
    TensorPart part{e.name, e.sizes, {}, e.local};
    if (e.dim >= 0) {
      const auto d = static_cast<size_t>(e.dim);
      const int64_t length = e.sliced[d];
      part.cuts.push_back({product(e.sizes, 0, d), e.sizes[d],
                           product(e.sizes, d + 1, e.sizes.size()), length * e.slices->rank(),
                           length});
    }
    if (e.group) {
      const auto range = e.of().layout.part(e.member, e.group->lanes.gather->rank());
      part.cuts.push_back({1, e.of().layout.numel(e.member), 1, range.begin, range.length});
    }
    out.push_back(std::move(part));
  }
  return out;
}

OrderedDict<std::string, Tensor> full_state_dict(const nn::Module& module) {
  const NoGradGuard off;
  OrderedDict<std::string, Tensor> out;
  std::map<const ShardGroup::Unit*, Tensor> flat;
  for (const Entry& e : entries_of(module)) {
    Tensor t;
    if (e.group) {
      const ShardGroup::Unit& unit = e.of();
      Tensor& all = flat[&unit];
      if (!all.defined()) all = gathered(*e.group, unit);
      const int64_t at = unit.layout.offset(e.member);
      t = all.slice(0, at, at + unit.layout.numel(e.member)).view(e.sliced).clone();
    } else {
      t = e.local.detach().clone();
    }
    if (e.dim >= 0) t = gather_from_group(t, e.slices, e.dim);
    out.insert(e.name, std::move(t));
  }
  return out;
}

void load_full_state_dict(const nn::Module& module, const OrderedDict<std::string, Tensor>& state) {
  constexpr const char* op = "load_full_state_dict";
  const NoGradGuard off;
  const std::vector<Entry> entries = entries_of(module);
  for (const Entry& e : entries) {
    const Tensor* t = state.find(e.name);
    RAMET_CHECK(t && t->defined(), op, "'", e.name, "' is missing");
    RAMET_CHECK(t->sizes() == IntArrayRef(e.sizes), op, "'", e.name, "': got ", describe(*t),
                ", expected the sizes ", IntArrayRef(e.sizes));
  }
  for (const auto& item : state)
    RAMET_CHECK(std::ranges::find(entries, item.key(), &Entry::name) != entries.end(), op, "'",
                item.key(), "' is unknown to the module");
  for (const Entry& e : entries) {
    Tensor t = state[e.name].detach();
    if (e.dim >= 0) {
      const int64_t length = e.sliced[static_cast<size_t>(e.dim)];
      t = t.slice(e.dim, length * e.slices->rank(), length * (e.slices->rank() + 1));
    }
    if (e.group) {
      const auto range = e.of().layout.part(e.member, e.group->lanes.gather->rank());
      t = t.reshape({-1}).slice(0, range.begin, range.begin + range.length);
    }
    if (e.local.numel()) e.local.detach().copy_(t);
  }
}

void share_found_inf(optim::GradScaler& scaler, const nn::Module& module) {
  std::vector<std::shared_ptr<ProcessGroup>> groups;
  for (const Entry& e : entries_of(module))
    for (const auto& group : {e.group ? e.group->lanes.gather : nullptr, e.slices})
      if (group && std::ranges::find(groups, group) == groups.end()) groups.push_back(group);
  RAMET_CHECK(
      !groups.empty(), "share_found_inf",
      "the module: got one of which every rank has all parameters, expected parameters that "
      "fully_shard or tensor parallel layers spread over ranks");
  scaler.add_found_inf_reduction([groups](const Tensor& found) {
    CollectiveOptions o("share_found_inf");
    o.op = ReduceOp::max;
    for (const auto& group : groups) group->all_reduce(found, o).wait();
  });
}

Tensor get_total_norm(const nn::Module& module, double norm_type, bool error_if_nonfinite) {
  constexpr const char* op = "get_total_norm";
  RAMET_CHECK(norm_type > 0, op, "norm_type: got ", norm_type, ", expected more than 0");
  const NoGradGuard off;
  const bool infinite = std::isinf(norm_type);
  // Groups of parameters that are spread in the same way, in order of first appearance: the same on
  // all ranks.
  struct Alike {
    std::shared_ptr<ProcessGroup> shards, slices;
    Device device;
    std::vector<Tensor> gradients;
  };
  std::vector<Alike> all;
  std::map<const TensorImpl*, bool> seen;
  for (const Entry& e : entries_of(module)) {
    if (e.group) e.group->context->settle();
    if (e.buffer || !seen.emplace(e.local.impl(), true).second) continue;
    const auto shards = e.group ? e.group->lanes.gather : nullptr;
    auto at = std::ranges::find_if(
        all, [&](const Alike& a) { return a.shards == shards && a.slices == e.slices; });
    if (at == all.end()) at = all.insert(at, {shards, e.slices, e.local.device(), {}});
    if (e.local.grad().defined()) at->gradients.push_back(e.local.grad());
  }
  Tensor total =
      zeros({}, TensorOptions(kDouble).device(all.empty() ? Device(kCPU, 0) : all[0].device));
  for (const Alike& a : all) {
    Tensor part = nn::utils::get_total_norm(a.gradients, norm_type).to(a.device);
    if (!infinite) part = part.pow(norm_type);
    CollectiveOptions o(op);
    o.op = infinite ? ReduceOp::max : ReduceOp::sum;
    for (const auto& group : {a.shards, a.slices})
      if (group) group->all_reduce(part, o).wait();
    part = part.to(total.device());
    total = infinite ? maximum(total, part) : total + part;
  }
  if (!infinite) total = total.pow(1 / norm_type);
  if (error_if_nonfinite)
    RAMET_CHECK(
        std::isfinite(total.item<double>()), "clip_grad_norm_", "The total norm of order ",
        norm_type,
        " for gradients from `parameters` is non-finite, so it cannot be clipped. To disable "
        "this error and scale the gradients with the non-finite norm anyway, set "
        "`error_if_nonfinite=false`");
  return total;
}

double clip_grad_norm_(const nn::Module& module, double max_norm, double norm_type,
                       bool error_if_nonfinite) {
  capture::refuse("clip_grad_norm_",
                  "the host reads the norm; get_total_norm and clip_grads_with_norm_ leave it on "
                  "the device");
  const Tensor norm = get_total_norm(module, norm_type, error_if_nonfinite);
  nn::utils::clip_grads_with_norm_(module.parameters(), max_norm, norm);
  return norm.item<double>();  // the scaling is queued by now
}

}  // namespace ramet::distributed
