// What the emulated NCCL refuses before a call does anything.
#include <climits>

#include "tools/emulated_gpu/nccl/nccl_control.h"
#include "tools/emulated_gpu/nccl/nccl_ranks.h"
#include "tools/emulated_gpu/runtime/engine.h"

namespace ramet::emulated {
namespace {

ncclResult_t check_buffer(const PendingCall& call, const void* buffer, size_t bytes,
                          const char* which) {
  if (!bytes) return ncclSuccess;
  Allocation allocation;
  if (!find_allocation(buffer, &allocation) || allocation.device != call.comm->device)
    return refuse(ncclInvalidArgument,
                  describe(call) + ": the " + which +
                      " buffer is no memory of cuda:" + std::to_string(call.comm->device));
  const auto offset =
      size_t(static_cast<const char*>(buffer) - static_cast<const char*>(allocation.base));
  if (bytes > allocation.bytes - offset)
    return refuse(ncclInvalidArgument, describe(call) + ": the " + which + " buffer has " +
                                           std::to_string(allocation.bytes - offset) +
                                           " bytes, expected " + std::to_string(bytes));
  return ncclSuccess;
}

/// Bytes of a ncclConfig_t in the NCCL header of this version. Later versions added attributes at
/// its end; its size and version say which it has.
size_t config_bytes(unsigned version) {
  if (version < 21700) return 24;
  if (version < 21800) return 40;
  if (version < 22700) return 48;
  return version < 22800 ? 72 : 80;
}

}  // namespace

const char* name_of(const PendingCall& call) {
  if (call.peer < 0) return name_of(call.what.kind);
  return call.send ? "ncclSend" : "ncclRecv";
}

std::string describe(const PendingCall& call) {
  return std::string(name_of(call)) + " of " + std::to_string(call.what.count) +
         " elements by rank " + std::to_string(call.comm->rank);
}

ncclResult_t check(const PendingCall& call) {
  const int ranks = call.comm->clique->ranks;
  if (!bytes_of(call.what.type) || call.what.op < ncclSum || call.what.op > ncclAvg ||
      call.what.root < 0 || call.what.root >= ranks || call.peer >= ranks)
    return ncclInvalidArgument;
  if (call.peer >= 0) {
    const size_t bytes = call.what.count * bytes_of(call.what.type);
    if (const auto bad = check_buffer(call, call.send, call.send ? bytes : 0, "send")) return bad;
    return check_buffer(call, call.receive, call.receive ? bytes : 0, "receive");
  }
  const size_t sent = send_bytes(call.what, call.comm->rank, ranks);
  const size_t received = receive_bytes(call.what, call.comm->rank, ranks);
  if (const auto bad = check_buffer(call, call.send, sent, "send")) return bad;
  return check_buffer(call, call.receive, received, "receive");
}

bool in_progress(ncclComm_t comm) {
  if (comm->blocking) return false;
  if (comm->finalize == Finalize::Asked || !comm->taken_over_later.empty()) return true;
  std::lock_guard<std::mutex> lock(comm->clique->mutex);
  return comm->clique->present < comm->clique->ranks;
}

// NCCL's ncclCommEnsureReady() (src/init.cc) answers like this, and so does every call that begins
// with it.
ncclResult_t ready(ncclComm_t comm, const char* call) {
  if (!comm) return ncclInvalidArgument;
  if (comm->broken) return comm->broken;
  if (in_progress(comm))
    return refuse(ncclInvalidArgument,
                  std::string(call) + " by rank " + std::to_string(comm->rank) +
                      ": the communicator is still in progress; ncclCommGetAsyncError() has not "
                      "said yet that its last operation was taken over");
  return comm->blocking ? ncclSuccess : reported_nccl_error();
}

ncclResult_t check_config(const ncclConfig_t* config) {
  if (!config) return ncclSuccess;
  const std::string name = "ncclCommInitRankConfig: ";
  if (config->magic != 0xcafebeef)
    return refuse(ncclInvalidArgument,
                  name + "the configuration was not made by NCCL_CONFIG_INITIALIZER");
  if (config->version < 21400)
    return refuse(ncclInvalidArgument, name + "a configuration of version " +
                                           std::to_string(config->version) +
                                           ", of which NCCL takes no attribute");
  if (const size_t bytes = config_bytes(config->version); config->size != bytes)
    return refuse(ncclInvalidArgument, name + "a configuration of " + std::to_string(config->size) +
                                           " bytes, and that of version " +
                                           std::to_string(config->version) + " has " +
                                           std::to_string(bytes));
  if (config->blocking != 0 && config->blocking != 1 && config->blocking != INT_MIN)
    return refuse(ncclInvalidArgument, name + "blocking is neither 0 nor 1");
  return ncclSuccess;
}

}  // namespace ramet::emulated
