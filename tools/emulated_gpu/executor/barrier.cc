// __syncthreads(): all threads that have not left the kernel meet, at one line.
#include <cstring>

#include "tools/emulated_gpu/checker/checks.h"
#include "tools/emulated_gpu/executor/report.h"
#include "tools/emulated_gpu/executor/worker.h"

namespace ramet::emulated {

int block_barrier(Vote vote, int predicate, const char* file, int line) {
  return Worker::get().wait_at_barrier(vote, predicate, file, line);
}

int Worker::wait_at_barrier(Vote vote, int predicate, const char* file, int line) {
  CudaThread& thread = threads_[current_];
  if (barrier_.arrived == 0) {
    barrier_.file = file;
    barrier_.line = line;
  } else if (line != barrier_.line ||
             (file != barrier_.file && std::strcmp(file, barrier_.file) != 0)) {
    // Hardware lets it pass or hangs; CUDA promises nothing.
    unsigned other = 0;
    while (threads_[other].state != ThreadState::AtBarrier) ++other;
    record_fault(Fault::DivergentBarrier, "DIVERGENT BARRIER: thread " + text_of(threadIdx) +
                                              " is at __syncthreads() at " + place(file, line) +
                                              " while thread " + text_of(threads_[other].index) +
                                              " waits at " + place(barrier_.file, barrier_.line));
    abandon_block();
  }
  if (step_hooks) step_hooks->arrives(0, file, line);
  thread.file = file;
  thread.line = line;
  thread.state = ThreadState::AtBarrier;
  barrier_.votes += predicate != 0;
  ++barrier_.arrived;
  happens_before(&barrier_token_);
  if (barrier_.arrived == live_) {
    release_barrier();  // makes this thread ready, too
    resume(pop_ready());
  } else {
    wait_for_others();
  }
  happens_after(&barrier_token_);
  switch (vote) {
    case Vote::None: return 0;
    case Vote::Count: return barrier_.released_votes;
    case Vote::And: return barrier_.released_votes == static_cast<int>(barrier_.released);
    case Vote::Or: return barrier_.released_votes != 0;
  }
  return 0;
}

// One set of votes is enough. A thread reads the votes before it can reach the next barrier, and
// that barrier is not released before all threads have reached it.
void Worker::release_barrier() {
  if (step_hooks) step_hooks->barrier_passed();
  ++barrier_.epoch;
  barrier_.released_votes = barrier_.votes;
  barrier_.released = barrier_.arrived;
  barrier_.votes = 0;
  barrier_.arrived = 0;
  for (unsigned i = 0; i < count_; ++i)
    if (threads_[order_[i]].state == ThreadState::AtBarrier) push_ready(order_[i]);
}

}  // namespace ramet::emulated
