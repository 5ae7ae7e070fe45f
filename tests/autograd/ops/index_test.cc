// gather, scatter, index_select, masks, x.index(...), embedding, cat and stack as public
// operations.
#include <cmath>

#include "autograd/grad_mode.h"
#include "autograd/ops/index/gather_scatter.h"
#include "autograd/ops/index/index_put.h"
#include "autograd/ops/layers/embedding.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/reduce/reduce.h"
#include "autograd/ops/shape/cat.h"
#include "autograd/ops/shape/view.h"
#include "tests/autograd/derivatives.h"

namespace ramet {
namespace {

using namespace indexing;
using In = std::vector<Tensor>;

TEST(Index, GatherAndScatter) {
  const Tensor x = counting({3, 4});
  expect_values(x.gather(0, integers({2, 0, 1, 2}, {1, 4})), {8, 1, 6, 11});
  const Tensor i = integers({0, 0, 2, 1}, {2, 2}), v = constant({10, 20, 30, 40}).view({2, 2});
  expect_values(x.scatter(1, i, v).select(0, 0), {20, 1, 2, 3});  // the last of two values stays
  EXPECT_ERROR_TEXT(x.gather(1, integers({4}, {1, 1})),
                    "[gather] index out of range: got 4 at position 0");
  // An index that was expanded is checked once, and the position is one of all of it.
  const Tensor rows = integers({1, 0, 3}, {3, 1}).expand({3, 4});
  EXPECT_ERROR_TEXT(x.scatter_add(0, rows, x),
                    "[scatter_add] index out of range: got 3 at position 8 of");
  EXPECT_ERROR_TEXT(x.gather(0, rows.t()), "[gather] index out of range: got 3 at position 2 of");
  expect_values(x.gather(0, integers({1, 0, 2}, {3, 1}).expand({3, 4})),
                {4, 5, 6, 7, 0, 1, 2, 3, 8, 9, 10, 11});
  EXPECT_ERROR_TEXT(x.gather(1, integers({0})), "same number of dimensions");
  EXPECT_ERROR_TEXT(x.gather(0, integers({0, 0, 0, 0, 0}, {1, 5})),
                    "Size does not match at dimension 1");
  EXPECT_ERROR_TEXT(x.scatter(1, i, v.to(kFloat)), "self.dtype to be equal to src.dtype");
}

TEST(Index, SelectAndAdd) {
  const Tensor x = counting({3, 4});
  expect_values(
      x.index_add(1, integers({1, 1}), constant({1, 2, 3, 4, 5, 6}).view({3, 2}), 10).select(1, 1),
      {31, 75, 119});
  expect_values(take(x, integers({-1, 5})), {11, 5});
  EXPECT_THROW(x.index_select(0, integers({3})), IndexError);
  EXPECT_ERROR_TEXT(x.index_add(0, integers({0}), counting({2, 4})), "[index_add] source");
  expect_values(constant({7}).view(IntArrayRef()).index_select(0, integers({0})), {7});
}

// Sources that are larger than their index, a factor, places from the end.
TEST(Index, Derivatives) {
  const Tensor x = varied_leaf({3, 4}), big = varied_leaf({3, 3}, 4);
  expect_derivatives(OF_X(x[0].square().scatter(1, integers({0, 3, 2, 1}, {2, 2}), x[1].square())),
                     {x, big});
  expect_derivatives(OF_X(x[0].square().index_add(1, integers({3, 3, 0}), x[1].square(), 2)),
                     {x, big});
  expect_derivatives(OF_X(take(x[0].square(), integers({1, 1, -1}))), {x});
}

TEST(Index, Masks) {
  const Tensor x = counting({2, 3}), m = x.gt(2);
  EXPECT_EQ(counting({3}).masked_select(m).sizes(), IntArrayRef({3}));  // repeated as the mask is
  EXPECT_EQ(nonzero_numpy(m).size(), 2u);
  EXPECT_ERROR_TEXT(x.masked_fill(x, 1), "[masked_fill] only supports boolean masks");
  EXPECT_ERROR_TEXT(masked_scatter(x, m, constant({1})), "expected at least 3");
  std::vector<int64_t> sizes(10, 2);
  const Tensor deep = counting(sizes).eq(777);
  expect_values(deep.nonzero(), {1, 1, 0, 0, 0, 0, 1, 0, 0, 1});
}

TEST(Indexing, Views) {
  const Tensor x = counting({4, 5, 6});
  EXPECT_EQ(x.index({1}).sizes(), IntArrayRef({5, 6}));
  EXPECT_EQ(x.index({1}).ptr(), static_cast<char*>(x.ptr()) + 30 * 8);
  EXPECT_EQ(x.index({Slice(), 2, Slice(1, None, 2)}).sizes(), IntArrayRef({4, 3}));
  EXPECT_EQ(x.index({"...", 0}).sizes(), IntArrayRef({4, 5}));
  EXPECT_EQ(x.index({None, Ellipsis, Slice(-2, None)}).sizes(), IntArrayRef({1, 4, 5, 2}));
  EXPECT_EQ(x.index({Slice(None, 2), Ellipsis, None}).sizes(), IntArrayRef({2, 5, 6, 1}));
  EXPECT_EQ(x.index({integers({2}).view(IntArrayRef())}).sizes(), IntArrayRef({5, 6}));
  expect_values(x.index({-1, -1, -1}), {119});
  EXPECT_THROW(x.index({0, 0, 0, 0}), IndexError);
  EXPECT_THROW(x.index({5}), IndexError);
  // A list of index tensors has no place for a 0-dim mask, an index has.
  const Tensor number = constant({1.5}).squeeze(), truth = number.gt(1);
  EXPECT_THROW(ramet::index(number, {truth}), IndexError);
  EXPECT_THROW(ramet::index(x, {truth}), IndexError);
  EXPECT_THROW(ramet::index_put(x, {truth}, number), IndexError);
  EXPECT_EQ(number.index({truth}).sizes().vec(), (std::vector<int64_t>{1}));
  EXPECT_ERROR_TEXT(x.index({"..", 0}), "to represent an ellipsis");
  EXPECT_ERROR_TEXT(x.index({Ellipsis, Ellipsis}), "single ellipsis");
  EXPECT_ERROR_TEXT(x.index({Slice(0, 1, 0)}), "step must be greater than zero");
}

TEST(Indexing, Tensors) {
  const Tensor x = counting({3, 4, 5}), i = integers({2, 0}), j = integers({1, -1});
  expect_values(x.index({i, j, 0}), {45, 15});
  EXPECT_EQ(x.index({i}).sizes(), IntArrayRef({2, 4, 5}));
  EXPECT_EQ(x.index({Slice(), i}).sizes(), IntArrayRef({3, 2, 5}));
  EXPECT_EQ(x.index({i, Slice(), j}).sizes(), IntArrayRef({2, 4}));  // not neighbours: in front
  expect_values(x.index({i, Slice(), j}), {41, 46, 51, 56, 4, 9, 14, 19});
  EXPECT_EQ(x.index({Slice(), i.unsqueeze(1), j}).sizes(), IntArrayRef({3, 2, 2}));
  expect_values(x.index({0, i.unsqueeze(1), j}), {11, 14, 1, 4});
  EXPECT_EQ(x.index({None, i, Slice(1, 3)}).sizes(), IntArrayRef({1, 2, 2, 5}));
  EXPECT_EQ(x.index({integers({0, 1, 2, 1}, {2, 2})}).sizes(), IntArrayRef({2, 2, 4, 5}));
  expect_values(x.index({x.gt(57)}), {58, 59});
  expect_values(x.index({x.select(2, 0).gt(40), 1}), {46, 51, 56});
  // A mask of two dimensions takes the place of two, whatever stands after or before it.
  const Tensor plane = x.select(2, 0).gt(40);
  for (const Tensor& mask : {plane, plane.to(kByte)})
    expect_values(x.index({mask, integers({0, 1, 2})}), {45, 51, 57});
  expect_values(x.index({integers({0, 2}), x.select(0, 0).gt(17)}), {18, 59});
  EXPECT_EQ(x.index({x.select(1, 0).gt(40).select(1, 0)}).sizes(), IntArrayRef({1 - 1, 4, 5}));
  EXPECT_EQ(x.index({true}).sizes(), IntArrayRef({1, 3, 4, 5}));
  EXPECT_EQ(x.index({false}).sizes(), IntArrayRef({0, 3, 4, 5}));
  expect_values(x[integers({1})].select(2, 0), {20, 25, 30, 35});
  EXPECT_EQ(x.index({i.to(kInt)}).sizes(), IntArrayRef({2, 4, 5}));
  EXPECT_ERROR_TEXT(x.index({integers({0, 3})}), "[index] index out of range: got 3 at position 1");
  EXPECT_ERROR_TEXT(x.index({counting({2})}), "must be long, int, byte or bool");
  EXPECT_ERROR_TEXT(x.index({integers({1, 0}).to(kBool)}), "The shape of the mask [2] at index 0");
  EXPECT_ERROR_TEXT(x.index({i, integers({0, 1, 2})}), "[index]");
}

TEST(Indexing, Assignment) {
  Tensor x = counting({3, 4});
  x[0][1] = 100;
  x[2] = constant({1, 2, 3, 4});
  expect_values(x, {0, 100, 2, 3, 4, 5, 6, 7, 1, 2, 3, 4});
  x.index_put_({Slice(), 0}, -1.0);
  expect_values(x.select(1, 0), {-1, -1, -1});
  x.index_put_({integers({0, 0, 1}), integers({1, 2, 3})}, constant({7, 8, 9}));
  expect_values(x, {-1, 7, 8, 3, -1, 5, 6, 9, -1, 2, 3, 4});
  x.index_put_({x.gt(6)}, 0);
  expect_values(x, {-1, 0, 0, 3, -1, 5, 6, 0, -1, 2, 3, 4});
  x.index_put_({Slice(1, None), integers({1, 1})}, constant({10, 20}));
  expect_values(x.select(1, 1), {0, 20, 20});  // the last of two values stays
  x.index_put_({Ellipsis, 3}, constant({5}).view({1, 1, 1}));
  expect_values(x.select(1, 3), {5, 5, 5});
  Tensor y = counting({4});
  index_put_(y, {integers({1, 1, 2})}, constant({1, 1, 5}), true);
  expect_values(y, {0, 3, 7, 3});
  EXPECT_ERROR_TEXT(y.index_put_({integers({0, 1})}, constant({1, 2, 3})),
                    "cannot be broadcast to indexing result of shape [2]");
  EXPECT_THROW(y.index_put_({integers({4})}, 0), IndexError);
  expect_values(y, {0, 3, 7, 3});  // checked before anything is written
}

TEST(Indexing, Derivatives) {
  const Tensor x = varied_leaf({3, 4, 2}), i = integers({2, 0, 2}), j = integers({1, -1, 1}),
               v = varied_leaf({3, 2}, 5);
  expect_derivatives(OF_X(x[0].square().index({i, Slice(), 1})), {x});
  expect_derivatives(OF_X(x[0].square().index({Slice(1, None), None, i})), {x});
  expect_derivatives([&](const In& t) { return t[0].square().index({x.detach().gt(0)}); }, {x});
  expect_derivatives(
      [&](const In& t) {
        Tensor y = t[0] * 2;
        y.index_put_({integers({2, 0, 1}), j}, t[1] * 3);
        y[1][2] = t[1][0];
        y.index_put_({Slice(), 3, 0}, 1.5);
        return y.square();
      },
      {x, v});
  EXPECT_EQ(x.index({i}).grad_fn()->name(), "IndexBackward0");
}

TEST(Embedding, RowsAndGradients) {
  const Tensor w = varied_leaf({5, 3}), i = integers({1, 4, 1, 0}, {2, 2});
  const Tensor p = varied_leaf({5, 3});
  embedding(p, i, /*padding_idx=*/4, /*scale_grad_by_freq=*/true).sum().backward();
  expect_values(p.grad(), {1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  EXPECT_ERROR_TEXT(embedding(w, integers({0, 5})),
                    "[embedding] index out of range: got 5 at position 1");
  EXPECT_ERROR_TEXT(embedding(w.select(0, 0), i), "'weight' must be 2-D");
  EXPECT_THROW(embedding(w, i, -1, false, true), NotImplementedError);
  const Tensor h = varied({5, 3}).to(kHalf).requires_grad_();
  std::vector<int64_t> many(5000, 2);
  Tensor flat(TensorBase::empty(5000, kLong, Device(kCPU, 0)));
  std::copy(many.begin(), many.end(), flat.data_ptr<int64_t>());
  embedding(h, flat).sum().backward();  // 16-bit gradients are summed in float
  EXPECT_EQ(h.grad()[2][0].item<float>(), 5000);
}

TEST(Joins, CatAndStack) {
  const Tensor a = counting({2, 3}), b = counting({2, 1}) + 10;
  EXPECT_EQ(cat({a, constant({}), a}, -1).sizes(),
            IntArrayRef({2, 6}));  // an empty vector is skipped
  EXPECT_EQ(cat({a.to(kFloat), integers({1, 2, 3}, {1, 3})}, 0).scalar_type(), kFloat);
  expect_values(cat({a.transpose(0, 1), b.transpose(0, 1)}, 0), {0, 3, 1, 4, 2, 5, 10, 11});
  EXPECT_ERROR_TEXT(cat({a, b}, 0), "Expected size 3 but got size 1 for tensor number 1");
  EXPECT_ERROR_TEXT(stack({a, b}), "expects each tensor to be equal size");
  EXPECT_ERROR_TEXT(cat({}), "non-empty list");
  EXPECT_ERROR_TEXT(cat({a.sum()}), "zero-dimensional tensor");
  Tensor out = counting({1});
  EXPECT_ERROR_TEXT(cat_out(out, {varied_leaf({1, 2})}), "don't support automatic differentiation");
}

TEST(Index, TheIndexMayLieInWhatIsWritten) {
  const auto fresh = [] { return tensor({3, 0, 2, 1}, kLong); };
  const Tensor expected = tensor({100, 100, 100, 100}, kLong);
  Tensor x = fresh();
  x.index_put_({x}, tensor(int64_t{100}));
  EXPECT_TRUE(x.equal(expected));
  x = fresh();
  x.scatter_(0, x, 100);
  EXPECT_TRUE(x.equal(expected));
  x = fresh();
  x.scatter_(0, x, tensor({10, 11, 12, 13}, kLong));
  EXPECT_TRUE(x.equal(fresh().scatter(0, fresh(), tensor({10, 11, 12, 13}, kLong))));
  x = fresh();
  x.scatter_add_(0, x, tensor({10, 20, 30, 40}, kLong));
  EXPECT_TRUE(x.equal(fresh().scatter_add(0, fresh(), tensor({10, 20, 30, 40}, kLong))));
  x = fresh();
  x.index_add_(0, x, x);
  EXPECT_TRUE(x.equal(fresh().index_add(0, fresh(), fresh())));
  // With part of it, and a gradient for what was put there.
  Tensor rows = arange(6, kLong).view({2, 3});
  rows.index_put_({rows.select(0, 0).slice(0, 0, 2)}, rows.select(0, 1), /*accumulate=*/true);
  EXPECT_TRUE(rows.equal(tensor({{3, 5, 7}, {6, 8, 10}}, kLong)));
}

}  // namespace
}  // namespace ramet
