// The part of a ReplicaSet that runs once: checks, flat stores, shells.
#include <algorithm>
#include <mutex>
#include <set>
#include <typeinfo>

#include "autograd/grad_mode.h"
#include "autograd/ops/copy.h"
#include "nn/module/flat_store.h"
#include "parallel/move/bucket.h"
#include "parallel/move/counters.h"
#include "parallel/move/movement.h"
#include "parallel/replicas/buffer_page.h"
#include "parallel/replicas/lost_members_internal.h"
#include "parallel/replicas/replica_state.h"
#include "runtime/generator.h"
#include "runtime/storage_ref.h"

namespace ramet {
namespace nn {
namespace parallel {

using ramet::parallel::BucketItem;
using ramet::parallel::kMaxLeaves;
namespace moves = ramet::parallel::detail;

ReplicaSet::State::~State() {
  for (Entry& e : entries) {
    if (!e.node) continue;
    e.node->leave_bucket();  // a graph may outlive the set
    autograd::release(e.node);
  }
}

std::string full_name(const std::string& module, const std::string& member) {
  return module.empty() ? member : module + "." + member;
}

std::vector<std::pair<std::string, Module*>> named_tree(const Module& root) {
  std::vector<std::pair<std::string, Module*>> out = {{"", const_cast<Module*>(&root)}};
  root.apply(Module::ConstNamedModuleApplyFunction([&](const std::string& name, const Module& m) {
    if (&m != &root || !name.empty()) out.emplace_back(name, const_cast<Module*>(&m));
  }));
  return out;
}

namespace {

std::string shown(const std::string& module) {
  return module.empty() ? "the module" : "'" + module + "'";
}

void check_sealed_below(const Module& m, const std::string& name, const std::string* sealed_above) {
  RAMET_CHECK(!sealed_above || m.is_sealed(), "replicate",
              "Cannot replicate: ", shown(*sealed_above),
              " is sealed but contains non-sealed child '", name, "'");
  RAMET_CHECK(!m.is_sealed() || m.can_rebind(), "replicate", "Cannot replicate: ", shown(name),
              " is sealed and has no rebind()");
  const std::string* above = m.is_sealed() && !sealed_above ? &name : sealed_above;
  for (const auto& child : m.own_children())
    if (child.value()) check_sealed_below(*child.value(), full_name(name, child.key()), above);
}

// reset() of a module draws random numbers; replication must not be seen in any generator.
class GeneratorsKept {
 public:
  GeneratorsKept() = default;
  ~GeneratorsKept() { set_generator_states(states_); }

