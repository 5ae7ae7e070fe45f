// LibTorch's checks, logging, warnings and AT_DISPATCH in the LibTorch compatibility headers. Texts
// are those that LibTorch 2.15 printed for the same statements, without its hints at its own issue
// tracker.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "ramet/compat/torch.h"

namespace {

template <class E, class F> std::string thrown(const F& f) {
  try {
    f();
  } catch (const E& e) {
    // The same kind, not one derived of it.
    EXPECT_EQ(typeid(e), typeid(E));
    return e.what_without_backtrace();
  }
  return "nothing";
}

TEST(CompatCheck, ThrowsTheKindWithTheText) {
  int x = 3, evaluated = 0;
  TORCH_CHECK(x == 3, ++evaluated);
  EXPECT_EQ(evaluated, 0);
  EXPECT_EQ(thrown<c10::Error>([&] { TORCH_CHECK(x == 4, "x is ", x, " and ", 1.5); }),
            "x is 3 and 1.5");
  EXPECT_EQ(thrown<c10::Error>([&] { TORCH_CHECK(x == 4); }),
            "Expected x == 4 to be true, but got false.");
  EXPECT_EQ(thrown<torch::Error>([&] { TORCH_CHECK(x == 4, std::string("text")); }), "text");
  EXPECT_EQ(thrown<c10::IndexError>([&] { TORCH_CHECK_INDEX(x == 4, "i ", x); }), "i 3");
  EXPECT_EQ(thrown<c10::ValueError>([&] { TORCH_CHECK_VALUE(x == 4, "i ", x); }), "i 3");
  EXPECT_EQ(thrown<c10::TypeError>([&] { TORCH_CHECK_TYPE(x == 4, "i ", x); }), "i 3");
  EXPECT_EQ(thrown<c10::LinAlgError>([&] { TORCH_CHECK_LINALG(x == 4, "i ", x); }), "i 3");
  EXPECT_EQ(thrown<c10::NotImplementedError>([&] { TORCH_CHECK_NOT_IMPLEMENTED(x == 4, "i"); }),
            "i");
  EXPECT_EQ(thrown<at::ValueError>([&] { TORCH_CHECK_WITH(ValueError, x == 4, "v"); }), "v");
  EXPECT_EQ(thrown<c10::IndexError>([] { C10_THROW_ERROR(IndexError, "thrown"); }), "thrown");
  EXPECT_EQ(thrown<c10::Error>([&] { TORCH_CHECK_ARG(x == 4, 2, "bad ", x); }),
            "invalid argument 2: bad 3");
  EXPECT_EQ(thrown<c10::Error>([&] { AT_ERROR("err ", x, ' ', torch::kFloat); }), "err 3 Float");
  EXPECT_EQ(thrown<c10::IndexError>([&] { AT_INDEX_ERROR("at ", x); }), "at 3");
  EXPECT_EQ(thrown<c10::Error>([&] { AT_CHECK(x == 4, "old"); }), "old");
  if (x == 3) TORCH_CHECK(true);  // a statement without braces
}

TEST(CompatCheck, AssertionsNameConditionAndPlace) {
  const int x = 3;
  const auto at_line = [](int line) {
    return c10::str(" INTERNAL ASSERT FAILED at \"", __FILE__, "\":", line, ". ");
  };
  EXPECT_EQ(thrown<c10::Error>([&] { TORCH_INTERNAL_ASSERT(x == 4); }),
            "x == 4" + at_line(__LINE__ - 1));
  EXPECT_EQ(thrown<c10::Error>([&] { AT_ASSERT(x == 4); }), "x == 4" + at_line(__LINE__));
  EXPECT_EQ(thrown<c10::Error>([&] { AT_ASSERTM(x == 4, "m ", x); }),
            "x == 4" + at_line(__LINE__ - 1) + "m 3");
  EXPECT_EQ(thrown<c10::Error>([&] { CAFFE_ENFORCE_EQ(x, 4, "more"); }),
            c10::str("[enforce fail at ", __FILE__, ":", __LINE__ - 1, "] x == 4. 3 vs 4. more"));
  EXPECT_EQ(thrown<c10::Error>([&] { CAFFE_ENFORCE(x == 4, "e ", x); }),
            c10::str("[enforce fail at ", __FILE__, ":", __LINE__ - 1, "] x == 4. e 3"));
  try {
    try {
      TORCH_CHECK(false, "inner");
    } catch (c10::Error& e) { TORCH_RETHROW(e, "ctx ", 1); }
  } catch (const std::exception& e) {
    const std::string what = e.what();
    EXPECT_EQ(what.find("inner (ctx 1)\nException raised from TestBody at "), 0u) << what;
  }
  EXPECT_EQ(c10::GetExceptionString(std::runtime_error("hi")), "std::runtime_error: hi");
}

struct Refuses : torch::autograd::Function<Refuses> {
  static torch::Tensor forward(torch::autograd::AutogradContext*, const torch::Tensor& x) {
    return x * 2;
  }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext*,
                                               const torch::autograd::tensor_list&) {
    TORCH_CHECK_INDEX(false, "not twice");
    return {};
  }
};

