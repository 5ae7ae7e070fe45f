// Random numbers: one counter-based generator for each device, and the keys inside a replica.
//
// Note [Random numbers]
// A generator is a seed and the number of operations that have drawn from it (`offset`). An
// operation reserves a PhiloxKey. That advances the generator by one, however many numbers the
// operation draws. Number `i` of the operation is a pure function of (seed, offset, base + i). It
// is Philox with key `seed` and a counter made of `offset` and `base + i`
// (kernels/random/random.h). So the numbers do not depend on the device, on the thread count or on
// the thread that draws. The generator's whole state is two numbers. All devices start from one
// seed: two devices in the same state draw the same numbers. Each process starts from another seed,
// unless manual_seed() or RAMET_SEED sets it.
//
// Replicas. A data-parallel forward pass opens a RandomRegion on the source's device and gives each
// shard of the batch its ReplicaRandom. Inside, operations of a shard that draw from a default
// generator are counted, whatever their device. The k-th one gets the seed and offset that the
// source's generator had when the region opened, plus k. Its base depends on dimension 0 of the
// tensor. If that is the shard's part of the batch, the base is the index of its first element in
// the global batch. That is the global sample index times elements per sample. Otherwise the base
// is `shard * 2^40`. The end of the region advances the source's generator by the largest k of any
// shard. So a forward pass leaves the generator in the same state on 1, 2 or 4 replicas and without
// any. It draws the same numbers for each tensor whose dimension 0 is the batch. Other tensors, as
// those with time in dimension 0, get other numbers for another number of replicas. Regions nest:
// the inner one takes its seed and its operations from the shard that opened it, and sample indices
// add up. A user's Function that computes something again in its backward pass draws the same
// numbers as in the forward pass (autograd/graph/function.cc). A generator that the caller passes
// to an operation is not keyed by sample: it draws in the order of the calls.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/base/array_ref.h"
#include "runtime/base/context.h"
#include "runtime/base/device.h"
#include "runtime/memory/storage_impl.h"

namespace ramet {

/// The numbers of an operation's random numbers: element i has number base + i.
struct PhiloxKey {
  uint64_t seed, offset;  // the generator's, when it gave them out
  int64_t base;
};

/// Which numbers a generator gives.
enum class GeneratorKind : uint8_t {
  kPhilox,    // Ramet's: Note [Random numbers]
  kMersenne,  // LibTorch's for tensors on cpu:0: Note [LibTorch's numbers] in mersenne.h
};
class Mersenne;
struct GeneratorState;
class TensorBase;
namespace detail {
RAMET_API TensorBase state_tensor(const GeneratorState& state);
RAMET_API GeneratorState state_from(const TensorBase& bytes);
template <class T> using IfTensor = std::enable_if_t<std::is_base_of<TensorBase, T>::value>;
// TensorBase is complete where this is called, not here: so `state` has a type of the template.
template <class T, class State> T tensor_of(const State& state) { return T(state_tensor(state)); }
}  // namespace detail

/// The whole state of a generator. Small enough for a checkpoint.
struct GeneratorState {
  uint64_t seed, offset;  // where it started; operations that have drawn Philox numbers since
  std::shared_ptr<const Mersenne> mersenne = nullptr;  // of kind kMersenne: its engine

  /// Its bytes in LibTorch, as a tensor: seed and offset, or those of the engine.
  template <class T, class = detail::IfTensor<T>> operator T() const {
    return detail::tensor_of<T>(*this);
  }
};
RAMET_API bool operator==(const GeneratorState& a, const GeneratorState& b);
inline bool operator!=(const GeneratorState& a, const GeneratorState& b) { return !(a == b); }

/// For generators that are made without a seed (as in LibTorch). Those of devices start elsewhere.
inline constexpr uint64_t kDefaultSeed = 67280421310721u;

class Generator;
namespace detail {
/// The default generator of the device with this number (Device::ordinal), even if there is no such
/// device: asks no driver.
RAMET_API Generator default_generator_of(int ordinal);
/// The seed that default generators start from: RAMET_SEED, or a new number each time.
RAMET_API uint64_t seed_at_start();
/// Has there been a generator of kind kMersenne?
RAMET_API extern std::atomic<bool> mersennes;
RAMET_API bool draws_from_mersenne(Device device, const Generator& generator);
}  // namespace detail

/// A handle: copies share the state. Every call is thread safe.
class RAMET_API Generator {
 public:
  /// No generator: an optional argument with this value means the device's default one.
  Generator() = default;
  /// A new generator, in the state (seed, 0). kMersenne is for cpu:0 alone.
  explicit Generator(Device device, uint64_t seed = kDefaultSeed,
                     GeneratorKind kind = GeneratorKind::kPhilox);

