// A list of kernel calls that can be made again. See Note [Capture] in runtime/capture/capture.h;
// autograd/graph/captured.h is the public interface.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "runtime/base/context.h"
#include "runtime/capture/capture.h"
#include "runtime/devices/generator.h"
#include "runtime/devices/gpu.h"
#include "runtime/observe/kernel_call.h"
#include "runtime/tensor/tensor_base.h"

namespace ramet {
namespace capture {

class RAMET_API Program {
 public:
  Program();
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// While it lives, this thread's calls are recorded. Waits for another thread's recording; an
  /// Error on a thread that has one.
  class RAMET_API Recording {
   public:
    explicit Recording(Program& into);
    /// Unless finished: reverts the work of the host.
    ~Recording();
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;
    /// The list is complete: runs it for the first time. If that throws, the capture has failed.
    void finish();

   private:
    Program& program_;
    bool finished_ = false;
  };

  /// The first guard that does not hold, or null.
  const char* failed_guard() const;
  /// Runs the list again. Allocates nothing.
  void replay();

  /// Keeps a reference to `t`, which TensorBase::unique() does not count until then. `by_name`: the
  /// caller also has a pointer to it, until forget().
  void hold(TensorImpl* t, bool by_name = false);
  /// No longer holds or watches it. Only during the capture.
  void forget(TensorImpl* t);
  /// once() was called: the list may not be run again.
  bool is_for_once() const { return once_; }
  /// Keeps the memory of `t`. Only during the capture.
  void keep_memory_of(const TensorImpl* t);
  /// Does the list use the memory of `t`?
  bool uses_memory_of(const TensorImpl* t) const;
  size_t calls() const { return calls_; }

 private:
  friend void effect(std::function<void()>, std::function<void()>);
  friend void on_failure(std::function<void()>);
  friend void host_work(std::function<void()>);
  friend void patch_last_call(std::function<void(void*)>);
  friend void guard(const void*, const char*, std::function<bool()>);
  friend void once();
  friend void refused(const char*, const char*);
  friend void region_opened(const Generator&, GeneratorState);
  friend void region_reserved(const PhiloxKey&);
  friend void region_closed(uint64_t);
  friend void reserved(const Generator&, int64_t, int64_t, const PhiloxKey&);
  friend void queued_work(std::function<void()>);
  friend StorageImpl* spare_memory(size_t, Device);
  friend void born(StorageImpl*);
  friend void used(TensorImpl*);
  friend bool unique(const TensorImpl*);
  friend void record(KernelCall&);

  using Function = std::function<void()>;
  struct Step {
    void (*invoke)(const void* what, Stream stream, const void* args);
    const void* what;  // a kernel, a Function, a gpu::Graph
    Stream stream;
    const void* args;
    const char* name = nullptr;  // of a kernel call
    bool effect = false;         // done by the host when the capture was made
    bool patched = false;        // the arguments change from replay to replay
  };
  struct Watched {  // a tensor that existed before, or outlives the capture
    const StorageImpl* memory;
    void* data;
    uint64_t geometry;
    uint32_t version;
    uint16_t key;
    uint8_t flags;
    bool written = false, by_name = false;
    const char* changed(const TensorImpl* t) const;  // null: it is as it was
  };
  struct Made {  // memory, and how many steps outside the one order (off_) came before
    StorageImpl* memory;
    size_t off;
  };
  struct Guard {
    const char* what;
    std::function<bool()> holds;
  };
  struct Reservation {
    Generator from;
    int64_t n, rows;
    PhiloxKey key;
    std::vector<void*> places;
    uint64_t operation;  // in a region: its distance from the first operation
    void put() const;
  };
  struct Region {
    Generator from;
    GeneratorState first;
    uint64_t taken = 0;
    std::vector<Reservation*> inside;
  };

  void* room(size_t bytes);
  void add(Function f, bool effect);
  void keep(StorageImpl* memory);
  StorageImpl* spare(size_t bytes, Device device);
  void find_spare();
  template <class Which> void drop(const Which& which);
  void drop_temporaries();
  void make_graphs();
  void undo() noexcept;

  std::vector<Step> steps_;
  std::deque<Function> functions_;
  std::deque<Reservation> reservations_;
  std::deque<Region> regions_;
  Region* open_ = nullptr;
  std::vector<std::unique_ptr<gpu::Graph>> graphs_;
  std::vector<std::unique_ptr<std::byte[]>> blocks_;  // of argument blocks
  size_t room_ = 0, room_used_ = 0;
  std::unordered_set<StorageImpl*> memory_;
  // During the capture: memory made since its start; the unused part of it, by size.
  std::vector<Made> made_;
  std::unordered_multimap<size_t, StorageImpl*> spare_;
  size_t fresh_ = 0, fresh_since_ = 0;  // bytes: in all, since find_spare()
  size_t off_ = 0;
  std::unordered_map<TensorImpl*, Watched> tensors_;
  std::vector<std::pair<TensorImpl*, Watched>> watched_;  // tensors_ as a list, once finished
  std::unordered_map<const void*, Guard> guard_of_;
  std::vector<Guard> guards_;
  std::vector<Function> undo_;
  size_t calls_ = 0;
  bool once_ = false;
  std::string refused_;  // the first refusal
  // the thread's state that operations depend on
  Context state_;
  int slots_;
};

}  // namespace capture
}  // namespace ramet
