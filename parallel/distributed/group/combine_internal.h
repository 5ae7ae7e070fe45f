// How what several ranks have contributed becomes one.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "parallel/distributed/group/process_group.h"
#include "parallel/distributed/wire/channel_internal.h"

namespace ramet::distributed::detail {

/// n elements that lie there, as a tensor; nothing is copied. In host memory, or in the channel's.
Tensor over_memory(const void* data, int64_t n, ScalarType dtype);
Tensor over_memory(const Channel& channel, const void* data, int64_t n, ScalarType dtype);

struct Reduction {
  ReduceOp op;
  ReduceOrder order;
  ScalarType dtype;
};

/// A reduction in the channel's memory. It is made before the operation's messages begin: a card
/// may give memory, and load the code of a kernel that is new to it, only when all that it was
/// given is done, and messages are among that, which may never arrive.
class Combiner {
 public:
  /// Of at most n elements of each rank.
  Combiner(Channel& channel, const Reduction& reduction, int64_t n);
  /// out[0..n) from in[rank]; null: nothing of that rank. `out` may be this rank's.
  void operator()(void* out, const std::vector<const void*>& in, int64_t n) const;
  /// Makes an average over `ranks` of a sum.
  void divide(void* sum, int64_t n, size_t ranks) const;
  ScalarType dtype() const { return reduction_.dtype; }

 private:
  void load() const;
  void sum(void* out, const std::vector<const void*>& in, int64_t n) const;
  void sum_few(void* out, const void* const* in, size_t leaves, int64_t n) const;

  const Channel& channel_;
  const Reduction reduction_;
  std::optional<Staging> scratch_;
};

}  // namespace ramet::distributed::detail
