#include "runtime/cuda/copies.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/logging.h"
#include "runtime/cuda/caching_allocator.h"
#include "runtime/cuda/check.h"
#include "runtime/cuda/device_state.h"
#include "runtime/cuda/host_copies.h"
#include "runtime/cuda/peer_read.h"
#include "runtime/cuda/pinned_places.h"

namespace ramet {
namespace cuda {
namespace {

std::atomic<uint64_t> count_to_device, count_to_host, count_direct, count_through_host;
std::atomic<int> trial_deadline{5000};
std::atomic<TrialRead> trial_read{read_peer};

// A trial copy between two GPUs, and a trial read by a kernel. It is unknown whether they end: Note
// [Copies].
class Trial {
 public:
  static constexpr const char* kOp = "peer access";
  Trial(int from, int to);
  ~Trial();
  Trial(const Trial&) = delete;
  void begin();
  bool ended() { return over(done_); }
  /// The reason why the data is wrong; "" if it is right.
  std::string damage();
  const char* what_is_late() {
    return over(copied_) ? "what a kernel reads there" : "a trial copy";
  }

 private:
  static constexpr size_t kBytes = 4096;
  // And waits, so no work that was queued before uses the memory from here on.
  void fill(int device, void* memory, const std::vector<unsigned char>& with);
  void give_back();
  bool over(const EventHandle& event) const;

