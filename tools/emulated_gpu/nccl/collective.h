// One collective of the emulated NCCL: what it computes, without communicators and streams.
#pragma once
#include <vector>

#include "tools/emulated_gpu/nccl/nccl_api.h"

namespace ramet::emulated {

enum class CollectiveKind : uint8_t { AllReduce, Reduce, Broadcast, AllGather, ReduceScatter };

struct Collective {
  CollectiveKind kind;
  size_t count;  // elements, as the API counts them for this kind
  ncclDataType_t type;
  ncclRedOp_t op;
  int root;

  bool operator==(const Collective&) const = default;
};

const char* name_of(CollectiveKind kind);
size_t bytes_of(ncclDataType_t type);
/// Bytes that a rank reads from its send buffer and writes to its receive buffer; 0: not used.
size_t send_bytes(const Collective& what, int rank, int ranks);
size_t receive_bytes(const Collective& what, int rank, int ranks);

/// Buffers in the order of ranks. A rank's two buffers may be the same. Sums run in the order of
/// ranks, 16-bit types in float: the same bits in every run.
void run_collective(const Collective& what, const std::vector<const void*>& send,
                    const std::vector<void*>& receive);

}  // namespace ramet::emulated
