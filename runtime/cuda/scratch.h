// Memory that a back function needs besides its arguments, while what it queues runs: columns of a
// convolution, a workspace of cuBLASLt.
//
// Note [Scratch memory]
// Outside of captures it comes from the caching allocator and goes back as soon as the work is
// queued: whoever gets it next queues behind that. A graph runs its work again later, when somebody
// else may have the memory, so a graph keeps what was taken while it was made. What it holds runs
// in one order, so one call's scratch memory serves the next.
#pragma once
#include <cstddef>
#include <vector>

#include "runtime/base/error.h"

namespace ramet {
namespace cuda {

/// What a graph of one device keeps.
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

/// Scratch memory of cuda:k, on its compute stream, for what is queued while it lives. Null for 0
/// bytes. Throws OutOfMemoryError.
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
