// How the library reports to a capture while it is being made (autograd/graph/captured.h).
//
// Note [Capture]
// While a capture is made, no kernel runs. The kernel calls of this thread are recorded with their
// argument blocks (kernels/kernel.h). So are those of replicas that meet in their forward pass, one
// at a time. Then the list is run once, as it will be at each replay. So a function that cannot be
// captured has changed no memory. (The first run may fail at an index out of range. Then the calls
// before it have happened, as in an eager step.) A capture handles three more things:
//
// - Memory. No other code may reuse memory that the list names. So the capture keeps every storage
//   that is made during the capture, and every storage that a kernel gets (TensorBase::ptr), until
//   it dies. Within the list, memory that is no longer used is reused (spare_memory), because each
//   replay makes the calls in one order. So memory that the host writes during the capture must
//   come from elsewhere.
// - Values that the host computes from state that changes from step to step: an optimizer's step
//   count, a learning rate, a generator's offset. The code that computes them registers them.
//   effect() registers an action to repeat, patch_last_call() a value that goes into an argument
//   block. host_work() registers work of the host on tensors, which happens at its place in the
//   list.
// - Conditions: guard(). A capture is used only while all its guards hold.
//
// Code that needs a value that the list will compute cannot be captured and calls refuse(). One
// capture is made at a time in a process; other threads wait.
#pragma once
#include <functional>
#include <memory>

#include "runtime/base/context.h"
#include "runtime/devices/generator.h"

namespace ramet {

struct StorageImpl;
struct TensorImpl;

namespace capture {

/// Is this thread making a capture?
inline bool active() { return ramet::detail::tls.capturing != 0; }
/// Do this thread's kernel calls come from the list of a capture?
RAMET_API bool replaying();
/// `[op] not capturable: why`
[[noreturn]] RAMET_API void refused(const char* op, const char* why);
/// refused() where this thread makes a capture, else nothing.
inline void refuse(const char* op, const char* why) {
  if (RAMET_UNLIKELY(active())) refused(op, why);
}

// The rest is for threads that are making a capture.

/// The host has done it already. `again` repeats it at each replay, at its place. `undo`, which
/// must not throw, reverts it if the capture fails. The last effect is undone first.
RAMET_API void effect(std::function<void()> again, std::function<void()> undo);
/// Only the undo part of effect().
RAMET_API void on_failure(std::function<void()> undo);
/// Not done yet: `work` runs at its place, at the end of the capture and at each replay. It may
/// throw what the operation would throw.
RAMET_API void host_work(std::function<void()> work);
/// For any thread: host_work() if it makes a capture, else the work runs at once. The work may be a
/// GPU's, in any of its streams, with memory that is named by pointers.
RAMET_API void queued_work(std::function<void()> work);
/// queued_work() if this thread makes a capture. Otherwise `work` runs at once, without a
/// std::function.
template <class Work> void in_turn(const Work& work) {
  if (RAMET_UNLIKELY(active())) queued_work(work);
  else work();
}
/// Before each replay of the last kernel call of the list, `patch` gets its argument block.
RAMET_API void patch_last_call(std::function<void(void* args)> patch);
/// The same for a block of type Args.
template <class Args, class Patch> void patch_last(Patch patch) {
  patch_last_call([patch = std::move(patch)](void* args) { patch(*static_cast<Args*>(args)); });
}
/// `holds` says before a call whether the capture may be used. One guard is kept for each `of`.
/// `what` is static text: "training mode".
RAMET_API void guard(const void* of, const char* what, std::function<bool()> holds);
/// Does an object that guards and effects refer to still exist? The object has a Life as a member;
/// copies get a new one.
class Life {
 public:
  Life() : token_(std::make_shared<char>()) {}
  Life(const Life&) : Life() {}
  Life& operator=(const Life&) { return *this; }
  /// Expires with the object.
  std::weak_ptr<const void> token() const { return token_; }

 private:
  std::shared_ptr<const void> token_;
};
/// The captured work happens only once, like the first step of an optimizer, which makes its state.
RAMET_API void once();
/// A generator has given out `key`. Kernels that get it get the next key at each replay.
RAMET_API void reserved(const Generator& from, int64_t n, int64_t rows, const PhiloxKey& key);

/// A kernel gets memory of `t`. TensorBase::ptr() calls it; code that takes pointers in another way
/// must call it, too.
RAMET_API void used(TensorImpl* t);
/// For StorageImpl and its makers: memory of so many bytes that was made during the capture and
/// that only the list still uses, or null.
StorageImpl* spare_memory(size_t bytes, Device device);
/// A storage that was made or taken over while the capture is made: it is kept.
void born(StorageImpl* made);

}  // namespace capture
}  // namespace ramet
