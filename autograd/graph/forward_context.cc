#include "autograd/graph/forward_context.h"

#include <algorithm>
#include <utility>

namespace ramet {
namespace autograd {
namespace {
__thread ForwardContextGuard* innermost = nullptr;
}  // namespace

ForwardContext::~ForwardContext() = default;

ForwardContextGuard::ForwardContextGuard(std::shared_ptr<ForwardContext> context)
    : context_(std::move(context)), before_(std::exchange(innermost, this)) {}
ForwardContextGuard::~ForwardContextGuard() { innermost = before_; }

std::vector<std::shared_ptr<ForwardContext>> ForwardContextGuard::all() {
  std::vector<std::shared_ptr<ForwardContext>> out;
  for (const ForwardContextGuard* g = innermost; g; g = g->before_)
    if (g->context_) out.push_back(g->context_);
  std::reverse(out.begin(), out.end());
  return out;
}

}  // namespace autograd
}  // namespace ramet
