// uint16 and uint32: conversions, and that operations compute them as int64 and wrap around.
#include <gtest/gtest.h>

#include <functional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "autograd/ops.h"
#include "autograd/tensor.h"

namespace ramet {
namespace {

constexpr ScalarType kUnsigned[] = {kUInt16, kUInt32};

int64_t largest(ScalarType t) { return t == kUInt16 ? 65535 : 4294967295; }
// Numbers of both halves of the range: as signed ones half of them would be below 0.
Tensor samples(ScalarType t) {
  const int64_t top = largest(t);
  return tensor(
             std::vector<int64_t>{0, 1, 2, 7, top / 2, top / 2 + 1, top - 1, top, 300, 5, 1, top})
      .to(t);
}
Tensor wrapped(const Tensor& x, ScalarType t) { return x.bitwise_and(largest(t)); }

TEST(Unsigned, OverForeignMemoryAndBack) {
  std::vector<uint16_t> words{1, 2, 65535};
  const Tensor x = from_blob(words.data(), {3}, kUInt16);
  EXPECT_EQ(x.element_size(), 2);
  EXPECT_EQ(x.data_ptr<uint16_t>(), words.data());
  EXPECT_TRUE(equal(x.to(kLong), tensor({1, 2, 65535})));
  EXPECT_EQ(x[2].item<int64_t>(), 65535);
  EXPECT_EQ(x[2].item<uint16_t>(), 65535);
  EXPECT_TRUE((x.accessor<uint16_t, 1>()[1] == 2));
  x[0] = 9;
  EXPECT_EQ(words[0], 9);
  std::ostringstream text;
  text << x << " " << x.dtype() << " " << x.scalar_type();
  EXPECT_EQ(text.str(), "     9\n     2\n 65535\n[ CPUUInt16Type{3} ] short unsigned int UInt16");
  std::vector<uint32_t> wide{4294967295u};
  EXPECT_EQ(from_blob(wide.data(), {1}, kUInt32).item<int64_t>(), 4294967295);
  EXPECT_EQ(tensor(wide).scalar_type(), kUInt32);
  EXPECT_THROW(x.data_ptr<int16_t>(), Error);
  EXPECT_THROW(x.to(kUInt16).requires_grad_(), Error);
}

TEST(Unsigned, ConvertsFromAndToEveryDtype) {
  for (const ScalarType t : kUnsigned) {
    SCOPED_TRACE(short_name_of(t));
    const Tensor x = samples(t), wide = x.to(kLong);
    EXPECT_EQ(wide.max().item<int64_t>(), largest(t));
    for (int i = 0; i < kScalarTypes; ++i) {
      const auto other = static_cast<ScalarType>(i);
      SCOPED_TRACE(short_name_of(other));
      // A dense one and one with strides.
      EXPECT_TRUE(equal(x.to(other), wide.to(other)));
      EXPECT_TRUE(equal(x.slice(0, 1, 12, 3).to(other), wide.slice(0, 1, 12, 3).to(other)));
      const Tensor small = tensor({0, 1, 1, 0}).to(other);
      EXPECT_TRUE(equal(small.to(t).to(kLong), tensor({0, 1, 1, 0})));
    }
    // Truncated, then wrapped.
    const Tensor reals = tensor(std::vector<double>{-1.5, 70000.75, 3.999, -0.5});
    EXPECT_TRUE(equal(reals.to(t).to(kLong), wrapped(tensor({-1, 70000, 3, 0}), t)));
    EXPECT_EQ(full({2}, largest(t), t)[1].item<int64_t>(), largest(t));
    EXPECT_THROW(full({2}, largest(t) + 1, t), Error);
    EXPECT_TRUE(equal(arange(5, t), arange(5)));
  }
}

TEST(Unsigned, OperationsComputeInInt64AndWrapAround) {
  using Call = std::function<Tensor(const Tensor&)>;
#define CALL(name, ...)                               \
  {                                                   \
    name, [](const Tensor& x) { return __VA_ARGS__; } \
  }
  const std::vector<std::pair<const char*, Call>> same_dtype = {
      CALL("add", x + x),
      CALL("add number", x + 3),
      CALL("sub", x.flip(0) - x),
      CALL("mul", x * x),
      CALL("neg", -x),
      CALL("abs", x.abs()),
      CALL("sign", x.sign()),
      CALL("square", x.square()),
      CALL("floor_divide", floor_divide(x, x + 1 - x)),
      CALL("remainder", remainder(x, 7)),
      CALL("bitwise_not", x.bitwise_not()),
      CALL("bitwise_xor", x.bitwise_xor(x.flip(0))),
      CALL("shift left", x.bitwise_left_shift(3)),
      CALL("shift right", x.bitwise_right_shift(3)),
      CALL("maximum", maximum(x, x.flip(0))),
      CALL("clamp", x.clamp(2, 300)),
      CALL("where", where(x.gt(5), x, x.flip(0))),
      CALL("sort", std::get<0>(x.sort())),
      CALL("sort down", std::get<0>(x.sort(0, true))),
      CALL("topk", std::get<0>(x.topk(4))),
      CALL("median", x.median()),
      CALL("max", x.max()),
      CALL("min", x.view({3, 4}).amin(1)),
      CALL("cummax", std::get<0>(x.cummax(0))),
      CALL("flip", x.flip(0)),
      CALL("cat", cat({x, x})),
      CALL("index_select", x.index_select(0, tensor({3, 0, 7}))),
      CALL("gather", x.gather(0, tensor({7, 7, 1}))),
      CALL("scatter_add", zeros_like(x).scatter_add(0, arange(12).remainder(5), x)),
      CALL("masked_fill", x.masked_fill(x.gt(300), 4)),
      CALL("tril", x.view({3, 4}).tril()),
      CALL("matmul", x.view({3, 4}).matmul(x.view({4, 3}))),
  };
  // Truth values, positions and sums.
  const std::vector<std::pair<const char*, Call>> own_dtype = {
      CALL("eq", x.eq(x.flip(0))),
      CALL("lt", x.lt(x.flip(0))),
      CALL("ge number", x.ge(40000)),
      CALL("sum", x.sum()),
      CALL("prod", x.slice(0, 1, 6).prod()),
      CALL("cumsum", x.cumsum(0)),
      CALL("argmax", x.argmax()),
      CALL("argsort", x.argsort(/*stable=*/true, 0, false)),
      CALL("any", x.any()),
      CALL("nonzero", x.nonzero()),
      CALL("div", x / 4),
      CALL("sqrt", x.sqrt()),
  };
#undef CALL
  for (const ScalarType t : kUnsigned) {
    const Tensor x = samples(t), wide = x.to(kLong);
    for (const auto& [name, call] : same_dtype) {
      SCOPED_TRACE(std::string(name) + " of " + short_name_of(t));
      const Tensor y = call(x);
      ASSERT_EQ(y.scalar_type(), t);
      EXPECT_TRUE(equal(y.to(kLong), wrapped(call(wide), t))) << y << call(wide);
    }
    for (const auto& [name, call] : own_dtype) {
      SCOPED_TRACE(std::string(name) + " of " + short_name_of(t));
      const Tensor y = call(x), expected = call(wide);
      ASSERT_EQ(y.scalar_type(), expected.scalar_type());
      EXPECT_TRUE(equal(y, expected)) << y << expected;
    }
  }
}

TEST(Unsigned, Promotion) {
  const Tensor x = samples(kUInt16), y = samples(kUInt32);
  EXPECT_EQ((x + tensor({int64_t{1}})).scalar_type(), kLong);
  EXPECT_EQ((x + x.to(kShort)).scalar_type(), kInt);
  EXPECT_EQ((x + x.to(kByte)).scalar_type(), kUInt16);
  EXPECT_EQ((x + y).scalar_type(), kUInt32);
  EXPECT_EQ((y + x.to(kInt)).scalar_type(), kLong);
  EXPECT_EQ((y + ones({1}, kHalf)).scalar_type(), kHalf);
  EXPECT_EQ((x + 1.5).scalar_type(), kFloat);
  EXPECT_TRUE(equal(x + full({12}, -1, kShort), x.to(kInt) - 1));
}

TEST(Unsigned, RandomIntegersFillTheRange) {
  manual_seed(1);
  for (const ScalarType t : kUnsigned) {
    const Tensor x = empty({4000}, t).random_().to(kLong);
    EXPECT_GT(x.max().item<int64_t>(), largest(t) / 10 * 9);
    EXPECT_LT(x.min().item<int64_t>(), largest(t) / 10);
    EXPECT_THROW(empty({2}, t).random_(0, largest(t) + 2), Error);
    EXPECT_THROW(empty({2}, t).random_(-1, 5), Error);
  }
}

}  // namespace
}  // namespace ramet
