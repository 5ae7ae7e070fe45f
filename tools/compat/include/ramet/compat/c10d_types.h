// What LibTorch's process groups take and give: reductions, options, the handle of an operation.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "parallel/distributed/group/process_group.h"
#include "ramet/compat/torch.h"

constexpr auto kNoTimeout = std::chrono::milliseconds(0);
constexpr auto kBackendDefaultTimeout = std::chrono::milliseconds(30 * 60 * 1000);
constexpr auto kProcessGroupDefaultTimeout = kBackendDefaultTimeout;

namespace c10d {

constexpr auto kUnsetTimeout = std::chrono::milliseconds(-1);  // the group's

/// BAND, BOR, BXOR and PREMUL_SUM may be named; an operation with one of them is an Error. AVG
/// is there with every backend. bool: SUM is "or".
struct ReduceOp : torch::CustomClassHolder {
  enum RedOpType : uint8_t {
    SUM = 0,
    AVG = 1,
    PRODUCT = 2,
    MIN = 3,
    MAX = 4,
    BAND = 5,
    BOR = 6,
    BXOR = 7,
    PREMUL_SUM = 8,
    UNUSED = 9
  };
  ReduceOp() = default;
  ReduceOp(RedOpType op) : op_(op) {}         // NOLINT(google-explicit-constructor): LibTorch's
  operator RedOpType() const { return op_; }  // NOLINT(google-explicit-constructor)
  friend bool operator==(const ReduceOp& a, const ReduceOp& b) { return a.op_ == b.op_; }
  friend bool operator==(const ReduceOp& a, RedOpType b) { return a.op_ == b; }
  friend bool operator!=(const ReduceOp& a, const ReduceOp& b) { return a.op_ != b.op_; }
  friend bool operator!=(const ReduceOp& a, RedOpType b) { return a.op_ != b; }

  RedOpType op_ = SUM;
};

// asyncOp changes nothing: every operation gives a Work. rootTensor and device_ids are for lists of
// one tensor only, 0 and empty.

struct BroadcastOptions {
  int64_t rootRank = 0;
  int64_t rootTensor = 0;
  std::chrono::milliseconds timeout = kUnsetTimeout;
  bool asyncOp = true;
};
struct AllreduceOptions {
  ReduceOp reduceOp = ReduceOp::SUM;
  std::chrono::milliseconds timeout = kUnsetTimeout;
  bool asyncOp = true;
};
struct AllreduceCoalescedOptions : AllreduceOptions {};
struct ReduceOptions {
  ReduceOp reduceOp = ReduceOp::SUM;
  int64_t rootRank = 0;
  int64_t rootTensor = 0;
  std::chrono::milliseconds timeout = kUnsetTimeout;
  bool asyncOp = true;
};
struct AllgatherOptions {
  std::chrono::milliseconds timeout = kUnsetTimeout;
  bool asyncOp = true;
};
struct GatherOptions {
  int64_t rootRank = 0;
  std::chrono::milliseconds timeout = kUnsetTimeout;
  bool asyncOp = true;
};
struct ScatterOptions {
  int64_t rootRank = 0;
  std::chrono::milliseconds timeout = kUnsetTimeout;
  bool asyncOp = true;
};
struct ReduceScatterOptions {
  ReduceOp reduceOp = ReduceOp::SUM;
  std::chrono::milliseconds timeout = kUnsetTimeout;
  bool asyncOp = true;
};
struct AllToAllOptions {
  std::chrono::milliseconds timeout = kUnsetTimeout;
  bool asyncOp = true;
};
struct BarrierOptions {
  std::vector<int64_t> device_ids;
  std::chrono::milliseconds timeout = kUnsetTimeout;
  std::optional<at::Device> device;
  bool asyncOp = true;
};

enum class OpType : std::uint8_t {
  BROADCAST = 0,
  ALLREDUCE = 1,
  ALLREDUCE_COALESCED = 2,
  REDUCE = 3,
  ALLGATHER = 4,
  _ALLGATHER_BASE = 5,
  ALLGATHER_COALESCED = 6,
  GATHER = 7,
  SCATTER = 8,
  REDUCE_SCATTER = 9,
  ALLTOALL_BASE = 10,
  ALLTOALL = 11,
  SEND = 12,
  RECV = 13,
  RECVANYSOURCE = 14,
  BARRIER = 15,
  _REDUCE_SCATTER_BASE = 16,
  COALESCED = 17,
  _ALLREDUCE_SPARSE = 18,
  REDUCE_SCATTER_TENSOR_COALESCED = 19,
  ALLGATHER_INTO_TENSOR_COALESCED = 20,
  UNKNOWN = 100,
};
inline bool isP2POp(OpType type, bool /*batchP2P*/ = false) {
  return type == OpType::SEND || type == OpType::RECV || type == OpType::RECVANYSOURCE;
}

/// One operation, or several that were started together: it has ended when all have. Copies of the
/// pointer are handles of the same. Its tensors are kept alive until then.
class Work : public torch::CustomClassHolder {
 public:
  using RametWork = ::ramet::distributed::Work;
  Work(OpType type, std::vector<RametWork> works, std::vector<at::Tensor> result = {},
       int source = -1)
      : type_(type), works_(std::move(works)), result_(std::move(result)), source_(source) {}

