// Combines the contributions of several ranks into one result.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "parallel/distributed/group/process_group.h"
#include "parallel/distributed/wire/channel_internal.h"

namespace ramet::distributed::detail {

/// Views n elements at `data` as a tensor, without a copy. They are in host memory, or in the
/// channel's memory.
Tensor over_memory(const void* data, int64_t n, ScalarType dtype);
Tensor over_memory(const Channel& channel, const void* data, int64_t n, ScalarType dtype);

struct Reduction {
  ReduceOp op;
  ReduceOrder order;
  ScalarType dtype;
};

/// A reduction in the channel's memory. The caller makes it before the operation's messages begin.
/// Reason: a GPU may allocate memory, or load a new kernel's code, only when all its queued work is
/// done. That work would include the messages, which may never arrive.
class Combiner {
 public:
  /// For at most n elements of each rank.
  Combiner(Channel& channel, const Reduction& reduction, int64_t n);
  /// Writes out[0..n) from in[rank]; a null pointer: no contribution of that rank. `out` may be the
  /// contribution of this rank.
  void operator()(void* out, const std::vector<const void*>& in, int64_t n) const;
  /// Divides a sum by `ranks`, in place.
  void divide(void* sum, int64_t n, size_t ranks) const;
  ScalarType dtype() const { return reduction_.dtype; }

 private:
  void load() const;
  void sum(void* out, const std::vector<const void*>& in, int64_t n) const;
  void sum_few(void* out, const void* const* in, size_t leaves, int64_t n) const;
  void sum_unrounded(void* out, const std::vector<const void*>& in, int64_t n) const;
  bool keeps_floats() const;

  const Channel& channel_;
  const Reduction reduction_;
  std::optional<Staging> scratch_;
};

}  // namespace ramet::distributed::detail
