#include "runtime/cuda/nccl.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runtime/cuda/device_state.h"
#include "runtime/logging.h"
#ifdef RAMET_GPU_TOOLKIT
#include <dlfcn.h>

#include "runtime/cuda/libraries.h"
#else
#include "runtime/cuda/emulated/nccl_api.h"
#endif

#ifdef RAMET_GPU_TOOLKIT
// The part of NCCL 2's interface that is used. Its header is no part of the toolkit.
typedef struct ncclComm* ncclComm_t;
typedef int ncclResult_t;
typedef int ncclDataType_t;
typedef int ncclRedOp_t;
enum { ncclSuccess = 0, ncclSum = 0 };
enum {
  ncclInt8 = 0,
  ncclUint8 = 1,
  ncclInt32 = 2,
  ncclInt64 = 4,
  ncclFloat16 = 6,
  ncclFloat32 = 7,
  ncclFloat64 = 8,
  ncclBfloat16 = 9
};
#endif

namespace ramet {
namespace cuda {
namespace {

struct Nccl {
  ncclResult_t (*init_all)(ncclComm_t*, int, const int*) = nullptr;
  ncclResult_t (*destroy)(ncclComm_t) = nullptr;
  ncclResult_t (*group_start)() = nullptr;
  ncclResult_t (*group_end)() = nullptr;
  ncclResult_t (*reduce)(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, int, ncclComm_t,
                         cudaStream_t) = nullptr;
  const char* (*text)(ncclResult_t) = nullptr;
};

#ifdef RAMET_GPU_TOOLKIT
template <class F> bool find(void* library, const char* name, F& f, std::string& why) {
  f = reinterpret_cast<F>(dlsym(library, name));
  if (!f) why = std::string("it has no ") + name;
  return f;
}
std::unique_ptr<Nccl> opened() {
  std::string why;
  auto n = std::make_unique<Nccl>();
  void* library = open_library("libnccl.so.2", "nccl", &why);
  if (library && find(library, "ncclCommInitAll", n->init_all, why) &&
      find(library, "ncclCommDestroy", n->destroy, why) &&
      find(library, "ncclGroupStart", n->group_start, why) &&
      find(library, "ncclGroupEnd", n->group_end, why) &&
      find(library, "ncclReduce", n->reduce, why) &&
      find(library, "ncclGetErrorString", n->text, why))
    return n;
  log(LogLevel::Info, detail::join("NCCL cannot be used, sums run as kernels: ", why));
  return nullptr;
}
#else
std::unique_ptr<Nccl> opened() {
  auto n = std::make_unique<Nccl>();
  n->init_all = ncclCommInitAll;
  n->destroy = ncclCommDestroy;
  n->group_start = ncclGroupStart;
  n->group_end = ncclGroupEnd;
  n->reduce = ncclReduce;
  n->text = ncclGetErrorString;
  return n;
}
#endif

// At first use. Never closed: communicators of static objects may outlive main().
const Nccl* nccl() {
  static const Nccl* found = opened().release();
  return found;
}

void check(const char* op, const char* call, ncclResult_t code) {
  if (code != ncclSuccess) fail(op, call, " failed: ", nccl()->text(code));
}

int type_of(ScalarType t) {
  switch (t) {
    case ScalarType::Char: return ncclInt8;
    case ScalarType::Byte: return ncclUint8;
    case ScalarType::Int: return ncclInt32;
    case ScalarType::Long: return ncclInt64;
    case ScalarType::Half: return ncclFloat16;
    case ScalarType::Float: return ncclFloat32;
    case ScalarType::Double: return ncclFloat64;
    case ScalarType::BFloat16: return ncclBfloat16;
    default: return -1;
  }
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
  if (type_of(dtype) < 0 || count < 2) return false;
  std::vector<int> cards = cards_of(op, devices, count);
  std::sort(cards.begin(), cards.end());
  return std::adjacent_find(cards.begin(), cards.end()) == cards.end() && nccl();
}

void nccl_sum(const char* op, const void* const* in, const int* devices, int count, void* out,
              int root, int64_t n, ScalarType dtype) {
  const int type = type_of(dtype);
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