// Anomaly mode adds where it happened and keeps the rest of the error.
TEST(CompatCheck, InABackwardOfAFunction) {
  const torch::autograd::DetectAnomalyGuard watched;
  const torch::Tensor y = Refuses::apply(torch::ones({2}, torch::requires_grad())).sum();
  try {
    y.backward();
    FAIL() << "no error";
  } catch (const c10::IndexError& e) {
    const std::string text = e.what_without_backtrace(), whole = e.what();
    EXPECT_EQ(text.find("not twice\n  in the backward of "), 0u) << text;
    EXPECT_NE(text.find("Refuses"), std::string::npos) << text;
    EXPECT_EQ(text.find("Exception raised"), std::string::npos) << text;
    EXPECT_NE(whole.find("Exception raised from backward at "), std::string::npos) << whole;
  }
  const c10::intrusive_ptr<torch::autograd::Node> kept = y.grad_fn();
  EXPECT_EQ(kept->name(), "SumBackward0");
}

TEST(CompatLogging, ComparisonsThrowChecksEndTheProgram) {
  const int x = 3;
  int calls = 0;
  TORCH_CHECK_EQ(++calls, 1) << "not shown";
  CHECK_LE(x, 3) << "not shown";
  CHECK(x == 3);
  EXPECT_EQ(calls, 1);
  testing::internal::CaptureStderr();
  EXPECT_EQ(thrown<c10::Error>([&] { TORCH_CHECK_EQ(x, 4) << "more"; }),
            "Check failed: x == 4 (3 vs. 4). more");
  EXPECT_EQ(thrown<c10::Error>([&] { TORCH_CHECK_LT(x, 3); }), "Check failed: x < 3 (3 vs. 3). ");
  EXPECT_EQ(thrown<c10::Error>([] { TORCH_CHECK_NOTNULL(static_cast<int*>(nullptr)); }),
            "Check failed: 'static_cast<int*>(nullptr)' must be non NULL. ");
  EXPECT_EQ(CHECK_NOTNULL(&x), &x);
  LOG(INFO) << "info";
  LOG(WARNING) << "warning " << 1;
  LOG_IF(ERROR, x == 4) << "no";
  if (x == 4) LOG(ERROR) << "no";
  else LOG(ERROR) << "error";
  VLOG(1) << "detail";
  const std::string shown = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(shown.begin(), shown.end(), '\n'), 5) << shown;
  for (const char* line : {"compat_check_test.cc:", "] Check failed: x == 4 (3 vs. 4). more\n",
                           "] warning 1\n[E", "] error\n"})
    EXPECT_NE(shown.find(line), std::string::npos) << line << " in " << shown;
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_DEATH(CHECK(x == 4) << "more text",
               "F[0-9]{4} [0-9:.]{18} .*Check failed: x == 4 more text");
  EXPECT_DEATH(CHECK_EQ(x, 4), "Check failed: x == 4 \\(3 vs. 4\\)");
}

// Counts its own warnings.
struct Listener : c10::WarningHandler {
  void process(const c10::Warning& w) override {
    heard.push_back(w.msg() + (w.type().index() == 1 ? " (deprecated)" : ""));
    line = w.source_location().line;
  }
  std::vector<std::string> heard;
  uint32_t line = 0;
};