  /// Is this a generator?
  bool defined() const { return state_ != nullptr; }
  /// The device that it draws for. An Error where it is undefined, as for the calls below.
  Device device() const;
  /// Which numbers it gives.
  GeneratorKind kind() const;
  /// Starts again from `seed`, offset 0; its kind stays.
  void set_current_seed(uint64_t seed);
  /// The seed that it started from.
  uint64_t current_seed() const { return get_state().seed; }
  /// Starts again from a seed of 53 bits from the system's entropy, and returns it (as LibTorch
  /// does).
  uint64_t seed();
  /// Its seed and how many operations have drawn since.
  GeneratorState get_state() const;
  /// Continues from this state, and takes over its kind.
  void set_state(const GeneratorState& state);
  /// The same from a tensor of LibTorch's bytes.
  template <class T, class = detail::IfTensor<T>> void set_state(const T& bytes) {
    set_state(detail::state_from(bytes));
  }
  /// Continues with the Philox numbers (seed, offset) alone: its kind and engine stay.
  void set_philox(uint64_t seed, uint64_t offset);
  /// A new generator in the same state.
  Generator clone() const;
  /// For programs that lock it around their calls, as LibTorch requires. It guards nothing here.
  std::mutex& mutex() const;

  /// The numbers of one operation that draws `n` of them. `rows`: extent of dimension 0 of the
  /// tensor that they fill, -1 where there is none. From a default generator, inside a replica: see
  /// Note [Random numbers].
  PhiloxKey reserve(int64_t n, int64_t rows = -1);

  bool operator==(const Generator& o) const { return state_ == o.state_; }
  bool operator!=(const Generator& o) const { return state_ != o.state_; }

 private:
  struct State;
  friend class RandomRegion;
  friend class MersenneDraw;
  friend Generator detail::default_generator_of(int ordinal);
  friend bool detail::draws_from_mersenne(Device device, const Generator& generator);
  friend RAMET_API void set_generator_kind(GeneratorKind kind);
  State& checked(const char* op) const;
  std::shared_ptr<State> state_;
};

/// The generator that operations on `device` use when they are given none. Without manual_seed() it
/// starts from RAMET_SEED, or else from the system's entropy: all devices from the same seed.
RAMET_API Generator default_generator(Device device);
/// Puts the default generator of every device into the state (seed, 0).
RAMET_API void manual_seed(uint64_t seed);
/// Which numbers the default generator of cpu:0 gives from now on; another kind starts from the
/// current seed. With kMersenne a program draws LibTorch's numbers. Other devices' stay Philox.
RAMET_API void set_generator_kind(GeneratorKind kind);
/// The kind of the default generator of cpu:0.
RAMET_API GeneratorKind generator_kind();
namespace cuda {  // LibTorch's names
/// The same for the current CUDA device alone; nothing where there is none.
RAMET_API void manual_seed(uint64_t seed);
/// The same for every CUDA device that there may be.
RAMET_API void manual_seed_all(uint64_t seed);
}  // namespace cuda
/// The seed that the current cpu device's generator started from.
RAMET_API uint64_t initial_seed();

/// The states of the default generators of all devices: first the host's, then all possible GPUs'.
/// They are saved while user code runs that must not count as drawing (a replica module is made).
/// No driver is asked.
RAMET_API std::vector<GeneratorState> generator_states();
/// `states`: one for each device as above, or the host's alone. Otherwise an Error.
RAMET_API void set_generator_states(const std::vector<GeneratorState>& states);

/// One reserve() for a tensor of `sizes`, from `generator`. If that is undefined, from `device`'s
/// default one.
RAMET_API PhiloxKey reserve_random(Device device, IntArrayRef sizes,
                                   const Generator& generator = {});

/// The numbers of the random numbers of a shard.
struct ShardNumbers {
  uint64_t seed, offset;         // of operation 0
  int64_t sample_base, samples;  // its part of the batch: [sample_base, sample_base + samples)
  int64_t shard;
};

/// Random context of one shard of a data-parallel forward pass. RandomRegion::shard makes it.
/// References are counted: thread state that was captured inside a replica may outlive the region.
/// It then draws from the default generators, as outside a replica.
struct ReplicaRandom : ShardNumbers {
  explicit ReplicaRandom(const ShardNumbers& numbers, uint64_t drawn = 0)
      : ShardNumbers(numbers), operations(drawn) {}
  /// The calling thread's, while its region is open; else null.
  static ReplicaRandom* current() {
    ReplicaRandom* const r = ramet::detail::tls.random;
    return r && !r->closed.load(std::memory_order_acquire) ? r : nullptr;
  }

