// Operations at two sizes: memory grows as the formula of their work and results does. A test of
// time would depend on the machine; an operation that makes a tensor of all pairs shows here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "autograd/autograd.h"
#include "autograd/ops.h"
#include "runtime/memory/allocator.h"

namespace ramet {
namespace {

using V = const std::vector<Tensor>&;
struct Case {
  const char* name;
  // The inputs of size n; those that are floating get gradients.
  std::function<std::vector<Tensor>(int64_t n)> inputs;
  std::function<Tensor(V)> f;
  double power = 1;  // memory grows as n to this power
};

Tensor floats(std::vector<int64_t> sizes) {
  int64_t count = 1;
  for (const int64_t n : sizes) count *= n;
  return arange(count, kFloat).mul(0.37).sin().view(sizes);
}
Tensor longs(std::vector<int64_t> sizes, int64_t below) {
  int64_t count = 1;
  for (const int64_t n : sizes) count *= n;
  return arange(count, kLong).mul(7).remainder(below).view(sizes);
}
// Rows of n elements, then n rows.
std::vector<Tensor> line(int64_t n) { return {floats({16, n})}; }
std::vector<Tensor> tall(int64_t n) { return {floats({n, 8})}; }
std::vector<Tensor> two(int64_t n) { return {floats({16, n}), floats({16, n}).cos()}; }
std::vector<Tensor> apart(int64_t n) { return {floats({n, 8}), floats({8, 8}).cos()}; }

#define OF(...) [](V x) { return __VA_ARGS__; }
#define MADE(...) [](int64_t n) { return std::vector<Tensor>{__VA_ARGS__}; }
std::vector<Case> cases() {
  return {
      {"multilabel_margin_loss",
       [](int64_t n) {
         Tensor y = full({16, n}, -1, kLong);
         y.narrow(1, 0, 2).copy_(longs({16, 2}, n));
         return std::vector<Tensor>{floats({16, n}), y};
       },
       OF(multilabel_margin_loss(x[0], x[1]))},
      {"multi_margin_loss", MADE(floats({16, n}), longs({16}, n)),
       OF(multi_margin_loss(x[0], x[1]))},
      {"cross_entropy_loss", MADE(floats({16, n}), longs({16}, n)),
       OF(cross_entropy_loss(x[0], x[1]))},
      {"linalg_pinv, tall", tall, OF(linalg_pinv(x[0]))},
      {"linalg_pinv, wide", MADE(floats({8, n})), OF(linalg_pinv(x[0]))},
      {"linalg_svdvals", tall, OF(linalg_svdvals(x[0]))},
      {"linalg_matrix_norm", tall, OF(nuclear_norm(x[0]))},
      {"linalg_qr", tall, OF(std::get<0>(linalg_qr(x[0])))},
      {"cdist, few", apart, OF(cdist(x[0], x[1], 1.))},
      {"cdist, euclidean", apart, OF(cdist(x[0], x[1]))},
      {"cdist, pairs", MADE(floats({n / 8, 8})), OF(cdist(x[0], x[0].detach().add(1), 3.)), 2},
      {"pdist", MADE(floats({n / 8, 8})), OF(pdist(x[0])), 2},
      {"cosine_similarity", two, OF(cosine_similarity(x[0], x[1]))},
      {"kl_div", two, OF(kl_div(x[0], x[1].square()))},
      {"softmax", line, OF(softmax(x[0], 1).square())},
      {"logcumsumexp", line, OF(logcumsumexp(x[0], 1))},
      {"cumprod", line, OF(cumprod(x[0], 1))},
      {"prod", line, OF(prod(x[0], 1))},
      {"cummax", line, OF(std::get<0>(cummax(x[0], 1)))},
      {"sort", line, OF(std::get<0>(sort(x[0], 1)))},
      {"topk", line, OF(std::get<0>(topk(x[0], 5, 1)))},
      {"kthvalue", line, OF(std::get<0>(kthvalue(x[0], 5, 1)))},
      {"median", line, OF(std::get<0>(median(x[0], 1)))},
      {"mode", line, OF(std::get<0>(mode(x[0], 1)))},
      {"quantile", line, OF(quantile(x[0], 0.3, 1))},
      {"unique", line, OF(std::get<0>(_unique(x[0].detach())))},
      {"isin", two, OF(isin(x[0].detach(), x[1].detach()))},
      {"searchsorted", two, OF(searchsorted(std::get<0>(sort(x[0].detach(), 1)), x[1].detach()))},
      {"bincount", MADE(longs({n}, 50)), OF(bincount(x[0]))},
      {"histc", line, OF(histc(x[0].detach(), 20))},
      {"cov", MADE(floats({8, n})), OF(x[0].cov())},
      {"diff", line, OF(diff(x[0]))},
      {"trapezoid", line, OF(trapezoid(x[0]))},
      {"renorm", line, OF(renorm(x[0], 2, 0, 1))},
      {"vander", MADE(floats({n})), OF(vander(x[0], 6))},
      {"index_select", tall, OF(x[0].index_select(0, longs({64}, 64)))},
      {"index_add", tall, OF(index_add(x[0], 0, longs({64}, 64), floats({64, 8})))},
      {"gather", line, OF(x[0].gather(1, longs({16, 9}, 64)))},
      {"scatter_reduce", line,
       OF(scatter_reduce(x[0], 1, longs({16, 9}, 64), floats({16, 9}), "amax"))},
      {"repeat_interleave", tall, OF(repeat_interleave(x[0], 3, 0))},
      {"roll", line, OF(roll(x[0], 3, 1))},
      {"embedding", tall, OF(embedding(x[0], longs({64}, 64)))},
      {"layer_norm", line, OF(layer_norm(x[0], {x[0].size(1)}))},
      {"conv1d", MADE(floats({2, 4, n}), floats({4, 4, 5})), OF(conv1d(x[0], x[1]))},
      {"conv1d, one filter", MADE(floats({2, 4, n}), floats({1, 4, 5})), OF(conv1d(x[0], x[1]))},
      {"conv_transpose1d", MADE(floats({2, 4, n}), floats({4, 4, 5})),
       OF(conv_transpose1d(x[0], x[1]))},
      {"max_pool1d", MADE(floats({2, 4, n})), OF(max_pool1d(x[0], 3))},
      {"adaptive_avg_pool1d", MADE(floats({2, 4, n})), OF(adaptive_avg_pool1d(x[0], 7))},
      {"scaled_dot_product_attention, keys",
       MADE(floats({1, 2, 8, 16}), floats({1, 2, n, 16}), floats({1, 2, n, 16})),
       OF(scaled_dot_product_attention(x[0], x[1], x[2]))},
      {"scaled_dot_product_attention, both",
       MADE(floats({1, 2, n, 16}), floats({1, 2, n, 16}), floats({1, 2, n, 16})),
       OF(scaled_dot_product_attention(x[0], x[1], x[2]))},
      {"einsum", apart, OF(einsum("ij,kj->i", {x[0], x[1]}))},
      {"bilinear", MADE(floats({n, 4}), floats({n, 5}), floats({3, 4, 5})),
       OF(bilinear(x[0], x[1], x[2], {}))},
      {"masked_select", line, OF(x[0].masked_select(x[0].detach().gt(0)))},
      {"segment_reduce", MADE(floats({n})),
       OF(segment_reduce(x[0], "sum", full({8}, x[0].size(0) / 8, kLong)))},
  };
}
#undef MADE
#undef OF

int64_t peak_of(const Case& c, int64_t n) {
  std::vector<Tensor> x = c.inputs(n);
  for (Tensor& t : x)
    if (t.is_floating_point()) t.requires_grad_();
  reset_peak_memory_stats(kCPU);
  const int64_t before = memory_stats(kCPU).current;
  const Tensor y = c.f(x);
  if (y.requires_grad()) y.sum().backward();
  return memory_stats(kCPU).peak - before;
}

TEST(MemoryGrowth, IsThatOfTheFormula) {
  for (const Case& c : cases()) {
    constexpr int64_t kSmall = 512, kTimes = 6;
    const int64_t small = peak_of(c, kSmall), large = peak_of(c, kTimes * kSmall);
    const double most = std::pow(kTimes, c.power) * 1.5;
    // Below 64 KB it is what an operation has of any size.
    EXPECT_LE(static_cast<double>(large),
              most * static_cast<double>(std::max<int64_t>(small, 65536)))
        << c.name << ": " << small << " bytes, then " << large;
  }
}

}  // namespace
}  // namespace ramet
