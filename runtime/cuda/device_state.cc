#include "runtime/cuda/device_state.h"

#include <cuda.h>
#include <dlfcn.h>

#include <algorithm>
#include <bit>
#include <optional>

#include "runtime/cuda/check.h"
#include "runtime/cuda/device_list.h"
#include "runtime/cuda/per_device.h"

namespace ramet {
namespace cuda {
namespace {

constinit PerDevice<DeviceState> states;

__thread ComputeStreamGuard* t_instead = nullptr;  // the innermost one

// Note [Contexts].
__thread bool t_bound = false;
std::atomic<uint64_t> cards_in_use{0};  // by guards, a bit for each
uint64_t bit_of(int card) { return card < 64 ? uint64_t{1} << card : 0; }

bool has_context(int card) {
#if RAMET_GPU_EMULATED
  return emulated::has_context(card);
#else
  using Ask = decltype(&cuDevicePrimaryCtxGetState);
  static const Ask ask = [] {
    void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);  // CUDA's runtime opened it
    return driver ? reinterpret_cast<Ask>(dlsym(driver, "cuDevicePrimaryCtxGetState")) : nullptr;
  }();
  unsigned flags = 0;
  int active = 0;
  return !ask || ask(card, &flags, &active) != CUDA_SUCCESS || active;
#endif
}
bool is_in_use(int card) {
  return (cards_in_use.load(std::memory_order_relaxed) & bit_of(card)) || has_context(card);
}
// A caller that cannot report the error must clear it. Otherwise a later launch would find it.
bool try_card(int card) {
  if (cudaSetDevice(card) == cudaSuccess) return true;
  (void)cudaGetLastError();
  return false;
}

void raise_to(std::atomic<uint64_t>& number, uint64_t at_least) {
  uint64_t now = number.load(std::memory_order_relaxed);
  while (now < at_least && !number.compare_exchange_weak(now, at_least)) {}
}

}  // namespace

ComputeStreamGuard::ComputeStreamGuard(int device, cudaStream_t stream)
    : device_(device), stream_(stream), before_(std::exchange(t_instead, this)) {}
ComputeStreamGuard::~ComputeStreamGuard() { t_instead = before_; }
bool ComputeStreamGuard::captures() noexcept {
  for (const ComputeStreamGuard* guard = t_instead; guard; guard = guard->before_) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    if (!guard->stream_) continue;
    ignore(cudaStreamIsCapturing(guard->stream_, &status));
    if (status != cudaStreamCaptureStatusNone) return true;
  }
  return false;
}

CardGuard::CardGuard(const char* op, int device) : CardGuard(op, device_state(device, op)) {}
CardGuard::CardGuard(const char* op, const DeviceState& state) {
  const int before = use_card(op, state);
  if (before != state.card) before_ = before;
}
CardGuard::~CardGuard() {
  if (before_ >= 0 && is_in_use(before_)) (void)try_card(before_);
}

int use_card(const char* op, const DeviceState& state) {
  int before = 0;
  RAMET_CUDA(op, state.device, cudaGetDevice(&before));
  if (before != state.card || RAMET_UNLIKELY(!t_bound)) {
    RAMET_CUDA(op, state.device, cudaSetDevice(state.card));
    t_bound = true;
  }
  const uint64_t bit = bit_of(state.card);
  if (RAMET_UNLIKELY((cards_in_use.load(std::memory_order_relaxed) & bit) != bit))
    cards_in_use.fetch_or(bit, std::memory_order_relaxed);
  return before;
}

bool use_any_card() noexcept {
  int now = 0;
  if (cudaGetDevice(&now) != cudaSuccess) {
    (void)cudaGetLastError();
    return false;
  }
  if (is_in_use(now)) return true;
  const uint64_t cards = cards_in_use.load(std::memory_order_relaxed);
  return cards && try_card(std::countr_zero(cards));
}

EventHandle::EventHandle(const char* op, int device, bool timing) {
  const CardGuard card(op, device);
  RAMET_CUDA_ALLOCATING(
      op, device,
      cudaEventCreateWithFlags(&event_, timing ? cudaEventDefault : cudaEventDisableTiming));
}
EventHandle::~EventHandle() {
  if (event_ && use_any_card()) ignore(cudaEventDestroy(event_));
}

DeviceState::DeviceState(int k) : device(k), card(device_list().cards[static_cast<size_t>(k)]) {}
DeviceState::~DeviceState() {
  marks_.clear();
  (void)use_any_card();
  for (const auto& stream : streams_)
    if (stream) ignore(cudaStreamDestroy(stream));
}

cudaStream_t DeviceState::stream(Queue queue, const char* op) {
  if (queue == Queue::kCompute && t_instead && t_instead->device_ == device)
    return t_instead->stream_;
  std::atomic<cudaStream_t>& place = streams_[static_cast<size_t>(queue)];
  cudaStream_t made = place.load(std::memory_order_acquire);
  if (RAMET_LIKELY(made != nullptr)) return made;
  const CardGuard guard(op, *this);
  cudaStream_t fresh = nullptr;
  RAMET_CUDA_ALLOCATING(op, device, cudaStreamCreateWithFlags(&fresh, cudaStreamNonBlocking));
  if (place.compare_exchange_strong(made, fresh)) return fresh;
  ignore(cudaStreamDestroy(fresh));  // another thread was quicker
  return made;
}

