// NCCL's communicators and groups between the emulated GPUs of one process. A collective is a
// meeting (control.h) of one operation of each rank, in the order of the streams.
//
// As in NCCL, the calls of a group reach their streams at its end, and a thread that calls for
// several ranks needs a group. Where NCCL would hang or compute nonsense, there is a report and an
// error.
#include <atomic>
#include <chrono>
#include <cstring>
#include <utility>

#include "tools/emulated_gpu/nccl/nccl_control.h"
#include "tools/emulated_gpu/nccl/nccl_ranks.h"
#include "tools/emulated_gpu/runtime/engine.h"

namespace ramet::emulated {

OpenCollective::OpenCollective(const Collective& c, int ranks)
    : what(c), buffers(std::make_shared<Buffers>()) {
  buffers->send.resize(size_t(ranks));
  buffers->receive.resize(size_t(ranks));
  meeting = make_meeting(ranks, [c, b = buffers] { run_collective(c, b->send, b->receive); });
}

namespace {

/// The calling thread's groups: how many are nested, and the calls that wait for the outermost's
/// end.
struct Group {
  int depth = 0;
  std::vector<PendingCall> calls;
  std::vector<std::shared_ptr<Clique>> joining;
};
thread_local Group group;

std::mutex cliques_mutex;
std::map<uint64_t, std::weak_ptr<Clique>>& cliques() {  // by unique id
  static auto* all = new std::map<uint64_t, std::weak_ptr<Clique>>;
  return *all;
}

ncclResult_t wait_for_all_ranks(Clique& clique) {
  std::unique_lock<std::mutex> lock(clique.mutex);
  const auto timeout = std::chrono::milliseconds(settings().timeout_ms);
  if (clique.complete.wait_for(lock, timeout, [&] { return clique.present == clique.ranks; }))
    return ncclSuccess;
  return refuse(ncclSystemError, "ncclCommInitRank: " + std::to_string(clique.present) + " of " +
                                     std::to_string(clique.ranks) +
                                     " ranks have called; NCCL would wait for the others for ever");
}

std::atomic<int> reported_error{ncclSuccess}, group_error{ncclSuccess};
std::atomic<bool> aborts_held{false};
std::atomic<int> aborts_under_way{0};

}  // namespace

void report_nccl_error(ncclResult_t error) { reported_error = error; }
void hold_nccl_aborts(bool hold) {
  aborts_held = hold;
  while (!hold && aborts_under_way) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}
int nccl_aborts_under_way() { return aborts_under_way; }
void fail_next_nccl_group(ncclResult_t error) { group_error = error; }

ncclResult_t refuse(ncclResult_t result, const std::string& text) {
  note_report("[emulated CUDA] " + text);
  return result;
}

ncclResult_t reported_nccl_error() { return ncclResult_t(reported_error.load()); }

namespace {

ncclResult_t enqueue(const PendingCall& call, bool grouped) {
  Clique& clique = *call.comm->clique;
  const auto rank = size_t(call.comm->rank);
  std::shared_ptr<OpenCollective> collective;
  {
    std::lock_guard<std::mutex> lock(clique.mutex);
    const uint64_t number = clique.next[rank]++;
    auto& slot = clique.open[number];
    if (!slot) slot = std::make_shared<OpenCollective>(call.what, clique.ranks);
    collective = slot;
    if (!(collective->what == call.what))
      return refuse(ncclInvalidUsage,
                    "MISMATCHED COLLECTIVE number " + std::to_string(number) + ": " +
                        describe(call) + ", but " + name_of(collective->what.kind) + " of " +
                        std::to_string(collective->what.count) + " elements by an earlier rank");
    if (!grouped && !collective->callers.insert(std::this_thread::get_id()).second)
      return refuse(ncclInvalidUsage, describe(call) +
                                          ": one thread calls for several ranks outside "
                                          "ncclGroupStart() and ncclGroupEnd(); NCCL would hang");
    collective->buffers->send[rank] = call.send;
    collective->buffers->receive[rank] = call.receive;
    if (++collective->joined == clique.ranks) clique.open.erase(number);
  }
  // The default stream is that of the communicator's device.
  int before = 0;
  (void)cudaGetDevice(&before);
  (void)cudaSetDevice(call.comm->device);
  const cudaError_t error =
      join_meeting(call.stream, name_of(call.what.kind), collective->meeting, call.comm);
  (void)cudaSetDevice(before);
  return error == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t submit(Collective what, const void* send, void* receive, ncclComm_t comm,
                    cudaStream_t stream, int peer = -1) {
  const PendingCall call{comm, what, send, receive, stream, peer};
  if (const ncclResult_t bad = ready(comm, name_of(call))) return bad;
  if (comm->finalize != Finalize::No)
    return refuse(ncclInvalidUsage, describe(call) + ": the communicator is finalized");
  if (const ncclResult_t bad = check(call)) return bad;
  if (group.depth > 0) {
    group.calls.push_back(call);
    return ncclSuccess;
  }
  if (comm->blocking) return enqueue_all({call}, false);
  comm->taken_over_later.push_back(call);
  return ncclInProgress;
}

ncclResult_t init_rank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, bool blocking) {
  if (ranks < 1 || rank < 0 || rank >= ranks) return ncclInvalidArgument;
  uint64_t number = 0;
  std::memcpy(&number, id.internal, sizeof number);
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return ncclUnhandledCudaError;
  std::shared_ptr<Clique> clique;
  {
    std::lock_guard<std::mutex> lock(cliques_mutex);
    std::weak_ptr<Clique>& slot = cliques()[number];
    clique = slot.lock();
    if (!clique) slot = clique = std::make_shared<Clique>(ranks);
  }
  if (clique->ranks != ranks)
    return refuse(ncclInvalidArgument, "ncclCommInitRank: rank " + std::to_string(rank) + " says " +
                                           std::to_string(ranks) + " ranks, an earlier one " +
                                           std::to_string(clique->ranks));
  {
    std::lock_guard<std::mutex> lock(clique->mutex);
    if (!clique->devices.insert(device).second)
      return refuse(ncclInvalidUsage, "ncclCommInitRank: cuda:" + std::to_string(device) +
                                          " is there twice; NCCL wants a device for each rank");
    ++clique->present;
    clique->complete.notify_all();
  }
  *comm = new ncclComm{clique, rank, device, blocking};
  if (!blocking) return ncclInProgress;
  if (group.depth > 0) {
    group.joining.push_back(clique);
    return ncclSuccess;
  }
  return wait_for_all_ranks(*clique);
}

}  // namespace

ncclResult_t enqueue_all(const std::vector<PendingCall>& calls, bool grouped) {
  std::map<std::pair<ncclComm_t, cudaStream_t>, std::vector<PendingCall>> messages;
  for (const PendingCall& call : calls) {
    if (call.peer >= 0) messages[{call.comm, call.stream}].push_back(call);
    else if (const ncclResult_t bad = enqueue(call, grouped)) return bad;
  }
  for (const auto& [where, list] : messages)
    if (const ncclResult_t bad = enqueue_messages(list)) return bad;
  return ncclSuccess;
}

}  // namespace ramet::emulated