TEST(CompatWarning, GoesToTheThreadsHandler) {
  Listener mine;
  c10::WarningHandler* const before = c10::WarningUtils::get_warning_handler();
  testing::internal::CaptureStderr();
  {
    c10::WarningUtils::WarningHandlerGuard guard(&mine);
    TORCH_WARN("w ", 3);
    EXPECT_EQ(mine.line, __LINE__ - 1u);
    TORCH_WARN_DEPRECATION("d");
    for (int i = 0; i < 3; ++i) TORCH_WARN_ONCE("once ", i);
    {
      c10::WarningUtils::WarnAlways always;
      for (int i = 0; i < 2; ++i) TORCH_WARN_ONCE("always ", i);
    }
    std::thread([] { TORCH_WARN("elsewhere"); }).join();
    // Ramet's own.
    torch::nn::functional::mse_loss(torch::ones({2, 1}), torch::ones({2, 3}));
  }
  EXPECT_EQ(c10::WarningUtils::get_warning_handler(), before);
  TORCH_WARN("printed");
  const std::string shown = testing::internal::GetCapturedStderr();
  ASSERT_EQ(mine.heard.size(), 6u);
  EXPECT_EQ(std::vector<std::string>(mine.heard.begin(), mine.heard.end() - 1),
            (std::vector<std::string>{"w 3", "d (deprecated)", "once 0", "always 0", "always 1"}));
  EXPECT_NE(mine.heard.back().find("Using a target size"), std::string::npos);
  EXPECT_NE(shown.find("] Warning: elsewhere (function operator())\n"), std::string::npos) << shown;
  EXPECT_NE(shown.find("] Warning: printed (function TestBody)\n"), std::string::npos) << shown;
  EXPECT_EQ(shown.find("target size"), std::string::npos);  // Ramet prints nothing by itself
}

TEST(CompatDispatch, CallsWithTheType) {
  const torch::Tensor x = torch::arange(4, torch::kDouble);
  double second = 0;
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "read", ([&] {
                               static_assert(std::is_floating_point<scalar_t>::value, "");
                               second = x.data_ptr<scalar_t>()[2];
                             }));
  EXPECT_EQ(second, 2);
  const auto size_of = [](at::ScalarType t) {
    return AT_DISPATCH_ALL_TYPES_AND2(at::kHalf, at::ScalarType::Bool, t, "size",
                                      [&] { return static_cast<int>(sizeof(scalar_t)); });
  };
  EXPECT_EQ(size_of(at::kHalf), 2);
  EXPECT_EQ(size_of(at::kBool), 1);
  EXPECT_EQ(size_of(at::kLong), 8);
  EXPECT_EQ(thrown<c10::NotImplementedError>([&] { size_of(at::kBFloat16); }),
            "\"size\" not implemented for 'BFloat16'");
  const auto is = [](auto type, auto wanted) {
    return AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND3(
        at::kHalf, at::kBFloat16, at::kBool, type, "is",
        [&] { return std::is_same<scalar_t, decltype(wanted)>::value; });
  };
  EXPECT_TRUE(is(at::kByte, uint8_t()));
  EXPECT_TRUE(is(at::kShort, int16_t()));
  EXPECT_TRUE(is(at::kBFloat16, at::BFloat16()));
  EXPECT_TRUE(is(x.dtype(), double()));
  EXPECT_TRUE(is(x.scalar_type(), double()));
  EXPECT_FALSE(is(at::kFloat, double()));
  const at::Tensor half = x.to(at::kHalf);
  const double sum =
      AT_DISPATCH_FLOATING_TYPES_AND_HALF(half.scalar_type(), "sum", [&]() -> double {
        const auto* p = half.data_ptr<scalar_t>();
        return std::accumulate(p, p + half.numel(), 0., [](double a, scalar_t b) { return a + b; });
      });
  EXPECT_EQ(sum, 6);
  EXPECT_EQ(AT_DISPATCH_ALL_TYPES(at::kLong, "size", [] { return sizeof(scalar_t); }), 8u);
  const auto kind = [](at::ScalarType t) {
    return AT_DISPATCH_SWITCH(
        t, "kind",
        AT_DISPATCH_CASE_INTEGRAL_TYPES([&] { return std::string("int"); })
            AT_DISPATCH_CASE(at::kBool, [&] { return std::string("bool"); })
                AT_DISPATCH_CASE_FLOATING_TYPES_AND_HALF([&] { return std::string("float"); }));
  };
  EXPECT_EQ(kind(at::kChar) + kind(at::kBool) + kind(at::kHalf), "intboolfloat");
  size_t index = 0;
  AT_DISPATCH_INDEX_TYPES(at::kInt, "index", [&] { index = sizeof(index_t); });
  EXPECT_EQ(index, 4u);
  EXPECT_EQ(
      thrown<c10::NotImplementedError>([] { AT_DISPATCH_INDEX_TYPES(at::kFloat, "idx", [] {}); }),
      "\"idx\" not implemented for 'Float'");
}

}  // namespace
