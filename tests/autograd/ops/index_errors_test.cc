// Numbers that no index may be, and the texts of errors of indices.
#include <limits>

#include "autograd/autograd.h"
#include "autograd/ops.h"
#include "tests/autograd/derivatives.h"
#include "tests/error_text.h"

namespace ramet {
namespace {

using namespace indexing;

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();

struct Call {
  const char* name;
  std::function<void(const Tensor& index)> run;  // index: one element
};

#define CALL(name, ...)                         \
  {                                             \
    name, [=](const Tensor& i) { __VA_ARGS__; } \
  }
// x is [3, 2] and y its copy, which in-place calls are given.
std::vector<Call> calls(const Tensor& x, const Tensor& y) {
  const Tensor row = ones({1, 2}), one = ones({1, 1}), zero = integers({0});
  return {
      CALL("gather", x.gather(0, i.view({1, 1}))),
      CALL("gather, last dimension", x.gather(1, i.view({1, 1}))),
      CALL("index_select", x.index_select(0, i)),
      CALL("index_select, last dimension", x.index_select(1, i)),
      CALL("take", x.take(i)),
      CALL("embedding", embedding(x, i)),
      CALL("embedding with a padding row", embedding(x, i, 1)),
      CALL("index", x.index({i})),
      CALL("index, list", index(x, {i})),
      CALL("index, second", x.index({zero, i})),
      CALL("index, first of two", x.index({i, zero})),
      CALL("index, number", x.index({i.squeeze()})),
      CALL("index, a view first", x.index({2, i})),
      CALL("scatter", x.scatter(0, i.view({1, 1}), one)),
      CALL("scatter, value", x.scatter(0, i.view({1, 1}), 50.)),
      CALL("scatter_add", x.scatter_add(0, i.view({1, 1}), one)),
      CALL("index_add", index_add(x, 0, i, row)),
      CALL("index_put", index_put(x, {i}, row)),
      CALL("scatter_", y.scatter_(0, i.view({1, 1}), one)),
      CALL("scatter_, value", y.scatter_(0, i.view({1, 1}), 50.)),
      CALL("scatter_add_", y.scatter_add_(0, i.view({1, 1}), one)),
      CALL("index_add_", y.index_add_(0, i, row)),
      CALL("index_put_", y.index_put_({i}, 50.)),
      CALL("index_put_, second", y.index_put_({zero, i}, 50.)),
      CALL("index_put_, adding", y.index_put_({zero, i}, ones({1}), true)),
      CALL("index_put_, number", y.index_put_({0, i.squeeze()}, 50.)),
      CALL("one_hot", one_hot(i, 3)),
      CALL("cross_entropy_loss", cross_entropy_loss(row, i)),
      CALL("nll_loss", nll_loss(row, i)),
      CALL("nll_loss_nd", nll_loss_nd(row.squeeze(), i.squeeze())),
      CALL("nll_loss2d", nll_loss2d(one.view({1, 1, 1, 1}), i.view({1, 1, 1}))),
  };
}
#undef CALL

// INT64_MIN is what a NaN becomes as an int64.
TEST(IndexErrors, NoNumberIsExempt) {
  const Tensor x = arange(1., 7.).reshape({3, 2}), y = x.clone();
  const Tensor nan = full({1}, std::nan("")).to(kLong);
  ASSERT_EQ(nan.item<int64_t>(), kLeast);
  for (const Call& call : calls(x, y))
    for (int64_t bad : {kLeast, kLeast + 1, std::numeric_limits<int64_t>::max(), int64_t{7}}) {
      SCOPED_TRACE(std::string(call.name) + " at " + std::to_string(bad));
      EXPECT_THROW(call.run(integers({bad})), Error);
      EXPECT_ERROR_TEXT(call.run(integers({bad})), "got " + std::to_string(bad));
      EXPECT_TRUE(equal(x, y)) << "something was written";
    }
}

// The byte offset of a row wraps around to another row: 2^63 elements of 2 or 4 bytes are none.
TEST(IndexErrors, NothingIsWrittenBehindAnIndexedTensor) {
  for (ScalarType t : {kByte, kHalf, kFloat, kDouble}) {
    const Tensor all = zeros({4, 3}, t), x = all.slice(0, 0, 3);
    EXPECT_THROW(x.index_put_({integers({2}), integers({kLeast})}, 5), IndexError);
    EXPECT_FALSE(all.any().item<bool>());
  }
}

TEST(IndexErrors, OnlyTheIgnoredTargetIsIgnored) {
  const Tensor x = constant({1, 2, 3, 4}).view({2, 2}), t = integers({kLeast, 1});
  const double want = std::log1p(std::exp(-1.));  // of the second row
  for (int64_t reduction : {Reduction::Mean, Reduction::Sum})
    expect_values(cross_entropy_loss(x, t, {}, reduction, kLeast), {want}, 1e-7);
  EXPECT_THROW(cross_entropy_loss(x, t), IndexError);
  EXPECT_THROW(cross_entropy_loss(x, t, {}, Reduction::Mean, 0), IndexError);
}

// No padding row: -1 and every other negative number leave every row its gradient.
TEST(IndexErrors, APaddingRowIsARowOrNone) {
  for (int64_t padding : {int64_t{-1}, int64_t{-2}, kLeast, int64_t{1}}) {
    const Tensor w = leaf({1, 2, 3, 4}).detach().view({2, 2}).requires_grad_();
    embedding(w, integers({1, 0, 1}), padding).sum().backward();
    expect_values(w.grad(),
                  padding == 1 ? std::vector<double>{1, 1, 0, 0} : std::vector<double>{1, 1, 2, 2});
  }
}

TEST(IndexErrors, NameTheUsersDimension) {
  const Tensor x = zeros({3, 4, 5});
  EXPECT_ERROR_TEXT(x.index({0, 7}),
                    "[index] index out of range: got 7, expected [-4, 4) (size of "
                    "dimension 1 of [3, 4, 5])");
  EXPECT_ERROR_TEXT(x.index({Slice(), None, 9}), "got 9, expected [-4, 4) (size of dimension 1 of");
  EXPECT_ERROR_TEXT(x.index({1, "...", -6}), "got -6, expected [-5, 5) (size of dimension 2 of");
  EXPECT_ERROR_TEXT(x.index({true, None, 3}), "got 3, expected [-3, 3) (size of dimension 0 of");
  EXPECT_ERROR_TEXT(
      x.index_put_({0, integers({9}).squeeze()}, 1.),
      "[index_put_] index out of range: got 9, expected [-4, 4) (size of dimension 1");
  // Index tensors.
  EXPECT_ERROR_TEXT(x.index({0, integers({7})}), "expected [-4, 4) (size of dimension 1)");
  EXPECT_ERROR_TEXT(x.index({None, 1, Slice(0, 2), integers({-6})}),
                    "expected [-5, 5) (size of dimension 2)");
  EXPECT_ERROR_TEXT(x.index_put_({None, "...", integers({5})}, 1.),
                    "expected [-5, 5) (size of dimension 2)");
  const Tensor mask = ones({3, 4}, kBool);
  EXPECT_ERROR_TEXT(x.index({mask, integers({5})}), "expected [-5, 5) (size of dimension 2)");
  EXPECT_ERROR_TEXT(
      x.index({0, ones({3}, kBool)}),
      "at index 0 does not match the shape of the indexed tensor [3, 4, 5] at index 1");
  EXPECT_ERROR_TEXT(x.index({None, 1, Slice(), ones({4}, kBool)}), "[3, 4, 5] at index 2");
  // A list has no other dimensions than the tensor's.
  EXPECT_ERROR_TEXT(index(x, {{}, integers({4})}), "expected [-4, 4) (size of dimension 1)");
  EXPECT_ERROR_TEXT(x.index({0, Tensor()}), "[index]");
}

TEST(IndexErrors, EveryDimensionOfANumber) {
  const Tensor x = leaf({3}).squeeze();
  ASSERT_EQ(x.dim(), 0);
  for (const Tensor& y : {x.index({Ellipsis}), x.index({"..."})}) {
    EXPECT_EQ(y.dim(), 0);
    EXPECT_TRUE(y.is_view());
    EXPECT_FALSE(y.is_same(x));
    EXPECT_EQ(y.ptr(), x.ptr());
    expect_values(autograd::grad({y.mul(2)}, {x})[0], {2});
  }
  EXPECT_EQ(x.index({Ellipsis, None}).sizes(), IntArrayRef({1}));
  EXPECT_EQ(x.index({true, "..."}).sizes(), IntArrayRef({1}));
  EXPECT_THROW(x.index({"...", 0}), IndexError);
  EXPECT_THROW(x.index({Slice()}), IndexError);
  const Tensor z = zeros({});
  z.index_put_({Ellipsis}, 4.);
  z.index_put_({"..."}, ones({1}), true);
  expect_values(z, {5});
}

// As LibTorch: there is nothing to choose, so any dtype is allowed.
TEST(IndexErrors, AnEmptyIndexOfGatherAndScatterIsOfAnyDtype) {
  for (ScalarType t : {kBool, kByte, kChar, kShort, kInt, kLong, kHalf, kFloat}) {
    const Tensor x = constant({1, 2, 3}), none = zeros({0}, t), y = x.clone();
    EXPECT_EQ(x.gather(0, none).sizes(), IntArrayRef({0}));
    EXPECT_TRUE(equal(x.scatter(0, none, 7.), x));
    EXPECT_TRUE(equal(x.scatter_add(0, none, zeros({0}, kDouble)), x));
    y.scatter_(0, none, 7.).scatter_(0, none, zeros({0}, kDouble));
    EXPECT_TRUE(equal(y, x));
    EXPECT_THROW(x.scatter(0, none, zeros({0}, kInt)), Error);
    if (t == kInt || t == kLong) continue;
    EXPECT_THROW(x.gather(0, zeros({1}, t)), Error);
    EXPECT_THROW(x.index_select(0, none), Error);
  }
}

// Lengths and labels of sequences, before anything is computed.
TEST(IndexErrors, OfCtcLoss) {
  using L = std::vector<int64_t>;
  const Tensor x = varied({5, 3, 4}), padded = integers({1, 2, 3, 3, 2, 1}, {3, 2});
  const L steps = {5, 5, 5}, two = {2, 2, 2};
  const auto text = [&](const Tensor& y, const Tensor& targets, const L& in, const L& out,
                        int64_t blank = 0, int64_t reduction = 1) {
    return error_of([&] { ctc_loss(y, targets, in, out, blank, reduction); });
  };
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  for (const int64_t blank : {int64_t{-1}, int64_t{4}, kLeast, most})
    expect_part(text(x, padded, steps, two, blank), "blank must be in label range");
  for (const int64_t wrong : {int64_t{-1}, int64_t{6}, kLeast, most}) {
    expect_part(text(x, padded, {5, wrong, 5}, two), "input_lengths of at most log_probs' steps");
    expect_part(text(x, padded, {5, wrong, 5}, two),
                "got " + std::to_string(wrong) + " at position 1");
    expect_part(text(x, padded, steps, {2, 2, wrong}), "target_lengths of at most");
    expect_part(text(x, padded.view({6}), steps, {2, 2, wrong}), "[ctc_loss] ");
  }
  expect_part(text(x, padded.view({6}), steps, {2, 2, 1}), "target_lengths add up to");
  expect_part(text(x, padded, {5, 5}, two), "input_lengths must be of size batch_size");
  expect_part(text(x, padded, steps, {2}), "target_lengths must be of size batch_size");
  expect_part(text(x, padded.add(1), steps, two), "got 4 at position 2");
  expect_part(text(x, padded.sub(2), steps, two), "got -1 at position 0");
  expect_part(text(x, padded.view({6}).add(1), steps, two), "got 4 at position 2");
  expect_part(text(x, padded[0], steps, two), "target_lengths add up to");
  expect_part(text(x, padded.view({2, 3}), steps, two), "expected 3 rows");
  expect_part(text(x, padded.view({3, 2, 1}), steps, two), "1 to 2 dimensions");
  expect_part(text(x, padded, steps, two, 0, 3), "reduction: got 3");
  expect_part(text(x[0][0], padded, steps, two), "[steps, batch, classes]");
  expect_part(text(x.to(kLong), padded, steps, two), "not implemented for 'Long'");
  EXPECT_ERROR_TEXT(ctc_loss(x, padded, ones({3}), ones({3}, kLong)),
                    "input_lengths must be integral");
  EXPECT_ERROR_TEXT(ctc_loss(x, padded, ones({3}, kLong), ones({3}, kBool)),
                    "target_lengths must be integral");
  for (int i = 0; i < 4; ++i) {
    std::vector<Tensor> in = {x, padded, tensor(steps), tensor(two)};
    in[size_t(i)] = Tensor();
    EXPECT_ERROR_TEXT(ctc_loss(in[0], in[1], in[2], in[3]), "undefined tensor");
  }
}

}  // namespace
}  // namespace ramet
