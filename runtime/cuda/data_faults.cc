#include "runtime/cuda/data_faults.h"

#include <algorithm>
#include <exception>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/cuda/caching_allocator.h"
#include "runtime/cuda/check.h"
#include "runtime/cuda/device_state.h"
#include "runtime/cuda/host_copies.h"
#include "runtime/devices/devices.h"

namespace ramet {
namespace cuda {
namespace {

using Key = std::tuple<std::string, std::string, bool, int64_t, int64_t>;

// Numbers of checks, for all devices. They are never freed, because kernels of captured graphs name
// them.
struct Checks {
  std::mutex mutex;
  std::map<Key, uint32_t> numbers;
  std::vector<Key> keys;
};
Checks& checks() {  // never destroyed: see device_state.cc
  static auto* c = new Checks;
  return *c;
}
// So many different checks have a number each, an operation with its bounds. Further ones share a
// number, and its text says so.
constexpr size_t kMostChecks = size_t{1} << 16;

uint32_t number_of(const gpu::DataCheck& check) {
  Key key{check.op, check.what, check.is_index, check.low, check.high};
  Checks& all = checks();
  std::lock_guard lock(all.mutex);
  const auto found = all.numbers.find(key);
  if (found != all.numbers.end()) return found->second;
  if (all.keys.size() == kMostChecks) key = {"index", "one of many checks", false, 0, 0};
  const auto [at, fresh] = all.numbers.emplace(key, static_cast<uint32_t>(all.keys.size() + 1));
  if (fresh) all.keys.push_back(std::move(key));
  return at->second;
}

[[noreturn]] void throw_fault(int device, const FaultWord& fault) {
  Key key;
  {
    std::lock_guard lock(checks().mutex);
    key = checks().keys[fault.check - 1];
  }
  const auto& [op, what, is_index, low, high] = key;
  if (!is_index) fail(op.c_str(), what, " at position ", fault.position, ", on cuda:", device);
  throw IndexError(detail::join("[", op, "] index out of range: got ", fault.value, " at position ",
                                fault.position, ", on cuda:", device, ", expected [", low, ", ",
                                high, ") (", what, ")"));
}

}  // namespace

DataFaults::~DataFaults() {
  (void)use_any_card();
  if (own_) ignore(cudaStreamDestroy(own_));
  if (copied_) ignore(cudaEventDestroy(copied_));
}

void DataFaults::forget(int device) {
  FaultWord* host;
  {
    const std::scoped_lock lock(making_, raising_);
    if (FaultWord* words = words_.exchange(nullptr)) caching_allocator(device).free(words);
    host = std::exchange(host_, nullptr);
    waiting_ = 0;
  }
  (void)use_any_card();
  free_host_memory(host);
}

gpu::DataFault DataFaults::expect(int device, cudaStream_t compute, const gpu::DataCheck& check) {
  const uint32_t number = number_of(check);
  const uint64_t mine = devices::origin();
  const size_t at = (mine & 0xffff) % kFaultWords;
  owner_[at].store(mine, std::memory_order_relaxed);
  if (FaultWord* words = words_.load(std::memory_order_acquire)) return {words + at, number};
  std::lock_guard lock(making_);
  constexpr size_t kBytes = kFaultWords * sizeof(FaultWord);
  if (!host_) host_ = static_cast<FaultWord*>(host_memory(check.op, device, 2 * kBytes));
  if (!copied_)
    RAMET_CUDA_ALLOCATING(check.op, device,
                          cudaEventCreateWithFlags(&copied_, cudaEventDisableTiming));
  if (!own_)
    RAMET_CUDA_ALLOCATING(check.op, device,
                          cudaStreamCreateWithFlags(&own_, cudaStreamNonBlocking));
  if (!words_.load()) {
    const EventHandle cleared(check.op, device);
    CachingAllocator& memory = caching_allocator(device);
    void* words = memory.allocate(kBytes);
    try {
      RAMET_CUDA(check.op, device, cudaMemsetAsync(words, 0, kBytes, compute));
      RAMET_CUDA(check.op, device, cudaEventRecord(cleared.get(), compute));
      RAMET_CUDA(check.op, device, cudaStreamWaitEvent(own_, cleared.get(), 0));
    } catch (...) {
      memory.free(words);
      throw;
    }
    words_.store(static_cast<FaultWord*>(words), std::memory_order_release);
  }
  return {words_.load() + at, number};
}

void DataFaults::collect(int device, cudaStream_t compute, Lock& lock) {
  constexpr size_t kBytes = kFaultWords * sizeof(FaultWord);
  read_on_.wait(lock, [this] { return !reading_; });
  reading_ = true;
  lock.unlock();
  uint64_t looks = 0;
  std::exception_ptr failed;
  try {
    std::unique_lock together(queueing_);
    looks = looks_.load(std::memory_order_relaxed);
    if (read_.load(std::memory_order_relaxed) < looks) {
      FaultWord* const words = words_.load();
      RAMET_CUDA("synchronize", device,
                 cudaMemcpyAsync(host_, words, kBytes, cudaMemcpyDeviceToHost, compute));
      RAMET_CUDA("synchronize", device, cudaEventRecord(copied_, compute));
      queued_ = true;  // before the words are cleared: cleared_meanwhile()
      RAMET_CUDA("synchronize", device, clear_faults(words, compute));
      together.unlock();
      RAMET_CUDA("synchronize", device, cudaEventSynchronize(copied_));
    }
  } catch (...) { failed = std::current_exception(); }
  lock.lock();
  if (queued_.exchange(false) && !failed) merge();
  if (!failed && read_.load() < looks) read_.store(looks, std::memory_order_release);
  reading_ = false;
  read_on_.notify_all();
  if (failed) std::rethrow_exception(failed);
}

void DataFaults::merge() {
  for (size_t i = 0; i < kFaultWords; ++i) {
    if (!host_[i].check) continue;
    const uint64_t bit = uint64_t{1} << i, owner = owner_[i].load(std::memory_order_relaxed);
    // Of the faults of one thread, the first one is kept.
    if ((waiting_.load() & bit) && faults_[i].origin == owner) continue;
    faults_[i] = {host_[i], owner, false};
    waiting_.fetch_or(bit, std::memory_order_release);
  }
}

// The fault that this thread must get: its own, else one that no thread has got yet.
const DataFaults::Fault* DataFaults::next() {
  const uint64_t waiting = waiting_.load(), mine = devices::origin();
  Fault* first = nullptr;
  for (size_t i = 0; i < kFaultWords; ++i) {
    Fault& fault = faults_[i];
    if (!(waiting >> i & 1)) continue;
    if (fault.origin == mine) {
      waiting_.fetch_and(~(uint64_t{1} << i));
      return &fault;
    }
    if (!first && !fault.told) first = &fault;
  }
  if (first) first->told = true;
  return first;
}

void DataFaults::tell(int device, Lock lock) {
  const Fault* fault = next();
  if (!fault) return;
  const FaultWord found = fault->word;
  lock.unlock();
  throw_fault(device, found);
}

void DataFaults::raise(int device, cudaStream_t compute) {
  Lock lock(raising_);
  if (read_.load() < looks()) collect(device, compute, lock);
  tell(device, std::move(lock));
}

bool DataFaults::reported(int device) {
  const std::lock_guard lock(asking_);
  FaultWord* const here = host_ + kFaultWords;
  RAMET_CUDA("synchronize", device, read_fault_checks(here, words_.load(), own_));
  RAMET_CUDA("synchronize", device, cudaStreamSynchronize(own_));
  return std::any_of(here, here + kFaultWords, [](const FaultWord& w) { return w.check != 0; });
}

// Another thread waits for its reading. Are the words perhaps cleared, but not yet merged?
bool DataFaults::cleared_meanwhile(int device) {
  if (!reading_ || !queued_.load()) return false;
  const cudaError_t code = cudaEventQuery(copied_);
  if (is_not_ready(code)) return false;
  RAMET_CUDA("synchronize", device, code);
  return true;
}

void DataFaults::raise_up_to(uint64_t looks, int device, cudaStream_t compute) {
  looks = std::min(looks, this->looks());  // the event may be older than a shutdown()
  if (!pending(looks)) return;
  if (read_.load() < looks) {
    const bool found = reported(device);
    Lock lock(raising_);
    if (found) collect(device, compute, lock);
    else if (cleared_meanwhile(device)) read_on_.wait(lock, [this] { return !reading_; });
    return tell(device, std::move(lock));
  }
  tell(device, Lock(raising_));
}

}  // namespace cuda
}  // namespace ramet
