// The small things around tensors: a checked operation in the style of an extension. Styles:
// TORCH_CHECK and its kin, c10::str, irange, ArrayRef, optional, AT_DISPATCH, warnings and
// handlers, ScalarType helpers, macros of versions, errors with context, Scalar, accumulate, Join.
#include <ATen/ATen.h>
#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <c10/core/ScalarType.h>
#include <c10/util/ArrayRef.h>
#include <c10/util/Exception.h>
#include <c10/util/Optional.h>
#include <c10/util/accumulate.h>
#include <c10/util/irange.h>
#include <torch/torch.h>

#include <iostream>
#include <string>
#include <vector>

#define CHECK_CONTIGUOUS(x) TORCH_CHECK(x.is_contiguous(), #x " must be contiguous")
#define CHECK_CPU(x) TORCH_CHECK(x.device().is_cpu(), #x " must be on the CPU")
#define CHECK_INPUT(x) \
  CHECK_CPU(x);        \
  CHECK_CONTIGUOUS(x)

// y = a * x + y for every dtype of numbers.
at::Tensor scaled_add(const at::Tensor& x, const at::Tensor& y, const at::Scalar& a) {
  CHECK_INPUT(x);
  CHECK_INPUT(y);
  TORCH_CHECK_EQ(x.dim(), y.dim());
  TORCH_CHECK(x.sizes() == y.sizes(), "sizes differ: ", x.sizes(), " and ", y.sizes());
  TORCH_CHECK_TYPE(x.scalar_type() == y.scalar_type(), "dtypes differ: ", x.scalar_type(), " and ",
                   y.scalar_type());
  auto result = at::empty_like(x);
  AT_DISPATCH_ALL_TYPES(x.scalar_type(), "scaled_add", [&] {
    const auto* in = x.data_ptr<scalar_t>();
    const auto* add = y.data_ptr<scalar_t>();
    auto* out = result.data_ptr<scalar_t>();
    const auto factor = a.to<scalar_t>();
    at::parallel_for(0, x.numel(), 1024, [&](int64_t begin, int64_t end) {
      for (const auto i : c10::irange(begin, end))
        out[i] = static_cast<scalar_t>(factor * in[i] + add[i]);
    });
  });
  return result;
}

double sum_of_floats(const at::Tensor& x) {
  return AT_DISPATCH_FLOATING_TYPES_AND_HALF(x.scalar_type(), "sum_of_floats", [&]() -> double {
    double sum = 0;
    for (int64_t i = 0; i < x.numel(); ++i) sum += static_cast<double>(x.data_ptr<scalar_t>()[i]);
    return sum;
  });
}

// What an action says when it fails.
template <typename Error = c10::Error, typename Action> void expect_error(Action action) {
  try {
    action();
    std::cout << "no error\n";
  } catch (const Error& error) { std::cout << "error: " << error.what_without_backtrace() << "\n"; }
}

// Keeps warnings instead of printing them.
struct Keep : c10::WarningHandler {
  void process(const c10::Warning& warning) override { kept.push_back(warning.msg()); }
  std::vector<std::string> kept;
};

int64_t product(at::IntArrayRef sizes, c10::optional<int64_t> limit = c10::nullopt) {
  const auto n = c10::multiply_integers(sizes);
  return limit.has_value() ? std::min(n, *limit) : n;
}

