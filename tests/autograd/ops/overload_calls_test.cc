// Every overload, called with the types of arguments that programs write. These are an int where
// another overload has a bool or a double, lists in braces, numbers for lists, nothing at all. The
// texts are LibTorch 2.15's answers to the same calls: dtype and sizes. Except for draws, they also
// have the sum of the values times 1, 2, 3, ...
#include <gtest/gtest.h>

#include <cstdio>

#include "autograd/ops.h"

namespace ramet {
namespace {

std::string shown(const Tensor& t, bool drawn) {
  std::string text = short_name_of(t.scalar_type());
  const char* before = "[";
  for (const int64_t n : t.sizes()) text += before + std::to_string(n), before = " ";
  if (t.dim() == 0) text += before;
  text += "]";
  if (drawn || t.numel() == 0) return text;
  double sum = 0, place = 0;
  const Tensor flat = t.to(kDouble).contiguous();
  for (int64_t i = 0; i < flat.numel(); ++i) sum += ++place * flat.data_ptr<double>()[i];
  char number[32];
  std::snprintf(number, sizeof number, "%.5g", sum);
  return text + number;
}
std::string shown(const std::vector<Tensor>& list, bool drawn) {
  std::string text = "{";
  for (const Tensor& t : list) text += shown(t, drawn) + ";";
  return text + "}";
}
template <class... Tensors> std::string shown(const std::tuple<Tensors...>& tuple, bool drawn) {
  return std::apply(
      [&](const Tensors&... t) { return "(" + (... + (shown(t, drawn) + ";")) + ")"; }, tuple);
}
std::string shown(ScalarType t, bool) { return short_name_of(t); }

/// 0.25, 0.75, ... 2.75 in two rows; a mask and positions of its shape; outputs.
struct OverloadCalls : testing::Test {
  const Tensor x = arange(6).to(kFloat).view({2, 3}) * 0.5 + 0.25, m = ones({2, 3}, kBool),
               l = zeros({2, 3}, kLong);
  Tensor o = empty({0});
};
// No EXPECT_EQ: hundreds of them take the compiler long.
void expect_shown(const std::string& got, const char* expected, const char* call, int line) {
  if (got != expected)
    ADD_FAILURE_AT(__FILE__, line) << call << "\ngot " << got << ", expected " << expected;
}
#define RAMET_CALL(expected, ...) \
  expect_shown(shown(__VA_ARGS__, false), expected, #__VA_ARGS__, __LINE__)
#define RAMET_DRAW(expected, ...) \
  expect_shown(shown(__VA_ARGS__, true), expected, #__VA_ARGS__, __LINE__)

// clang-format off: a call is a line
TEST_F(OverloadCalls, Moments) {
  RAMET_CALL("float32[3]6.75", var(x, 0, 1));
  RAMET_CALL("float32[2]0.75", var(x, 1, true));
  RAMET_CALL("float32[3]6.75", var(x, {0}, 1));
  RAMET_CALL("float32[1 3]6.75", var(x, {0}, 1, 1));
  RAMET_CALL("float32[1 3]6.75", var(x, {0}, true, true));
  RAMET_CALL("float32[3]6.75", var(x, 0, 1.5));
  RAMET_CALL("float32[]0.72917", var(x, std::nullopt, 0));
  RAMET_CALL("float32[1 1]0.875", var(x, std::nullopt, 1, true));
  RAMET_CALL("float32[1 1]0.72917", var(x, {}, 0, true));
  RAMET_CALL("(float32[3]6.75;float32[3]10;)", var_mean(x, 0, 1));
  RAMET_CALL("(float32[2]0.75;float32[2]5.25;)", var_mean(x, 1));
  RAMET_CALL("(float32[3]6.75;float32[3]10;)", var_mean(x, 0));
  RAMET_CALL("(float32[2]1.5;float32[2]5.25;)", std_mean(x, 1));
  RAMET_CALL("(float32[2]1.5;float32[2]5.25;)", std_mean(x, -1));
  RAMET_CALL("float32[2]0.75", x.var(-1));
  RAMET_CALL("float32[2]1.5", x.std(-1));
  RAMET_CALL("float32[2]0.75", var(x, -1));
  RAMET_CALL("float32[3]3.375", x.var(0, 0));
  RAMET_CALL("float32[1 3]3.375", x.var(0, false, true));
  RAMET_CALL("float32[1 3]6.364", x.std(0, 1, true));
  RAMET_CALL("float32[]0.85391", x.std({0, 1}, 0));
  RAMET_CALL("float32[1 3]6.364", std(x, 0, true, true));
  RAMET_CALL("(float32[3]3.375;float32[3]10;)", var_mean(x, {0}, 0));
  RAMET_CALL("(float32[1 3]6.364;float32[1 3]10;)", std_mean(x, 0, true, true));
  RAMET_CALL("(float32[1 1]0.93541;float32[1 1]1.5;)", std_mean(x, std::nullopt, 1, true));
  RAMET_CALL("float32[3]6.75", var_out(o, x, 0));
  RAMET_CALL("float32[3]6.75", var_out(o, x, {0}, true));
  RAMET_CALL("float32[3]6.364", std_out(o, x, {0}, 1));
  RAMET_CALL("float32[2]1.2247", std_out(o, x, 1, 0));
  RAMET_CALL("float32[]0.93541", x.std(true));
  RAMET_CALL("float32[3]6.364", x.std({0}, true));
  RAMET_CALL("float32[1 3]6.364", x.std({0}, true, true));
  RAMET_CALL("float32[1 3]6.364", x.std(0, true, true));
  RAMET_CALL("float32[1 1]0.93541", x.std({}, true, true));
  RAMET_CALL("float32[1 1]0.93541", x.std({0, 1}, true, true));
  RAMET_CALL("float32[]0.875", x.var(true));
  RAMET_CALL("float32[3]6.75", x.var({0}, true));
  RAMET_CALL("float32[1 3]6.75", x.var({0}, true, true));
  RAMET_CALL("float32[1 3]6.75", x.var(0, true, true));
  RAMET_CALL("float32[1 1]0.875", x.var({}, true, true));
  RAMET_CALL("float32[1 1]0.875", x.var({0, 1}, true, true));
  RAMET_CALL("float32[]0.93541", std(x, true));
  RAMET_CALL("float32[3]6.364", std(x, {0}, true));
  RAMET_CALL("float32[1 3]6.364", std(x, {0}, true, true));
  RAMET_CALL("float32[1 1]0.93541", std(x, {}, true, true));
  RAMET_CALL("float32[1 1]0.93541", std(x, {0, 1}, true, true));
  RAMET_CALL("(float32[]0.93541;float32[]1.5;)", std_mean(x, true));
  RAMET_CALL("(float32[3]6.364;float32[3]10;)", std_mean(x, {0}, true));
  RAMET_CALL("(float32[1 3]6.364;float32[1 3]10;)", std_mean(x, {0}, true, true));
  RAMET_CALL("(float32[1 1]0.93541;float32[1 1]1.5;)", std_mean(x, {}, true, true));
  RAMET_CALL("(float32[1 1]0.93541;float32[1 1]1.5;)", std_mean(x, {0, 1}, true, true));
  RAMET_CALL("float32[1 3]6.364", std_out(o, x, {0}, true, true));
  RAMET_CALL("float32[1 3]6.364", std_out(o, x, 0, true, true));
  RAMET_CALL("float32[]0.875", var(x, true));
  RAMET_CALL("float32[3]6.75", var(x, {0}, true));
  RAMET_CALL("float32[1 3]6.75", var(x, 0, true, true));
  RAMET_CALL("float32[1 1]0.875", var(x, {}, true, true));
  RAMET_CALL("float32[1 1]0.875", var(x, {0, 1}, true, true));
  RAMET_CALL("(float32[]0.875;float32[]1.5;)", var_mean(x, true));
  RAMET_CALL("(float32[3]6.75;float32[3]10;)", var_mean(x, {0}, true));
  RAMET_CALL("(float32[1 3]6.75;float32[1 3]10;)", var_mean(x, {0}, true, true));
  RAMET_CALL("(float32[1 3]6.75;float32[1 3]10;)", var_mean(x, 0, true, true));
  RAMET_CALL("(float32[1 1]0.875;float32[1 1]1.5;)", var_mean(x, {}, true, true));
  RAMET_CALL("(float32[1 1]0.875;float32[1 1]1.5;)", var_mean(x, {0, 1}, true, true));
  RAMET_CALL("float32[1 3]6.75", var_out(o, x, {0}, true, true));
  RAMET_CALL("float32[1 3]6.75", var_out(o, x, 0, true, true));
}

TEST_F(OverloadCalls, Reductions) {
  RAMET_CALL("float32[1 3]20", sum(x, 0, 1));
  RAMET_CALL("float64[3]20", sum(x, 0, 0, kDouble));
  RAMET_CALL("float32[1 1]9", sum(x, {}, true));
  RAMET_CALL("int64[]6", sum(x, kLong));
  RAMET_CALL("float32[1 3]10", mean(x, 0, 1));
  RAMET_CALL("float32[2]5.25", mean(x, 1));
  RAMET_CALL("float32[1 1]1.5", mean(x, {0, 1}, true));
  RAMET_CALL("float32[2]21.891", prod(x, 1));
  RAMET_CALL("float32[2 1]21.891", prod(x, 1, 1));
  RAMET_CALL("float64[]2.5378", prod(x, kDouble));
  RAMET_CALL("float32[]9", norm(x, 1));
  RAMET_CALL("float32[2]9.4005", norm(x, 2, 1));
  RAMET_CALL("float32[1 3]15.573", norm(x, 2, 0, true));
  RAMET_CALL("float32[1 3]15.573", norm(x, 2, {0}, 1));
  RAMET_CALL("float64[]4.2279", norm(x, 2, kDouble));
  RAMET_CALL("float64[2]9.4005", norm(x, 2, {1}, false, kDouble));
  RAMET_CALL("float64[2 1]9.4005", norm(x, 2, 1, 1, kDouble));
  RAMET_CALL("float32[]9", x.norm(1));
  RAMET_CALL("float32[3]15.573", x.norm(2, 0));
  RAMET_CALL("float32[1 3]16.732", x.norm(1.5, {0}, true));
  RAMET_CALL("(float32[3]14.5;int64[3]6;)", max(x, 0));
  RAMET_CALL("(float32[2 1]6.75;int64[2 1]6;)", max(x, 1, 1));
  RAMET_CALL("float32[2 3]40.25", max(x, x));
  RAMET_CALL("(float32[2]6.75;int64[2]6;)", max(x, true));
  RAMET_CALL("bool[1 3]6", all(x, 0, 1));
  RAMET_CALL("bool[]1", any(x, {0, 1}));
  RAMET_CALL("bool[3]6", any(x, {}));
  RAMET_CALL("bool[2]3", all(x, true));
  RAMET_CALL("float32[3]20", sum_out(o, x, 0));
  RAMET_CALL("float32[2 1]15.75", sum_out(o, x, {1}, true));
  RAMET_CALL("float32[3]10", mean_out(o, x, 0));
  RAMET_CALL("float32[]9", sum_out(o, x));
  RAMET_CALL("float32[]9", norm_out(o, x, 1));
  RAMET_CALL("float32[2]9.4005", norm_out(o, x, 2, 1));
  RAMET_CALL("float32[2 1]9.4005", norm_out(o, x, 2, {1}, 1));
  RAMET_CALL("int64[]0", sum(l));
  RAMET_CALL("float64[]1.5", mean(x, kDouble));
  RAMET_CALL("bool[2]3", all(x, int64_t(1)));
  RAMET_CALL("bool[2]3", all(x, size_t(1)));
  RAMET_CALL("bool[2 1]3", all(x, 1, true));
  RAMET_CALL("bool[1 3]6", all(x, 0, true));
  RAMET_CALL("bool[2 1]3", all(x, int64_t(1), true));
  RAMET_CALL("bool[2]3", any(x, int64_t(1)));
  RAMET_CALL("bool[2]3", any(x, size_t(1)));
  RAMET_CALL("bool[2]3", any(x, true));
  RAMET_CALL("bool[2 1]3", any(x, 1, true));
  RAMET_CALL("bool[1 3]6", any(x, 0, true));
  RAMET_CALL("(float32[2]6.75;int64[2]6;)", max(x, int64_t(1)));
  RAMET_CALL("(float32[2]6.75;int64[2]6;)", max(x, size_t(1)));
  RAMET_CALL("(float32[2 1]6.75;int64[2 1]6;)", max(x, 1, true));
  RAMET_CALL("float32[2]5.25", mean(x, int64_t(1)));
  RAMET_CALL("float32[3]10", mean(x, size_t(0)));
  RAMET_CALL("float32[2]5.25", mean(x, true));
  RAMET_CALL("(float32[2]3.75;int64[2]0;)", min(x, int64_t(1)));
  RAMET_CALL("(float32[2]3.75;int64[2]0;)", min(x, size_t(1)));
  RAMET_CALL("(float32[2]3.75;int64[2]0;)", min(x, true));
  RAMET_CALL("(float32[2 1]3.75;int64[2 1]0;)", min(x, 1, true));
  RAMET_CALL("(float32[1 3]5.5;int64[1 3]0;)", min(x, 0, true));
  RAMET_CALL("(float32[2 1]3.75;int64[2 1]0;)", min(x, int64_t(1), true));
  RAMET_CALL("float64[]4.2279", norm(x, {}, kDouble));
  RAMET_CALL("float64[]4.2279", norm(x, std::nullopt, kDouble));
  RAMET_CALL("float64[]9", norm(x, true, kDouble));
  RAMET_CALL("float64[]4.2279", norm(x, int64_t(2), kDouble));
  RAMET_CALL("float32[3]14.125", prod(x, {}));
  RAMET_CALL("float32[]2.5378", prod(x, std::nullopt));
  RAMET_CALL("float32[2]21.891", prod(x, int64_t(1)));
  RAMET_CALL("float32[2]21.891", prod(x, size_t(1)));
  RAMET_CALL("float32[2]15.75", sum(x, int64_t(1)));
  RAMET_CALL("float32[3]20", sum(x, size_t(0)));
  RAMET_CALL("float32[2]15.75", sum(x, true));
  RAMET_CALL("float32[1 3]20", sum(x, {0}, true));
}

TEST_F(OverloadCalls, ShapesAndIndices) {
  RAMET_CALL("float32[2 3]40.25", squeeze(x, 0));
  RAMET_CALL("float32[2 3]40.25", squeeze(x, {0, 1}));
  RAMET_CALL("float32[2 3]40.25", x.squeeze(true));
  RAMET_CALL("{float32[1 3]5.5;float32[1 3]14.5;}", split(x, 1));
  RAMET_CALL("{float32[1 3]5.5;float32[1 3]14.5;}", split(x, {1, 1}));
  RAMET_CALL("{float32[2 1]3.75;float32[2 1]5.25;float32[2 1]6.75;}", split(x, 1, 1));
  RAMET_CALL("{float32[2 1]3.75;float32[2 2]21;}", split(x, {1, 2}, 1));
  RAMET_CALL("float64[2 3]40.25", x.to(kDouble, 1));
  RAMET_CALL("float32[2 3]40.25", x.to(kCPU, 1));
  RAMET_CALL("float64[2 3]40.25", x.to(kCPU, kDouble));
  RAMET_CALL("float64[2 3]40.25", x.to(kCPU, kDouble, true));
  RAMET_CALL("float32[2 3]40.25", x.to(x, true));
  RAMET_CALL("float64[2 3]40.25", x.to(kDouble, true, true));
  RAMET_CALL("int32[2 3]2.2495e+10", x.view(kInt));
  RAMET_CALL("float32[6]40.25", x.view(-1));
  RAMET_CALL("float32[6]40.25", x.view(6));
  RAMET_CALL("float32[6]40.25", x.view({6}));
  RAMET_CALL("float32[3 2]40.25", x.view({3, -1}));
  RAMET_CALL("float32[2 2]21", narrow(x, 1, 1, 2));
  RAMET_CALL("float32[2 2]21", narrow(x, 1, tensor(1), 2));
  RAMET_CALL("float32[3 2]37.75", movedim(x, 0, 1));
  RAMET_CALL("float32[3 2]37.75", movedim(x, {0, 1}, {1, 0}));
  RAMET_CALL("float32[3 2]37.75", movedim(x, {0}, {1}));
  RAMET_CALL("float32[2 3]64.75", x.clone().index_put_({0}, 5));
  RAMET_CALL("float32[2 3]64.75", x.clone().index_put_({0}, tensor(5.)));
  RAMET_CALL("float32[3]5.5", x.index({0}));
  RAMET_CALL("float32[]0.75", x.index({0, 1}));
  RAMET_CALL("float32[1 3]14.5", x.index({std::nullopt, 1}));
  RAMET_CALL("float32[1 2 3]40.25", x.index({true}));
  RAMET_CALL("float64[2 3]40.25", x.to(kDouble, true));
  RAMET_CALL("float32[2 3]40.25", movedim(x, {}, {0}));
  RAMET_CALL("float32[3 2]37.75", movedim(x, int64_t(1), {0}));
  RAMET_CALL("float32[2 3]40.25", movedim(x, size_t(0), {0}));
  RAMET_CALL("float32[3 2]37.75", movedim(x, std::vector<int64_t>{1}, {0}));
  RAMET_CALL("float32[2 1]5.25", narrow(x, int64_t(1), 1, 1));
  RAMET_CALL("float32[2 1]5.25", narrow(x, size_t(1), 1, 1));
  RAMET_CALL("float32[2 1]5.25", narrow(x, true, 1, 1));
  RAMET_CALL("{float32[1 3]5.5;float32[1 3]14.5;}", split(x, int64_t(1)));
  RAMET_CALL("{float32[1 3]5.5;float32[1 3]14.5;}", split(x, size_t(1)));
  RAMET_CALL("float32[2 3]40.25", squeeze(x, int64_t(1)));
  RAMET_CALL("float32[2 3]40.25", squeeze(x, size_t(1)));
  RAMET_CALL("float32[2 3]40.25", squeeze(x, true));
  RAMET_CALL("float32[2 3]40.25", squeeze(x, {}));
}

TEST_F(OverloadCalls, NumbersAndTensors) {
  RAMET_CALL("float32[2 3]41.5", clamp(x, 1));
  RAMET_CALL("float32[2 3]19.75", clamp(x, 0, 1));
  RAMET_CALL("float32[2 3]19.75", clamp(x, std::nullopt, 1));
  RAMET_CALL("float32[2 3]19.75", clamp(x, {}, 1));
  RAMET_CALL("float32[2 3]41.5", clamp(x, 1, {}));
  RAMET_CALL("float32[2 3]40.25", clamp(x, x));
  RAMET_CALL("float32[2 3]40.25", clamp(x, {}, x));
  RAMET_CALL("float32[2 3]40.5", clamp(x, 0.5, std::nullopt));
  RAMET_CALL("float32[2 3]41.5", x.clamp(1));
  RAMET_CALL("float32[2 3]15.25", x.clamp(0, 0.75));
  RAMET_CALL("float32[2 3]19.75", x.clamp({}, 1));
  RAMET_CALL("float32[2 3]41.5", x.clamp_min(1));
  RAMET_CALL("int64[2 3]21", where(m, 1, 0));
  RAMET_CALL("float32[2 3]21", where(m, 1., 0));
  RAMET_CALL("float32[2 3]40.25", where(m, x, 0));
  RAMET_CALL("float32[2 3]0", where(m, 0, x));
  RAMET_CALL("float32[2 3]31.5", where(m, 1.5f, 2));
  RAMET_CALL("bool[2 3]21", where(m, true, false));
  RAMET_CALL("int64[2 3]21", where(m, int64_t(1), 2));
  RAMET_CALL("float32[2 3]40.75", scatter(x, 0, l, 1));
  RAMET_CALL("float32[2 3]49.25", scatter(x, 0, l, x));
  RAMET_CALL("float32[2 3]45.5", x.scatter(1, l, 2.5));
  RAMET_CALL("float32[2 3]21", masked_fill(x, m, 1));
  RAMET_CALL("float32[2 3]42", masked_fill(x, m, tensor(2)));
  RAMET_CALL("float32[2 3]21", x.masked_fill(m, true));
  RAMET_CALL("float32[2 3]40.25", lerp(x, x, 1));
  RAMET_CALL("float32[2 3]40.25", lerp(x, x, x));
  RAMET_CALL("float32[2 3]89.29", pow(2, x));
  RAMET_CALL("float32[2 3]88.812", pow(x, 2));
  RAMET_CALL("float32[2 3]28.328", pow(x, 0.5));
  RAMET_CALL("float32[2 3]144.83", pow(x, x));
  RAMET_CALL("float32[2 3]82.25", add(x, 1, 2));
  RAMET_CALL("float32[2 3]120.75", add(x, x, 2));
  RAMET_CALL("float32[2 3]61.25", add(x, true));
  RAMET_CALL("float32[2 3]20.125", div(x, 2));
  RAMET_CALL("float32[2 3]11", div(x, 2, "floor"));
  RAMET_CALL("float32[2 3]21", div(x, x, "trunc"));
  RAMET_CALL("float32[2 3]21", div(x, x, std::nullopt));
  RAMET_CALL("float32[2 3]21", x.clone().fill_(1));
  RAMET_CALL("float32[2 3]42", x.clone().fill_(tensor(2.)));
  RAMET_CALL("float32[2 3]10.5", clamp(l, 0.5, 1));
  RAMET_CALL("int64[2 3]0", bitwise_and(l, 1));
  RAMET_CALL("int64[2 3]0", bitwise_and(1, l));
  RAMET_CALL("float32[2 3]23", remainder(5, x));
  RAMET_CALL("float32[2 3]18.25", remainder(x, 2));
  RAMET_CALL("float32", result_type(x, 1));
  RAMET_CALL("float32", result_type(1, 1.5));
  RAMET_CALL("float32[2 3]120.75", add(x, x, int64_t(2)));
  RAMET_CALL("float32[2 3]120.75", add(x, x, size_t(2)));
  RAMET_CALL("float32[2 3]21", div(x, x, {}));
  RAMET_CALL("float32[2 3]40.25", div(x, true));
  RAMET_CALL("float32[2 3]20.125", div(x, int64_t(2)));
  RAMET_CALL("float32[2 3]40.25", lerp(x, x, true));
  RAMET_CALL("float32[2 3]40.25", lerp(x, x, int64_t(2)));
  RAMET_CALL("float32[2 3]40.25", lerp(x, x, size_t(2)));
  RAMET_CALL("float32[2 3]21", masked_fill(x, m, true));
  RAMET_CALL("float32[2 3]42", masked_fill(x, m, int64_t(2)));
  RAMET_CALL("float32[2 3]42", masked_fill(x, m, size_t(2)));
  RAMET_CALL("float32[2 3]21", pow(true, x));
  RAMET_CALL("float32[2 3]45.25", scatter(x, int64_t(1), l, x));
  RAMET_CALL("float32[2 3]45.25", scatter(x, size_t(1), l, x));
  RAMET_CALL("float32[2 3]45.25", scatter(x, true, l, x));
  RAMET_CALL("float32[2 3]43", scatter(x, int64_t(1), l, 2));
}

TEST_F(OverloadCalls, Factories) {
  RAMET_CALL("float32[2 3]6", eye(2, 3));
  RAMET_CALL("int64[2 2]5", eye(2, kLong));
  RAMET_CALL("float32[3 3]15", eye(3));
  RAMET_CALL("int64[5]40", arange(5));
  RAMET_CALL("int64[5]40", arange(0, 5));
  RAMET_CALL("int64[3]16", arange(0, 5, 2));
  RAMET_CALL("float32[5]40", arange(5, kFloat));
  RAMET_CALL("float32[5]40", arange(5.));
  RAMET_CALL("int64[4]30", arange(1, 5., kLong));
  RAMET_CALL("float32[4]5", arange(0, 1, 0.25));
  RAMET_CALL("float32[3]4", linspace(0, 1, 3));
  RAMET_CALL("float64[3]4", linspace(0, 1., 3, kDouble));
  RAMET_CALL("int64[2]3", full({2}, 1));
  RAMET_CALL("float32[2]3", full({2}, 1.));
  RAMET_CALL("bool[2]3", full({2}, true));
  RAMET_CALL("int64[2]3", full(2, 1));
  RAMET_CALL("float64[2]3", full({2}, 1, kDouble));
  RAMET_CALL("float32[]0", zeros({}));
  RAMET_CALL("float32[2]0", zeros(2));
  RAMET_CALL("float32[2 0]", zeros({2, 0}));
  RAMET_CALL("int64[2]0", zeros({2}, kLong));
  RAMET_CALL("int64[2]0", x.new_zeros({2}, kLong));
  RAMET_CALL("float32[2]0", x.new_zeros(2));
  RAMET_CALL("float32[1 1]1", eye(int64_t(1)));
  RAMET_CALL("float32[1 1]1", eye(size_t(1)));
  RAMET_CALL("float32[1]2", linspace(2, 2, int64_t(1)));
  RAMET_CALL("float32[1]2", linspace(2, 2, size_t(1)));
  RAMET_CALL("float32[1]2", linspace(2, 2, true));
  RAMET_CALL("float64[]0", zeros({}, kDouble));
  RAMET_CALL("float64[1]0", zeros(int64_t(1), kDouble));
}

TEST_F(OverloadCalls, Draws) {
  RAMET_DRAW("int64[2]", randint(5, {2}));
  RAMET_DRAW("int64[2]", randint(1, 5, {2}));
  RAMET_DRAW("int64[2]", randint(5, 2));
  RAMET_DRAW("float32[2]", randint(1, 5, {2}, kFloat));
  RAMET_DRAW("float32[2]", randint(5, {2}, kFloat));
  RAMET_DRAW("float32[2]", randn(2));
  RAMET_DRAW("float64[2]", randn({2}, kDouble));
  RAMET_DRAW("float64[2]", randn(2, kDouble));
  RAMET_DRAW("float32[2 3]", randn({2, 3}, std::nullopt));
  RAMET_DRAW("float64[2 3]", randn({2, 3}, std::nullopt, kDouble));
  RAMET_DRAW("float32[2]", normal(0, 1, {2}));
  RAMET_DRAW("float64[2]", normal(0., 1., {2}, std::nullopt, kDouble));
  RAMET_DRAW("float32[2]", normal(0, 1, 2));
  RAMET_DRAW("float32[2 3]", bernoulli(x * 0.1, 0));
  RAMET_DRAW("float32[2 3]", bernoulli(x * 0.1, 1));
  RAMET_DRAW("float32[2 3]", bernoulli(x * 0.1, 0.5));
  RAMET_DRAW("float32[2 3]", bernoulli(x * 0.1));
  RAMET_DRAW("float32[2 3]", x.clone().bernoulli_(1));
  RAMET_DRAW("float32[2 3]", x.clone().bernoulli_());
  RAMET_DRAW("float32[2 3]", x.clone().random_(5));
  RAMET_DRAW("float32[2 3]", x.clone().random_(1, 5));
  RAMET_DRAW("float32[2 3]", x.clone().random_());
  RAMET_DRAW("int64[3]", randperm(3));
  RAMET_DRAW("int32[3]", randperm(3, kInt));
  RAMET_DRAW("float32[2 3]", randint_like(x, 5));
  RAMET_DRAW("float32[2 3]", randint_like(x, 1, 5));
  RAMET_DRAW("float32[2 3]", randint_like(l, 5, kFloat));
  RAMET_DRAW("float64[2 3]", rand_like(x, kDouble));
  RAMET_DRAW("float32[2 3]", rand_like(x, std::nullopt));
  RAMET_DRAW("float32[2 3]", x.clone().bernoulli_({}));
  RAMET_DRAW("float32[2 3]", x.clone().bernoulli_((x * 0.1), std::nullopt));
  RAMET_DRAW("float32[2 3]", x.clone().bernoulli_({}, std::nullopt));
  RAMET_DRAW("float32[2 3]", x.clone().random_(0, 1, std::nullopt));
  RAMET_DRAW("float32[2 3]", bernoulli(x, {}));
  RAMET_DRAW("float32[]", rand({}));
  RAMET_DRAW("float32[1]", rand(int64_t(1)));
  RAMET_DRAW("float32[0]", rand(size_t(0)));
  RAMET_DRAW("float32[1]", rand(true));
  RAMET_DRAW("float64[]", rand({}, kDouble));
  RAMET_DRAW("float64[2 3]", rand_like(x, kDouble, std::nullopt));
  RAMET_DRAW("float32[2 3]", rand_like(x, {}, std::nullopt));
  RAMET_DRAW("float64[2 3]", rand_like(x, std::nullopt, kDouble));
  RAMET_DRAW("float32[2 3]", randint_like(x, int64_t(1)));
  RAMET_DRAW("int64[1]", randperm(int64_t(1)));
}

// clang-format on
#undef RAMET_CALL
#undef RAMET_DRAW

// An int64_t, which is ambiguous there, is a dimension; other integers are ambiguous here too.
template <class T, class N, class = void> struct VarTakes : std::false_type {};
template <class T, class N>
struct VarTakes<T, N, std::void_t<decltype(var_mean(std::declval<T>(), std::declval<N>()))>>
    : std::true_type {};
static_assert(VarTakes<Tensor, int>::value && VarTakes<Tensor, bool>::value);
static_assert(VarTakes<Tensor, int64_t>::value && !VarTakes<Tensor, size_t>::value);

}  // namespace
}  // namespace ramet
