// Tensor::unfold: windows as a view, compared with windows cut out one by one. as_strided: any view
// of a storage; its gradients are PyTorch's numbers. x.view(dtype).
#include "autograd/autograd.h"
#include "autograd/gradcheck.h"
#include "autograd/graph/node.h"
#include "autograd/ops.h"
#include "tests/autograd/derivatives.h"

namespace ramet {
namespace {

TEST(Unfold, WindowsOfAMiddleDimension) {
  const Tensor x = varied({2, 5, 3});
  const Tensor y = x.unfold(-2, 2, 1);
  ASSERT_EQ(y.sizes(), IntArrayRef({2, 4, 3, 2}));
  for (int64_t window = 0; window < 4; ++window) {
    const std::vector<double> want = values(x.narrow(1, window, 2).transpose(1, 2));
    expect_values(y.select(1, window), want, 0);
  }
}

TEST(Unfold, NumbersAndNothing) {
  EXPECT_EQ(constant({3}).squeeze().unfold(0, 1, 1).sizes(), IntArrayRef({1}));
  EXPECT_EQ(constant({1, 2, 3}).unfold(0, 0, 2).sizes(), IntArrayRef({2, 0}));
}

TEST(Unfold, Derivatives) {
  const auto squares = [](const Tensor& t) { return t.mul(t); };
  // Windows that overlap, that touch, and that leave gaps.
  for (int64_t step : {1, 2, 3})
    expect_derivatives(OF_X(squares(x[0].unfold(1, 2, step))), {varied_leaf({2, 6, 2})});
}

TEST(Unfold, Errors) {
  const Tensor x = constant({1, 2, 3});
  EXPECT_THROW(x.unfold(0, 4, 1), Error);
  EXPECT_THROW(x.unfold(0, -1, 1), Error);
  EXPECT_THROW(x.unfold(0, 2, 0), Error);
  EXPECT_THROW(x.unfold(1, 2, 1), IndexError);
}

// ---- as_strided ---------------------------------------------------------------------------------

const Tensor weights = constant({1, 2, 3, 4, 5, 6});

// The gradient of 0, 1, ... 5 where `use` makes of a copy of them a vector of at most six numbers
// that count as much as their place.
std::vector<double> gradient_of(const std::function<Tensor(const Tensor&)>& use) {
  const Tensor a = leaf({0, 1, 2, 3, 4, 5});
  const Tensor y = use(a * 1).reshape(-1);
  (y * weights.narrow(0, 0, y.numel())).sum().backward();
  return values(a.grad());
}
using Values = std::vector<double>;

TEST(AsStrided, GradientsMeetInTheStorage) {
  EXPECT_EQ(gradient_of([](const Tensor& b) {
              return b.as_strided({3, 2}, {1, 2}, 1);
            }),
            (Values{0, 1, 3, 7, 4, 6}));
  EXPECT_EQ(gradient_of([](const Tensor& b) {
              return b.view({2, 3}).t().as_strided({2, 2}, {1, 1});
            }),
            (Values{1, 5, 4, 0, 0, 0}));
  // Further than the view that it is called on: from there nothing comes.
  EXPECT_EQ(gradient_of([](const Tensor& b) {
              return b.narrow(0, 1, 2).as_strided({2, 2}, {1, 2}, 0);
            }),
            (Values{0, 3, 2, 0, 0, 0}));
  // Of what is shown twice, which each has half.
  EXPECT_EQ(gradient_of([](const Tensor& b) {
              return b.narrow(0, 0, 3).expand({2, 3}).as_strided(2, 1, 1);
            }),
            (Values{0, 1, 2, 0, 0, 0}));
  EXPECT_EQ(gradient_of([](const Tensor& b) {
              return b.as_strided({2, 0}, {1, 1}, 3);
            }),
            (Values{0, 0, 0, 0, 0, 0}));
}

TEST(AsStrided, WrittenInPlace) {
  EXPECT_EQ(gradient_of([](const Tensor& b) {
              b.as_strided({2, 2}, {2, 1}, 1).mul_(3);
              return b;
            }),
            (Values{1, 6, 9, 12, 15, 6}));
  // Through a view of the view, seen in the view.
  EXPECT_EQ(gradient_of([](const Tensor& b) {
              const Tensor v = b.as_strided({2, 2}, {2, 1}, 1);
              v.as_strided(2, 3, 1).mul_(3);
              return v;
            }),
            (Values{0, 3, 2, 3, 12, 0}));
  // With gaps, of what has gaps.
  EXPECT_EQ(gradient_of([](const Tensor& b) {
              b.view({3, 2}).narrow(0, 1, 2).select(1, 1).as_strided(2, 2).mul_(3);
              return b;
            }),
            (Values{1, 2, 3, 12, 5, 18}));
  EXPECT_EQ(gradient_of([](const Tensor& b) {
              return Tensor(b.as_strided_({2, 2}, {1, 2}, 1));
            }),
            (Values{0, 1, 3, 2, 4, 0}));
  EXPECT_EQ(gradient_of([](const Tensor& b) {
              return as_strided_scatter(b, constant({9, 9}), 2, 3, 1);
            }),
            (Values{1, 0, 3, 4, 0, 6}));
  // Into a storage of which x shows a part, with x's strides.
  const Tensor x = constant({0, 1, 2, 3, 4, 5}).narrow(0, 1, 4).view({2, 2}).t(),
               y = as_strided_scatter(x, constant({7, 8}), 2, 2, 2);
  EXPECT_EQ(values(y), (Values{1, 3, 7, 8}));
  EXPECT_EQ(y.strides(), x.strides());
  EXPECT_EQ(values(x), (Values{1, 3, 2, 4}));
}

TEST(AsStrided, TwiceDerived) {
  const auto twice = [](const autograd::CheckedFunction& f) {
    EXPECT_NO_THROW(autograd::gradcheck(f, {varied_leaf({12})}));
    EXPECT_NO_THROW(autograd::gradgradcheck(f, {varied_leaf({12})}));
  };
  using In = const std::vector<Tensor>&;
  using Out = std::vector<Tensor>;
  twice([](In x) { return Out{x[0].as_strided({2, 2, 3}, {2, 1, 3}, 1).pow(3)}; });
  twice([](In x) {  // called on a view of it with gaps
    return Out{(x[0] * 1).view({4, 3}).narrow(1, 0, 2).as_strided({3, 2}, {3, 1}, 3).pow(3)};
  });
  twice([](In x) {  // each two neighbours of what is repeated
    return Out{x[0].narrow(0, 2, 3).expand({2, 3}).as_strided({2, 2}, {1, 1}, 2).pow(3)};
  });
  twice([](In x) {
    const Tensor b = x[0] * 1, v = b.as_strided({2, 3}, {1, 4}, 2);
    v.mul_(v.flip({0}).clone());
    return Out{b.pow(2), v.exp()};
  });
}

// The gradients of a view of less than the whole storage, and of an empty view. Also with gaps,
// which no view of a tensor that holds its memory has.
TEST(AsStrided, OfATensorWithGaps) {
  const Tensor all = constant({0, 1, 2, 3, 4, 5}),
               x = all.view({3, 2}).select(1, 0).detach().requires_grad_();  // 0, 2, 4
  const Tensor v = x.as_strided({3, 2}, {1, 1}, 1);                          // 1 2 | 2 3 | 3 4
  (v * weights.view({3, 2})).sum().backward();
  EXPECT_EQ(values(x.grad()), (Values{0, 5, 6}));
  // Written, a place that x does not show would lose its gradient.
  const Tensor b = all.view({3, 2}).select(1, 0).detach(), u = b.as_strided(3, 1, 1);
  EXPECT_ERROR_TEXT(u.mul_(leaf({1, 2, 3})), "as_strided beyond the tensor that it was called on");
  {
    const NoGradGuard off;
    u.mul_(2);
  }
  EXPECT_EQ(values(all), (Values{0, 2, 4, 6, 4, 5}));
  // Nor one outside of the view that it is called on.
  const Tensor c = leaf({0, 1, 2, 3}) * 1, beyond = c.narrow(0, 1, 2).as_strided(2, 3, 0);
  EXPECT_ERROR_TEXT(beyond.mul_(3), "as_strided beyond the tensor that it was called on");
  b.mul_(leaf({1, 2, 3}));
  EXPECT_ERROR_TEXT((void)u.sum(), "as_strided beyond the tensor that it was called on");
}

TEST(AsStrided, ABaseThatShrinks) {
  const Tensor b = leaf({0, 1, 2, 3, 4, 5}) * 1, v = b.narrow(0, 2, 3);
  b.as_strided_(2, 1, 0);
  EXPECT_ERROR_TEXT(v.mul_(2), "does not show (any more)");
  EXPECT_EQ(values(v), (Values{2, 3, 4}));
}

TEST(AsStrided, Errors) {
  const Tensor x = constant({0, 1, 2, 3, 4, 5}), y = x.narrow(0, 3, 2);
  const auto refused = [](const Tensor& t, IntArrayRef sizes, IntArrayRef strides,
                          std::optional<int64_t> offset, const char* why) {
    const std::string text = error_of([&] { t.as_strided(sizes, strides, offset); });
    expect_part(text, why);
  };
  EXPECT_EQ(values(y.as_strided(3, 1)), (Values{3, 4, 5}));
  EXPECT_EQ(values(y.as_strided(2, 1, 1)), (Values{1, 2}));
  EXPECT_EQ(values(y.as_strided({}, {})), Values{3});
  EXPECT_EQ(y.as_strided({0, 3}, {1, 100}, 50).sizes(), IntArrayRef({0, 3}));
  refused(x, {2, 3}, {1}, {}, "mismatch in length of strides and shape");
  refused(x, {2, 3}, {-1, 2}, {}, "Negative strides");
  refused(x, {2, -3}, {1, 2}, {}, "expected none below 0");
  refused(x, 2, 1, -1, "invalid storage offset");
  refused(x, 7, 1, {}, "out of bounds for a storage of 6 elements");
  refused(y, 4, 1, {}, "out of bounds");
  refused(x, {2, 2}, {INT64_MAX, INT64_MAX}, {}, "out of bounds");
  refused(x, 1, 1, INT64_MAX, "out of bounds");
  refused(x, 2, INT64_MAX, 1, "out of bounds");
  refused(constant({}), 1, 1, {}, "out of bounds");
  const std::string other = error_of([&] { as_strided_scatter(x, constant({1}), 2, 1); });
  expect_part(other, "expected src to have a size equal to the slice");
  const std::string twice = error_of([&] { as_strided_scatter(x, constant({1, 2}), 2, 0); });
  EXPECT_EQ(twice.find("[as_strided_scatter] unsupported operation: more than one element"), 0u)
      << twice;
  EXPECT_EQ(as_strided_scatter(x, ones({0, 2}), {0, 2}, {0, 0}).sizes(), x.sizes());
  const Tensor leaf_view = leaf({1, 2});
  EXPECT_ERROR_TEXT(leaf_view.as_strided_(1, 1),
                    "a leaf Variable that requires grad is being used in an in-place operation");
}

// Windows of 16-bit numbers are added up in float.
TEST(AsStrided, NarrowGradients) {
  const Tensor x = ones({5000}, TensorOptions(kBFloat16)).requires_grad_();
  x.as_strided({4001, 1000}, {1, 1}).sum().backward();
  EXPECT_EQ(x.grad()[2500].item<float>(), 1000);
  EXPECT_EQ(x.grad()[0].item<float>(), 1);
  EXPECT_EQ(x.grad()[998].item<float>(), 1000);  // 999, rounded
}

// ---- x.view(dtype), and what a tensor says of itself --------------------------------------------

TEST(ViewDtype, SharesBytes) {
  const Tensor x = tensor({1.f, -2.f}), bits = x.view(kInt);
  EXPECT_EQ(bits.scalar_type(), kInt);
  EXPECT_EQ(bits.data_ptr<int32_t>()[0], 0x3F800000);
  bits.zero_();
  EXPECT_EQ(x[0].item<float>(), 0);
  EXPECT_EQ(x._version(), bits._version());
}

// Shapes and texts of PyTorch 2.15.
TEST(ViewDtype, OtherItemSizes) {
  const Tensor x = arange(6, kFloat);
  EXPECT_EQ(x.view(kDouble).sizes(), IntArrayRef({3}));
  EXPECT_EQ(x.view(kShort).sizes(), IntArrayRef({12}));
  EXPECT_EQ(x.view({2, 3}).view(kByte).sizes(), IntArrayRef({2, 12}));
  EXPECT_EQ(x.view({2, 3}).view(kByte).strides(), IntArrayRef({12, 1}));
  EXPECT_EQ(x.view(kDouble).view(kFloat).slice(0, 2).storage_offset(), 2);
  EXPECT_EQ(x.slice(0, 2).view(kDouble).storage_offset(), 1);
  const auto refused = [](const Tensor& t, ScalarType dtype, const char* why) {
    EXPECT_ERROR_TEXT(t.view(dtype), why);
  };
  refused(x.slice(0, 1, 5), kDouble, "self.storage_offset() must be divisible by 2");
  refused(x.slice(0, 1), kDouble, "self.size(-1) must be divisible by 2");
  refused(x.view({2, 3}).t(), kShort, "self.stride(-1) must be 1");
  refused(arange(9, kFloat).view({3, 3}).slice(1, 0, 2), kDouble, "must be divisible by 2");
  refused(ones({}), kShort, "self.dim() cannot be 0");
  EXPECT_EQ(ones({}).view(kInt).item<int>(), 0x3F800000);
}

TEST(ViewDtype, NoHistory) {
  const Tensor w = leaf({1, 2}), y = w * 2;
  EXPECT_FALSE(w.view(kLong).requires_grad());
  EXPECT_FALSE(y.view(kDouble).requires_grad());
}

TEST(TensorFacts, DeviceOutputAndReset) {
  const Tensor x = leaf({1, 2, 3, 4}), y = x * 2;
  EXPECT_EQ(x.get_device(), 0);
  EXPECT_EQ(empty({1}, TensorOptions(Device(kCPU, 1))).get_device(), 1);
  EXPECT_EQ(x.output_nr(), 0);
  EXPECT_EQ(y.output_nr(), 0);
  Tensor z = y;
  z.reset();
  EXPECT_FALSE(z.defined());
  EXPECT_TRUE(y.defined());
  z.reset();
}

TEST(Promotion, ResultTypeAndCanCast) {  // what LibTorch gives
  const Tensor f = ones({2}), l = ones({2}, kLong), d0 = ones({}, kDouble);
  EXPECT_EQ(result_type(f, l), kFloat);
  EXPECT_EQ(result_type(f, d0), kFloat);
  EXPECT_EQ(result_type(l, d0), kDouble);
  EXPECT_EQ(result_type(l, 2.5), kFloat);
  EXPECT_EQ(result_type(2.5, l), kFloat);
  EXPECT_EQ(result_type(Scalar(1), Scalar(2.0)), kFloat);
  EXPECT_EQ(result_type(Scalar(true), Scalar(1)), kLong);
  EXPECT_THROW(result_type(Tensor(), f), Error);
  EXPECT_FALSE(can_cast(kInt, kBool));
  EXPECT_TRUE(can_cast(kBool, kInt));
  EXPECT_FALSE(can_cast(kFloat, kInt));
  EXPECT_TRUE(can_cast(kLong, kByte));
  EXPECT_TRUE(can_cast(kDouble, kHalf));
}

}  // namespace
}  // namespace ramet
