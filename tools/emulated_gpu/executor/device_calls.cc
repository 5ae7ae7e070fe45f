#include "tools/emulated_gpu/executor/device_calls.h"

#include "tools/emulated_gpu/checker/checks.h"
#include "tools/emulated_gpu/executor/report.h"
#include "tools/emulated_gpu/executor/worker.h"

namespace ramet::emulated {

bool on_device() {
  const Worker* worker = Worker::if_any();
  return worker && worker->busy();
}

uint32_t live_lanes() { return Worker::get().live_lanes(); }
unsigned thread_rank() { return Worker::get().current(); }
void* dynamic_shared_memory() { return Worker::get().dynamic_shared(); }

void device_fail(Fault fault, const char* what, const char* file, int line) {
  Worker& worker = Worker::get();
  worker.record_fault(
      fault, std::string(what) + " at " + place(file, line) + ", thread " + text_of(threadIdx));
  worker.abandon_block();
}

// Out of line: compilers warn about a fence in code that they instrument for TSan, and insert no
// call that reports it to the checker.
void fence() {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  if (checks().fence) checks().fence();
}

// The queue is in this function, not in the instrumented kernel. Otherwise the checker would take
// it for host memory that a kernel accesses.
void async_copy_issue(const AsyncCopy& copy) { Worker::get().async_copies().open.push_back(copy); }

void async_copy_commit() {
  AsyncCopies& copies = Worker::get().async_copies();
  copies.groups.push_back(std::move(copies.open));
  copies.open.clear();
}

bool async_copy_take(int keep, AsyncCopy* copy) {
  AsyncCopies& copies = Worker::get().async_copies();
  while (static_cast<int>(copies.groups.size()) > keep) {
    const std::vector<AsyncCopy>& group = copies.groups.front();
    if (copies.next < group.size()) {
      *copy = group[copies.next++];
      return true;
    }
    copies.groups.pop_front();
    copies.next = 0;
  }
  return false;
}

}  // namespace ramet::emulated
