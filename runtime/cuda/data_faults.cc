#include "runtime/cuda/data_faults.h"

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/cuda/check.h"

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
  if (word_) (void)cudaFree(word_);
  if (host_) (void)cudaFreeHost(host_);
}

gpu::DataFault DataFaults::expect(int device, cudaStream_t stream, const gpu::DataCheck& check) {
  const uint32_t number = number_of(check);
  std::lock_guard lock(mutex_);
  if (!word_) {
    void *word = nullptr, *host = nullptr;
    RAMET_CUDA(check.op, device, cudaHostAlloc(&host, sizeof(FaultWord), cudaHostAllocPortable));
    host_ = static_cast<FaultWord*>(host);
    RAMET_CUDA(check.op, device, cudaMalloc(&word, sizeof(FaultWord)));
    RAMET_CUDA(check.op, device, cudaMemsetAsync(word, 0, sizeof(FaultWord), stream));
    word_ = static_cast<FaultWord*>(word);
  }
  pending_ = true;
  return {word_, number};
}

void DataFaults::raise(int device, cudaStream_t stream) {
  FaultWord found;
  {
    std::lock_guard lock(mutex_);
    RAMET_CUDA("synchronize", device,
               cudaMemcpyAsync(host_, word_, sizeof(FaultWord), cudaMemcpyDeviceToHost, stream));
    RAMET_CUDA("synchronize", device, cudaStreamSynchronize(stream));
    pending_ = false;
    found = *host_;
    if (found.check)
      RAMET_CUDA("synchronize", device, cudaMemsetAsync(word_, 0, sizeof(FaultWord), stream));
  }
  if (found.check) throw_fault(device, found);
}

}  // namespace cuda
}  // namespace ramet
