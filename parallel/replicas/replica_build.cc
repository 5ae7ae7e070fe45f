// The part of a ReplicaSet that runs once: checks, flat stores, buckets.
#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "autograd/grad_mode.h"
#include "autograd/ops/make/copy.h"
#include "nn/module/flat_store.h"
#include "parallel/move/bucket.h"
#include "parallel/move/counters.h"
#include "parallel/move/movement_internal.h"
#include "parallel/replicas/replica_build_internal.h"
#include "runtime/tensor/storage_ref.h"

using ramet::detail::tls;

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

void check_sealed_below(const Module& m, const std::string& name, const std::string* sealed_above) {
  RAMET_CHECK(!sealed_above || m.is_sealed(), "replicate",
              "Cannot replicate: ", shown_module(*sealed_above),
              " is sealed but contains non-sealed child '", name, "'");
  RAMET_CHECK(!m.is_sealed() || m.can_rebind(), "replicate",
              "Cannot replicate: ", shown_module(name), " is sealed and has no rebind()");
  const std::string* above = m.is_sealed() && !sealed_above ? &name : sealed_above;
  for (const auto& child : m.own_children())
    if (child.value()) check_sealed_below(*child.value(), full_name(name, child.key()), above);
}

// Concurrent data_parallel calls may make two sets of one module. Then the first one flattens the
// parameters, and the second finds them flat. Replicas of other modules may be made concurrently:
// clone() is user code, which may wait for anything, or make replicas of a part.
class BuildingAlone {
 public:
  explicit BuildingAlone(const Tree& modules) : modules_(modules) {
    All& all = being_built();
    std::unique_lock lock(all.mutex);
    const auto mine = std::this_thread::get_id();
    all.ended.wait(lock, [&] {
      return std::all_of(modules_.begin(), modules_.end(), [&](const auto& m) {
        const auto at = all.builders.find(m.second);
        return at == all.builders.end() || at->second.thread == mine;
      });
    });
    for (const auto& m : modules_) {
      Builder& b = all.builders[m.second];
      b.thread = mine;
      ++b.depth;
    }
  }
  ~BuildingAlone() {
    All& all = being_built();
    const std::lock_guard lock(all.mutex);
    for (const auto& m : modules_)
      if (const auto at = all.builders.find(m.second); --at->second.depth == 0)
        all.builders.erase(at);
    all.ended.notify_all();
  }
  BuildingAlone(const BuildingAlone&) = delete;

 private:
  struct Builder {
    std::thread::id thread;
    int depth = 0;
  };
  struct All {
    std::mutex mutex;
    std::condition_variable ended;
    std::map<const Module*, Builder> builders;
  };
  static All& being_built() {
    static auto* const all = new All;  // never destroyed: static objects may make replicas when the
                                       // program ends
    return *all;
  }
  const Tree& modules_;
};

}  // namespace

void check_sealed(const Module& source) { check_sealed_below(source, "", nullptr); }

ReplicaSet::ReplicaSet(std::shared_ptr<Module> source, std::vector<Device> devices,
                       const ReplicaOptions& options)
    : source_(std::move(source)),
      options_(options),
      hooks_(std::make_shared<ramet::parallel::ReduceHooks>()) {
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
  const Tree modules = named_tree(*source_);
  const BuildingAlone alone_here(modules);
  check_sealed(*source_);
  const ScopedValue<bool> training_tensors(tls.inference_mode, false);
  const NoGradGuard off;
  Build build(*this, modules);
  build.find_tensors();
  build.flatten_source();
  build.place_entries();
  build.plan_buckets();
  build.make_copies();
  build.note_modules();
  for (int i = 0; i < size(); ++i) build.add_replica(static_cast<uint32_t>(i));
  for (State::Snapshot& snap : build.s.modules)
    for (const Module* replica : snap.replicas) snap.replica_bytes.push_back(bytes_of(*replica));

  if (state_) {
    build.s.keep_states(*state_);
    moves::count(moves::Count::kRebuilds);
  }
  home_ = build.home;
  all_dirty_ = true;
  stale_ = false;
  state_ = std::move(build.made);
}

