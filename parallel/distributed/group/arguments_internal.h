// What the operations of a group do with their arguments.
#pragma once
#include <vector>

#include "parallel/distributed/group/collectives_internal.h"
#include "parallel/distributed/group/group_state_internal.h"

namespace ramet::distributed::detail {

/// What tells observers of the graph, as the calling thread would, that an operation that begins
/// now has brought something somewhere on this rank: Task::told. Empty where nobody observes.
std::function<void()> told(const char* kind, ArrayRef<Tensor> from, ArrayRef<Tensor> to);

/// The parts of a header that every operation has.
Task task_of(const ProcessGroup& group, Op op, const CollectiveOptions& o, int root = -1);
Reduction reduction_of(const ProcessGroup& group, Op op, const CollectiveOptions& o,
                       ScalarType dtype, Header& h);
/// One tensor for each rank. Where `alike`, all of one shape and dtype.
std::vector<Operand> operands(const ProcessGroup& group, Op op, const char* what,
                              const std::vector<Tensor>& list, const Tensor* alike);
/// What is written, likewise; an Error where two of them are one piece of memory. (Of tensors that
/// are not contiguous only those that begin at one place are noticed.)
std::vector<Operand> outputs(const ProcessGroup& group, Op op, const std::vector<Tensor>& list,
                             const Tensor* alike);

/// Every rank's part goes to memory of its own, or to a landing(), and from there to the caller's.
struct Parts {
  const Channel& channel;
  std::vector<Staging> memory;
  std::vector<Incoming> in;

  explicit Parts(const Channel& c) : channel(c) {}
  void add(int from, size_t bytes, char* landing = nullptr);
  void write(Channel& c, const char* op, const std::vector<Operand>& out) const;
};

/// What all ranks have of `members` members.
MemberReport report_of(const std::vector<Header>& all, size_t members);

}  // namespace ramet::distributed::detail