using namespace ramet::emulated;

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = settings().nccl_version;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess: return "no error";
    case ncclUnhandledCudaError: return "unhandled cuda error";
    case ncclSystemError: return "unhandled system error";
    case ncclInternalError: return "internal error";
    case ncclInvalidArgument: return "invalid argument";
    case ncclInvalidUsage: return "invalid usage";
    case ncclRemoteError: return "remote process exited or there was a network error";
    case ncclInProgress: return "in progress";
    default: return "unknown result code";
  }
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static uint64_t next = 1;
  std::lock_guard<std::mutex> lock(cliques_mutex);
  *id = {};
  std::memcpy(id->internal, &next, sizeof next);
  ++next;
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  return init_rank(comm, ranks, id, rank, true);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  if (const ncclResult_t bad = check_config(config)) return bad;
  return init_rank(comm, ranks, id, rank, !config || config->blocking != 0);
}

ncclResult_t ncclCommInitAll(ncclComm_t* comms, int ranks, const int* devices) {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) return ncclUnhandledCudaError;
  if (ranks < 1) return ncclInvalidArgument;
  std::set<int> used;
  for (int rank = 0; rank < ranks; ++rank) {
    const int device = devices ? devices[rank] : rank;
    if (device < 0 || device >= count) return ncclInvalidArgument;
    if (!used.insert(device).second)
      return refuse(ncclInvalidUsage, "ncclCommInitAll: cuda:" + std::to_string(device) +
                                          " is there twice; NCCL wants a device for each rank");
  }
  for (int rank = 0; rank < ranks; ++rank) {
    Call call;
    const int device = devices ? devices[rank] : rank;
    if (call.refused || !call.driver_has_memory(device) ||
        call.engine.wait_as_drivers_may(*call.engine.devices[size_t(device)], call.lock,
                                        "ncclCommInitAll"))
      return ncclUnhandledCudaError;
  }
  const auto clique = std::make_shared<Clique>(ranks);
  clique->present = ranks;
  for (int rank = 0; rank < ranks; ++rank)
    comms[rank] = new ncclComm{clique, rank, devices ? devices[rank] : rank};
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  if (!comm) return ncclSuccess;
  if (!comm->broken)
    if (const ncclResult_t bad = ready(comm, "ncclCommDestroy")) return bad;
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  if (const ncclResult_t bad = ready(comm, "ncclCommFinalize")) return bad;
  if (comm->finalize != Finalize::No)
    return refuse(ncclInvalidArgument, "ncclCommFinalize: the communicator is finalized");
  comm->finalize = comm->blocking ? Finalize::Done : Finalize::Asked;
  return comm->blocking ? ncclSuccess : ncclInProgress;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  if (!comm) return ncclInvalidArgument;
  ++aborts_under_way;
  while (aborts_held) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  give_up_operations(comm);
  delete comm;
  --aborts_under_way;
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  if (!comm) return ncclInvalidArgument;
  *error = reported_nccl_error();
  if (*error != ncclSuccess) return ncclSuccess;
  {
    std::lock_guard<std::mutex> lock(comm->clique->mutex);
    if (comm->clique->present < comm->clique->ranks) *error = ncclInProgress;
  }
  const bool waits = !comm->taken_over_later.empty() || comm->finalize == Finalize::Asked;
  if (*error != ncclSuccess || !waits) return ncclSuccess;
  if (!std::exchange(comm->asked, !comm->asked)) {
    *error = ncclInProgress;
    return ncclSuccess;
  }
  if (comm->finalize == Finalize::Asked) comm->finalize = Finalize::Done;
  const auto calls = std::exchange(comm->taken_over_later, {});
  *error = enqueue_all(calls, true);
  return ncclSuccess;
}

