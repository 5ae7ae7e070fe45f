// Which CUDA thread of a block runs next, and on which fiber. See worker.h.
#include "tools/emulated_gpu/checker/checks.h"
#include "tools/emulated_gpu/executor/grid_run.h"
#include "tools/emulated_gpu/executor/settings.h"
#include "tools/emulated_gpu/executor/worker.h"

__thread uint3 threadIdx, blockIdx, blockDim, gridDim;

namespace ramet::emulated {

__thread RunningStack running_stack;

namespace {

size_t stack_bytes() {
  if (settings().stack_kb) return size_t(settings().stack_kb) << 10;
    // Red zones and the sanitizers' own calls make frames several times larger.
#if defined(RAMET_EMULATED_ASAN) || defined(__SANITIZE_THREAD__)
  return 256 << 10;
#else
  return 64 << 10;
#endif
}

}  // namespace

Fiber* Worker::take_fiber() {
  if (idle_.empty()) {
    fibers_.push_back(std::make_unique<Fiber>(stack_bytes(), fiber_main));
    return fibers_.back().get();
  }
  Fiber* fiber = idle_.back();
  idle_.pop_back();
  return fiber;
}

void Worker::fiber_main(Fiber* self) {
  for (;;) {
    // A fiber stays with its worker, so this is the same one each time.
    Worker& worker = get();
    if (worker.started_ < worker.count_) {
      worker.start_next_thread(self);
      continue;
    }
    worker.idle_.push_back(self);
    if (worker.anyone_ready()) worker.resume(worker.pop_ready());
    else switch_stack(*self, worker.host_);  // the block is done, or no thread can go on
  }
}

void Worker::start_next_thread(Fiber* self) {
  const unsigned rank = order_[started_++];
  CudaThread& thread = threads_[rank];
  thread.fiber = self;
  thread.state = ThreadState::Running;
  current_ = rank;
  fiber_ = self;
  running_stack = {self->low, self->bytes};
  threadIdx = thread.index;
  happens_after(&block_token_);
  run_->grid.body(run_->grid.arguments);
  happens_before(&block_token_);
  finish_thread();
}

// The thread that others wait for may be one that ends.
void Worker::finish_thread() {
  if (step_hooks) step_hooks->thread_ended();
  threads_[current_].state = ThreadState::Done;
  --live_;
  ++threads;
  AsyncCopies& copies = async_copies_[current_];
  if (!copies.open.empty() || !copies.groups.empty()) copies = {};
  if (Products& products = products_[current_]; products.fenced || !products.groups.empty())
    products = {};
  Warp& warp = warps_[current_ / 32];
  warp.live &= ~(1u << (current_ % 32));
  for (int i = 0; i < warp.group_count;) {
    const WarpGroup& group = warp.groups[static_cast<size_t>(i)];
    if (group.arrived == (group.mask & warp.live)) complete_group(current_ / 32, i, true);
    else ++i;
  }
  if (barrier_.arrived && barrier_.arrived == live_) release_barrier();
}

void Worker::resume(unsigned rank) {
  CudaThread& thread = threads_[rank];
  current_ = rank;
  thread.state = ThreadState::Running;
  threadIdx = thread.index;
  if (fiber_ == thread.fiber) return;
  Fiber* from = fiber_;
  fiber_ = thread.fiber;
  running_stack = {fiber_->low, fiber_->bytes};
  ++switches;
  switch_stack(*from, *fiber_);
}

// The running thread cannot go on: switches to the next one. Without a next one it switches to the
// host thread, which finds out why.
void Worker::wait_for_others() {
  Fiber* from = fiber_;
  if (anyone_ready()) {
    resume(pop_ready());
  } else if (started_ < count_) {
    fiber_ = take_fiber();
    ++switches;
    switch_stack(*from, *fiber_);
  } else {
    switch_stack(*from, host_);
  }
}

void Worker::abandon_block() {
  abandoned_ = true;
  switch_stack(*fiber_, host_);
  __builtin_unreachable();  // rewound, never resumed
}

}  // namespace ramet::emulated
