#include "autograd/schema/spans_internal.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "autograd/tensor.h"
#include "runtime/observe/observer.h"

namespace ramet::script {
namespace {

// Spans that are open in this thread, outermost first.
using Spans = std::vector<std::pair<int64_t, std::unique_ptr<RecordScope>>>;
Spans& spans() {
  static thread_local Spans open;
  return open;
}

void end_down_to(size_t count) {
  Spans& open = spans();
  while (open.size() > count) open.pop_back();
}

}  // namespace

int64_t begin_span(const std::string& name) {
  static std::atomic<int64_t> last{0};
  const int64_t number = ++last;
  spans().emplace_back(number, std::make_unique<RecordScope>(name));
  return number;
}

void end_span(int64_t number) {
  const Spans& open = spans();
  const auto at = std::find_if(open.begin(), open.end(),
                               [&](const auto& span) { return span.first == number; });
  if (at != open.end()) end_down_to(static_cast<size_t>(at - open.begin()));
}

SpansOfCall::SpansOfCall() : open_(spans().size()) {}
SpansOfCall::~SpansOfCall() { end_down_to(open_); }

}  // namespace ramet::script