void DeviceState::order(Queue earlier, Queue later, const char* op) {
  const cudaStream_t from = stream(earlier, op), to = stream(later, op);
  const CardGuard guard(op, *this);
  // An event may be recorded again while it is waited for: the wait is for the earlier record.
  const auto spare = [this]() -> std::optional<EventHandle> {
    const std::lock_guard lock(mutex_);
    if (marks_.empty()) return std::nullopt;
    EventHandle mark = std::move(marks_.back());
    marks_.pop_back();
    return mark;
  };
  std::optional<EventHandle> mark = spare();
  if (!mark) mark.emplace(op, device);
  RAMET_CUDA(op, device, cudaEventRecord(mark->get(), from));
  RAMET_CUDA(op, device, cudaStreamWaitEvent(to, mark->get(), 0));
  const std::lock_guard lock(mutex_);
  marks_.push_back(std::move(*mark));
}

void DeviceState::wait(const char* op) {
  const CardGuard guard(op, *this);
  uint64_t launched;
  {
    const std::lock_guard lock(launches_mutex_);
    launched = launched_;
  }
  for (const auto& place : streams_)
    if (const cudaStream_t s = place.load(std::memory_order_acquire))
      RAMET_CUDA(op, device, cudaStreamSynchronize(s));
  std::lock_guard lock(launches_mutex_);
  waited_for_ = std::max(waited_for_, launched);
}
void DeviceState::synchronize(const char* op) {
  wait(op);
  raise_fault();
}

gpu::DataFault DeviceState::fault(const gpu::DataCheck& check) {
  const CardGuard guard(check.op, *this);
  return faults_.expect(device, stream(Queue::kCompute, check.op), check);
}
void DeviceState::raise_fault() {
  if (RAMET_UNLIKELY(faults_.pending(faults_.looks()))) {
    const CardGuard guard("synchronize", *this);
    faults_.raise(device, stream(Queue::kCompute, "synchronize"));
  }
  for (int k = 0; k < kMaxDevicesPerType; ++k) {
    const uint64_t looks = behind_[k].load(std::memory_order_acquire);
    if (RAMET_LIKELY(looks == 0)) continue;
    DeviceState* other = existing_state(k);
    const bool asked = looks <= asked_[k].load(std::memory_order_relaxed);
    if (!other || (asked && !other->faults_.waiting())) continue;
    raise_to(asked_[k], looks);
    other->raise_fault_up_to(looks);
  }
}
void DeviceState::raise_fault_up_to(uint64_t looks) {
  if (RAMET_LIKELY(!faults_.pending(looks))) return;
  const CardGuard guard("synchronize", *this);
  faults_.raise_up_to(looks, device, stream(Queue::kCompute, "synchronize"));
}
Looks DeviceState::looks() const {
  Looks all;
  for (int k = 0; k < kMaxDevicesPerType; ++k)
    all.of[k] = k == device ? faults_.looks() : behind_[k].load(std::memory_order_acquire);
  return all;
}
void DeviceState::came_behind(const Looks& earlier) {
  for (int k = 0; k < kMaxDevicesPerType; ++k)
    if (k != device) raise_to(behind_[k], earlier.of[k]);
}
void raise_faults(const Looks& looks) {
  for (int k = 0; k < kMaxDevicesPerType; ++k)
    if (DeviceState* state = looks.of[k] ? existing_state(k) : nullptr)
      state->raise_fault_up_to(looks.of[k]);
}

Look::Look(DeviceState& state) : faults_(nullptr) {
  if (t_instead && t_instead->device_ == state.device) {
    t_instead->looked_ = true;
  } else {
    faults_ = &state.faults_;
    faults_->begin_look();
  }
}
Look::~Look() {
  if (faults_) faults_->end_look();
}

cudaStream_t DeviceState::launching(const char* kernel, uint64_t threads, Queue queue) {
  const cudaStream_t stream = this->stream(queue, kernel);
  std::lock_guard lock(launches_mutex_);
  recent_[launched_++ % kRemembered] = kernel;
  ++launches_.count;
  launches_.most_threads = std::max(launches_.most_threads, threads);
  return stream;
}

Launches DeviceState::launches() {
  std::lock_guard lock(launches_mutex_);
  return launches_;
}
void DeviceState::forget_launches() {
  std::lock_guard lock(launches_mutex_);
  launches_ = {};
}

std::string DeviceState::suspects() {
  std::lock_guard lock(launches_mutex_);
  const uint64_t since = launched_ - waited_for_, shown = std::min<uint64_t>(since, kRemembered);
  std::string names;
  for (uint64_t i = launched_ - shown; i < launched_; ++i)
    names += (names.empty() ? "" : ", ") + std::string(recent_[i % kRemembered]);
  if (since > shown) names += " and " + std::to_string(since - shown) + " before them";
  if (names.empty()) return "";
  return since == 1 ? "kernel " + names : "one of the kernels " + names;
}

DeviceState& device_state(int device, const char* op) {
  const size_t count = device_list().cards.size();
  if (device < 0 || static_cast<size_t>(device) >= count)
    fail(op, "device: got cuda:", device, ", but there ", count == 1 ? "is " : "are ", count,
         " CUDA ", count == 1 ? "device" : "devices", count ? "" : ": " + device_list().why_none);
  return states.get(device, [&] { return new DeviceState(device); });
}

DeviceState* existing_state(int device) {
  return device >= 0 && device < kMaxDevicesPerType ? states.existing(device) : nullptr;
}

void destroy_states() {
  states.destroy();
  cards_in_use = 0;
}

}  // namespace cuda
}  // namespace ramet