const char* ncclGetLastError(ncclComm_t) { return ""; }

ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  if (const ncclResult_t bad = ready(comm, "ncclCommCount")) return bad;
  *count = comm->clique->ranks;
  return ncclSuccess;
}

ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device) {
  if (const ncclResult_t bad = ready(comm, "ncclCommCuDevice")) return bad;
  *device = comm->device;
  return ncclSuccess;
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  if (const ncclResult_t bad = ready(comm, "ncclCommUserRank")) return bad;
  *rank = comm->rank;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++group.depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (group.depth == 0) return refuse(ncclInvalidUsage, "ncclGroupEnd: no group has begun");
  if (--group.depth > 0) return ncclSuccess;
  const Group ended = std::exchange(group, {});
  if (!ended.calls.empty())
    if (const auto error = ncclResult_t(group_error.exchange(ncclSuccess))) {
      for (const PendingCall& call : ended.calls) call.comm->broken = error;
      return error;
    }
  for (const auto& clique : ended.joining)
    if (const ncclResult_t bad = wait_for_all_ranks(*clique)) return bad;
  std::vector<PendingCall> now;
  ncclResult_t result = ncclSuccess;
  for (const PendingCall& call : ended.calls) {
    if (!call.comm->blocking) result = ncclInProgress;
    (call.comm->blocking ? now : call.comm->taken_over_later).push_back(call);
  }
  const ncclResult_t bad = enqueue_all(now, true);
  return bad ? bad : result;
}

ncclResult_t ncclSend(const void* send, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  if (peer < 0) return ncclInvalidArgument;
  return submit({CollectiveKind::Broadcast, count, type, ncclSum, 0}, send, nullptr, comm, stream,
                peer);
}

ncclResult_t ncclRecv(void* receive, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  if (peer < 0) return ncclInvalidArgument;
  return submit({CollectiveKind::Broadcast, count, type, ncclSum, 0}, nullptr, receive, comm,
                stream, peer);
}

ncclResult_t ncclAllReduce(const void* send, void* receive, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return submit({CollectiveKind::AllReduce, count, type, op, 0}, send, receive, comm, stream);
}

ncclResult_t ncclReduce(const void* send, void* receive, size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  return submit({CollectiveKind::Reduce, count, type, op, root}, send, receive, comm, stream);
}

ncclResult_t ncclBroadcast(const void* send, void* receive, size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream) {
  return submit({CollectiveKind::Broadcast, count, type, ncclSum, root}, send, receive, comm,
                stream);
}

ncclResult_t ncclAllGather(const void* send, void* receive, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  return submit({CollectiveKind::AllGather, count, type, ncclSum, 0}, send, receive, comm, stream);
}

ncclResult_t ncclReduceScatter(const void* send, void* receive, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return submit({CollectiveKind::ReduceScatter, count, type, op, 0}, send, receive, comm, stream);
}

}  // extern "C"
