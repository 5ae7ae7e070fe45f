#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

#include "runtime/base/thread_pool.h"
#include "runtime/capture/capture.h"
#include "runtime/capture/capture_regions_internal.h"
#include "runtime/capture/program_internal.h"
#include "runtime/observe/observer_internal.h"

using ramet::detail::tls;

namespace ramet {
namespace capture {
namespace {

std::mutex& one_at_a_time() {  // never destroyed: static destructors may run operations
  static auto* m = new std::mutex;
  return *m;
}
// The capture that is being made. Only the threads that make it read this.
Program* current = nullptr;
// Memory that was made during the capture.
std::unordered_set<const StorageImpl*>& born_here() {  // as above
  static auto* all = new std::unordered_set<const StorageImpl*>;
  return *all;
}

uint8_t looked_at(const TensorImpl* t) {
  return t->all_flags() & (TensorImpl::kContiguous | TensorImpl::kRequiresGrad |
                           TensorImpl::kInternalLayout | TensorImpl::kInference);
}

// Hash of sizes and strides; the stride of an extent of 1 has no meaning.
uint64_t geometry_of(const TensorImpl* t) {
  uint64_t h = t->rank;
  for (int i = 0; i < t->rank; ++i)
    for (const int64_t n : {t->sizes()[i], t->sizes()[i] == 1 ? 0 : t->strides()[i]})
      h = (h ^ static_cast<uint64_t>(n)) * 0x9e3779b97f4a7c15 + (h >> 29);
  return h;
}

bool same_state(const Context& a, const Context& b) {
  return a.grad_mode == b.grad_mode && a.inference_mode == b.inference_mode &&
         ((a.watching ^ b.watching) & Context::kAnomaly) == 0 &&
         a.anomaly_check_nan == b.anomaly_check_nan && a.default_dtype == b.default_dtype &&
         a.cpu_device == b.cpu_device && a.cuda_device == b.cuda_device && a.replica == b.replica &&
         a.share == b.share && a.autocast == b.autocast && a.autocast_choices == b.autocast_choices;
}

constexpr size_t kRoom = size_t{32} << 10;

}  // namespace

void refused(const char* op, const char* why) {
  const std::string text = detail::join("[", op, "] not capturable: ", why);
  if (current && current->refused_.empty()) current->refused_ = text;
  throw Error(text);
}

// ---- making -------------------------------------------------------------------------------------

Program::Program() : state_(tls), slots_(max_parallel_slots()) {}

Program::~Program() {
  steps_.clear();
  functions_.clear();
  guards_.clear();
  for (auto& [t, seen] : tensors_) TensorBase{t};  // takes the reference over and drops it
  for (auto& [t, seen] : watched_) TensorBase{t};
  for (StorageImpl* s : memory_) s->release();
}

Program::Recording::Recording(Program& into) : program_(into) {
  refuse("Captured", "a capture inside a capture");
  RAMET_CHECK(!tls.random, "Captured",
              "not capturable: inside a replica of a data-parallel forward");
  one_at_a_time().lock();
  born_here().clear();
  current = &into;
  tls.capturing = 1;
  detail::observe_captures(true);
}

Program::Recording::~Recording() {
  tls.capturing = 0;
  detail::observe_captures(false);
  current = nullptr;
  if (!finished_) program_.undo();
  one_at_a_time().unlock();
}

void Program::Recording::finish() {
  tls.capturing = 0;
  if (!program_.refused_.empty()) throw Error(program_.refused_);  // the function caught it
  program_.drop_temporaries();
  program_.make_graphs();
  for (const Step& s : program_.steps_)
    if (!s.effect) s.invoke(s.what, s.stream, s.args);
  program_.undo_.clear();
  finished_ = true;
}

void Program::undo() noexcept {
  for (size_t i = undo_.size(); i-- > 0;) undo_[i]();
  undo_.clear();
  const auto as_before = [](const auto& tensors) {
    for (const auto& [t, seen] : tensors) {
      if (born_here().count(seen.memory) ||
          !((looked_at(t) ^ seen.flags) & TensorImpl::kRequiresGrad))
        continue;
      t->set(TensorImpl::kRequiresGrad, (seen.flags & TensorImpl::kRequiresGrad) != 0);
      if (t->is(TensorImpl::kRequiresGrad)) continue;
      t->slot = 0;  // the history that the capture gave it
      AutogradSlot::release(std::exchange(t->node, nullptr));
    }
  };
  as_before(tensors_);
  as_before(watched_);
}

void* Program::room(size_t bytes) {
  bytes = (bytes + 63) / 64 * 64;
  if (room_used_ + bytes > room_) {
    room_ = std::max(bytes, kRoom);
    blocks_.push_back(std::make_unique<std::byte[]>(room_ + 64));
    room_used_ = 0;
  }
  auto at = reinterpret_cast<uintptr_t>(blocks_.back().get());
  at = (at + 63) / 64 * 64 + room_used_;
  room_used_ += bytes;
  return reinterpret_cast<void*>(at);
}

void Program::add(Function f, bool effect) {
  functions_.push_back(std::move(f));
  const auto run = [](const void* f, Stream, const void*) { (*static_cast<const Function*>(f))(); };
  steps_.push_back(
      {run, &functions_.back(), {Device(kCPU, 0), 0}, nullptr, nullptr, effect, false});
}

void record(KernelCall& call) {
  Program& p = *current;
  // Workspaces hold a slot for each thread that may run.
  if (max_parallel_slots() < p.slots_) refused(call.name, "fewer threads than in the rest of it");
  void* args = p.room(call.bytes);
  std::memcpy(args, call.args, call.bytes);
  bool patched = false;
  if (call.key) {
    PhiloxKey key;
    std::memcpy(&key, call.key, sizeof key);
    const auto same = [&](const PhiloxKey& k) {
      return k.seed == key.seed && k.offset == key.offset && k.base == key.base;
    };
    const auto from = std::find_if(p.reservations_.rbegin(), p.reservations_.rend(),
                                   [&](const auto& r) { return same(r.key); });
    if (from == p.reservations_.rend()) refused(call.name, "its numbers come from no generator");
    const auto offset = static_cast<const char*>(call.key) - static_cast<const char*>(call.args);
    from->places.push_back(static_cast<char*>(args) + offset);
    patched = true;
  }
  p.steps_.push_back({call.invoke, call.kernel, call.stream, args, call.name, false, patched});
  if (!call.stream.device.is_cpu() && call.stream.id != gpu::kCompute) ++p.off_;
  ++p.calls_;
  call.skip = true;
}

void effect(std::function<void()> again, std::function<void()> undo) {
  if (undo) on_failure(std::move(undo));
  current->add(std::move(again), /*effect=*/true);
}
void on_failure(std::function<void()> undo) { current->undo_.push_back(std::move(undo)); }
void host_work(std::function<void()> work) { current->add(std::move(work), /*effect=*/false); }
void queued_work(std::function<void()> work) {
  host_work(std::move(work));
  ++current->off_;
}

void once() { current->once_ = true; }

void patch_last_call(std::function<void(void*)> patch) {
  auto& steps = current->steps_;
  size_t at = steps.size();
  while (at > 0 && !steps[at - 1].name) --at;
  RAMET_CHECK(at > 0, "Captured", "there is no kernel call to change the arguments of");
  Program::Step& call = steps[at - 1];
  call.patched = true;
  auto run = [patch = std::move(patch), args = const_cast<void*>(call.args)] { patch(args); };
  current->add(std::move(run), /*effect=*/true);
  std::rotate(steps.begin() + static_cast<std::ptrdiff_t>(at - 1), steps.end() - 1, steps.end());
}

void guard(const void* of, const char* what, std::function<bool()> holds) {
  current->guard_of_.try_emplace(of, Program::Guard{what, std::move(holds)});
}

void Program::Reservation::put() const {
  for (void* place : places) std::memcpy(place, &key, sizeof key);
}

void reserved(const Generator& from, int64_t n, int64_t rows, const PhiloxKey& key) {
  // Of another kind, it might not give Philox numbers any more.
  guard(&from.mutex(), "the kind of a generator",
        [from, kind = from.kind()] { return from.kind() == kind; });
  auto* r = &current->reservations_.emplace_back(
      Program::Reservation{from, n, rows, key, {}, /*operation=*/0});
  effect(
      [r] {
        r->key = r->from.reserve(r->n, r->rows);
        r->put();
      },
      [r, before = GeneratorState{key.seed, key.offset}] {
        r->from.set_philox(before.seed, before.offset);
      });
}

void region_opened(const Generator& from, GeneratorState first) {
  auto* region = &current->regions_.emplace_back(Program::Region{from, first, 0, {}});
  current->open_ = region;
  effect(
      [region] {
        const GeneratorState now = region->from.get_state();
        for (Program::Reservation* r : region->inside) {
          r->key.seed = now.seed;
          r->key.offset = now.offset + r->operation;
          r->put();
        }
        region->from.set_philox(now.seed, now.offset + region->taken);
      },
      [region, first] { region->from.set_philox(first.seed, first.offset); });
}

void region_reserved(const PhiloxKey& key) {
  Program::Region* region = current->open_;
  // Or a backward pass computes something again that a forward pass drew.
  for (auto r = current->regions_.rbegin(); !region && r != current->regions_.rend(); ++r)
    if (key.seed == r->first.seed && key.offset - r->first.offset < r->taken) region = &*r;
  if (!region) refused("data_parallel", "random numbers of a region that the capture is inside");
  region->inside.push_back(&current->reservations_.emplace_back(
      Program::Reservation{region->from, 0, 0, key, {}, key.offset - region->first.offset}));
}

void region_closed(uint64_t taken) {
  if (!current->open_) return;
  current->open_->taken = taken;
  current->open_ = nullptr;
}

// ---- memory -------------------------------------------------------------------------------------

void Program::keep(StorageImpl* memory) {
  if (memory_.insert(memory).second) add_ref(memory->refs);
}

// A small one is in its tensor's block.
void born(StorageImpl* made) {
  born_here().insert(made->root());
  current->keep(made);
  const bool own = !made->external || made->external == StorageImpl::kOnGpu;
  if (!own || made->memory_of) return;
  current->made_.push_back({made, current->off_});
}

StorageImpl* spare_memory(size_t bytes, Device device) { return current->spare(bytes, device); }

// The header is like new. (Nothing embedded comes here: it has this many bytes.)
StorageImpl* Program::spare(size_t bytes, Device device) {
  const auto take = [&]() -> StorageImpl* {
    const auto [first, last] = spare_.equal_range(bytes);
    for (auto at = first; at != last; ++at) {
      StorageImpl* const s = at->second;
      if (s->device != (static_cast<uint64_t>(device.ordinal()) & 0xff)) continue;
      spare_.erase(at);
      add_ref(s->refs);
      s->own_version = 0;
      s->serial_ = 0;
      s->writer = "nobody";
      return s;
    }
    return nullptr;
  };
  if (StorageImpl* s = take()) return s;
  // The search takes time in proportion to the number of tensors: once for so much more memory.
  fresh_since_ += bytes;
  if (fresh_since_ * 16 >= fresh_) {
    fresh_since_ = 0;
    find_spare();
    if (StorageImpl* s = take()) return s;
  }
  fresh_ += bytes;
  return nullptr;
}

// Tensors that only the capture holds are not used again: only their memory is needed. Dropping one
// may end the history that holds others.
template <class Which> void Program::drop(const Which& which) {
  for (bool any = true; any;) {
    std::vector<TensorImpl*> dead;
    for (const auto& [t, seen] : tensors_)
      if (t->refs.load(std::memory_order_acquire) == 1 && which(t, seen)) dead.push_back(t);
    any = !dead.empty();
    for (TensorImpl* t : dead) {
      tensors_.erase(t);
      TensorBase{t};
    }
  }
}

// On a compute stream, or in a CPU's calls, past uses of the memory come before new ones. That is
// not so if a step outside that order was in the list during its use. A copy, another device or
// another stream may still read it.
void Program::find_spare() {
  std::unordered_set<const StorageImpl*> ours;
  for (const Made& m : made_) ours.insert(m.memory);
  drop([&](const TensorImpl* t, const Watched& seen) {
    return !seen.by_name && ours.count(t->storage->root()) != 0;
  });
  const auto spared = std::remove_if(made_.begin(), made_.end(), [this](const Made& m) {
    if (m.off != off_) return true;  // stays as it is
    if (m.memory->refs.load(std::memory_order_acquire) != 1 || m.memory->pending.load())
      return false;
    spare_.emplace(static_cast<size_t>(m.memory->bytes), m.memory);
    return true;
  });
  made_.erase(spared, made_.end());
}

void used(TensorImpl* t) {
  current->keep(t->storage->root());
  current->hold(t);
}

void Program::hold(TensorImpl* t, bool by_name) {
  const auto [at, fresh] = tensors_.try_emplace(t);
  if (fresh) {
    add_ref(t->refs);
    at->second = {t->storage->root(),    t->data,  geometry_of(t),
                  t->storage->version(), t->key(), looked_at(t)};
  }
  at->second.by_name = at->second.by_name || by_name;
}

void Program::forget(TensorImpl* t) {
  if (tensors_.erase(t)) TensorBase{t};
}

void Program::keep_memory_of(const TensorImpl* t) { keep(t->storage->root()); }

bool Program::uses_memory_of(const TensorImpl* t) const {
  return memory_.count(t->storage->root()) != 0;
}

bool unique(const TensorImpl* t) {
  const auto held = [](uint32_t refs, bool by_us) { return refs - (by_us ? 1 : 0); };
  const auto alone = [&](const TensorImpl* one) {
    return held(one->refs.load(), current->tensors_.count(const_cast<TensorImpl*>(one))) == 1;
  };
  return alone(t) && (!t->base || (alone(t->base) && !t->base->base)) &&
         held(t->storage->refs.load(), current->memory_.count(t->storage)) ==
             (t->base && t->base->holds(t->storage) ? 2u : 1u);
}

// The function has ended.
void Program::drop_temporaries() {
  drop([](const TensorImpl*, const Watched&) { return true; });
  made_.clear();
  spare_.clear();
  watched_.assign(tensors_.begin(), tensors_.end());
  tensors_.clear();
  for (auto& [t, seen] : watched_) {
    seen.written = t->storage->version() != seen.version;
    const char* const what = seen.changed(t);
    const uint8_t laid_out = (looked_at(t) | seen.flags) & TensorImpl::kInternalLayout;
    if (what && what != std::string("storages") && !laid_out && !born_here().count(seen.memory))
      refused("Captured", ("a tensor from outside changes its " + std::string(what)).c_str());
  }
  for (auto& [of, g] : guard_of_) guards_.push_back(std::move(g));
  guard_of_.clear();
}

const char* Program::Watched::changed(const TensorImpl* t) const {
  if (t->data != data || t->storage->root() != memory || t->key() != key) return "storages";
  if (geometry_of(t) != geometry) return "shapes";
  return looked_at(t) == flags ? nullptr : "requires_grad";
}

// ---- using --------------------------------------------------------------------------------------

const char* Program::failed_guard() const {
  if (!same_state(state_, tls) || tls.random) return "state of the thread";
  if (slots_ != max_parallel_slots()) return "number of threads";
  for (const auto& [t, seen] : watched_)
    if (const char* what = seen.changed(t)) return what;
  for (const Guard& g : guards_)
    if (!g.holds()) return g.what;
  return nullptr;
}

static __thread bool t_replaying;
bool replaying() { return t_replaying; }

void Program::replay() {
  const ScopedValue<bool> replays(t_replaying, true);
  for (const auto& [t, seen] : watched_)  // as ptr() waits
    if (t->storage->pending.load(std::memory_order_acquire)) wait_pending(*t->storage);
  const auto written = [this] {
    for (const auto& [t, seen] : watched_)
      if (seen.written) t->storage->wrote(t->storage->last_writer());
  };
  try {
    for (const Step& s : steps_) s.invoke(s.what, s.stream, s.args);
  } catch (...) {  // in the middle: a part of it has happened
    written();
    throw;
  }
  written();
}

// Neighbouring calls on one GPU's compute stream become one graph if their arguments do not change.
// (Also a single call: a graph keeps its scratch memory.) Work of the host on its own state in
// between can run before the graph. Other streams, copies and the order of streams stay in the list
// by themselves.
void Program::make_graphs() {
  const auto fixed = [](const Step& s) {
    return s.name && !s.patched && !s.stream.device.is_cpu() && s.stream.id == gpu::kCompute;
  };
  std::vector<Step> with;
  for (size_t i = 0; i < steps_.size();) {
    if (!fixed(steps_[i])) {
      with.push_back(steps_[i++]);
      continue;
    }
    const Stream stream = steps_[i].stream;
    std::vector<Step> run;
    for (; i < steps_.size(); ++i) {
      if (fixed(steps_[i]) && steps_[i].stream.device == stream.device) run.push_back(steps_[i]);
      else if (steps_[i].effect) with.push_back(steps_[i]);
      else break;
    }
    graphs_.push_back(gpu::required("Captured", stream.device).graph(stream.device.index(), [&run] {
      for (const Step& s : run) s.invoke(s.what, s.stream, s.args);
    }));
    const auto launch = [](const void* graph, Stream, const void*) {
      const_cast<gpu::Graph*>(static_cast<const gpu::Graph*>(graph))->launch();
    };
    with.push_back({launch, graphs_.back().get(), stream, nullptr});
  }
  steps_ = std::move(with);
}

}  // namespace capture
}  // namespace ramet
