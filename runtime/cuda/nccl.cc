#include "runtime/cuda/nccl.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/logging.h"
#include "runtime/cuda/caching_allocator.h"
#include "runtime/cuda/device_state.h"
#include "runtime/cuda/nccl_library.h"
#include "runtime/devices/gpu_link.h"

namespace ramet {
namespace cuda {
namespace {

// Opened once.
const Nccl* nccl() {
  static std::string why_not;
  static const Nccl* const found = nccl_library(&why_not);
  if (!found) RAMET_WARN_ONCE("NCCL cannot be used, sums run as kernels: ", why_not);
  return found;
}

void check(const char* op, const char* call, ncclResult_t code) {
  if (code != ncclSuccess) fail(op, call, " failed: ", nccl()->text(code));
}

// Ends the group also after an error. Otherwise the thread's later NCCL calls would wait for it.
struct OpenGroup {
  explicit OpenGroup(const char* op) { check(op, "ncclGroupStart", nccl()->group_start()); }
  ~OpenGroup() {
    if (open) (void)end();
  }
  OpenGroup(const OpenGroup&) = delete;
  ncclResult_t end() {
    open = false;
    return nccl()->group_end();
  }
  bool open = true;
};

// Communicators by the GPUs of their ranks. Calls of NCCL may wait for these GPUs. So no thread
// holds `mutex`, which guards the map, during such a call.
struct Communicators {
  std::mutex mutex;
  std::map<std::vector<int>, std::vector<ncclComm_t>> of;
  std::mutex one_at_a_time[64];  // by GPU
};
Communicators& communicators() {
  static auto* c = new Communicators;
  return *c;
}
std::atomic<uint64_t> sums{0};

// One group at a time on each GPU: NCCL needs the same order of calls on all GPUs of a group. A
// thread that waits wants one of these GPUs.
std::vector<std::unique_lock<std::mutex>> lock_cards(std::vector<int> cards) {
  for (int& card : cards) card %= 64;
  std::sort(cards.begin(), cards.end());
  cards.erase(std::unique(cards.begin(), cards.end()), cards.end());
  std::vector<std::unique_lock<std::mutex>> locks;
  for (int card : cards) locks.emplace_back(communicators().one_at_a_time[card]);
  return locks;
}

// Aborts communicators of which some ranks may wait for the others for ever. False if that is not
// done in time.
bool abort_all(const std::vector<int>& cards, const std::vector<ncclComm_t>& ranks) {
  const Nccl& library = *nccl();
  if (!library.abort) {  // before 2.14
    for (ncclComm_t rank : ranks) (void)library.destroy(rank);
    return true;
  }
  std::vector<std::pair<int, ncclComm_t>> all;
  for (size_t i = 0; i < ranks.size(); ++i) all.emplace_back(cards[i], ranks[i]);
  if (Aborts(library, all).are_back_by(std::chrono::steady_clock::now() + gpu::kLinkAbortTakes))
    return true;
  log(LogLevel::Warning, "ncclCommAbort did not return in time, after a sum that failed");
  return false;
}

std::vector<int> cards_of(const char* op, const int* devices, int count) {
  std::vector<int> cards;
  for (int i = 0; i < count; ++i) cards.push_back(device_state(devices[i], op).card);
  return cards;
}

bool all_differ(std::vector<int> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return std::adjacent_find(numbers.begin(), numbers.end()) == numbers.end();
}

}  // namespace

bool nccl_can_sum(const char* op, const int* devices, int count, ScalarType dtype) {
  if (nccl_type(dtype) < 0 || count < 2) return false;
  if (all_differ(cards_of(op, devices, count))) return nccl() != nullptr;
  if (logging() && all_differ({devices, devices + count}) && nccl_library(nullptr))
    RAMET_WARN_ONCE(
        "NCCL wants a card for each device, but devices share one (RAMET_CUDA_DEVICES): "
        "sums in any order run as kernels");
  return false;
}

void nccl_sum(const char* op, const void* const* in, const int* devices, int count, void* out,
              int root, int64_t n, ScalarType dtype) {
  const std::vector<int> cards = cards_of(op, devices, count);
  Communicators& all = communicators();
  auto locks = lock_cards(cards);
  std::vector<cudaStream_t> streams;
  for (int i = 0; i < count; ++i) {
    DeviceState& state = device_state(devices[i], op);
    state.order(Queue::kCompute, Queue::kCommunication, op);
    streams.push_back(state.stream(Queue::kCommunication, op));
  }
  const Nccl& library = *nccl();
  const char* call = nullptr;
  const auto sum = [&] {
    std::vector<ncclComm_t> ranks;
    {
      const std::lock_guard lock(all.mutex);
      if (const auto found = all.of.find(cards); found != all.of.end()) ranks = found->second;
    }
    if (ranks.empty()) {
      ranks.resize(cards.size());
      call = "ncclCommInitAll";
      if (const auto code = library.init_all(ranks.data(), count, cards.data())) return code;
      const std::lock_guard lock(all.mutex);
      all.of[cards] = ranks;
    }
    OpenGroup group(op);
    call = "ncclReduce";
    ncclResult_t code = ncclSuccess;
    for (int i = 0; i < count && code == ncclSuccess; ++i) {
      const CardGuard card(op, devices[i]);
      code = library.reduce(in[i], i == root ? out : nullptr, static_cast<size_t>(n),
                            static_cast<ncclDataType_t>(nccl_type(dtype)), ncclSum, root,
                            ranks[static_cast<size_t>(i)], streams[static_cast<size_t>(i)]);
    }
    if (code == ncclSuccess) call = "ncclGroupEnd";
    const ncclResult_t end = group.end();
    return code == ncclSuccess ? end : code;
  };
  // After a failure the communicators are not used again: some ranks may wait for the others for
  // ever. No sum is complete without all ranks, so it can be begun again. Other groups of GPUs go
  // on.
  const auto forget = [&] {
    std::vector<ncclComm_t> ranks;
    {
      const std::lock_guard lock(all.mutex);
      ranks = std::exchange(all.of[cards], {});
      all.of.erase(cards);
    }
    locks.clear();
    return abort_all(cards, ranks);
  };
  for (bool again = false;; again = true) {
    ncclResult_t code;
    try {
      code = sum();
    } catch (...) {
      (void)forget();
      throw;
    }
    if (code == ncclSuccess) break;
    const bool over = forget();
    // NCCL does not report which CUDA error it got. The reason may be missing memory for buffers
    // and connections, and caches may hold that memory. They could not give it back while the GPUs
    // are busy.
    if (again || !over || code != ncclUnhandledCudaError) check(op, call, code);
    (void)cudaGetLastError();
    for (int i = 0; i < count; ++i) empty_caches_of_card(devices[i]);
    locks = lock_cards(cards);
  }
  sums.fetch_add(1, std::memory_order_relaxed);
}

uint64_t nccl_sums() { return sums.load(std::memory_order_relaxed); }

void destroy_communicators() {
  Communicators& all = communicators();
  std::lock_guard lock(all.mutex);
  for (const auto& [cards, ranks] : all.of)
    for (ncclComm_t rank : ranks) (void)nccl()->destroy(rank);
  all.of.clear();
}

}  // namespace cuda
}  // namespace ramet