 private:
  const std::vector<GeneratorState> states_ = generator_states();
  ReplicaRandomGuard outside_{ReplicaRandomRef()};
};

// Where a clone differs from its source, so that tensors could not be matched by name.
void check_same_registry(const char* what, const std::string& module,
                         const OrderedDict<std::string, Tensor>& ours,
                         const OrderedDict<std::string, Tensor>& theirs) {
  RAMET_CHECK(ours.size() == theirs.size(), "replicate", what, "s of ", shown(module),
              ": its clone has ", theirs.size(), ", expected ", ours.size());
  for (size_t i = 0; i < ours.size(); ++i) {
    const Tensor &a = ours[i].value(), &b = theirs[i].value();
    RAMET_CHECK(ours[i].key() == theirs[i].key() && a.defined() == b.defined(), "replicate", what,
                " '", full_name(module, ours[i].key()), "': its clone has '",
                full_name(module, theirs[i].key()), "', ", describe(b));
    if (!a.defined()) continue;
    RAMET_CHECK(same_sizes(a, b) && a.scalar_type() == b.scalar_type(), "replicate", what, " '",
                full_name(module, ours[i].key()), "': its clone has ", describe(b), ", expected ",
                describe(a));
    RAMET_CHECK(!a.is_same(b), "replicate", what, " '", full_name(module, ours[i].key()),
                "': its clone holds the original tensor");
  }
}

}  // namespace

void check_sealed(const Module& source) { check_sealed_below(source, "", nullptr); }

ReplicaSet::ReplicaSet(std::shared_ptr<Module> source, std::vector<Device> devices,
                       const ReplicaOptions& options)
    : source_(std::move(source)), options_(options) {
  RAMET_CHECK(source_, "replicate", "module: got an empty pointer");
  RAMET_CHECK(!devices.empty(), "replicate", "at least one device is required");
  for (Device d : devices) devices_.push_back(resolve(d));
  const int n = static_cast<int>(devices_.size()),
            v = options.order.is_tree() ? options.order.leaves() : n;
  RAMET_CHECK(v <= kMaxLeaves, "replicate", "replicas: got ", v, ", expected at most ", kMaxLeaves);
  RAMET_CHECK(v % n == 0, "replicate", "tree(V): got V = ", v, " and ", n,
              " devices, expected a number of devices that divides V");
  for (int i = 0; i < v; ++i) device_of_.push_back(devices_[static_cast<size_t>(i / (v / n))]);
  build();
}

ReplicaSet::~ReplicaSet() = default;

void ReplicaSet::hold_source(bool on) {
  Module* m = source_.get();
  source_ = on ? m->shared_from_this() : std::shared_ptr<Module>(std::shared_ptr<Module>(), m);
}

const std::shared_ptr<Module>& ReplicaSet::shell(int replica) const {
  RAMET_CHECK(replica >= 0 && replica < size(), "ReplicaSet", "replica: got ", replica,
              ", expected 0 to ", size() - 1);
  return state_->shells[static_cast<size_t>(replica)];
}

const std::vector<std::unique_ptr<GradBucket>>& ReplicaSet::buckets() const {
  return state_->buckets;
}

namespace {

std::vector<char> bytes_of(const Module& m) {
  const auto [bytes, size] = m.own_bytes();
  const char* p = static_cast<const char*>(bytes);
  return p ? std::vector<char>(p, p + size) : std::vector<char>();
}

}  // namespace

void ReplicaSet::build() {
  const ScopedValue<uint8_t> apart(tls.capturing, 0);  // made once, not at each replay
  // Two sets of one module may be made at the same time, by concurrent data_parallel calls: the
  // first one flattens the parameters, the second finds them so. Recursive, because clone() is the
  // user's code.
  static std::recursive_mutex one_at_a_time;
  const std::lock_guard<std::recursive_mutex> lock(one_at_a_time);
  check_sealed(*source_);
  ScopedValue<bool> training_tensors(tls.inference_mode, false);
  const NoGradGuard off;
  auto made = std::make_unique<State>();
  State& s = *made;
  const auto ours = named_tree(*source_);

  // What there is to follow.
  std::map<const TensorImpl*, size_t> entry_of, buffer_of;
  std::vector<Tensor> parameters;
  const Tensor* first = nullptr;
  std::string first_name;
  auto locate = [&](const Tensor& t, const std::string& name) {
    if (!first) first = &t, first_name = name;
    RAMET_CHECK(t.device() == first->device(), "replicate",
                "module must have its parameters and buffers on device ", first->device(), " ('",
                first_name, "') but found one of them on device: ", t.device(), " ('", name, "')");
  };
  auto add_entry = [&](const std::string& name, const Tensor& t) {
    locate(t, name);
    if (!entry_of.emplace(t.impl(), s.entries.size()).second) return;
    State::Entry e;
    e.name = name;
    e.source = t;
    e.bytes = static_cast<int64_t>(t.nbytes());
    s.entries.push_back(std::move(e));
  };
  for (const auto& [name, m] : ours) {
    for (const auto& item : m->own_parameters()) {
      if (!item.value().defined()) continue;
      add_entry(full_name(name, item.key()), item.value());
      parameters.push_back(item.value());
    }
  }
  for (const auto& [name, m] : ours) {
    for (const auto& item : m->own_buffers()) {
      const Tensor& t = item.value();
      s.has_sync = s.has_sync || m->buffer_policy(item.key()) == BufferPolicy::sync;
      if (!t.defined() || entry_of.count(t.impl()) || buffer_of.count(t.impl())) continue;
      const std::string whole = full_name(name, item.key());
      if (autograd::wants_grad(t.impl())) {
        add_entry(whole, t);
        continue;
      }
      locate(t, whole);
      buffer_of.emplace(t.impl(), s.buffers.size());
      State::Buffer b;
      b.name = whole;
      b.source = t;
      b.policy = m->buffer_policy(item.key());
      RAMET_CHECK(b.policy != BufferPolicy::mean || t.is_floating_point(), "replicate", "buffer '",
                  whole, "' of policy mean: got ", describe(t),
                  ", expected a floating point tensor");
      s.buffers.push_back(std::move(b));
    }
  }
  home_ = first ? first->device() : devices_[0];
  if (!options_.detach) flatten_parameters(parameters);

  // Places in the flat stores: one dtype after the other, in the order in which the source's own
  // stores have them.
  std::vector<ScalarType> dtypes;
  for (const auto& e : s.entries)
    if (std::find(dtypes.begin(), dtypes.end(), e.source.scalar_type()) == dtypes.end())
      dtypes.push_back(e.source.scalar_type());
  for (ScalarType dtype : dtypes) {
    for (auto& e : s.entries) {
      if (e.source.scalar_type() != dtype) continue;
      e.offset = s.flat_bytes;
      e.strides = moves::strides_in_layout_of(e.source, e.source.sizes());
      s.flat_bytes += flat_padded(e.bytes);
    }
  }
  // Buckets from the last parameter backwards: the order in which gradients come.
  std::vector<BucketItem> items;
  for (size_t u = s.entries.size(); u-- > 0;)
    items.push_back({flat_padded(s.entries[u].bytes), s.entries[u].source.scalar_type()});
  for (const auto& group : ramet::parallel::plan_buckets(items, options_.bucket_bytes)) {
    s.buckets.push_back(std::make_unique<GradBucket>(size(), options_.order));
    s.members.emplace_back();
    for (size_t k : group) s.members.back().push_back(s.entries.size() - 1 - k);
    std::reverse(s.members.back().begin(), s.members.back().end());
    for (size_t u : s.members.back()) s.entries[u].bucket = s.members.size() - 1;
  }

  // One copy of the parameters on every device but the source's.
  for (Device d : devices_)
    if (d != home_ && std::find(s.away.begin(), s.away.end(), d) == s.away.end())
      s.away.push_back(d);
  for (Device d : s.away) {
    s.flat.push_back(moves::flat_memory(s.flat_bytes, d));
    autograd::fill_values(s.flat.back(), 0);  // the gaps travel along
  }
  for (auto& e : s.entries) {
    Storage* own = e.source.storage_impl();
    for (const Tensor& flat : s.flat)
      e.copies.push_back(
          Tensor(member_of(flat, e.offset, e.source.sizes(), e.strides, e.source.scalar_type(),
                           own->version_of ? own->version_of : own)));
    e.seen = State::Seen::of(e.source);
  }

  for (const auto& [name, m] : ours) {
    State::Snapshot snap;
    snap.name = name;
    snap.module = m;
    snap.alive = std::as_const(*m).weak_from_this();
    snap.owned = !snap.alive.expired();
    snap.bytes = bytes_of(*m);
    snap.states = State::states_of(*m);
    snap.of_replicas.resize(snap.states.size());
    for (const auto* registry : {&m->own_parameters(), &m->own_buffers()}) {
      for (const auto& item : *registry) {
        const Tensor& t = item.value();
        snap.tensors.emplace_back(t.impl(), t.defined() && registry == &m->own_buffers() &&
                                                autograd::wants_grad(t.impl()));
        snap.sizes.push_back(t.defined() ? t.sizes().vec() : std::vector<int64_t>{});
        snap.dtypes.push_back(t.defined() ? t.scalar_type() : ScalarType::Undefined);
      }
    }
    for (const auto& child : m->own_children()) snap.children.push_back(child.value());
    s.modules.push_back(std::move(snap));
  }

  for (int i = 0; i < size(); ++i) {
    const Device device = device_of_[static_cast<size_t>(i)];
    const size_t away =
        static_cast<size_t>(std::find(s.away.begin(), s.away.end(), device) - s.away.begin());
    std::shared_ptr<Module> shell;
    {
      const GeneratorsKept kept;
      shell = source_->clone(device);
    }
    RAMET_CHECK(shell && shell != source_, "replicate", "clone() of the module: got ",
                shell ? "the module itself" : "an empty pointer", ", expected a copy");
    const auto theirs = named_tree(*shell);
    for (size_t m = 0; m < std::max(ours.size(), theirs.size()); ++m) {
      const bool both = m < ours.size() && m < theirs.size();
      RAMET_CHECK(both && ours[m].first == theirs[m].first, "replicate",
                  "child modules: the clone has ",
                  m < theirs.size() ? shown(theirs[m].first) : "nothing", " where the module has ",
                  m < ours.size() ? shown(ours[m].first) : "nothing");
      const Module &a = *ours[m].second, &b = *theirs[m].second;
      RAMET_CHECK(typeid(a) == typeid(b), "replicate", "clone() of ", shown(ours[m].first),
                  " is of another type: got ", b.name(), ", expected ", a.name());
      check_same_registry("parameter", ours[m].first, a.own_parameters(), b.own_parameters());
      check_same_registry("buffer", ours[m].first, a.own_buffers(), b.own_buffers());
    }
    for (size_t m = 0; m < ours.size(); ++m) {
      auto adopt = [&](const OrderedDict<std::string, Tensor>& from,
                       const OrderedDict<std::string, Tensor>& to) {
        for (size_t k = 0; k < from.size(); ++k) {
          const Tensor& source = from[k].value();
          if (!source.defined()) continue;
          const Tensor handle = to[k].value();
          AutogradSlot::release(std::exchange(handle->node, nullptr));
          handle->set(TensorImpl::kRequiresGrad, false);
          if (const auto at = entry_of.find(source.impl()); at != entry_of.end()) {
            State::Entry& e = s.entries[at->second];
            handle->set(TensorImpl::kReplica, true);
            handle.set_data(device == home_ ? e.source : e.copies[away]);
            e.handles.push_back({handle, static_cast<uint32_t>(i)});
            continue;
          }
          State::Buffer& b = s.buffers[buffer_of.at(source.impl())];
          if (b.handles.size() > static_cast<size_t>(i)) {  // a second name
            handle.set_data(b.handles.back());
            if (!handle.is_same(b.handles.back())) b.ties.back().push_back(handle);
            if (b.paged()) moves::keep_pages(handle);
            continue;
          }
          if (i == 0)
            b.shares = device == home_ && b.policy != BufferPolicy::merge_stats &&
                       b.policy != BufferPolicy::per_replica;
          if (i == 0 && b.shares) handle.set_data(source);
          if (b.paged()) moves::keep_pages(handle);
          b.handles.push_back(handle);
          b.ties.emplace_back();
          b.versions.push_back(handle.version());
          b.seen = State::Seen::of(source);
        }
      };
      adopt(ours[m].second->own_parameters(), theirs[m].second->own_parameters());
      adopt(ours[m].second->own_buffers(), theirs[m].second->own_buffers());
      theirs[m].second->set_replica(true);
      s.modules[m].replicas.push_back(theirs[m].second);
      State::find_states(s.modules[m]);
    }
    std::set<const TensorImpl*> registered;  // in the clone
    for (const auto& named : theirs)
      for (const auto* registry : {&named.second->own_parameters(), &named.second->own_buffers()})
        for (const auto& item : *registry)
          if (item.value().defined()) registered.insert(item.value().impl());
    for (size_t m = 0; m < ours.size(); ++m) {
      check_members(shown(ours[m].first), *ours[m].second, *theirs[m].second,
                    [&](TensorImpl* x, TensorImpl* y) -> const std::string* {
                      const auto at = entry_of.find(x);
                      // A word that is no handle may look like one: padding holds what was
                      // there before. The clone's has to be the same handle, or one of its own.
                      if (at == entry_of.end() || (x != y && !registered.count(y))) return nullptr;
                      const State::Entry& e = s.entries[at->second];
                      for (const auto& h : e.handles)
                        if (h.tensor.impl() == y) return nullptr;
                      return &e.name;
                    });
      if (!theirs[m].second->is_sealed()) continue;
      std::vector<Tensor> own;
      for (const auto& item : theirs[m].second->named_parameters()) own.push_back(item.value());
      theirs[m].second->rebind(own);
    }
    s.shells.push_back(std::move(shell));
  }
  for (State::Snapshot& snap : s.modules)
    for (const Module* replica : snap.replicas) snap.replica_bytes.push_back(bytes_of(*replica));

  if (state_) {
    s.keep_states(*state_);
    moves::count(moves::Count::kRebuilds);
  }
  all_dirty_ = true;
  stale_ = false;
  state_ = std::move(made);
}

}  // namespace parallel
}  // namespace nn
}  // namespace ramet
