// Checks and prepares the arguments of a group's operations.
#pragma once
#include <vector>

#include "parallel/distributed/group/collectives_internal.h"
#include "parallel/distributed/group/group_state_internal.h"

namespace ramet::distributed::detail {

/// Returns Task::told for an operation that begins now. The function reports to the observers of
/// the graph, as the calling thread would, that the operation has moved data on this rank. Empty
/// where no observer is registered.
std::function<void()> told(const char* kind, ArrayRef<Tensor> from, ArrayRef<Tensor> to);

/// Fills in the parts of a header that every operation has.
Task task_of(const ProcessGroup& group, Op op, const CollectiveOptions& o, int root = -1);
Reduction reduction_of(const ProcessGroup& group, Op op, const CollectiveOptions& o,
                       ScalarType dtype, Header& h);
/// One operand for each rank. If `alike` is not null, all must have its shape and dtype.
std::vector<Operand> operands(const ProcessGroup& group, Op op, const char* what,
                              const std::vector<Tensor>& list, const Tensor* alike);
/// The same for tensors that the operation writes. An Error where two of them share memory. Among
/// tensors that are not contiguous, only two that begin at the same address are noticed.
std::vector<Operand> outputs(const ProcessGroup& group, Op op, const std::vector<Tensor>& list,
                             const Tensor* alike);

/// Receives each rank's part into staging memory or a landing(), then copies it to the caller's
/// tensors.
struct Parts {
  const Channel& channel;
  std::vector<Staging> memory;
  std::vector<Incoming> in;

  explicit Parts(const Channel& c) : channel(c) {}
  void add(int from, size_t bytes, char* landing = nullptr);
  void write(Channel& c, const char* op, const std::vector<Operand>& out) const;
};

/// What all ranks together contributed to `members` members.
MemberReport report_of(const std::vector<Header>& all, size_t members);

}  // namespace ramet::distributed::detail
