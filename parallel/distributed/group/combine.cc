#include "parallel/distributed/group/combine_internal.h"

#include <algorithm>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "autograd/ops/front/common_internal.h"
#include "autograd/ops/make/copy.h"
#include "kernels/pointwise/nary_sum.h"
#include "runtime/base/checked_size.h"

namespace ramet::distributed::detail {
namespace {

// How many operands the summing kernel takes.
constexpr size_t kMost = kernels::kMaxSummands;
// Enough elements for each kernel to run as it does on many.
constexpr int64_t kFew = 8;

}  // namespace

Tensor over_memory(const void* data, int64_t n, ScalarType dtype) {
  return from_blob(const_cast<void*>(data), {n}, TensorOptions(dtype));
}
Tensor over_memory(const Channel& channel, const void* data, int64_t n, ScalarType dtype) {
  return from_blob(const_cast<void*>(data), {n}, TensorOptions(dtype).device(channel.device()));
}

Combiner::Combiner(Channel& channel, const Reduction& reduction, int64_t n)
    : channel_(channel), reduction_(reduction) {
  const auto bytes = static_cast<size_t>(std::max(n, kFew)) *
                     (keeps_floats() ? sizeof(float) : item_size(reduction.dtype));
  if (reduction.op > ReduceOp::average || static_cast<size_t>(channel.size()) > kMost)
    scratch_.emplace(channel.staging(bytes));
  if (!channel.is_new_to_card(static_cast<int>(reduction.op) * 256 +
                              static_cast<int>(reduction.dtype)))
    return;
  channel.wait_for_tensors();  // at most until the deadline
  load();
}

// Runs every kernel that the reduction may need, so that their code is loaded.
void Combiner::load() const {
  constexpr int64_t kEach = kFew * 8;  // bytes, at least
  const auto ranks = static_cast<size_t>(channel_.size());
  const Staging memory = channel_.staging((ranks + 1) * kEach);
  channel_.clear(memory.data(), static_cast<int64_t>(ranks + 1) * kEach);
  std::vector<const void*> in;
  for (size_t r = 1; r <= ranks; ++r) in.push_back(memory.data() + r * kEach);
  (*this)(memory.data(), in, kFew);
}

// Sums in[0], in[1], ..., at most kMost of them, in one of the kernel's two orders.
void Combiner::sum_few(void* out, const void* const* in, size_t leaves, int64_t n) const {
  kernels::NarySumArgs k{};
  bool any = false;
  for (size_t i = 0; i < leaves; ++i) any = (k.in[i] = in[i]) != nullptr || any;
  if (!any || n == 0) return;
  k.out = out;
  k.n = n;
  k.leaves = static_cast<int32_t>(leaves);
  k.dtype = reduction_.dtype;
  k.tree = reduction_.order.is_tree();
  channel_.compute([&] { kernels::nary_sum({channel_.device(), 0}, k); });
}

// A sum of 16-bit floats in several portions: the kernel would round each of them.
bool Combiner::keeps_floats() const {
  return reduction_.op <= ReduceOp::average && static_cast<size_t>(channel_.size()) > kMost &&
         autograd::is_narrow(reduction_.dtype);
}
void Combiner::sum_unrounded(void* out, const std::vector<const void*>& in, int64_t n) const {
  const NoGradGuard off;
  const Tensor sum = over_memory(channel_, scratch_->data(), n, kFloat);
  bool any = false;
  for (const void* p : in) {
    if (!p) continue;
    const Tensor next = over_memory(channel_, p, n, reduction_.dtype);
    channel_.compute([&] { any ? void(sum.add_(next)) : autograd::copy_values(sum, next); });
    any = true;
  }
  if (!any) return;
  const Tensor rounded = over_memory(channel_, out, n, reduction_.dtype);
  channel_.compute([&] { autograd::copy_values(rounded, sum); });
}

// Sums more ranks than the kernel has operands, from left to right, in portions. A tree never has
// more.
void Combiner::sum(void* out, const std::vector<const void*>& in, int64_t n) const {
  if (in.size() <= kMost) return sum_few(out, in.data(), in.size(), n);
  if (keeps_floats()) return sum_unrounded(out, in, n);
  char* const so_far = scratch_->data();
  std::vector<const void*> now(in.begin(), in.begin() + kMost);
  for (size_t next = kMost;;) {
    const bool any = std::ranges::any_of(now, [](const void* p) { return p; });
    sum_few(so_far, now.data(), now.size(), n);
    if (next >= in.size()) break;
    now.assign(1, any ? so_far : nullptr);
    while (next < in.size() && now.size() < kMost) now.push_back(in[next++]);
  }
  channel_.copy(out, so_far, static_cast<size_t>(n) * item_size(reduction_.dtype));
}

void Combiner::divide(void* sum, int64_t n, size_t ranks) const {
  const NoGradGuard off;
  Tensor t = over_memory(channel_, sum, n, reduction_.dtype);
  channel_.compute([&] { t.div_(static_cast<double>(ranks)); });
}

void Combiner::operator()(void* out, const std::vector<const void*>& in, int64_t n) const {
  if (n == 0) return;
  const ReduceOp op = reduction_.op;
  if (op == ReduceOp::sum || op == ReduceOp::average) {
    sum(out, in, n);
    if (op == ReduceOp::average) divide(out, n, in.size());
    return;
  }
  const NoGradGuard off;
  const size_t bytes = static_cast<size_t>(n) * item_size(reduction_.dtype);
  char* const so_far = scratch_->data();  // needed because `out` may be an operand
  channel_.copy(so_far, in[0], bytes);
  Tensor result = over_memory(channel_, so_far, n, reduction_.dtype);
  for (size_t i = 1; i < in.size(); ++i) {
    const Tensor next = over_memory(channel_, in[i], n, reduction_.dtype);
    channel_.compute([&] {
      if (op == ReduceOp::product) result.mul_(next);
      else if (op == ReduceOp::min) minimum_out(result, result, next);
      else maximum_out(result, result, next);
    });
  }
  channel_.copy(out, so_far, bytes);
}

}  // namespace ramet::distributed::detail
