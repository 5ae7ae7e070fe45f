// Overloads that LibTorch programs use: each against the plain form or numbers worked out by hand.
// tools/compare/signatures.py checks that none is missing.
#include <gtest/gtest.h>

#include <cmath>

#include "autograd/autograd.h"
#include "autograd/graph/node.h"
#include "autograd/ops.h"
#include "tests/autograd/check.h"

namespace ramet {
namespace {

using Values = std::vector<double>;

constexpr std::optional<int64_t> kNoBound;

Generator seeded(uint64_t seed) { return Generator(Device(kCPU, 0), seed); }

TEST(Overloads, FillsAndDrawsTakeAGenerator) {
  const Tensor p = tensor({0.25, 0.5, 0.75}), like = zeros({40}), whole = zeros({40}, kLong);
  using Draw = std::function<Tensor(std::optional<Generator>)>;
  const std::vector<std::pair<const char*, Draw>> draws = {
      {"uniform_", [&](auto g) { return zeros({40}).uniform_(1, 2, g); }},
      {"normal_", [&](auto g) { return zeros({40}).normal_(1, 2, g); }},
      {"bernoulli_", [&](auto g) { return zeros({40}).bernoulli_(0.5, g); }},
      {"bernoulli_ tensor",
       [&](auto g) {
         return zeros({40, 3}).bernoulli_(p, g);
       }},
      {"random_ from to", [&](auto g) { return zeros({40}).random_(-5, 90, g); }},
      {"random_ to", [&](auto g) { return zeros({40}).random_(90, g); }},
      {"random_", [&](auto g) { return zeros({40}).random_(g); }},
      {"exponential_", [&](auto g) { return zeros({40}).exponential_(2, g); }},
      {"bernoulli", [&](auto g) { return full({40}, 0.5).bernoulli(g); }},
      {"bernoulli p", [&](auto g) { return zeros({40}).bernoulli(0.5, g); }},
      {"bernoulli tensor",
       [&](auto g) {
         return bernoulli(zeros({40, 3}), p, g);
       }},
      {"multinomial", [&](auto g) { return ones({40}).multinomial(20, false, g).to(kFloat); }},
      {"rand_like", [&](auto g) { return rand_like(like, g); }},
      {"randn_like", [&](auto g) { return randn_like(like, g); }},
      {"randint", [&](auto g) { return randint(90, {40}, g); }},
      {"randint_like", [&](auto g) { return randint_like(whole, 90, g); }},
      {"randint_like low", [&](auto g) { return randint_like(whole, -9, 90, g); }},
      {"randint_like tensor", [&](auto g) { return randint_like(whole, tensor(90), g); }},
  };
  for (const auto& [name, draw] : draws) {
    SCOPED_TRACE(name);
    manual_seed(3);
    const GeneratorState before = default_generator(Device(kCPU, 0)).get_state();
    const Values once = values(draw(seeded(7)));
    EXPECT_EQ(default_generator(Device(kCPU, 0)).get_state().offset, before.offset)
        << "the default generator moved";
    EXPECT_EQ(values(draw(seeded(7))), once);
    EXPECT_NE(values(draw(seeded(8))), once);
    EXPECT_NE(values(draw(std::nullopt)), once);
    EXPECT_NE(default_generator(Device(kCPU, 0)).get_state().offset, before.offset);
  }
}

TEST(Overloads, RandomWithoutBoundsCoversTheType) {
  const auto range = [](ScalarType t) {
    const Tensor x = zeros({4000}, t).random_(seeded(1)).to(kDouble);
    return std::pair(x.min().item<double>(), x.max().item<double>());
  };
  const struct {
    ScalarType type;
    double top;
  } cases[] = {{kBool, 1},
               {kByte, 255},
               {kChar, 127},
               {kShort, 32767},
               {kInt, std::ldexp(1, 31) - 1},
               {kLong, std::ldexp(1, 63)},
               {kHalf, 2048},
               {kBFloat16, 256},
               {kFloat, std::ldexp(1, 24)},
               {kDouble, std::ldexp(1, 53)}};
  for (const auto& c : cases) {
    SCOPED_TRACE(name_of(c.type));
    const auto [low, high] = range(c.type);
    EXPECT_GE(low, 0);
    EXPECT_LE(low, c.top / 100);
    EXPECT_LE(high, c.top);
    EXPECT_GE(high, c.top * 0.99);
  }
  // From a number upwards; both ends of int64 at once.
  const Tensor above = zeros({2000}, kChar).random_(100, kNoBound, seeded(2));
  EXPECT_EQ(above.min().item<int64_t>(), 100);
  EXPECT_EQ(above.max().item<int64_t>(), 127);
  EXPECT_EQ(values(zeros({3}, kChar).random_(127, kNoBound).to(kLong)), Values(3, 127));
  const Tensor all = zeros({200}, kLong).random_(INT64_MIN, kNoBound, seeded(3));
  EXPECT_LT(all.min().item<int64_t>(), -(int64_t{1} << 61));
  EXPECT_GT(all.max().item<int64_t>(), int64_t{1} << 61);
  EXPECT_THROW(zeros({3}, kChar).random_(128, kNoBound), Error);
  EXPECT_THROW(zeros({3}, kByte).random_(-1, kNoBound), Error);
}

TEST(Overloads, BitsWithNumbers) {
  const Tensor x = tensor({12, 10, 7}), flags = tensor({true, false});
  EXPECT_EQ(values(x & 6), (Values{4, 2, 6}));
  EXPECT_EQ(values(6 & x), (Values{4, 2, 6}));
  EXPECT_EQ(values(x | 1), (Values{13, 11, 7}));
  EXPECT_EQ(values(1 | x), (Values{13, 11, 7}));
  EXPECT_EQ(values(x ^ 15), (Values{3, 5, 8}));
  EXPECT_EQ(values(bitwise_xor(Scalar(15), x)), (Values{3, 5, 8}));
  EXPECT_EQ((x.to(kChar) & 6).scalar_type(), kChar);
  EXPECT_EQ((flags & true).scalar_type(), kBool);
  EXPECT_EQ((flags | 2).scalar_type(), kLong);
  Tensor y = x.clone();
  y &= 14, y |= 1, y ^= tensor({1, 0, 1});
  EXPECT_EQ(values(y), (Values{12, 11, 6}));
  Tensor out = empty({0}, kLong);
  bitwise_or_out(out, Scalar(32), x);
  EXPECT_EQ(values(out), (Values{44, 42, 39}));
  EXPECT_THROW(ones({2}) & 1, Error);
  EXPECT_THROW(x & 1.5, Error);
}

TEST(Overloads, RemainderAsAnOperator) {
  const Tensor x = tensor({7, -7, 5}), y = tensor({3, 3, -3});
  EXPECT_EQ(values(x % 3), (Values{1, 2, 2}));  // the sign of the divisor
  EXPECT_EQ(values(x % y), (Values{1, 2, -1}));
  EXPECT_EQ(values(10 % y), (Values{1, 1, -2}));
  EXPECT_EQ(values(tensor({5.5, -1.}) % 2.5), (Values{0.5, 1.5}));
  EXPECT_EQ((x.to(kFloat) % y).dtype(), kFloat);
  const Tensor w = leaf({7, 8});
  (w % 3).sum().backward();
  EXPECT_EQ(values(w.grad()), (Values{1, 1}));
}

TEST(Overloads, ClipIsClamp) {
  const Tensor x = tensor({-2., 0.5, 3.}), low = tensor({-1., 1., 0.});
  EXPECT_EQ(values(x.clip(-1, 1)), (Values{-1, 0.5, 1}));
  EXPECT_EQ(values(x.clip(low)), (Values{-1, 1, 3}));
  EXPECT_EQ(values(clip(x, std::nullopt, Scalar(1))), (Values{-2, 0.5, 1}));
  Tensor y = x.clone();
  EXPECT_TRUE(clip_(y, Scalar(0)).is_same(y));
  EXPECT_EQ(values(y.clip_(std::nullopt, Scalar(2))), (Values{0, 0.5, 2}));
  Tensor out = empty({3});
  clip_out(out, x, low, std::nullopt);
  EXPECT_EQ(values(out), (Values{-1, 1, 3}));
  EXPECT_THROW(x.clip(), Error);
}

TEST(Overloads, SpreadOverOneDimension) {
  const Tensor x = tensor({{1., 3., 5.}, {2., 2., 8.}});
  const int64_t last = 1;  // any integer
  EXPECT_EQ(values(x.var(last)), (Values{4, 12}));
  EXPECT_EQ(values(x.std(last)), values(std(x, last)));
  EXPECT_EQ(values(var(x, last)), values(std::get<0>(var_mean(x, last))));
  EXPECT_EQ(values(std::get<1>(std_mean(x, last))), (Values{3, 4}));
}

TEST(Overloads, DimensionsAsLists) {
  const Tensor x = arange(24).reshape({2, 3, 4});
  EXPECT_TRUE(equal(movedim(x, {0, 1}, {1, 2}), x.permute({2, 0, 1})));
  EXPECT_TRUE(equal(x.movedim({2}, {0}), x.movedim(2, 0)));
  EXPECT_EQ(movedim(tensor(1), {0}, {0}).dim(), 0);
  EXPECT_THROW(movedim(x, {0, 0}, {1, 2}), Error);
  EXPECT_THROW(movedim(x, {0}, {1, 2}), Error);
  Tensor y = zeros({1, 2, 1, 1});
  y.squeeze_(IntArrayRef({0, 3}));
  EXPECT_EQ(y.sizes(), IntArrayRef({2, 1}));
  EXPECT_TRUE(equal(x.narrow(2, tensor(1), 2), x.narrow(2, 1, 2)));
  EXPECT_THROW(x.narrow(2, tensor({1}), 2), Error);
  EXPECT_THROW(x.narrow(2, 1, INT64_MAX), IndexError);
  EXPECT_THROW(x.narrow(2, tensor(1.), 2), Error);
}

TEST(Overloads, IndexPutAccumulates) {
  Tensor x = zeros({3, 2}, kDouble);
  const Tensor rows = tensor({2, 0, 2}), v = leaf({1, 2, 4}).reshape({3, 1});
  x.index_put_({rows, indexing::Slice()}, v, true);
  EXPECT_EQ(values(x), (Values{2, 2, 0, 0, 5, 5}));
  x.sum().backward();
  Tensor y = ones({3});
  y.index_put_({indexing::Slice(1)}, tensor({1., 2.}), true);  // views alone
  EXPECT_EQ(values(y), (Values{1, 2, 3}));
  y.index_put_({tensor({0, 0})}, tensor({5., 6.}));
  EXPECT_EQ(values(y), (Values{6, 2, 3}));
}

TEST(Overloads, SizesWhoseProductIsTooLarge) {
  const int64_t large = int64_t{1} << 32;
  EXPECT_THROW(ones({1, 1}).expand({large, large}), Error);
  EXPECT_THROW(ones({0}).view({large, large}), Error);
  EXPECT_THROW(ones({0}).reshape({large, large}), Error);
  // Of an empty tensor too, as in LibTorch; wherever the zero stands.
  EXPECT_THROW(ones({0}).view({large, large, 0}), Error);
  EXPECT_THROW(ones({0, 1, 1}).expand({0, large, large}), Error);
  EXPECT_EQ(ones({0}).view({large, 0}).numel(), 0);
  EXPECT_EQ(ones({0, 1, 1}).expand({0, large, large / 4}).numel(), 0);
}

TEST(Overloads, Rest) {
  const Tensor x = tensor({1., -2., 0.}), condition = x.gt(0);
  EXPECT_EQ(values(x.where(condition, 9)), (Values{1, 9, 9}));
  EXPECT_EQ(values(where(x)[0]), (Values{0, 1}));
  EXPECT_EQ(values(linspace(tensor(0.), Scalar(1), 3)), (Values{0, 0.5, 1}));
  EXPECT_EQ(values(linspace(Scalar(0), tensor(1.), 3)), (Values{0, 0.5, 1}));
  EXPECT_EQ(values(linspace(tensor(0), tensor(1.), 3)), (Values{0, 0.5, 1}));
  EXPECT_THROW(linspace(tensor({0.}), Scalar(1), 3), Error);
  EXPECT_EQ(values(leaky_relu_backward(ones({2}), tensor({-1., 1.}), 0.5, true)), (Values{0.5, 1}));
  EXPECT_THROW(leaky_relu_backward(ones({2}), ones({2}), -0.5, true), Error);
  float memory[6] = {0, 1, 2, 3, 4, 5};
  int freed = 0;
  {
    const Tensor t = from_blob(memory, {2, 2}, {2, 1}, 1, [&](void* p) { freed += p == memory; });
    EXPECT_EQ(values(t), (Values{1, 2, 3, 4}));
    EXPECT_EQ(t.storage_offset(), 1);
    const Tensor other = from_blob(
        memory, {2}, [](void*) {}, kFloat, Device(kCPU, 1));
    EXPECT_EQ(other.device(), Device(kCPU, 1));
  }
  EXPECT_EQ(freed, 1);
  EXPECT_THROW(from_blob(memory, {2}, {1}, -1, [](void*) {}), Error);
  EXPECT_EQ(zeros({2}).resize_({3}, MemoryFormat::Contiguous).numel(), 3);
  EXPECT_TRUE(x.pin_memory(Device(kCPU)).is_same(x));
}

// Where the forms of a name stand for another's.
TEST(Aliases, SayWhatTheyAre) {
  const Tensor x = counting({2, 2}).requires_grad_();
  EXPECT_EQ(x.multiply(2).grad_fn()->name(), x.mul(2).grad_fn()->name());
  EXPECT_EQ(x.true_divide(2).grad_fn()->name(), x.div(2).grad_fn()->name());
  EXPECT_EQ(x.fix().grad_fn()->name(), x.trunc().grad_fn()->name());
  EXPECT_ERROR_TEXT(ones({2}, kBool).negative(), "bool");
  EXPECT_ERROR_TEXT(ones({2}, kBool).subtract(ones({2}, kBool)), "logical_xor");
  EXPECT_EQ(x.swapaxes(0, 1).strides().vec(), x.transpose(0, 1).strides().vec());
}

}  // namespace
}  // namespace ramet
