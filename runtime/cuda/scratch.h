// Memory that a back function needs in addition to its arguments, while its queued work runs:
// columns of a convolution, a workspace of cuBLASLt.
//
// Note [Scratch memory]
// Outside of captures it comes from the caching allocator and is freed as soon as the work is
// queued. The work of the next owner is queued after that. A graph runs its work again later, when
// another owner may have the memory. So a graph keeps the scratch memory that was taken while it
// was made. The work in a graph runs in one order, so one call's scratch memory is reused by the
// next.
#pragma once
#include <cstddef>
#include <vector>

#include "runtime/base/error.h"

namespace ramet {
namespace cuda {

/// The scratch memory that a graph of one device keeps.
class RAMET_API ScratchStore {
 public:
  explicit ScratchStore(int device) : device_(device) {}
  ~ScratchStore();
  ScratchStore(const ScratchStore&) = delete;
  ScratchStore& operator=(const ScratchStore&) = delete;

  /// While it lives, scratch memory that this thread takes comes from the store.
  class RAMET_API Use {
   public:
    explicit Use(ScratchStore& store);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    ScratchStore* before_;
  };

 private:
  friend class Scratch;
  struct Block {
    void* memory;
    size_t bytes;
    bool taken;
  };
  void* take(size_t bytes);
  void give_back(void* memory);
  const int device_;
  std::vector<Block> blocks_;
};

/// Scratch memory of cuda:k, on its compute stream, for the work that is queued while it lives.
/// Null for 0 bytes. Throws OutOfMemoryError.
class RAMET_API Scratch {
 public:
  Scratch(int device, size_t bytes);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  void* get() const { return memory_; }

 private:
  const int device_;
  ScratchStore* const store_;
  void* const memory_;
};

}  // namespace cuda
}  // namespace ramet
