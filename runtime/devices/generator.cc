#include "runtime/devices/generator.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <random>
#include <vector>

#include "runtime/base/counters.h"
#include "runtime/capture/capture.h"
#include "runtime/capture/capture_regions_internal.h"
#include "runtime/devices/draw_record.h"
#include "runtime/devices/mersenne.h"

namespace ramet {

struct Generator::State {
  mutable std::mutex mutex;
  std::mutex users;  // for the program: held while it makes calls that take the other mutex
  GeneratorState now{kDefaultSeed, 0};  // the Philox numbers
  std::unique_ptr<Mersenne> engine;     // of kind kMersenne
  int device;
  bool is_default = false;  // of a device: inside a replica its numbers are keyed by sample
};

namespace {

// An open region reserves this many operations, so that draws by other threads do not fall among
// them.
constexpr uint64_t kSpan = uint64_t{1} << 32;
constexpr int kShardShift = 40, kNestedShift = 8;

constinit std::atomic<uint64_t> g_draws{0};

PhiloxKey reserve_in(ReplicaRandom& r, int64_t n, int64_t rows) {
  const uint64_t k = r.operations.fetch_add(1, std::memory_order_relaxed);
  const bool by_sample = rows > 0 && rows == r.samples;
  const PhiloxKey key{r.seed, r.offset + k,
                      by_sample ? r.sample_base * (n / rows) : r.shard << kShardShift};
  if (RAMET_UNLIKELY(capture::active())) capture::region_reserved(key);
  return key;
}

// 53 bits, as in LibTorch: scripts that store it as a double keep all of it.
uint64_t seed_of_entropy() {
  std::random_device entropy;
  return (static_cast<uint64_t>(entropy()) << 32 | entropy()) & ((uint64_t{1} << 53) - 1);
}

}  // namespace

uint64_t random_draws() { return g_draws; }
void reset_random_draws() { g_draws = 0; }

constinit std::atomic<bool> detail::mersennes{false};

bool operator==(const GeneratorState& a, const GeneratorState& b) {
  if (a.seed != b.seed || a.offset != b.offset || !a.mersenne != !b.mersenne) return false;
  return a.mersenne == b.mersenne || a.mersenne->bytes() == b.mersenne->bytes();
}

Generator::Generator(Device device, uint64_t seed, GeneratorKind kind)
    : state_(std::make_shared<State>()) {
  capture::refuse("Generator", "its numbers would start again at each replay");
  state_->device = resolve(device).ordinal();
  state_->now = {seed, 0};
  if (kind == GeneratorKind::kPhilox) return;
  RAMET_CHECK(state_->device == 0, "Generator", "kind: got kMersenne for ", resolve(device).str(),
              ", expected it for cpu:0 alone");
  state_->engine = std::make_unique<Mersenne>(seed);
  detail::mersennes = true;
}

Generator::State& Generator::checked(const char* op) const {
  RAMET_CHECK(state_, op, "generator: got an undefined Generator, expected a defined one");
  return *state_;
}

Device Generator::device() const {
  return Device::from_ordinal(checked("Generator::device").device);
}

GeneratorKind Generator::kind() const {
  State& s = checked("Generator::kind");
  std::lock_guard lock(s.mutex);
  return s.engine ? GeneratorKind::kMersenne : GeneratorKind::kPhilox;
}

void Generator::set_current_seed(uint64_t seed) {
  capture::refuse("Generator::set_state", "its numbers would start again at each replay");
  State& s = checked("Generator::set_current_seed");
  std::lock_guard lock(s.mutex);
  s.now = {seed, 0};
  if (s.engine) *s.engine = Mersenne(seed);
}

uint64_t Generator::seed() {
  const uint64_t fresh = seed_of_entropy();
  set_current_seed(fresh);
  return fresh;
}

GeneratorState Generator::get_state() const {
  State& s = checked("Generator::get_state");
  std::lock_guard lock(s.mutex);
  GeneratorState state = s.now;
  if (s.engine) state.mersenne = std::make_shared<const Mersenne>(*s.engine);
  return state;
}

void Generator::set_state(const GeneratorState& state) {
  capture::refuse("Generator::set_state", "its numbers would start again at each replay");
  State& s = checked("Generator::set_state");
  RAMET_CHECK(!state.mersenne || s.device == 0, "Generator::set_state",
              "kind: got a state of kMersenne for a generator of ", device().str(),
              ", expected it for cpu:0 alone");
  std::unique_ptr<Mersenne> engine;
  if (state.mersenne) engine = std::make_unique<Mersenne>(*state.mersenne);
  std::lock_guard lock(s.mutex);
  s.now = {state.seed, state.offset};
  s.engine = std::move(engine);
  if (s.engine) detail::mersennes = true;
}

void Generator::set_philox(uint64_t seed, uint64_t offset) {
  capture::refuse("Generator::set_philox", "its numbers would start again at each replay");
  State& s = checked("Generator::set_philox");
  std::lock_guard lock(s.mutex);
  s.now = {seed, offset};
}

Generator Generator::clone() const {
  Generator copy(device());
  copy.set_state(get_state());
  return copy;
}

bool detail::draws_from_mersenne(Device device, const Generator& generator) {
  if (device.ordinal() != 0) return false;
  const Generator from = generator.defined() ? generator : default_generator_of(0);
  Generator::State& s = *from.state_;
  if (s.is_default && ReplicaRandom::current()) return false;
  std::lock_guard lock(s.mutex);
  return s.engine != nullptr;
}

MersenneDraw::MersenneDraw(const char* op, const Generator& generator) {
  capture::refuse(op,
                  "its numbers are LibTorch's, which the host draws one after the other; "
                  "set_generator_kind(GeneratorKind::kPhilox) before the capture");
  const Generator from = generator.defined() ? generator : detail::default_generator_of(0);
  Generator::State& s = *from.state_;
  g_draws.fetch_add(1, std::memory_order_relaxed);
  lock_ = std::unique_lock<std::mutex>(s.mutex);
  RAMET_CHECK(s.engine, op, "generator: another thread has changed its kind");
  engine_ = s.engine.get();
  if (const auto again = DrawRecordGuard::draw_from(*engine_)) {
    lock_.unlock();
    again_ = std::make_unique<Mersenne>(*again);
    engine_ = again_.get();
  }
}
MersenneDraw::~MersenneDraw() = default;

std::mutex& Generator::mutex() const { return checked("Generator::mutex").users; }

PhiloxKey Generator::reserve(int64_t n, int64_t rows) {
  State& s = checked("Generator::reserve");
  return DrawRecordGuard::draw([&]() -> PhiloxKey {
    g_draws.fetch_add(1, std::memory_order_relaxed);
    if (ReplicaRandom* r = ReplicaRandom::current(); r && s.is_default)
      return reserve_in(*r, n, rows);
    PhiloxKey key;
    {
      std::lock_guard lock(s.mutex);
      key = {s.now.seed, s.now.offset++, 0};
    }
    if (RAMET_UNLIKELY(capture::active())) capture::reserved(*this, n, rows, key);
    return key;
  });
}

uint64_t detail::seed_at_start() {
  const char* text = std::getenv("RAMET_SEED");
  if (!text || !*text) return seed_of_entropy();
  char* end = nullptr;
  errno = 0;
  const uint64_t seed = std::strtoull(text, &end, 10);
  RAMET_CHECK(*text >= '0' && *text <= '9' && *end == 0 && errno == 0, "RAMET_SEED", "got \"", text,
              "\", expected a number from 0 to ", UINT64_MAX);
  return seed;
}

Generator detail::default_generator_of(int ordinal) {
  // Never destroyed: destructors of static objects may still draw.
  static const std::vector<Generator>& all = *[] {
    const uint64_t seed = seed_at_start();
    auto* list = new std::vector<Generator>(kMaxDevices);
    for (int d = 0; d < kMaxDevices; ++d) {
      auto state = std::make_shared<Generator::State>();
      state->now = {seed, 0};
      state->device = d;
      state->is_default = true;
      (*list)[static_cast<size_t>(d)].state_ = std::move(state);
    }
    return list;
  }();
  return all[static_cast<size_t>(ordinal)];
}

Generator default_generator(Device device) {
  return detail::default_generator_of(resolve(device).ordinal());
}

void manual_seed(uint64_t seed) {
  for (int d = 0; d < kMaxDevices; ++d) detail::default_generator_of(d).set_current_seed(seed);
}

void set_generator_kind(GeneratorKind kind) {
  capture::refuse("set_generator_kind", "its numbers would start again at each replay");
  const Generator generator = detail::default_generator_of(0);
  Generator::State& s = *generator.state_;
  std::lock_guard lock(s.mutex);
  if ((kind == GeneratorKind::kMersenne) == (s.engine != nullptr)) return;
  s.engine = kind == GeneratorKind::kMersenne ? std::make_unique<Mersenne>(s.now.seed) : nullptr;
  if (s.engine) detail::mersennes = true;
}
GeneratorKind generator_kind() { return detail::default_generator_of(0).kind(); }

namespace cuda {
void manual_seed(uint64_t seed) {
  if (is_available()) default_generator(Device(kCUDA)).set_current_seed(seed);
}
void manual_seed_all(uint64_t seed) {
  for (int d = kMaxDevicesPerType; d < kMaxDevices; ++d)
    detail::default_generator_of(d).set_current_seed(seed);
}
}  // namespace cuda

uint64_t initial_seed() { return default_generator(kCPU).current_seed(); }

std::vector<GeneratorState> generator_states() {
  std::vector<GeneratorState> states;
  for (int d = 0; d < cpu_device_count(); ++d)
    states.push_back(detail::default_generator_of(d).get_state());
  for (int d = kMaxDevicesPerType; d < kMaxDevices; ++d)
    states.push_back(detail::default_generator_of(d).get_state());
  return states;
}

void set_generator_states(const std::vector<GeneratorState>& states) {
  const auto cpus = static_cast<size_t>(cpu_device_count());
  RAMET_CHECK(states.size() == cpus || states.size() == cpus + kMaxDevicesPerType,
              "set_generator_states", "states: got ", states.size(), " of them, expected ", cpus,
              ", one a device, or those of GPUs after them");
  for (size_t d = 0; d < states.size(); ++d)
    detail::default_generator_of(static_cast<int>(d < cpus ? d : kMaxDevicesPerType + d - cpus))
        .set_state(states[d]);
}

PhiloxKey reserve_random(Device device, IntArrayRef sizes, const Generator& generator) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  RAMET_CHECK(!generator.defined() || generator.device().type() == device.type(), "generator",
              "device: got a generator of ", generator.device().str(), " for a tensor on ",
              device.str(), ", expected one of the same kind of device");
  Generator from = generator.defined() ? generator : default_generator(device);
  return from.reserve(n, sizes.empty() ? -1 : sizes[0]);
}

