#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "autograd/schema/spans_internal.h"
#include "autograd/tensor.h"
#include "runtime/observe/observer.h"

namespace ramet::script {
namespace {

// Spans that are open in this thread, outermost first; null where there are none. A pointer, since
// memory of threads is short where a library is loaded late.
using Spans = std::vector<std::pair<int64_t, std::unique_ptr<RecordScope>>>;
thread_local Spans* t_open = nullptr;

size_t open_spans() { return t_open ? t_open->size() : 0; }

void end_down_to(size_t count) {
  while (open_spans() > count) t_open->pop_back();
  if (t_open && t_open->empty()) delete std::exchange(t_open, nullptr);
}

}  // namespace

int64_t begin_span(const std::string& name) {
  static std::atomic<int64_t> last{0};
  const int64_t number = ++last;
  if (!t_open) t_open = new Spans;
  t_open->emplace_back(number, std::make_unique<RecordScope>(name));
  return number;
}

void end_span(int64_t number) {
  if (!t_open) return;
  const auto at = std::find_if(t_open->begin(), t_open->end(),
                               [&](const auto& span) { return span.first == number; });
  if (at != t_open->end()) end_down_to(static_cast<size_t>(at - t_open->begin()));
}

SpansOfCall::SpansOfCall() : open_(open_spans()) {}
SpansOfCall::~SpansOfCall() { end_down_to(open_); }

}  // namespace ramet::script
