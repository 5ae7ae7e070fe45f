#include "tools/emulated_gpu/nccl/collective.h"

#include <algorithm>
#include <cstring>

#include "tools/emulated_gpu/checker/checks.h"
#include "tools/emulated_gpu/executor/half_types.h"

namespace ramet::emulated {
namespace {

template <class A> A combine(ncclRedOp_t op, A a, A b) {
  switch (op) {
    case ncclProd: return a * b;
    case ncclMax: return std::max(a, b);
    case ncclMin: return std::min(a, b);
    default: return a + b;
  }
}

/// Elements `first` to `first + count` of all ranks, reduced into `result`. A is what T computes
/// in.
template <class T, class A>
void reduce_as(const Collective& what, const std::vector<const void*>& send, size_t first,
               size_t count, char* result) {
  for (size_t i = 0; i < count; ++i) {
    A sum = A(static_cast<const T*>(send[0])[first + i]);
    for (size_t rank = 1; rank < send.size(); ++rank)
      sum = combine(what.op, sum, A(static_cast<const T*>(send[rank])[first + i]));
    if (what.op == ncclAvg) sum = sum / A(send.size());
    const T value = T(sum);
    std::memcpy(result + i * sizeof(T), &value, sizeof(T));
  }
}

std::vector<char> reduced(const Collective& what, const std::vector<const void*>& send,
                          size_t first, size_t count) {
  std::vector<char> result(count * bytes_of(what.type));
  char* to = result.data();
  switch (what.type) {
    case ncclInt8: reduce_as<int8_t, int>(what, send, first, count, to); break;
    case ncclUint8: reduce_as<uint8_t, unsigned>(what, send, first, count, to); break;
    case ncclInt32: reduce_as<int32_t, int64_t>(what, send, first, count, to); break;
    case ncclUint32: reduce_as<uint32_t, uint64_t>(what, send, first, count, to); break;
    case ncclInt64: reduce_as<int64_t, __int128>(what, send, first, count, to); break;
    case ncclUint64: reduce_as<uint64_t, unsigned __int128>(what, send, first, count, to); break;
    case ncclFloat16: reduce_as<__half, float>(what, send, first, count, to); break;
    case ncclBfloat16: reduce_as<__nv_bfloat16, float>(what, send, first, count, to); break;
    case ncclFloat32: reduce_as<float, float>(what, send, first, count, to); break;
    case ncclFloat64: reduce_as<double, double>(what, send, first, count, to); break;
    default: break;  // refused by submit() (nccl.cc)
  }
  return result;
}

void give(void* receive, const std::vector<char>& bytes) {
  std::memcpy(receive, bytes.data(), bytes.size());
  host_writes(receive, bytes.size());
}

}  // namespace

const char* name_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::AllReduce: return "ncclAllReduce";
    case CollectiveKind::Reduce: return "ncclReduce";
    case CollectiveKind::Broadcast: return "ncclBroadcast";
    case CollectiveKind::AllGather: return "ncclAllGather";
    case CollectiveKind::ReduceScatter: return "ncclReduceScatter";
  }
  return "?";
}

size_t bytes_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8: return 1;
    case ncclFloat16:
    case ncclBfloat16: return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32: return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64: return 8;
    default: return 0;
  }
}

size_t send_bytes(const Collective& what, int rank, int ranks) {
  const size_t bytes = what.count * bytes_of(what.type);
  if (what.kind == CollectiveKind::ReduceScatter) return bytes * size_t(ranks);
  return what.kind == CollectiveKind::Broadcast && rank != what.root ? 0 : bytes;
}

size_t receive_bytes(const Collective& what, int rank, int ranks) {
  const size_t bytes = what.count * bytes_of(what.type);
  if (what.kind == CollectiveKind::AllGather) return bytes * size_t(ranks);
  return what.kind == CollectiveKind::Reduce && rank != what.root ? 0 : bytes;
}

void run_collective(const Collective& what, const std::vector<const void*>& send,
                    const std::vector<void*>& receive) {
  const size_t ranks = send.size(), bytes = what.count * bytes_of(what.type);
  const auto root = size_t(what.root);
  for (size_t rank = 0; rank < ranks; ++rank)
    if (const size_t read = send_bytes(what, int(rank), int(ranks))) host_reads(send[rank], read);
  // Results are made before anything is written: buffers may be shared.
  switch (what.kind) {
    case CollectiveKind::AllReduce: {
      const std::vector<char> sum = reduced(what, send, 0, what.count);
      for (void* to : receive) give(to, sum);
      break;
    }
    case CollectiveKind::Reduce: give(receive[root], reduced(what, send, 0, what.count)); break;
    case CollectiveKind::Broadcast: {
      const auto* first = static_cast<const char*>(send[root]);
      const std::vector<char> data(first, first + bytes);
      for (void* to : receive) give(to, data);
      break;
    }
    case CollectiveKind::AllGather: {
      std::vector<char> all;
      for (const void* from : send) {
        const auto* first = static_cast<const char*>(from);
        all.insert(all.end(), first, first + bytes);
      }
      for (void* to : receive) give(to, all);
      break;
    }
    case CollectiveKind::ReduceScatter: {
      std::vector<std::vector<char>> parts;
      for (size_t rank = 0; rank < ranks; ++rank)
        parts.push_back(reduced(what, send, rank * what.count, what.count));
      for (size_t rank = 0; rank < ranks; ++rank) give(receive[rank], parts[rank]);
      break;
    }
  }
}

}  // namespace ramet::emulated
