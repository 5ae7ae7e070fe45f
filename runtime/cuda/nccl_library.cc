#include "runtime/cuda/nccl_library.h"

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "runtime/cuda/kept_memory.h"
#ifdef RAMET_GPU_TOOLKIT
#include <dlfcn.h>

#include "runtime/cuda/libraries.h"
#endif

namespace ramet {
namespace cuda {
namespace {

struct Opened {
  std::unique_ptr<Nccl> functions;
  std::string why_not;
};

#ifdef RAMET_GPU_TOOLKIT
template <class F> bool find(void* library, const char* name, F& f) {
  f = reinterpret_cast<F>(dlsym(library, name));
  return f != nullptr;
}

Opened open() {
  Opened o;
  void* library = open_library("libnccl.so.2", "nccl", &o.why_not);
  if (!library) return o;
  auto n = std::make_unique<Nccl>();
  const auto has = [&](const char* name, auto& f) {
    if (find(library, name, f)) return true;
    o.why_not = std::string("it has no ") + name;
    return false;
  };
  if (!has("ncclGetVersion", n->version) || !has("ncclGetErrorString", n->text) ||
      !has("ncclCommInitAll", n->init_all) || !has("ncclCommDestroy", n->destroy) ||
      !has("ncclGroupStart", n->group_start) || !has("ncclGroupEnd", n->group_end) ||
      !has("ncclReduce", n->reduce))
    return o;
  // gpu::why_no_links() checks the version before it uses these.
  find(library, "ncclGetUniqueId", n->unique_id);
  find(library, "ncclCommInitRankConfig", n->init_rank);
  find(library, "ncclCommGetAsyncError", n->async_error);
  find(library, "ncclCommFinalize", n->finalize);
  find(library, "ncclCommAbort", n->abort);
  find(library, "ncclGetLastError", n->last_error);
  find(library, "ncclSend", n->send);
  find(library, "ncclRecv", n->receive);
  find(library, "ncclAllReduce", n->all_reduce);
  o.functions = std::move(n);
  return o;
}
#else
Opened open() {
  auto n = std::make_unique<Nccl>();
  n->version = ncclGetVersion;
  n->text = ncclGetErrorString;
  n->init_all = ncclCommInitAll;
  n->destroy = ncclCommDestroy;
  n->group_start = ncclGroupStart;
  n->group_end = ncclGroupEnd;
  n->reduce = ncclReduce;
  n->unique_id = ncclGetUniqueId;
  n->init_rank = ncclCommInitRankConfig;
  n->async_error = ncclCommGetAsyncError;
  n->finalize = ncclCommFinalize;
  n->abort = ncclCommAbort;
  n->last_error = ncclGetLastError;
  n->send = ncclSend;
  n->receive = ncclRecv;
  n->all_reduce = ncclAllReduce;
  return {std::move(n), ""};
}
#endif

}  // namespace

// Never closed: communicators of static objects may outlive main().
const Nccl* nccl_library(std::string* why) {
  static const auto* opened = new Opened(open());
  if (why) *why = opened->why_not;
  const Nccl* n = opened->functions.get();
  int version = 0;
  if (!n || (n->version(&version) == ncclSuccess && version > 0)) return n;
  if (why) *why = "it does not say which version it is";
  return nullptr;
}

struct Aborts::Calls {
  std::mutex mutex;
  std::condition_variable back;
  std::vector<bool> done;
};

Aborts::Aborts(const Nccl& library, const std::vector<std::pair<int, ncclComm_t>>& ranks)
    : calls_(std::make_shared<Calls>()) {
  calls_->done.resize(ranks.size());
  for (const auto& [card, comm] : ranks) {
    const size_t number = cards_.size();
    cards_.push_back(card);
    const auto call = [calls = calls_, abort = library.abort, card = card, comm = comm, number] {
      if (cudaSetDevice(card) != cudaSuccess) (void)cudaGetLastError();
      (void)abort(comm);
      const std::lock_guard lock(calls->mutex);
      calls->done[number] = true;
      calls->back.notify_all();
    };
    try {
      std::thread(call).detach();
    } catch (const std::system_error&) { call(); }  // no more threads
  }
}

bool Aborts::are_back_by(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(calls_->mutex);
  const auto& done = calls_->done;
  if (calls_->back.wait_until(lock, deadline, [&] {
        return std::all_of(done.begin(), done.end(), [](bool one) { return one; });
      }))
    return true;
  const std::vector<bool> then = done;
  lock.unlock();
  for (size_t i = 0; i < then.size(); ++i)
    if (!then[i])
      keep_memory_until(cards_[i], [calls = calls_, i] {
        const std::lock_guard one(calls->mutex);
        return bool(calls->done[i]);
      });
  return false;
}

int nccl_type(ScalarType t) {
  switch (t) {
    case ScalarType::Char: return ncclInt8;
    case ScalarType::Byte: return ncclUint8;
    case ScalarType::Int: return ncclInt32;
    case ScalarType::Long: return ncclInt64;
    case ScalarType::UInt32: return ncclUint32;
    case ScalarType::Half: return ncclFloat16;
    case ScalarType::Float: return ncclFloat32;
    case ScalarType::Double: return ncclFloat64;
    case ScalarType::BFloat16: return ncclBfloat16;
    default: return -1;
  }
}

}  // namespace cuda
}  // namespace ramet