  /// The number of references.
  std::atomic<uint32_t> refs{1};
  /// Its region has ended: no operation draws by it any more.
  std::atomic<bool> closed{false};
  std::atomic<uint64_t> operations;  // that have drawn so far
};

/// A counted pointer to a ReplicaRandom, or nothing.
class RAMET_API ReplicaRandomRef {
 public:
  ReplicaRandomRef() = default;
  /// Takes over one reference.
  explicit ReplicaRandomRef(ReplicaRandom* owned) : p_(owned) {}
  ReplicaRandomRef(const ReplicaRandomRef& o) : p_(o.p_) {
    if (p_) add_ref(p_->refs);
  }
  ReplicaRandomRef(ReplicaRandomRef&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  ReplicaRandomRef& operator=(ReplicaRandomRef o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~ReplicaRandomRef() {
    if (p_ && drop_ref(p_->refs)) delete p_;
  }
  /// The object that it points at, or null.
  ReplicaRandom* get() const { return p_; }
  /// A new one that draws the numbers that this one would draw next. Not for an empty reference.
  ReplicaRandomRef again() const;
  /// The calling thread's; empty once its region has closed.
  static ReplicaRandomRef current() {
    ReplicaRandom* const r = ReplicaRandom::current();
    if (r) add_ref(r->refs);
    return ReplicaRandomRef(r);
  }
  /// The calling thread's, also when its region has closed.
  static ReplicaRandomRef last() {
    ReplicaRandom* const r = ramet::detail::tls.random;
    if (r) add_ref(r->refs);
    return ReplicaRandomRef(r);
  }

 private:
  ReplicaRandom* p_ = nullptr;
};

/// From construction to close() a data-parallel forward pass of a module runs on `source`. Belongs
/// to one thread, the caller's. If another thread draws from the same generator during that time,
/// it gets numbers of its own.
class RAMET_API RandomRegion {
 public:
  explicit RandomRegion(Device source);
  ~RandomRegion() { close(); }
  RandomRegion(const RandomRegion&) = delete;
  RandomRegion& operator=(const RandomRegion&) = delete;

  /// The context of shard number `shard` (>= 0), which holds `samples` samples of the batch from
  /// `sample_base` on. `samples` is -1 where the batch is not cut along dimension 0: then
  /// everything is keyed by shard.
  ReplicaRandomRef shard(int64_t shard, int64_t sample_base, int64_t samples);
  /// After all shards have ended: advances the source's generator. Idempotent.
  void close();

 private:
  PhiloxKey begin(Device source);

  ReplicaRandomRef outer_;  // the shard this region was opened in
  Generator source_;
  uint64_t seed_, offset_;
  std::vector<ReplicaRandomRef> shards_;
  bool open_ = true;
  bool advances_ = false;  // not where a region is repeated
};

/// While it lives, the thread draws by `random`. An empty reference means "no replica".
class ReplicaRandomGuard {
 public:
  explicit ReplicaRandomGuard(ReplicaRandomRef random)
      : random_(std::move(random)), before_(ramet::detail::tls.random) {
    ramet::detail::tls.random = random_.get();
  }
  ~ReplicaRandomGuard() { ramet::detail::tls.random = before_; }
  ReplicaRandomGuard(const ReplicaRandomGuard&) = delete;
  ReplicaRandomGuard& operator=(const ReplicaRandomGuard&) = delete;

 private:
  ReplicaRandomRef random_;
  ReplicaRandom* before_;
};

}  // namespace ramet
