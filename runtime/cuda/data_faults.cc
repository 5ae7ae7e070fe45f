#include "runtime/cuda/data_faults.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/cuda/caching_allocator.h"
#include "runtime/cuda/check.h"
#include "runtime/cuda/device_state.h"

namespace ramet {
namespace cuda {
namespace {

using Key = std::tuple<std::string, std::string, bool, int64_t, int64_t>;

// Numbers of checks, for all devices. What kernels of captured graphs name stays.
struct Checks {
  std::mutex mutex;
  std::map<Key, uint32_t> numbers;
  std::vector<Key> keys;
};
Checks& checks() {  // never destroyed: see device_state.cc
  static auto* c = new Checks;
  return *c;
}
// As many different ones (an operation and its bounds) are told apart; further ones share a number
// whose text says so.
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
  if (own_) (void)cudaStreamDestroy(own_);
  if (host_) (void)cudaFreeHost(host_);
}

void DataFaults::forget(int device) {
  std::lock_guard lock(raising_);
  if (FaultWord* word = word_.exchange(nullptr)) caching_allocator(device).free(word);
}

gpu::DataFault DataFaults::expect(int device, cudaStream_t compute, const gpu::DataCheck& check) {
  const uint32_t number = number_of(check);
  // Without the lock, in which somebody may wait for the device.
  if (FaultWord* word = word_.load(std::memory_order_acquire)) return {word, number};
  std::lock_guard lock(raising_);
  if (!host_) {
    void* host = nullptr;
    RAMET_CUDA(check.op, device, cudaHostAlloc(&host, sizeof(FaultWord), cudaHostAllocPortable));
    host_ = static_cast<FaultWord*>(host);
  }
  if (!own_) RAMET_CUDA(check.op, device, cudaStreamCreateWithFlags(&own_, cudaStreamNonBlocking));
  if (!word_.load()) {
    const EventHandle cleared(check.op, device);
    CachingAllocator& memory = caching_allocator(device);
    void* word = memory.allocate(sizeof(FaultWord));
    try {
      RAMET_CUDA(check.op, device, cudaMemsetAsync(word, 0, sizeof(FaultWord), compute));
      RAMET_CUDA(check.op, device, cudaEventRecord(cleared.get(), compute));
      RAMET_CUDA(check.op, device, cudaStreamWaitEvent(own_, cleared.get(), 0));
    } catch (...) {
      memory.free(word);
      throw;
    }
    word_.store(static_cast<FaultWord*>(word), std::memory_order_release);
  }
  return {word_.load(), number};
}

void DataFaults::raise(int device, cudaStream_t compute) {
  FaultWord found;
  {
    std::lock_guard lock(raising_);
    FaultWord* const word = word_.load();
    uint64_t looks;
    {
      std::lock_guard together(queueing_);
      looks = looks_.load(std::memory_order_relaxed);
      if (!pending(looks)) return;
      RAMET_CUDA("synchronize", device,
                 cudaMemcpyAsync(host_, word, sizeof(FaultWord), cudaMemcpyDeviceToHost, compute));
      RAMET_CUDA("synchronize", device, cudaMemsetAsync(word, 0, sizeof(FaultWord), compute));
    }
    RAMET_CUDA("synchronize", device, cudaStreamSynchronize(compute));
    told_.store(looks, std::memory_order_release);
    found = *host_;
  }
  if (found.check) throw_fault(device, found);
}

// Nobody clears the word meanwhile, and whether it is 0 is one aligned number.
bool DataFaults::reported(int device) {
  std::lock_guard lock(raising_);
  RAMET_CUDA("synchronize", device,
             cudaMemcpyAsync(&host_->check, &word_.load()->check, sizeof host_->check,
                             cudaMemcpyDeviceToHost, own_));
  RAMET_CUDA("synchronize", device, cudaStreamSynchronize(own_));
  return host_->check != 0;
}

void DataFaults::raise_up_to(uint64_t looks, int device, cudaStream_t compute) {
  looks = std::min(looks, this->looks());  // of an event that has survived a shutdown()
  if (pending(looks) && reported(device)) raise(device, compute);
}

}  // namespace cuda
}  // namespace ramet
