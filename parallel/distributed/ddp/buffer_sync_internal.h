// Buffers over the ranks.
#pragma once
#include <string>
#include <vector>

#include "nn/module/module.h"
#include "parallel/distributed/ddp/companion_internal.h"
#include "parallel/distributed/model/leaves_internal.h"

namespace ramet::distributed::detail {

/// Buffers of policy first, mean, sum, max and all_equal (nn/module/buffer_policy.h), over ranks as
/// over replicas. Batch norms' statistics are merged elsewhere. Before a forward in training mode
/// the ranks tell each other which buffers were written since the last one; only those travel, and
/// only where a value differs is it written: to a fresh page, so that graphs which hold the buffer
/// find it unchanged (Note [Buffers and live graphs]). A view that the program took of the buffer's
/// memory, unless it is a registered buffer, stays with the old page.
class BufferSync {
 public:
  BufferSync(const nn::Module& module, const Exceptions& exceptions);
  bool empty() const { return buffers_.empty(); }
  /// What they hold now is equal on all ranks.
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
