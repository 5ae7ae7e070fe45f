// Rows that index tensors name, on a GPU: read by wide words, and added where several meet.
#include "autograd/ops/layers/embedding.h"

#include <cmath>

#include "autograd/autograd.h"
#include "autograd/ops/index/gather_scatter.h"
#include "autograd/ops/make/factory.h"
#include "tests/autograd/gpu/gpu_tensors.h"

namespace ramet::kernels {
namespace {

// Tokens as in a text: some symbols fill whole pieces of a sum, or one more, or one less.
Tensor tokens_of(int64_t n, int64_t symbols, uint64_t seed) {
  const int64_t often[] = {64, 65, 63, 1, 128, 129, 200};  // times that symbols 0, 1, ... occur
  std::vector<int64_t> all;
  for (int64_t s = 0; s < 7 && s < symbols; ++s) all.insert(all.end(), size_t(often[s]), s);
  for (uint64_t i = 0; int64_t(all.size()) < n; ++i)
    all.push_back(int64_t((i * 2654435761u + seed) % uint64_t(symbols)));
  all.resize(size_t(n));
  // Spread over the text, in a fixed order.
  for (size_t i = all.size(); i-- > 1;) std::swap(all[i], all[(i * 7919 + seed) % (i + 1)]);
  Tensor t = empty({n}, kLong);
  for (int64_t i = 0; i < n; ++i) t.data_ptr<int64_t>()[i] = all[size_t(i)];
  return t;
}
// gradient[tokens[i]] += g[i] in float64.
std::vector<double> summed_rows(const Tensor& tokens, const Tensor& g, int64_t symbols,
                                int64_t padding) {
  const int64_t c = g.size(1);
  const std::vector<double> v = numbers(g);
  std::vector<double> sum(size_t(symbols * c), 0);
  for (int64_t i = 0; i < tokens.numel(); ++i) {
    const int64_t s = tokens.data_ptr<int64_t>()[i];
    if (s == padding) continue;
    for (int64_t j = 0; j < c; ++j) sum[size_t(s * c + j)] += v[size_t(i * c + j)];
  }
  return sum;
}
Tensor embedding_gradient(const Tensor& tokens, const Tensor& g, int64_t symbols, int64_t padding) {
  const Tensor w =
      zeros({symbols, g.size(1)}, TensorOptions(g.scalar_type()).device(kGpu)).requires_grad_();
  return autograd::grad({embedding(w, tokens, padding)}, {w}, {g})[0];
}

TEST(EmbeddingOnGpu, ReadsRows) {
  for (ScalarType t : {kBFloat16, kHalf, kFloat, kDouble, kLong, kByte})
    // Words of 16, 8 and 4 bytes, and single elements.
    for (const int64_t c : {32, 12, 6, 7, 1, 0}) {
      SCOPED_TRACE(std::string(name_of(t)) + " " + std::to_string(c));
      const Tensor w = drawn({11, c + 3}, kDouble, c).mul(100).to(t),
                   tokens = tokens_of(70, 11, 3).view({2, 35});
      const Tensor on = w.to(kGpu), ids = tokens.to(kGpu);
      // Dense rows, rows that lie apart, and rows that begin at odd places.
      for (const int64_t from : {0, 3}) {
        const Tensor part = on.slice(1, from, from + c), here = w.slice(1, from, from + c);
        EXPECT_EQ(numbers(part.index_select(0, ids.view(-1))),
                  numbers(here.index_select(0, tokens.view(-1))));
        if (is_floating(t)) {
          EXPECT_EQ(numbers(embedding(part.contiguous(), ids)),
                    numbers(embedding(here.contiguous(), tokens)));
        }
      }
    }
}

TEST(EmbeddingOnGpu, AddsRowsThatMeet) {
  constexpr int64_t kSymbols = 40, kTokens = 900;
  const Tensor tokens = tokens_of(kTokens, kSymbols, 5), ids = tokens.to(kGpu);
  for (ScalarType t : {kBFloat16, kHalf, kFloat, kDouble})
    for (const int64_t c : {16, 24, 5}) {  // by packs of eight, or one by one
      SCOPED_TRACE(std::string(name_of(t)) + " " + std::to_string(c));
      const Tensor g = drawn({kTokens, c}, t, c), there = g.to(kGpu);
      // A 16-bit sum is rounded once: the error is that of one rounding of up to 200 terms.
      const double tolerance = t == kDouble ? 1e-13 : t == kFloat ? 1e-5 : t == kHalf ? 1e-3 : 8e-3;
      for (const int64_t padding : {-1, 4}) {
        const Tensor got = embedding_gradient(ids, there, kSymbols, padding);
        expect_near(got, summed_rows(tokens, g, kSymbols, padding), tolerance, "sums");
        EXPECT_EQ(numbers(embedding_gradient(ids, there, kSymbols, padding)), numbers(got));
      }
      // Rows of the gradient that lie apart are read one element at a time: the same sums.
      const Tensor wide = zeros({kTokens, c + 1}, there.options()), part = wide.slice(1, 0, c);
      part.copy_(there);
      const Tensor got = embedding_gradient(ids, there, kSymbols, -1);
      EXPECT_EQ(numbers(zeros_like(got).index_add(0, ids, part)), numbers(got));
    }
}

// The bits of a symbol's sum do not depend on the other tokens, nor on the piece in which it lies.
TEST(EmbeddingOnGpu, ASumDependsOnItsOwnRows) {
  const int64_t c = 8, n = 200;
  const Tensor g = drawn({n, c}, kFloat, 1), same = full({n}, 3, kLong);
  const std::vector<double> want = numbers(embedding_gradient(same.to(kGpu), g.to(kGpu), 9, -1)[3]);
  for (const int64_t before : {1, 63, 64, 70}) {
    const Tensor tokens = cat({full({before}, 1, kLong), same, full({30}, 7, kLong)}),
                 rows = cat({drawn({before, c}, kFloat, 2), g, drawn({30, c}, kFloat, 3)});
    EXPECT_EQ(numbers(embedding_gradient(tokens.to(kGpu), rows.to(kGpu), 9, -1)[3]), want)
        << before;
  }
}

// Two rounded sums: the rows' values are so that each addition in 16 bits would lose them.
TEST(EmbeddingOnGpu, SixteenBitsRoundOnce) {
  for (ScalarType t : {kHalf, kBFloat16}) {
    const Tensor tokens = zeros({301}, kLong), g = ones({301, 8}, t);
    g[0].fill_(t == kHalf ? 4096 : 512);
    const double sum = (t == kHalf ? 4096 : 512) + 300;
    const Tensor want = full({8}, sum, kDouble).to(t);
    EXPECT_EQ(numbers(embedding_gradient(tokens.to(kGpu), g.to(kGpu), 2, -1)[0]), numbers(want));
  }
}

TEST(EmbeddingOnGpu, NaNAndNothing) {
  const Tensor tokens = tokens_of(300, 12, 1), g = drawn({300, 8}, kBFloat16, 1);
  g[299].fill_(std::nan(""));
  const int64_t hit = tokens.data_ptr<int64_t>()[299];
  const std::vector<double> got = numbers(embedding_gradient(tokens.to(kGpu), g.to(kGpu), 12, -1));
  for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(std::isnan(got[i]), int64_t(i) / 8 == hit) << i;
  const Tensor none = embedding_gradient(empty({0}, TensorOptions(kLong).device(kGpu)),
                                         g.slice(0, 0, 0).to(kGpu), 12, -1);
  EXPECT_EQ(numbers(none), std::vector<double>(96, 0));
  EXPECT_EQ(embedding(zeros({4, 8}, TensorOptions(kHalf).device(kGpu)),
                      empty({2, 0}, TensorOptions(kLong).device(kGpu)))
                .sizes(),
            IntArrayRef({2, 0, 8}));
}

// Whole rows of several dimensions, and other numbers than floats: index_add of many rows.
TEST(EmbeddingOnGpu, OtherSums) {
  const Tensor tokens = tokens_of(500, 9, 2), ids = tokens.to(kGpu);
  for (ScalarType t : {kInt, kLong, kByte}) {
    const Tensor g = drawn({2, 500, 8}, kDouble, 1).mul(90).to(t),
                 x = drawn({2, 9, 8}, kDouble, 2).mul(50).to(t);
    EXPECT_EQ(numbers(x.to(kGpu).index_add(1, ids, g.to(kGpu))),
              numbers(x.index_add(1, tokens, g)));
  }
  // scatter_add: rows apart, each with sums of its own.
  const Tensor at = tokens.view({1, 500}).expand({3, 500}).contiguous(),
               g = drawn({3, 500}, kFloat, 1);
  expect_near(
      zeros({3, 9}, TensorOptions(kFloat).device(kGpu)).scatter_add(1, at.to(kGpu), g.to(kGpu)),
      numbers(zeros({3, 9}, kDouble).scatter_add(1, at, g.to(kDouble))), 1e-5, "rows");
}

}  // namespace
}  // namespace ramet::kernels