int main() {
  const auto x = at::arange(4, at::kFloat);
  std::cout << scaled_add(x, at::ones(4), 2) << "\n"
            << scaled_add(at::arange(3), at::ones(3, at::kLong), 3) << "\n";
  std::cout << sum_of_floats(x) << " " << sum_of_floats(x.to(at::kHalf)) << " "
            << sum_of_floats(x.to(at::kDouble)) << "\n";

  expect_error([&] { scaled_add(x.view({2, 2}).t(), x.view({2, 2}), 1); });
  expect_error([&] { scaled_add(x, at::ones({2}), 1); });
  expect_error<c10::TypeError>([&] { scaled_add(x, at::ones({4}, at::kDouble), 1); });
  expect_error([] {
    TORCH_CHECK(false, "a number ", 1.5, ", a tensor's sizes ", at::zeros({2, 1}).sizes(),
                ", a dtype ", at::kInt);
  });
  expect_error<c10::ValueError>([] { TORCH_CHECK_VALUE(2 < 1, "value"); });
  expect_error<c10::IndexError>([] { TORCH_CHECK_INDEX(false, "index ", 3); });
  expect_error<c10::NotImplementedError>([] { TORCH_CHECK_NOT_IMPLEMENTED(false, "not yet"); });
  expect_error([] { AT_ERROR("said ", "so"); });
  expect_error([] { C10_THROW_ERROR(Error, "thrown"); });
  try {
    TORCH_INTERNAL_ASSERT(false, "inside");
  } catch (const c10::Error& error) {
    std::cout << (std::string(error.what()).find("inside") != std::string::npos) << "\n";
  }
  TORCH_INTERNAL_ASSERT(true);
  TORCH_INTERNAL_ASSERT_DEBUG_ONLY(x.defined());

  // Strings and ranges.
  std::cout << c10::str("x", 1, ' ', 2.5, " ", std::vector<int>{1, 2}, at::kCPU) << "\n"
            << c10::Join(", ", std::vector<int>{1, 2, 3}) << "\n";
  for (const auto i : c10::irange(3)) std::cout << i << " ";
  for (const auto i : c10::irange(int64_t{2}, int64_t{5})) std::cout << i << " ";
  std::cout << "\n"
            << product({2, 3, 4}) << " " << product({2, 3, 4}, 10) << " "
            << c10::sum_integers(std::vector<int>{1, 2}) << "\n";
  const std::vector<int64_t> sizes{5, 6, 7, 8};
  const at::ArrayRef<int64_t> ref(sizes);
  std::cout << ref.slice(1, 2) << ref.front() << ref.back() << ref.slice(3)
            << ref.equals({5, 6, 7, 8}) << (ref == at::IntArrayRef({5})) << ref.vec().size()
            << "\n";

  // Types.
  std::cout << c10::toString(at::kBFloat16) << " " << c10::elementSize(at::kDouble)
            << c10::isFloatingType(at::kHalf)
            << c10::isIntegralType(at::kBool, /*includeBool=*/true) << " "
            << c10::promoteTypes(at::kInt, at::kFloat) << " "
            << at::result_type(x, at::ones(1, at::kDouble)) << at::can_cast(at::kFloat, at::kInt)
            << "\n";
  std::cout << c10::typeMetaToScalarType(x.dtype()) << " "
            << (x.dtype() == caffe2::TypeMeta::Make<float>())
            << c10::CppTypeToScalarType<int64_t>::value << " "
            << c10::scalarTypeToTypeMeta(at::kInt) << "\n";
  const at::Scalar number = 2.75;
  std::cout << number.isFloatingPoint() << number.toInt() << number.to<float>()
            << at::Scalar(true).isBoolean() << number.type() << "\n";

  // Warnings.
  Keep keep;
  {
    const c10::WarningUtils::WarningHandlerGuard guard(&keep);
    TORCH_WARN("careful: ", 3);
    for (int i = 0; i < 3; ++i) TORCH_WARN_ONCE("only once");
    TORCH_WARN_DEPRECATION("old");
  }
  for (const auto& message : keep.kept) std::cout << "warned: " << message << "\n";

  std::cout << (TORCH_VERSION_MAJOR >= 1)
            << (std::string(TORCH_VERSION).find('.') != std::string::npos) << C10_LIKELY(true)
            << C10_UNLIKELY(false) << "\n";
  C10_UNUSED const int unused = 0;
  const auto context = at::globalContext().hasCUDA();
  std::cout << (context == torch::cuda::is_available()) << at::hasMKL() * 0 << "\n";
  return 0;
}
