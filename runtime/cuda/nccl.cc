#include "runtime/cuda/nccl.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runtime/cuda/device_state.h"
#include "runtime/cuda/nccl_library.h"
#include "runtime/logging.h"

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

// Communicators by the cards of their ranks. One group at a time: NCCL wants the same order of
// calls on every card.
struct Communicators {
  std::mutex mutex;
  std::map<std::vector<int>, std::vector<ncclComm_t>> of;
};
Communicators& communicators() {
  static auto* c = new Communicators;
  return *c;
}
std::atomic<uint64_t> sums{0};

std::vector<int> cards_of(const char* op, const int* devices, int count) {
  std::vector<int> cards;
  for (int i = 0; i < count; ++i) cards.push_back(device_state(devices[i], op).card);
  return cards;
}

}  // namespace

bool nccl_can_sum(const char* op, const int* devices, int count, ScalarType dtype) {
  if (nccl_type(dtype) < 0 || count < 2) return false;
  std::vector<int> cards = cards_of(op, devices, count);
  std::sort(cards.begin(), cards.end());
  return std::adjacent_find(cards.begin(), cards.end()) == cards.end() && nccl();
}

void nccl_sum(const char* op, const void* const* in, const int* devices, int count, void* out,
              int root, int64_t n, ScalarType dtype) {
  const int type = nccl_type(dtype);
  const std::vector<int> cards = cards_of(op, devices, count);
  const Nccl* library = nccl();
  Communicators& all = communicators();
  std::lock_guard lock(all.mutex);
  std::vector<ncclComm_t>& ranks = all.of[cards];
  if (ranks.empty()) {
    std::vector<ncclComm_t> made(cards.size());
    check(op, "ncclCommInitAll", library->init_all(made.data(), count, cards.data()));
    ranks = std::move(made);
  }
  std::vector<cudaStream_t> streams;
  for (int i = 0; i < count; ++i) {
    DeviceState& state = device_state(devices[i], op);
    state.order(Queue::kCompute, Queue::kCommunication, op);
    streams.push_back(state.stream(Queue::kCommunication, op));
  }
  check(op, "ncclGroupStart", library->group_start());
  ncclResult_t code = ncclSuccess;
  for (int i = 0; i < count && code == ncclSuccess; ++i) {
    const CardGuard card(op, devices[i]);
    code = library->reduce(in[i], i == root ? out : nullptr, static_cast<size_t>(n),
                           static_cast<ncclDataType_t>(type), ncclSum, root,
                           ranks[static_cast<size_t>(i)], streams[static_cast<size_t>(i)]);
  }
  const ncclResult_t end = library->group_end();  // also after an error
  check(op, "ncclReduce", code);
  check(op, "ncclGroupEnd", end);
  sums.fetch_add(1, std::memory_order_relaxed);
}

uint64_t nccl_sums() { return sums.load(std::memory_order_relaxed); }

void destroy_communicators() {
  Communicators& all = communicators();
  std::lock_guard lock(all.mutex);
  for (auto& [cards, ranks] : all.of)
    for (ncclComm_t rank : ranks) (void)nccl()->destroy(rank);
  all.of.clear();
}

}  // namespace cuda
}  // namespace ramet
