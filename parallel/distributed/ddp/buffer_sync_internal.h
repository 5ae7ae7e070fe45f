// Synchronises buffers over the ranks.
#pragma once
#include <string>
#include <vector>

#include "nn/module/module.h"
#include "parallel/distributed/ddp/companion_internal.h"
#include "parallel/distributed/model/leaves_internal.h"

namespace ramet::distributed::detail {

/// Synchronises buffers of policy first, mean, sum, max and all_equal (nn/module/buffer_policy.h)
/// over ranks, as over replicas. It does not handle the statistics of batch norms:
/// merge_statistics() does. Before a forward in training mode the ranks report to each other which
/// buffers were written since the last one. Only the values of those are sent. A rank writes a
/// buffer only where the value differs, and to a fresh page. So graphs that hold the buffer find it
/// unchanged (Note [Buffers and live graphs]). If the program took a view of the buffer's memory,
/// the view stays with the old page, unless it is a registered buffer.
class BufferSync {
 public:
  BufferSync(const nn::Module& module, const Exceptions& exceptions);
  bool empty() const { return buffers_.empty(); }
  /// Records that the buffers' present values are equal on all ranks.
  void mark_equal();
  /// Collective.
  void synchronise(Companion& companion);

 private:
  struct Buffer {
    std::string name;
    Tensor tensor;
    nn::BufferPolicy policy;
    uint64_t serial = 0;
    const void* data = nullptr;
    uint32_t version = 0;
    bool written() const;
    void mark_seen();
  };
  std::vector<Buffer> buffers_;
};

}  // namespace ramet::distributed::detail
