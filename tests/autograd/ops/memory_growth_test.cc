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

std::vector<Case> cases() {
  return {
      {"multilabel_margin_loss",
       [](int64_t n) {
         Tensor y = full({16, n}, -1, kLong);
         y.narrow(1, 0, 2).copy_(longs({16, 2}, n));
         return std::vector<Tensor>{floats({16, n}), y};
       },
       [](V x) { return multilabel_margin_loss(x[0], x[1]); }},
      {"multi_margin_loss",
       [](int64_t n) {
         return std::vector<Tensor>{floats({16, n}), longs({16}, n)};
       },
       [](V x) { return multi_margin_loss(x[0], x[1]); }},
      {"cross_entropy_loss",
       [](int64_t n) {
         return std::vector<Tensor>{floats({16, n}), longs({16}, n)};
       },
       [](V x) { return cross_entropy_loss(x[0], x[1]); }},
      {"linalg_pinv, tall", tall, [](V x) { return linalg_pinv(x[0]); }},
      {"linalg_pinv, wide",
       [](int64_t n) {
         return std::vector<Tensor>{floats({8, n})};
       },
       [](V x) { return linalg_pinv(x[0]); }},
      {"linalg_svdvals", tall, [](V x) { return linalg_svdvals(x[0]); }},
      {"linalg_matrix_norm", tall, [](V x) { return nuclear_norm(x[0]); }},
      {"linalg_qr", tall, [](V x) { return std::get<0>(linalg_qr(x[0])); }},
      {"cdist, few", apart, [](V x) { return cdist(x[0], x[1], 1.); }},
      {"cdist, euclidean", apart, [](V x) { return cdist(x[0], x[1]); }},
      {"cdist, pairs",
       [](int64_t n) {
         return std::vector<Tensor>{floats({n / 8, 8})};
       },
       [](V x) { return cdist(x[0], x[0].detach().add(1), 3.); }, 2},
      {"pdist",
       [](int64_t n) {
         return std::vector<Tensor>{floats({n / 8, 8})};
       },
       [](V x) { return pdist(x[0]); }, 2},
      {"cosine_similarity", two, [](V x) { return cosine_similarity(x[0], x[1]); }},
      {"kl_div", two, [](V x) { return kl_div(x[0], x[1].square()); }},
      {"softmax", line, [](V x) { return softmax(x[0], 1).square(); }},
      {"logcumsumexp", line, [](V x) { return logcumsumexp(x[0], 1); }},
      {"cumprod", line, [](V x) { return cumprod(x[0], 1); }},
      {"prod", line, [](V x) { return prod(x[0], 1); }},
      {"cummax", line, [](V x) { return std::get<0>(cummax(x[0], 1)); }},
      {"sort", line, [](V x) { return std::get<0>(sort(x[0], 1)); }},
      {"topk", line, [](V x) { return std::get<0>(topk(x[0], 5, 1)); }},
      {"kthvalue", line, [](V x) { return std::get<0>(kthvalue(x[0], 5, 1)); }},
      {"median", line, [](V x) { return std::get<0>(median(x[0], 1)); }},
      {"mode", line, [](V x) { return std::get<0>(mode(x[0], 1)); }},
      {"quantile", line, [](V x) { return quantile(x[0], 0.3, 1); }},
      {"unique", line, [](V x) { return std::get<0>(_unique(x[0].detach())); }},
      {"isin", two, [](V x) { return isin(x[0].detach(), x[1].detach()); }},
      {"searchsorted", two,
       [](V x) { return searchsorted(std::get<0>(sort(x[0].detach(), 1)), x[1].detach()); }},
      {"bincount", [](int64_t n) { return std::vector<Tensor>{longs({n}, 50)}; },
       [](V x) { return bincount(x[0]); }},
      {"histc", line, [](V x) { return histc(x[0].detach(), 20); }},
      {"cov",
       [](int64_t n) {
         return std::vector<Tensor>{floats({8, n})};
       },
       [](V x) { return x[0].cov(); }},
      {"diff", line, [](V x) { return diff(x[0]); }},
      {"trapezoid", line, [](V x) { return trapezoid(x[0]); }},
      {"renorm", line, [](V x) { return renorm(x[0], 2, 0, 1); }},
      {"vander", [](int64_t n) { return std::vector<Tensor>{floats({n})}; },
       [](V x) { return vander(x[0], 6); }},
      {"index_select", tall, [](V x) { return x[0].index_select(0, longs({64}, 64)); }},
      {"index_add", tall,
       [](V x) {
         return index_add(x[0], 0, longs({64}, 64), floats({64, 8}));
       }},
      {"gather", line,
       [](V x) {
         return x[0].gather(1, longs({16, 9}, 64));
       }},
      {"scatter_reduce", line,
       [](V x) {
         return scatter_reduce(x[0], 1, longs({16, 9}, 64), floats({16, 9}), "amax");
       }},
      {"repeat_interleave", tall, [](V x) { return repeat_interleave(x[0], 3, 0); }},
      {"roll", line, [](V x) { return roll(x[0], 3, 1); }},
      {"embedding", tall, [](V x) { return embedding(x[0], longs({64}, 64)); }},
      {"layer_norm", line, [](V x) { return layer_norm(x[0], {x[0].size(1)}); }},
      {"conv1d",
       [](int64_t n) {
         return std::vector<Tensor>{floats({2, 4, n}), floats({4, 4, 5})};
       },
       [](V x) { return conv1d(x[0], x[1]); }},
      {"conv1d, one filter",
       [](int64_t n) {
         return std::vector<Tensor>{floats({2, 4, n}), floats({1, 4, 5})};
       },
       [](V x) { return conv1d(x[0], x[1]); }},
      {"conv_transpose1d",
       [](int64_t n) {
         return std::vector<Tensor>{floats({2, 4, n}), floats({4, 4, 5})};
       },
       [](V x) { return conv_transpose1d(x[0], x[1]); }},
      {"max_pool1d",
       [](int64_t n) {
         return std::vector<Tensor>{floats({2, 4, n})};
       },
       [](V x) { return max_pool1d(x[0], 3); }},
      {"adaptive_avg_pool1d",
       [](int64_t n) {
         return std::vector<Tensor>{floats({2, 4, n})};
       },
       [](V x) { return adaptive_avg_pool1d(x[0], 7); }},
      {"scaled_dot_product_attention, keys",
       [](int64_t n) {
         return std::vector<Tensor>{floats({1, 2, 8, 16}), floats({1, 2, n, 16}),
                                    floats({1, 2, n, 16})};
       },
       [](V x) { return scaled_dot_product_attention(x[0], x[1], x[2]); }},
      {"scaled_dot_product_attention, both",
       [](int64_t n) {
         return std::vector<Tensor>{floats({1, 2, n, 16}), floats({1, 2, n, 16}),
                                    floats({1, 2, n, 16})};
       },
       [](V x) { return scaled_dot_product_attention(x[0], x[1], x[2]); }},
      {"einsum", apart,
       [](V x) {
         return einsum("ij,kj->i", {x[0], x[1]});
       }},
      {"bilinear",
       [](int64_t n) {
         return std::vector<Tensor>{floats({n, 4}), floats({n, 5}), floats({3, 4, 5})};
       },
       [](V x) { return bilinear(x[0], x[1], x[2], {}); }},
      {"masked_select", line, [](V x) { return x[0].masked_select(x[0].detach().gt(0)); }},
      {"segment_reduce", [](int64_t n) { return std::vector<Tensor>{floats({n})}; },
       [](V x) { return segment_reduce(x[0], "sum", full({8}, x[0].size(0) / 8, kLong)); }},
  };
}

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