ReplicaRandomRef ReplicaRandomRef::again() const {
  return ReplicaRandomRef(new ReplicaRandom(*p_, p_->operations));
}

RandomRegion::RandomRegion(Device source) : outer_(ReplicaRandomRef::current()) {
  // Repeated, it keeps the numbers of the shard that it was opened in, which may have ended.
  if (DrawRecordGuard::repeats()) outer_ = ReplicaRandomRef::last();
  const PhiloxKey first = DrawRecordGuard::draw([&] { return begin(source); });
  seed_ = first.seed;
  offset_ = first.offset;
}

PhiloxKey RandomRegion::begin(Device source) {
  advances_ = true;
  if (ReplicaRandom* r = outer_.get())
    return {r->seed, r->offset + r->operations.fetch_add(kSpan), 0};
  source_ = default_generator(source);
  Generator::State& s = *source_.state_;
  std::lock_guard lock(s.mutex);
  const PhiloxKey first{s.now.seed, s.now.offset, 0};
  s.now.offset += kSpan;
  if (RAMET_UNLIKELY(capture::active()))
    capture::region_opened(source_, {first.seed, first.offset});
  return first;
}

ReplicaRandomRef RandomRegion::shard(int64_t shard, int64_t sample_base, int64_t samples) {
  RAMET_CHECK(open_, "RandomRegion::shard", "got a closed region, expected an open one");
  ShardNumbers numbers{seed_, offset_, sample_base, samples, shard};
  if (const ReplicaRandom* outer = outer_.get()) {
    // Shards of different outer shards never share a key.
    numbers.shard += outer->shard << kNestedShift;
    if (outer->samples >= 0) numbers.sample_base += outer->sample_base;
  }
  return shards_.emplace_back(new ReplicaRandom(numbers));
}

void RandomRegion::close() {
  if (!open_) return;
  open_ = false;
  uint64_t most = 0;
  for (const ReplicaRandomRef& r : shards_) {
    r.get()->closed.store(true, std::memory_order_release);
    most = std::max(most, r.get()->operations.load());
  }
  shards_.clear();
  if (!advances_) return;
  if (ReplicaRandom* outer = outer_.get()) {
    uint64_t expected = offset_ - outer->offset + kSpan;
    outer->operations.compare_exchange_strong(expected, expected - kSpan + most);
    return;
  }
  if (RAMET_UNLIKELY(capture::active())) capture::region_closed(most);
  Generator::State& s = *source_.state_;
  std::lock_guard lock(s.mutex);
  // Unless another thread has drawn, seeded or restored since.
  if (s.now == GeneratorState{seed_, offset_ + kSpan}) s.now.offset = offset_ + most;
}

}  // namespace ramet
