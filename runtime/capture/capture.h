// What the library tells a capture while it is being made (autograd/graph/captured.h).
//
// Note [Capture]
// While a capture is made, no kernel runs: the calls of this thread (and of those of replicas that
// meet in their forward, one at a time) are written down with their argument blocks
// (kernels/kernel.h), and then the list is run once, as it will be at each replay.
// So a function that cannot be captured has changed no memory. (Where the first run fails, at an
// index out of range, the calls before it have happened, as they have in an eager step.) Three
// things beside kernels have to come along:
//
// - Memory. Nothing that the list names may be reused by others, so every storage that is made
//   meanwhile, and every one that a kernel is given (TensorBase::ptr), is kept until the capture
//   dies. Within the list what is done with serves again (spare_memory): each replay makes the
//   calls in one order. So what the host writes while it is being made needs memory from elsewhere.
// - What the host computes from state that changes from step to step: an optimizer's step count, a
//   learning rate, a generator's offset. Whoever does that says so: effect() for what is to be done
//   again, patch_last_call() for what goes into an argument block. host_work() is for work of the
//   host on tensors, which happens at its place in the list.
// - What the list depends on: guard(). A capture is used only while all its guards hold.
//
// Whoever needs a value that the list will compute cannot be captured and calls refuse(). One
// capture is made at a time in a process; others wait.
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

/// Done by the host already; `again` does it at each replay, at its place. `undo`, which must not
/// throw, makes it good where the capture fails; the last effect is undone first.
RAMET_API void effect(std::function<void()> again, std::function<void()> undo);
/// Only what makes good.
RAMET_API void on_failure(std::function<void()> undo);
/// Not done yet: `work` runs at its place, at the end of the capture and at each replay. It may
/// throw, as the operation would.
RAMET_API void host_work(std::function<void()> work);
/// For any thread: host_work() where it makes a capture, else at once. The work may be a GPU's, in
/// any of its streams, with memory that is named by pointers.
RAMET_API void queued_work(std::function<void()> work);
/// queued_work() where this thread makes a capture; else `work` runs at once, and its type is
/// nobody's business.
template <class Work> void in_turn(const Work& work) {
  if (RAMET_UNLIKELY(active())) queued_work(work);
  else work();
}
/// Before each replay of the last kernel call of the list `patch` gets its argument block.
RAMET_API void patch_last_call(std::function<void(void* args)> patch);
/// The same for a block of type Args.
template <class Args, class Patch> void patch_last(Patch patch) {
  patch_last_call([patch = std::move(patch)](void* args) { patch(*static_cast<Args*>(args)); });
}
/// `holds` says before a call whether the capture may be used. One guard is kept for each `of`.
/// `what` is static text: "training mode".
RAMET_API void guard(const void* of, const char* what, std::function<bool()> holds);
/// Is an object that guards and effects name still there? A member of it; copies have their own.
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
/// What was captured happens once, like the first step of an optimizer, which makes its state.
RAMET_API void once();
/// A generator has given out `key`: kernels that get it get the next one at each replay.
RAMET_API void reserved(const Generator& from, int64_t n, int64_t rows, const PhiloxKey& key);

/// A kernel gets memory of `t`. TensorBase::ptr() says so; whoever takes pointers otherwise does.
RAMET_API void used(TensorImpl* t);
/// For StorageImpl and its makers: memory of so many bytes that was made meanwhile and that nothing
/// but the list uses any more, or null; and what was made or taken over.
StorageImpl* spare_memory(size_t bytes, Device device);
/// A storage that was made or taken over while the capture is made: it is kept.
void born(StorageImpl* made);

}  // namespace capture
}  // namespace ramet