  virtual bool isCompleted() {
    return std::all_of(works_.begin(), works_.end(),
                       [](const RametWork& w) { return w.is_completed(); });
  }
  virtual bool isSuccess() const {
    return std::all_of(works_.begin(), works_.end(),
                       [](const RametWork& w) { return w.is_success(); });
  }
  /// Null while it runs and after success.
  virtual std::exception_ptr exception() const {
    for (const RametWork& w : works_)
      if (auto e = w.exception()) return e;
    return nullptr;
  }
  /// Of a recv.
  virtual int sourceRank() const {
    RAMET_CHECK(source_ >= 0, "sourceRank", "got an operation that is no recv");
    return source_;
  }
  /// What it has written.
  virtual std::vector<at::Tensor> result() { return result_; }
  /// Of the host: wait().
  virtual void synchronize() { wait(); }
  /// Throws what it failed with; true otherwise. A time of 0 is the operation's own; where it is
  /// over before the operation has ended, that is an Error and the operation goes on.
  virtual bool wait(std::chrono::milliseconds timeout = kNoTimeout) {
    const auto deadline = ::ramet::distributed::deadline_in(timeout);
    for (const RametWork& w : works_) {
      if (timeout > kNoTimeout && !w.wait_for(::ramet::distributed::time_left(deadline)))
        throw c10::Error(c10::str("[wait] Operation timed out! got ", timeout.count(),
                                  " ms, expected it to end within them"));
      w.wait();
    }
    return true;
  }
  virtual void blockCurrentStream() { synchronize(); }
  virtual void abort() {
    throw c10::Error("[abort] an operation has no end of its own: abort() the group");
  }
  OpType retrieveOpType() const { return type_; }

 private:
  OpType type_;
  std::vector<RametWork> works_;
  std::vector<at::Tensor> result_;
  int source_;
};

namespace detail {

template <class Options>::ramet::distributed::CollectiveOptions timed(const Options& options) {
  ::ramet::distributed::CollectiveOptions out;
  if (options.timeout > kNoTimeout) out.timeout = options.timeout;
  return out;
}

/// With the reduction, too.
template <class Options>
::ramet::distributed::CollectiveOptions reducing(const char* op, const Options& options) {
  using ::ramet::distributed::ReduceOp;
  static constexpr ReduceOp kOps[] = {ReduceOp::sum, ReduceOp::average, ReduceOp::product,
                                      ReduceOp::min, ReduceOp::max};
  static constexpr const char* kOthers[] = {"BAND", "BOR", "BXOR", "PREMUL_SUM", "UNUSED"};
  const size_t wanted = options.reduceOp.op_;
  RAMET_CHECK(wanted < 5, op, "reduceOp: got ", kOthers[std::min<size_t>(wanted - 5, 4)],
              ", expected SUM, AVG, PRODUCT, MIN or MAX");
  auto out = timed(options);
  out.op = kOps[wanted];
  return out;
}

/// Operations write leaves that want gradients, as in LibTorch, and record nothing.
inline at::Tensor raw(const at::Tensor& t) { return t.defined() ? t.detach() : t; }
inline std::vector<at::Tensor> raw(const std::vector<at::Tensor>& list) {
  std::vector<at::Tensor> out;
  out.reserve(list.size());
  for (const at::Tensor& t : list) out.push_back(raw(t));
  return out;
}

template <class T> const T& only(const char* op, const char* what, const std::vector<T>& list) {
  RAMET_CHECK(list.size() == 1, op, what, ": got a list of ", list.size(),
              ", expected one of 1: each rank has one device");
  return list[0];
}

/// Parts of a tensor's first dimension, or of its elements where `counts` is empty: equal ones.
inline std::vector<at::Tensor> parts(const char* op, const char* what, const at::Tensor& whole,
                                     int n, const std::vector<int64_t>& counts = {}) {
  RAMET_CHECK(whole.defined() && whole.is_contiguous(), op, what, ": got ",
              whole.defined() ? "one that is not contiguous" : "an undefined tensor",
              ", expected a contiguous tensor");
  std::vector<at::Tensor> out;
  const at::Tensor rows = raw(whole);
  if (counts.empty()) {
    RAMET_CHECK(whole.numel() % n == 0, op, what, ": got ", whole.numel(),
                " elements, expected a multiple of the group's size, ", n);
    const int64_t each = whole.numel() / n;
    for (int i = 0; i < n; ++i) out.push_back(rows.view({-1}).narrow(0, i * each, each));
    return out;
  }
  int64_t sum = 0;
  for (int64_t count : counts) sum += count;
  RAMET_CHECK(counts.size() == static_cast<size_t>(n) && whole.dim() > 0 && sum == whole.size(0),
              op, what, ": got the sizes ", at::IntArrayRef(counts), ", expected ", n,
              " that add up to its first dimension");
  int64_t at = 0;
  for (int64_t count : counts) {
    out.push_back(rows.narrow(0, at, count).view({-1}));
    at += count;
  }
  return out;
}

}  // namespace detail
}  // namespace c10d
