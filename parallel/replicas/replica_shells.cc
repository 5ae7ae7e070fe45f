// A ReplicaSet's replica modules: clones of the module with the tensors of their devices.
#include <algorithm>
#include <typeinfo>

#include "parallel/replicas/buffer_page_internal.h"
#include "parallel/replicas/lost_members_internal.h"
#include "parallel/replicas/replica_build_internal.h"
#include "runtime/devices/draw_record.h"
#include "runtime/devices/generator.h"

namespace ramet::nn::parallel {

namespace moves = ramet::parallel::detail;

namespace {

// reset() of a module draws random numbers, but replication must not change any generator. While
// this object exists, draws of the calling thread are numbered like the default generator's next
// ones, and do not advance it. If reset() seeds a generator, the destructor restores it.
class DrawsApart {
 public:
  DrawsApart() = default;
  ~DrawsApart() {
    std::vector<GeneratorState> now = generator_states();
    bool seeded = false;
    for (size_t d = 0; d < now.size(); ++d) {
      // Draws of other threads since then stay. LibTorch's numbers have no count of them.
      const bool drawn = now[d].seed == before_[d].seed && now[d].offset >= before_[d].offset;
      if (now[d].mersenne || before_[d].mersenne ? now[d] == before_[d] : drawn) continue;
      now[d] = before_[d];
      seeded = true;
    }
    if (seeded) set_generator_states(now);
  }

 private:
  static ReplicaRandomRef numbers() {
    const GeneratorState s = default_generator(kCPU).get_state();
    return ReplicaRandomRef(new ReplicaRandom(ShardNumbers{s.seed, s.offset, 0, -1, 0}));
  }
  const std::vector<GeneratorState> before_ = generator_states();
  const ReplicaRandomGuard apart_{numbers()};
  const DrawRecordPause unrecorded_;  // the second run of a checkpoint makes no replicas
};

// Checks whether a clone differs from its source, so that tensors could not be matched by name.
void check_same_registry(const char* what, const std::string& module,
                         const OrderedDict<std::string, Tensor>& ours,
                         const OrderedDict<std::string, Tensor>& theirs) {
  RAMET_CHECK(ours.size() == theirs.size(), "replicate", what, "s of ", shown_module(module),
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

// Makes replica number `replica`: a clone with the tensors of its device.
void ReplicaSet::Build::add_replica(uint32_t replica) {
  const std::shared_ptr<Module>& source = set.source_;
  std::shared_ptr<Module> shell;
  {
    const DrawsApart draws;
    shell = source->clone(set.device_of_[replica]);
  }
  RAMET_CHECK(shell && shell != source, "replicate", "clone() of the module: got ",
              shell ? "the module itself" : "an empty pointer", ", expected a copy");
  const Tree theirs = named_tree(*shell);
  check_clone(theirs);
  for (size_t m = 0; m < ours.size(); ++m) {
    const auto adopt_all = [&](const OrderedDict<std::string, Tensor>& from,
                               const OrderedDict<std::string, Tensor>& to) {
      for (size_t k = 0; k < from.size(); ++k)
        if (from[k].value().defined()) adopt(from[k].value(), to[k].value(), replica);
    };
    adopt_all(ours[m].second->own_parameters(), theirs[m].second->own_parameters());
    adopt_all(ours[m].second->own_buffers(), theirs[m].second->own_buffers());
    theirs[m].second->set_replica(true);
    s.modules[m].replicas.push_back(theirs[m].second);
    State::find_states(s.modules[m]);
  }
  check_no_member_lost(theirs, replica);
  for (const auto& [name, m] : theirs) {
    if (!m->is_sealed()) continue;
    std::vector<Tensor> own;
    for (const auto& item : m->named_parameters()) own.push_back(item.value());
    m->rebind(own);
  }
  s.shells.push_back(std::move(shell));
}

// Checks that its modules and registries are the source's.
void ReplicaSet::Build::check_clone(const Tree& theirs) const {
  for (size_t m = 0; m < std::max(ours.size(), theirs.size()); ++m) {
    const bool both = m < ours.size() && m < theirs.size();
    RAMET_CHECK(
        both && ours[m].first == theirs[m].first, "replicate", "child modules: the clone has ",
        m < theirs.size() ? shown_module(theirs[m].first) : "nothing", " where the module has ",
        m < ours.size() ? shown_module(ours[m].first) : "nothing");
    const Module &a = *ours[m].second, &b = *theirs[m].second;
    RAMET_CHECK(typeid(a) == typeid(b), "replicate", "clone() of ", shown_module(ours[m].first),
                " is of another type: got ", b.name(), ", expected ", a.name());
    check_same_registry("parameter", ours[m].first, a.own_parameters(), b.own_parameters());
    check_same_registry("buffer", ours[m].first, a.own_buffers(), b.own_buffers());
  }
}

// Makes the replica's `handle` a copy of the source's tensor.
void ReplicaSet::Build::adopt(const Tensor& source, const Tensor& handle, uint32_t replica) {
  const Device device = set.device_of_[replica];
  AutogradSlot::release(std::exchange(handle->node, nullptr));
  handle->set(TensorImpl::kRequiresGrad, false);
  if (const auto at = entry_of.find(source.impl()); at != entry_of.end()) {
    State::Entry& e = s.entries[at->second];
    handle->set(TensorImpl::kReplica, true);
    handle.set_data(device == home ? e.source : e.copies[away_index(device)]);
    e.handles.push_back({handle, replica});
    return;
  }
  State::Buffer& b = s.buffers[buffer_of.at(source.impl())];
  if (b.handles.size() > replica) {  // a second name of the buffer
    handle.set_data(b.handles.back());
    if (!handle.is_same(b.handles.back())) b.ties.back().push_back(handle);
    if (b.paged()) moves::keep_pages(handle);
    return;
  }
  if (replica == 0)
    b.shares = device == home && b.policy != BufferPolicy::merge_stats &&
               b.policy != BufferPolicy::per_replica;
  if (replica == 0 && b.shares) handle.set_data(source);
  if (b.paged()) moves::keep_pages(handle);
  b.handles.push_back(handle);
  b.ties.emplace_back();
  b.versions.push_back(handle.version());
  b.seen = State::Seen::of(source);
}

void ReplicaSet::Build::check_no_member_lost(const Tree& theirs, uint32_t replica) const {
  std::vector<std::string> names;
  std::vector<const Module*> sources, clones;
  for (size_t m = 0; m < ours.size(); ++m) {
    names.push_back(shown_module(ours[m].first));
    sources.push_back(ours[m].second);
    clones.push_back(theirs[m].second);
  }
  std::vector<Kept> parameters;
  for (const State::Entry& e : s.entries) {
    parameters.push_back({&e.name, {}, {}});
    for (const State::Handle& h : e.handles)
      if (h.replica == replica) parameters.back().theirs.push_back(h.tensor.impl());
  }
  for (const auto& [tensor, entry] : entry_of) parameters[entry].ours.push_back(tensor);
  check_members(names, sources, clones, parameters);
}

}  // namespace ramet::nn::parallel