  const int from_, to_;
  std::vector<unsigned char> sent_;
  void* source_ = nullptr;
  char* target_ = nullptr;  // the copied data, followed by the data that was read
  EventHandle copied_, done_;
  cudaStream_t stream_ = nullptr;
};

enum class Route : uint8_t { kNotTried, kDirect, kThroughHost };
struct Shared {
  std::mutex mutex;
  std::unique_ptr<PinnedPlaces> in[kMaxDevicesPerType], out[kMaxDevicesPerType];
  Route route[kMaxDevicesPerType][kMaxDevicesPerType] = {};
  std::vector<EventHandle> marks[kMaxDevicesPerType];  // of order_across(), unused ones
  std::vector<std::unique_ptr<Trial>> trials;          // under way; late ones stay for ever
};
Shared& shared() {  // never destroyed: see device_state.cc
  static auto* s = new Shared;
  return *s;
}
// An event may be recorded again while it is waited for: the wait is for the earlier record.
EventHandle take_mark(const char* op, int device) {
  {
    const std::lock_guard lock(shared().mutex);
    if (auto& marks = shared().marks[device]; !marks.empty()) {
      EventHandle mark = std::move(marks.back());
      marks.pop_back();
      return mark;
    }
  }
  return EventHandle(op, device);
}
void give_back_mark(int device, EventHandle mark) {
  const std::lock_guard lock(shared().mutex);
  shared().marks[device].push_back(std::move(mark));
}
// A copy to the host waits until it is done, so two halves are enough.
PinnedPlaces& places(std::unique_ptr<PinnedPlaces>& of, size_t halves) {
  std::lock_guard lock(shared().mutex);
  if (!of) of = std::make_unique<PinnedPlaces>(halves);
  return *of;
}
PinnedPlaces& places_in(int device) { return places(shared().in[device], 4); }
PinnedPlaces& places_out(int device) { return places(shared().out[device], 2); }

// After `earlier`, or if that is null, after all work of the compute stream.
void begin_behind(const char* op, DeviceState& state, Queue copies, CardEvent* earlier) {
  if (earlier) earlier->wait_on(state, copies);
  else state.order(Queue::kCompute, copies, op);
}

void to_device(const char* op, void* to, int device, const void* from, size_t bytes,
               CardEvent* earlier = nullptr) {
  count_to_device.fetch_add(1, std::memory_order_relaxed);
  DeviceState& state = device_state(device, op);
  PinnedPlaces& pinned = places_in(device);
  const CardGuard guard(op, device);
  const cudaStream_t stream = state.stream(Queue::kCopyIn, op);
  const auto send = [&](Place& by, size_t at, size_t n) {
    std::memcpy(by.memory, static_cast<const char*>(from) + at, n);
    RAMET_CUDA(
        op, device,
        cudaMemcpyAsync(static_cast<char*>(to) + at, by.memory, n, cudaMemcpyHostToDevice, stream));
    by.sent(op, device, stream);
  };
  if (bytes <= PinnedPlaces::kSmall) {
    const PinnedPlaces::Taken by = pinned.small(op, device);
    begin_behind(op, state, Queue::kCopyIn, earlier);
    send(by.place, 0, bytes);
  } else {
    const std::lock_guard lock(pinned.pipeline);
    pinned.prepare(op, device, bytes);
    begin_behind(op, state, Queue::kCopyIn, earlier);
    size_t i = 0;
    for (size_t at = 0; at < bytes; at += kPiece, ++i) {
      Place& half = pinned.half(i);
      half.wait(op, device);
      send(half, at, std::min(kPiece, bytes - at));
    }
    pinned.end(i);
  }
  state.order(Queue::kCopyIn, Queue::kCompute, op);
}

void to_host(const char* op, void* to, const void* from, int device, size_t bytes,
             CardEvent* earlier = nullptr) {
  count_to_host.fetch_add(1, std::memory_order_relaxed);
  DeviceState& state = device_state(device, op);
  PinnedPlaces& pinned = places_out(device);
  const CardGuard guard(op, device);
  const cudaStream_t stream = state.stream(Queue::kCopyOut, op);
  const auto fetch = [&](Place& by, size_t at, size_t n) {
    RAMET_CUDA(op, device,
               cudaMemcpyAsync(by.memory, static_cast<const char*>(from) + at, n,
                               cudaMemcpyDeviceToHost, stream));
    by.sent(op, device, stream);
  };
  const auto take_out = [&](Place& by, size_t at, size_t n) {
    by.wait(op, device);
    std::memcpy(static_cast<char*>(to) + at, by.memory, n);
  };
  if (bytes <= PinnedPlaces::kSmall) {
    const PinnedPlaces::Taken by = pinned.small(op, device);
    begin_behind(op, state, Queue::kCopyOut, earlier);
    fetch(by.place, 0, bytes);
    take_out(by.place, 0, bytes);
  } else {
    const std::lock_guard lock(pinned.pipeline);
    pinned.prepare(op, device, bytes);
    begin_behind(op, state, Queue::kCopyOut, earlier);
    const size_t pieces = (bytes + kPiece - 1) / kPiece;
    const auto size = [&](size_t i) { return std::min(kPiece, bytes - i * kPiece); };
    for (size_t i = 0; i <= pieces; ++i) {
      if (i < pieces) fetch(pinned.half(i), i * kPiece, size(i));
      if (i > 0) take_out(pinned.half(i - 1), (i - 1) * kPiece, size(i - 1));
    }
  }
  if (earlier) earlier->raise();
  else state.raise_fault();
}

// Queues a direct copy on the receiver's stream, ordered with both compute streams.
void direct(const char* op, void* to, int to_device, const void* from, int from_device,
            size_t bytes) {
  DeviceState &sender = device_state(from_device, op), &receiver = device_state(to_device, op);
  order_across(op, sender, Queue::kCompute, receiver, Queue::kCopyIn);
  receiver.order(Queue::kCompute, Queue::kCopyIn, op);
  {
    const CardGuard guard(op, to_device);
    RAMET_CUDA(op, to_device,
               cudaMemcpyPeerAsync(to, receiver.card, from, sender.card, bytes,
                                   receiver.stream(Queue::kCopyIn, op)));
  }
  receiver.order(Queue::kCopyIn, Queue::kCompute, op);
  order_across(op, receiver, Queue::kCopyIn, sender, Queue::kCompute);
}

Trial::Trial(int from, int to)
    : from_(from), to_(to), sent_(kBytes), copied_(kOp, to), done_(kOp, to) {
  for (size_t i = 0; i < kBytes; ++i) sent_[i] = static_cast<unsigned char>(i * 31 + 7);
  try {
    source_ = caching_allocator(from).allocate(kBytes);
    target_ = static_cast<char*>(caching_allocator(to).allocate(2 * kBytes));
    fill(from, source_, sent_);
    fill(to, target_, std::vector<unsigned char>(2 * kBytes, 0));
    const CardGuard guard(kOp, to);
    RAMET_CUDA_ALLOCATING(kOp, to, cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    // The kernel is loaded now. At its first launch the driver may wait for the whole GPU (CUDA
    // Programming Guide, "Lazy Loading", "Concurrent Execution"). After a copy that never ends the
    // launch would not return.
    RAMET_CUDA(kOp, to, read_peer(target_ + kBytes, target_, kBytes, stream_));
    RAMET_CUDA(kOp, to, cudaStreamSynchronize(stream_));
  } catch (...) {
    give_back();
    throw;
  }
}
Trial::~Trial() { give_back(); }

void Trial::give_back() {
  if (stream_ && use_any_card()) ignore(cudaStreamDestroy(stream_));
  if (source_) caching_allocator(from_).free(source_);
  if (target_) caching_allocator(to_).free(target_);
}

void Trial::fill(int device, void* memory, const std::vector<unsigned char>& with) {
  to_device(kOp, memory, device, with.data(), with.size());
  const CardGuard guard(kOp, device);
  RAMET_CUDA(kOp, device,
             cudaStreamSynchronize(device_state(device, kOp).stream(Queue::kCopyIn, kOp)));
}

void Trial::begin() {
  const CardGuard guard(kOp, to_);
  RAMET_CUDA(kOp, to_,
             cudaMemcpyPeerAsync(target_, device_state(to_, kOp).card, source_,
                                 device_state(from_, kOp).card, kBytes, stream_));
  RAMET_CUDA(kOp, to_, cudaEventRecord(copied_.get(), stream_));
  RAMET_CUDA(kOp, to_, trial_read.load()(target_ + kBytes, source_, kBytes, stream_));
  RAMET_CUDA(kOp, to_, cudaEventRecord(done_.get(), stream_));
}

bool Trial::over(const EventHandle& event) const {
  const CardGuard guard(kOp, to_);
  const cudaError_t code = cudaEventQuery(event.get());
  if (is_not_ready(code)) return false;
  RAMET_CUDA(kOp, to_, code);
  return true;
}

std::string Trial::damage() {
  std::vector<unsigned char> arrived(2 * kBytes);
  to_host(kOp, arrived.data(), target_, to_, arrived.size());
  const auto middle = arrived.begin() + kBytes;
  if (!std::equal(arrived.begin(), middle, sent_.begin())) return "a trial copy arrived damaged";
  if (!std::equal(middle, arrived.end(), sent_.begin()))
    return "what a kernel reads there is damaged";
  return "";
}

// Added before any of its work is queued, removed when all has ended.
Trial& add_trial(std::unique_ptr<Trial> trial) {
  const std::lock_guard lock(shared().mutex);
  return *shared().trials.emplace_back(std::move(trial));
}
std::unique_ptr<Trial> take_trial(const Trial& trial) {
  const std::lock_guard lock(shared().mutex);
  auto& all = shared().trials;
  const auto at =
      std::find_if(all.begin(), all.end(), [&](const auto& t) { return t.get() == &trial; });
  std::unique_ptr<Trial> taken = std::move(*at);
  all.erase(at);
  return taken;
}

// Copies a few kilobytes, and reads them by a kernel. Returns "" if they arrive correct and in
// time, else the reason.
std::string try_direct(int from, int to) {
  DeviceState &sender = device_state(from, Trial::kOp), &receiver = device_state(to, Trial::kOp);
  if (sender.card == receiver.card) return "";
  int can = 0;
  RAMET_CUDA(Trial::kOp, to, cudaDeviceCanAccessPeer(&can, receiver.card, sender.card));
  if (!can) return "the driver says that they do not reach each other";
  {
    const CardGuard guard(Trial::kOp, to);
    const cudaError_t code = cudaDeviceEnablePeerAccess(sender.card, 0);
    if (code != cudaSuccess) (void)cudaGetLastError();
    if (code != cudaSuccess && code != cudaErrorPeerAccessAlreadyEnabled)
      return std::string("cudaDeviceEnablePeerAccess: ") + cudaGetErrorString(code);
  }
  caching_allocator(from).open_to(receiver.card);
  const int limit = trial_deadline.load();
  Trial& trial = add_trial(std::make_unique<Trial>(from, to));
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(limit);
  try {
    trial.begin();
    while (!trial.ended()) {
      if (std::chrono::steady_clock::now() > until) {
        sender.keep_cached_memory();
        receiver.keep_cached_memory();
        return trial.what_is_late() + std::string(" did not arrive within ") +
               std::to_string(limit) + " ms";
      }
      std::this_thread::yield();
    }
  } catch (...) {  // work that was queued before may still run
    sender.keep_cached_memory();
    receiver.keep_cached_memory();
    throw;
  }
  return take_trial(trial)->damage();
}

}  // namespace

void order_across(const char* op, DeviceState& from, Queue earlier, DeviceState& to, Queue later) {
  const Looks looks = from.looks();
  EventHandle mark = take_mark(op, from.device);
  {
    const CardGuard guard(op, from.device);
    RAMET_CUDA(op, from.device, cudaEventRecord(mark.get(), from.stream(earlier, op)));
  }
  {
    const CardGuard guard(op, to.device);
    RAMET_CUDA(op, to.device, cudaStreamWaitEvent(to.stream(later, op), mark.get(), 0));
  }
  give_back_mark(from.device, std::move(mark));
  to.came_behind(looks);
}

bool direct_access(int from, int to) {
  if (from == to) return true;
  Shared& s = shared();
  {
    std::lock_guard lock(s.mutex);
    const Route known = s.route[from][to];
    if (known != Route::kNotTried) return known == Route::kDirect;
  }
  const std::string why_not = try_direct(from, to);
  std::lock_guard lock(s.mutex);
  Route& route = s.route[from][to];
  if (route == Route::kNotTried) {
    route = why_not.empty() ? Route::kDirect : Route::kThroughHost;
    if (!why_not.empty())
      log(LogLevel::Warning, detail::join("copies from cuda:", from, " to cuda:", to,
                                          " go through the host: ", why_not));
  }
  return route == Route::kDirect;
}

void set_trial_deadline(int milliseconds) { trial_deadline = milliseconds; }
void set_trial_read(TrialRead read) { trial_read = read ? read : read_peer; }

void copy(const char* op, void* to, Device to_device_, const void* from, Device from_device,
          size_t bytes) {
  if (bytes == 0) return;
  if (from_device.is_cpu()) return to_device(op, to, to_device_.index(), from, bytes);
  if (to_device_.is_cpu()) return to_host(op, to, from, from_device.index(), bytes);
  const int source = from_device.index(), target = to_device_.index();
  if (source == target) {
    const CardGuard guard(op, target);
    RAMET_CUDA(op, target,
               cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice,
                               device_state(target, op).stream(Queue::kCompute, op)));
    return;
  }
  if (direct_access(source, target)) {
    count_direct.fetch_add(1, std::memory_order_relaxed);
    return direct(op, to, target, from, source, bytes);
  }
  count_through_host.fetch_add(1, std::memory_order_relaxed);
  std::vector<char> piece(std::min(bytes, kPiece));
  for (size_t at = 0; at < bytes; at += piece.size()) {
    const size_t n = std::min(piece.size(), bytes - at);
    to_host(op, piece.data(), static_cast<const char*>(from) + at, source, n);
    to_device(op, static_cast<char*>(to) + at, target, piece.data(), n);
  }
}

void copy_after(const char* op, CardEvent& earlier, void* to, Device to_device_, const void* from,
                Device from_device, size_t bytes) {
  RAMET_CHECK(to_device_.is_cpu() != from_device.is_cpu(), op, "got ", from_device, " and ",
              to_device_, ", expected a GPU and the host");
  if (bytes == 0) return;
  if (from_device.is_cpu()) to_device(op, to, to_device_.index(), from, bytes, &earlier);
  else to_host(op, to, from, from_device.index(), bytes, &earlier);
}

CopyCounts copy_counts() {
  return {count_to_device.load(), count_to_host.load(), count_direct.load(),
          count_through_host.load()};
}

void destroy_buffers() {
  Shared& s = shared();
  std::lock_guard lock(s.mutex);
  for (int i = 0; i < kMaxDevicesPerType; ++i)
    s.in[i].reset(), s.out[i].reset(), s.marks[i].clear();
  for (auto& row : s.route) std::fill(std::begin(row), std::end(row), Route::kNotTried);
}

}  // namespace cuda
}  // namespace ramet
