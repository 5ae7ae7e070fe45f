// NCCL's functions, found at their first use. Only for runtime/cuda/nccl*.cc.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/cuda/gpu.h"
#ifndef RAMET_GPU_TOOLKIT
#include <nccl.h>
#else

// The part of NCCL 2's interface that Ramet uses. The toolkit does not contain its header.
typedef struct ncclComm* ncclComm_t;
typedef int ncclResult_t;
typedef int ncclDataType_t;
typedef int ncclRedOp_t;
enum {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclRemoteError = 6,
  ncclInProgress = 7,
  ncclSum = 0
};
enum {
  ncclInt8 = 0,
  ncclUint8 = 1,
  ncclInt32 = 2,
  ncclUint32 = 3,
  ncclInt64 = 4,
  ncclFloat16 = 6,
  ncclFloat32 = 7,
  ncclFloat64 = 8,
  ncclBfloat16 = 9
};
typedef struct {
  char internal[128];
} ncclUniqueId;
// As of 2.14. Later versions use only the fields that `size` and `version` cover.
typedef struct {
  size_t size;
  unsigned int magic, version;
  int blocking;
} ncclConfig_t;
#endif

namespace ramet {
namespace cuda {

struct Nccl {
  ncclResult_t (*version)(int*) = nullptr;
  const char* (*text)(ncclResult_t) = nullptr;
  ncclResult_t (*init_all)(ncclComm_t*, int, const int*) = nullptr;
  ncclResult_t (*destroy)(ncclComm_t) = nullptr;
  ncclResult_t (*group_start)() = nullptr;
  ncclResult_t (*group_end)() = nullptr;
  ncclResult_t (*reduce)(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, int, ncclComm_t,
                         cudaStream_t) = nullptr;
  // For connections between processes; null before 2.14.
  ncclResult_t (*unique_id)(ncclUniqueId*) = nullptr;
  ncclResult_t (*init_rank)(ncclComm_t*, int, ncclUniqueId, int, ncclConfig_t*) = nullptr;
  ncclResult_t (*async_error)(ncclComm_t, ncclResult_t*) = nullptr;
  ncclResult_t (*finalize)(ncclComm_t) = nullptr;
  ncclResult_t (*abort)(ncclComm_t) = nullptr;
  const char* (*last_error)(ncclComm_t) = nullptr;
  ncclResult_t (*send)(const void*, size_t, ncclDataType_t, int, ncclComm_t,
                       cudaStream_t) = nullptr;
  ncclResult_t (*receive)(void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t) = nullptr;
  ncclResult_t (*all_reduce)(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t,
                             cudaStream_t) = nullptr;
};

/// Opened at the first call. Null if it cannot be opened, or does not report its version. `why`
/// (may be null) gets the reason.
const Nccl* nccl_library(std::string* why);
/// ncclCommAbort() for communicators of these GPUs, each on a thread of its own. The call waits for
/// NCCL's kernels and threads to end. That may take as long as the work would have taken, or until
/// a neighbour aborts.
class Aborts {
 public:
  Aborts(const Nccl& library, const std::vector<std::pair<int, ncclComm_t>>& ranks);
  /// True if all calls have returned by the deadline. The others go on by themselves. Until they
  /// return, their GPUs keep all cached memory.
  bool are_back_by(std::chrono::steady_clock::time_point deadline);

 private:
  struct Calls;
  const std::shared_ptr<Calls> calls_;  // shared with threads that outlive this object
  std::vector<int> cards_;
};
/// NCCL's number for the type; -1 if it has no such type.
int nccl_type(ScalarType t);

}  // namespace cuda
}  // namespace ramet
