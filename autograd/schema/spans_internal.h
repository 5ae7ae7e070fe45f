// Spans of time that a program names: torch.autograd.profiler.record_function.
//
// A span is a RecordScope, so traces, recordings and errors of anomaly mode name it. A program
// holds a number for it. Scopes end in reverse order, so the end of a span ends those that began
// later. The end of a call from outside ends what the call has left open.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace ramet::script {

/// Begins a span in this thread. Its number is never used again.
int64_t begin_span(const std::string& name);
/// Ends it. Nothing where it has ended, or is another thread's.
void end_span(int64_t number);

/// Around a call from outside.
class SpansOfCall {
 public:
  SpansOfCall();
  ~SpansOfCall();
  SpansOfCall(const SpansOfCall&) = delete;
  SpansOfCall& operator=(const SpansOfCall&) = delete;

 private:
  const size_t open_;
};

}  // namespace ramet::script
