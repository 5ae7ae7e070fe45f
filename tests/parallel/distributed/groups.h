// Groups of a test: every test program says how its ranks are made.
#pragma once
#include <functional>
#include <memory>

#include "autograd/ops.h"
#include "parallel/distributed/process_group.h"
#include "tests/error_text.h"
#include "tests/parallel/distributed/support.h"

namespace ramet::distributed {

using Group = std::shared_ptr<ProcessGroup>;
using Body = std::function<void(const Group& group)>;
using std::chrono::seconds;

/// Runs a body on each rank of a fresh group, ranks being threads of this process.
void with_groups(int ranks, Milliseconds timeout, const Body& body);

inline bool same_bits(const Tensor& a, const Tensor& b) {
  return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() && a.equal(b);
}

}  // namespace ramet::distributed