// Checks that all tensors are on one device.
void ReplicaSet::Build::locate(const Tensor& t, const std::string& name) {
  if (!first) first = &t, first_name = name;
  RAMET_CHECK(t.device() == first->device(), "replicate",
              "module must have its parameters and buffers on device ", first->device(), " ('",
              first_name, "') but found one of them on device: ", t.device(), " ('", name, "')");
}

void ReplicaSet::Build::add_entry(const std::string& name, const Tensor& t) {
  locate(t, name);
  if (!entry_of.emplace(t.impl(), s.entries.size()).second) return;
  State::Entry e;
  e.name = name;
  e.source = t;
  e.bytes = static_cast<int64_t>(t.nbytes());
  s.entries.push_back(std::move(e));
}

void ReplicaSet::Build::add_buffer(const std::string& name, const Tensor& t, BufferPolicy policy) {
  locate(t, name);
  buffer_of.emplace(t.impl(), s.buffers.size());
  State::Buffer b;
  b.name = name;
  b.source = t;
  b.policy = policy;
  RAMET_CHECK(policy != BufferPolicy::mean || t.is_floating_point(), "replicate", "buffer '", name,
              "' of policy mean: got ", describe(t), ", expected a floating point tensor");
  s.buffers.push_back(std::move(b));
}

// Finds the tensors that replicas must follow.
void ReplicaSet::Build::find_tensors() {
  for (const auto& [name, m] : ours)
    for (const auto& item : m->own_parameters())
      if (item.value().defined()) add_entry(full_name(name, item.key()), item.value());
  for (const auto& [name, m] : ours) {
    for (const auto& item : m->own_buffers()) {
      const Tensor& t = item.value();
      const BufferPolicy policy = m->buffer_policy(item.key());
      s.has_sync = s.has_sync || policy == BufferPolicy::sync;
      if (!t.defined() || entry_of.count(t.impl()) || buffer_of.count(t.impl())) continue;
      const std::string whole = full_name(name, item.key());
      if (autograd::wants_grad(t.impl())) add_entry(whole, t);
      else add_buffer(whole, t, policy);
    }
  }
  home = first ? first->device() : set.devices_[0];
}

void ReplicaSet::Build::flatten_source() const {
  if (set.options_.detach) return;
  std::vector<Tensor> parameters;
  for (const auto& [name, m] : ours)
    for (const auto& item : m->own_parameters())
      if (item.value().defined()) parameters.push_back(item.value());
  flatten_parameters(parameters);
}

// Assigns places in the flat stores: one dtype after the other, in the order of the source's own
// stores.
void ReplicaSet::Build::place_entries() {
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
}

// From the last parameter backwards: the order in which gradients come.
void ReplicaSet::Build::plan_buckets() {
  std::vector<BucketItem> items;
  for (size_t u = s.entries.size(); u-- > 0;)
    items.push_back({flat_padded(s.entries[u].bytes), s.entries[u].source.scalar_type()});
  for (const auto& group : ramet::parallel::plan_buckets(items, set.options_.bucket_bytes)) {
    s.buckets.push_back(std::make_unique<GradBucket>(set.size(), set.options_.order));
    s.members.emplace_back();
    for (size_t k : group) s.members.back().push_back(s.entries.size() - 1 - k);
    std::reverse(s.members.back().begin(), s.members.back().end());
    for (size_t u : s.members.back()) s.entries[u].bucket = s.members.size() - 1;
  }
}

// Makes one copy of the parameters on every device but the source's.
void ReplicaSet::Build::make_copies() {
  for (Device d : set.devices_)
    if (d != home && away_index(d) == s.away.size()) s.away.push_back(d);
  for (Device d : s.away) {
    s.flat.push_back(moves::flat_memory(s.flat_bytes, d));
    autograd::fill_values(s.flat.back(), 0);  // gaps are copied too
  }
  for (auto& e : s.entries) {
    StorageImpl* own = e.source.storage_impl();
    for (const Tensor& flat : s.flat)
      e.copies.push_back(
          Tensor(member_of(flat, e.offset, e.source.sizes(), e.strides, e.source.scalar_type(),
                           own->version_of ? own->version_of : own)));
    e.seen = State::Seen::of(e.source);
  }
}

// Records what structure_changed() compares with.
void ReplicaSet::Build::note_modules() {
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
}

}  // namespace parallel
}  // namespace nn
}  // namespace ramet
