// The algorithms, over one operation's channel: Note [Collectives].
#pragma once
#include <functional>
#include <vector>

#include "parallel/distributed/channel_internal.h"

namespace ramet::distributed::detail {

/// A caller's tensor: contiguous memory to send from, and how to write into it at the end.
class Operand {
 public:
  Operand() = default;
  /// An Error unless t is defined and in host memory; waits where it is still being written.
  Operand(const char* op, const char* what, const Tensor& t);
  const char* data() const { return static_cast<const char*>(dense_.ptr()); }
  /// Where a result may be formed in place; null where the tensor is not contiguous.
  char* place() const { return direct_ ? static_cast<char*>(dense_.ptr()) : nullptr; }
  size_t bytes() const { return dense_.nbytes(); }
  int64_t numel() const { return dense_.numel(); }
  ScalarType dtype() const { return dense_.scalar_type(); }
  const Tensor& tensor() const { return user_; }
  void write(const char* op, const void* from) const;
  /// After writing through place().
  void written(const char* op) const;

 private:
  Tensor user_, dense_;
  bool direct_ = false;
};

/// n elements that lie there, as a tensor; nothing is copied.
Tensor over_memory(const void* data, int64_t n, ScalarType dtype);

/// How several contributions become one.
struct Reduction {
  ReduceOp op;
  ReduceOrder order;
  ScalarType dtype;
  /// out[0..n) from in[rank]; null: nothing of that rank. `out` may be this rank's.
  void combine(void* out, const std::vector<const void*>& in, int64_t n) const;
};

/// Members of one message: what ranks contribute to each, and where it lies.
struct Member {
  int64_t offset, numel;         // in elements, from the message's start
  std::vector<bool> present_on;  // [rank]
};

/// Reduces `elements` at `place` over all ranks, in place, each member over the ranks that have it;
/// members of no rank stay as they are. Where it fails, the memory is as it was if `undo`,
/// undefined if not (which saves a copy). `members` is called once, after the first messages were
/// sent.
void reduce_everywhere(Channel& channel, const Reduction& reduction, char* place, int64_t elements,
                       const std::function<std::vector<Member>()>& members, bool undo);
/// The same, where only `root` wants it.
void reduce_to(Channel& channel, const Reduction& reduction, const char* from, int64_t elements,
               int root, const std::function<void(const char*)>& commit);
void broadcast_from(Channel& channel, int root, const char* from, size_t bytes,
                    const std::function<void(const char*)>& commit);

}  // namespace ramet::distributed::detail
