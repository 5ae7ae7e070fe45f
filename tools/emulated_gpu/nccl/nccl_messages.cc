// Messages between two ranks of the emulated NCCL. A group's messages go on concurrently. A rank
// first announces all that it sends, then takes what others send to it, then waits until its own
// was taken. So the order of the calls in a group does not matter.
#include <atomic>
#include <cstring>
#include <utility>

#include "tools/emulated_gpu/nccl/nccl_control.h"
#include "tools/emulated_gpu/nccl/nccl_ranks.h"
#include "tools/emulated_gpu/runtime/engine.h"

namespace ramet::emulated {

struct Parcel {
  size_t bytes = 0;
  int sides = 0;  // that have called
  const void* from = nullptr;
  const MarkPtr there = std::make_shared<Mark>(), taken = std::make_shared<Mark>();
};

namespace {

std::atomic<bool> held{false};

size_t message_bytes(const PendingCall& call) { return call.what.count * bytes_of(call.what.type); }

cudaError_t enqueue(const PendingCall& call, const char* what, std::vector<MarkPtr> after,
                    MarkPtr mark, std::function<void()> work) {
  // The message's target may hold anything now; the checker counts it as written.
  const auto instead = [to = call.receive, bytes = message_bytes(call)] {
    if (to) host_writes(to, bytes);
  };
  Call into;
  if (into.refused) return into.refused;
  CUstream_st* stream = into.engine.stream_of(call.stream);
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (stream->capture) return cudaErrorStreamCaptureUnsupported;
  Operation operation{what, std::move(work)};
  operation.waits_for = std::move(after);
  operation.mark = std::move(mark);
  operation.owner = call.comm;
  operation.instead = instead;
  return into.engine.enqueue(stream, std::move(operation), into.lock);
}

// The other side may have called before.
ncclResult_t parcel_of(const PendingCall& call, std::shared_ptr<Parcel>& parcel) {
  Clique& clique = *call.comm->clique;
  const bool sends = call.send != nullptr;
  const std::pair<int, int> way =
      sends ? std::pair(call.comm->rank, call.peer) : std::pair(call.peer, call.comm->rank);
  std::lock_guard<std::mutex> lock(clique.mutex);
  const uint64_t number = (sends ? clique.sent : clique.received)[way]++;
  auto& slot = clique.parcels[{way.first, way.second, number}];
  if (!slot) slot = std::make_shared<Parcel>();
  parcel = slot;
  if (parcel->sides++ == 0) parcel->bytes = message_bytes(call);
  else clique.parcels.erase({way.first, way.second, number});
  if (sends) parcel->from = call.send;
  if (parcel->bytes != message_bytes(call))
    return refuse(ncclInvalidUsage,
                  "MISMATCHED MESSAGE number " + std::to_string(number) + " from rank " +
                      std::to_string(way.first) + " to rank " + std::to_string(way.second) + ": " +
                      std::to_string(message_bytes(call)) + " bytes on one side, " +
                      std::to_string(parcel->bytes) + " on the other");
  return ncclSuccess;
}

}  // namespace

void hold_nccl_messages(bool hold) { held = hold; }

ncclResult_t enqueue_messages(const std::vector<PendingCall>& calls) {
  std::vector<std::pair<PendingCall, std::shared_ptr<Parcel>>> all;
  for (const PendingCall& call : calls) {
    all.emplace_back(call, nullptr);
    if (const ncclResult_t bad = parcel_of(call, all.back().second)) return bad;
  }
  std::vector<MarkPtr> first;
  if (held) first.push_back(std::make_shared<Mark>());
  std::vector<MarkPtr> last;
  cudaError_t error = cudaSuccess;
  for (const auto& [call, parcel] : all)
    if (call.send && !error) {
      error = enqueue(call, "ncclSend", first, parcel->there, nullptr);
      last.push_back(parcel->taken);
    }
  for (const auto& [call, parcel] : all)
    if (!call.send && !error) {
      std::vector<MarkPtr> after = first;
      after.push_back(parcel->there);
      error = enqueue(call, "ncclRecv", std::move(after), parcel->taken,
                      [to = call.receive, p = parcel] {
                        host_reads(p->from, p->bytes);
                        std::memcpy(to, p->from, p->bytes);
                        host_writes(to, p->bytes);
                      });
    }
  if (!all.empty() && !error)
    error = enqueue(all.front().first, "the end of ncclSend", std::move(last), nullptr, nullptr);
  return error == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

void give_up_operations(ncclComm_t comm) {
  Engine& all = engine();
  Engine::Lock lock(all.mutex);
  all.give_up(comm);
}

}  // namespace ramet::emulated
