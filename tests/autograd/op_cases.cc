// The rows of the operation table. A reference uses libm and loops only.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "autograd/ops.h"
#include "tests/autograd/op_table.h"

namespace ramet {
namespace op_table {
namespace {

using V = const std::vector<Tensor>&;
using P = const std::vector<Plain>&;
using D = const double*;

Row unary(const char* name, Tensor (*f)(const Tensor&), double (*point)(double), double lo,
          double hi, uint8_t dtypes, bool differentiable = true) {
  Row r;
  r.name = name;
  r.inputs = {{{3, 4}, lo, hi}};
  r.call = [f](V x) { return f(x[0]); };
  r.point = [point](D x) { return point(x[0]); };
  r.dtypes = dtypes;
  r.differentiable = differentiable;
  return r;
}
Row binary(const char* name, Tensor (*f)(const Tensor&, const Tensor&),
           double (*point)(double, double), uint8_t dtypes, bool differentiable = true,
           double lo = -2, double hi = 2) {
  Row r;
  r.name = name;
  r.inputs = {{{2, 3}, lo, hi}, {{3}, lo, hi}};
  r.call = [f](V x) { return f(x[0], x[1]); };
  r.point = [point](D x) { return point(x[0], x[1]); };
  r.dtypes = dtypes;
  r.differentiable = differentiable;
  return r;
}
bool nan_in(double a, double b) { return std::isnan(a) || std::isnan(b); }

void add_unary(std::vector<Row>& t) {
  t.push_back(unary(
      "neg", neg, [](double x) { return -x; }, -2, 2, kIntegers));
  t.push_back(unary(
      "abs", abs, [](double x) { return std::fabs(x); }, -2, 2, kAny));
  t.push_back(unary(
      "sign", sign, [](double x) { return std::isnan(x) ? 0.0 : double((x > 0) - (x < 0)); }, -2, 2,
      kAny));
  t.back().constant_gradient = true;
  t.push_back(unary(
      "square", square, [](double x) { return x * x; }, -2, 2, kAny));
  t.push_back(unary(
      "exp", exp, [](double x) { return std::exp(x); }, -2, 2, kAny));
  t.push_back(unary(
      "expm1", expm1, [](double x) { return std::expm1(x); }, -2, 2, kAny));
  t.push_back(unary(
      "log", log, [](double x) { return std::log(x); }, 0.3, 4, kAny));
  t.push_back(unary(
      "log1p", log1p, [](double x) { return std::log1p(x); }, -0.7, 4, kAny));
  t.push_back(unary(
      "log2", log2, [](double x) { return std::log2(x); }, 0.3, 4, kAny));
  t.push_back(unary(
      "log10", log10, [](double x) { return std::log10(x); }, 0.3, 4, kAny));
  t.push_back(unary(
      "sqrt", sqrt, [](double x) { return std::sqrt(x); }, 0.3, 4, kAny));
  t.push_back(unary(
      "rsqrt", rsqrt, [](double x) { return 1 / std::sqrt(x); }, 0.3, 4, kAny));
  t.push_back(unary(
      "reciprocal", reciprocal, [](double x) { return 1 / x; }, 0.3, 4, kAny));
  t.push_back(unary(
      "sin", sin, [](double x) { return std::sin(x); }, -4, 4, kAny));
  t.push_back(unary(
      "cos", cos, [](double x) { return std::cos(x); }, -4, 4, kAny));
  t.push_back(unary(
      "tan", tan, [](double x) { return std::tan(x); }, -1.2, 1.2, kAny));
  t.push_back(unary(
      "tanh", tanh, [](double x) { return std::tanh(x); }, -3, 3, kAny));
  t.push_back(unary(
      "sigmoid", sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, -4, 4, kAny));
  t.push_back(unary(
      "erf", erf, [](double x) { return std::erf(x); }, -2, 2, kAny));
  t.push_back(unary(
      "relu", relu, [](double x) { return std::isnan(x) || x > 0 ? x : 0; }, -2, 2, kIntegers));
  t.push_back(unary(
      "floor", floor, [](double x) { return std::floor(x); }, -3.4, 3.4, kIntegers));
  t.back().constant_gradient = true;
  t.push_back(unary(
      "ceil", ceil, [](double x) { return std::ceil(x); }, -3.4, 3.4, kIntegers));
  t.back().constant_gradient = true;
  t.push_back(unary(
      "round", round, [](double x) { return std::nearbyint(x); }, -3.4, 3.4, kIntegers));
  t.back().constant_gradient = true;
  t.push_back(unary(
      "trunc", trunc, [](double x) { return std::trunc(x); }, -3.4, 3.4, kIntegers));
  t.back().constant_gradient = true;
  t.push_back(unary(
      "logical_not", logical_not, [](double x) { return double(x == 0); }, -2, 2, kAny, false));
  t.push_back(unary(
      "isnan", isnan, [](double x) { return double(std::isnan(x)); }, -2, 2, kAny, false));
  t.push_back(unary(
      "isinf", isinf, [](double x) { return double(std::isinf(x)); }, -2, 2, kAny, false));
  t.push_back(unary(
      "isfinite", isfinite, [](double x) { return double(std::isfinite(x)); }, -2, 2, kAny, false));
  t.push_back(unary(
      "bitwise_not", bitwise_not, [](double x) { return -x - 1; }, -5, 5, kNoFloating | kAny,
      false));
}

void add_activations(std::vector<Row>& t) {
  const auto row = [&t](const char* name, std::function<Tensor(V)> call, double (*point)(double)) {
    Row r;
    r.name = name;
    r.inputs = {{{3, 4}, -3, 3}};
    r.call = std::move(call);
    r.point = [point](D x) { return point(x[0]); };
    r.extreme = false;
    t.push_back(r);
  };
  row(
      "gelu", [](V x) { return gelu(x[0]); },
      [](double x) { return x / 2 * std::erfc(-x / std::sqrt(2.0)); });
  row(
      "gelu.tanh", [](V x) { return gelu(x[0], "tanh"); },
      [](double x) {
        return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
      });
  row(
      "leaky_relu", [](V x) { return leaky_relu(x[0], 0.25); },
      [](double x) { return x > 0 ? x : x * 0.25; });
  row(
      "softplus", [](V x) { return softplus(x[0]); },
      [](double x) { return std::log1p(std::exp(x)); });
  row(
      "silu", [](V x) { return silu(x[0]); }, [](double x) { return x / (1 + std::exp(-x)); });
}

void add_binary(std::vector<Row>& t) {
  t.push_back(binary(
      "add", [](const Tensor& a, const Tensor& b) { return add(a, b); },
      [](double a, double b) { return a + b; }, kAny));
  t.push_back(binary(
      "sub", [](const Tensor& a, const Tensor& b) { return sub(a, b); },
      [](double a, double b) { return a - b; }, kIntegers));
  t.push_back(binary(
      "rsub", [](const Tensor& a, const Tensor& b) { return rsub(a, b); },
      [](double a, double b) { return b - a; }, kIntegers));
  t.push_back(binary(
      "mul", [](const Tensor& a, const Tensor& b) { return mul(a, b); },
      [](double a, double b) { return a * b; }, kAny));
  t.push_back(binary(
      "div", [](const Tensor& a, const Tensor& b) { return div(a, b); },
      [](double a, double b) { return a / b; }, kAny, true, 0.5, 3));
  t.push_back(binary(
      "pow", [](const Tensor& a, const Tensor& b) { return pow(a, b); },
      [](double a, double b) { return std::pow(a, b); }, kAny, true, 0.4, 3));
  t.back().extreme = false;
  t.push_back(binary(
      "maximum", maximum, [](double a, double b) { return nan_in(a, b) ? NAN : std::max(a, b); },
      kAny));
  t.push_back(binary(
      "minimum", minimum, [](double a, double b) { return nan_in(a, b) ? NAN : std::min(a, b); },
      kAny));
#define COMPARE(name, op)                                                 \
  t.push_back(binary(                                                     \
      #name, [](const Tensor& a, const Tensor& b) { return name(a, b); }, \
      [](double a, double b) { return double(a op b); }, kAny, false))
  COMPARE(eq, ==);
  COMPARE(ne, !=);
  COMPARE(lt, <);
  COMPARE(le, <=);
  COMPARE(gt, >);
  COMPARE(ge, >=);
#undef COMPARE
  t.push_back(binary(
      "logical_and", logical_and, [](double a, double b) { return double(a != 0 && b != 0); }, kAny,
      false));
  t.push_back(binary(
      "logical_or", logical_or, [](double a, double b) { return double(a != 0 || b != 0); }, kAny,
      false));
  t.push_back(binary(
      "logical_xor", logical_xor, [](double a, double b) { return double((a != 0) != (b != 0)); },
      kAny, false));
}

void add_choices(std::vector<Row>& t) {
  Row r;
  r.name = "where";
  r.inputs = {{{2, 3}, 0, 1, Kind::kMask}, {{2, 3}}, {{3}}};
  r.call = [](V x) { return where(x[0], x[1], x[2]); };
  r.point = [](D x) { return x[0] != 0 ? x[1] : x[2]; };
  r.dtypes = kAny;
  t.push_back(r);
  Row c;
  c.name = "clamp";
  c.inputs = {{{3, 4}, -3, 3}};
  c.call = [](V x) { return clamp(x[0], Scalar(-1), Scalar(1)); };
  c.point = [](D x) { return std::isnan(x[0]) ? x[0] : std::min(std::max(x[0], -1.0), 1.0); };
  c.dtypes = kAny;  // integer bounds make int64 of bool
  t.push_back(c);
}

void add_rows(std::vector<Row>& t) {
  Row mm_row;
  mm_row.name = "mm";
  mm_row.inputs = {{{3, 4}}, {{4, 2}}};
  mm_row.call = [](V x) { return mm(x[0], x[1]); };
  mm_row.reference = [](P x) {
    Plain out{{x[0].size(0), x[1].size(1)}, {}};
    const int64_t k = x[0].size(1), n = x[1].size(1);
    for (int64_t i = 0; i < x[0].size(0); ++i)
      for (int64_t j = 0; j < n; ++j) {
        double s = 0;
        for (int64_t l = 0; l < k; ++l) s += x[0].v[size_t(i * k + l)] * x[1].v[size_t(l * n + j)];
        out.v.push_back(s);
      }
    return out;
  };
  mm_row.dtypes = kIntegers;
  mm_row.large = {{{97, 101}}, {{101, 103}}};
  t.push_back(mm_row);
  for (const bool log : {false, true}) {
    Row r;
    r.name = log ? "log_softmax" : "softmax";
    r.inputs = {{{3, 5}, -3, 3}};
    r.call = [log](V x) { return log ? log_softmax(x[0], 1) : softmax(x[0], 1); };
    r.reference = [log](P x) {
      Plain out = x[0];
      const int64_t n = out.size(1);
      for (int64_t i = 0; i < out.size(0); ++i) {
        double s = 0;
        for (int64_t j = 0; j < n; ++j) s += std::exp(x[0].v[size_t(i * n + j)]);
        for (int64_t j = 0; j < n; ++j) {
          double& v = out.v[size_t(i * n + j)];
          v = log ? v - std::log(s) : std::exp(v) / s;
        }
      }
      return out;
    };
    r.large = {{{120, 131}, -3, 3}};
    t.push_back(r);
  }
  for (const bool mean_of : {false, true}) {
    Row r;
    r.name = mean_of ? "mean" : "sum";
    r.inputs = {{{4, 5}}};
    r.call = [mean_of](V x) { return mean_of ? mean(x[0], 0) : sum(x[0], 0); };
    r.reference = [mean_of](P x) {
      const int64_t n = x[0].size(1);
      Plain out{{n}, std::vector<double>(size_t(n), 0.0)};
      for (size_t i = 0; i < x[0].v.size(); ++i) out.v[i % size_t(n)] += x[0].v[i];
      if (mean_of)
        for (double& v : out.v) v /= double(x[0].size(0));
      return out;
    };
    if (!mean_of) r.dtypes = kAny;
    r.large = {{{120, 131}}};
    t.push_back(r);
  }
}

// A matrix-shaped row with a reference of its own.
void add_row(std::vector<Row>& t, const char* name, std::vector<Input> inputs,
             std::function<Tensor(V)> call, std::function<Plain(P)> reference, uint8_t dtypes,
             bool differentiable = true, std::vector<Input> large = {}) {
  Row r;
  r.name = name;
  r.inputs = std::move(inputs);
  r.call = std::move(call);
  r.reference = std::move(reference);
  r.dtypes = dtypes;
  r.differentiable = differentiable;
  r.large = std::move(large);
  t.push_back(r);
}

// One value for each row of a matrix.
std::function<Plain(P)> each_row(double (*f)(const double* x, int64_t n)) {
  return [f](P x) {
    const int64_t n = x[0].size(1);
    Plain out{{x[0].size(0)}, {}};
    for (int64_t i = 0; i < x[0].size(0); ++i) out.v.push_back(f(x[0].v.data() + i * n, n));
    return out;
  };
}
double variance(const double* x, int64_t n) {
  double mean = 0, s = 0;
  for (int64_t i = 0; i < n; ++i) mean += x[i] / double(n);
  for (int64_t i = 0; i < n; ++i) s += (x[i] - mean) * (x[i] - mean);
  return s / double(n - 1);
}
// Where element (i, j) of the result comes from in the first input.
std::function<Plain(P)> moved(std::vector<int64_t> sizes, int64_t (*from)(int64_t i)) {
  return [sizes, from](P x) {
    Plain out{sizes, {}};
    int64_t n = 1;
    for (int64_t s : sizes) n *= s;
    for (int64_t i = 0; i < n; ++i) out.v.push_back(x[0].v[size_t(from(i))]);
    return out;
  };
}

void add_reductions(std::vector<Row>& t) {
  const std::vector<Input> in = {{{4, 5}}}, large = {{{120, 131}}};
  const auto row = [&](const char* name, std::function<Tensor(V)> call,
                       double (*f)(const double*, int64_t), uint8_t dtypes,
                       bool differentiable = true) {
    add_row(t, name, in, std::move(call), each_row(f), dtypes, differentiable, large);
  };
  row(
      "prod", [](V x) { return prod(x[0], 1); },
      [](const double* x, int64_t n) {
        return std::accumulate(x, x + n, 1.0, std::multiplies<>());
      },
      kAny);
  row(
      "amax", [](V x) { return amax(x[0], 1); },
      [](const double* x, int64_t n) { return *std::max_element(x, x + n); }, kAny);
  row(
      "amin", [](V x) { return amin(x[0], 1); },
      [](const double* x, int64_t n) { return *std::min_element(x, x + n); }, kAny);
  row(
      "argmax", [](V x) { return argmax(x[0], 1); },
      [](const double* x, int64_t n) { return double(std::max_element(x, x + n) - x); }, kAny,
      false);
  row(
      "argmin", [](V x) { return argmin(x[0], 1); },
      [](const double* x, int64_t n) { return double(std::min_element(x, x + n) - x); }, kAny,
      false);
  row(
      "any", [](V x) { return any(x[0], 1); },
      [](const double* x, int64_t n) {
        return double(std::any_of(x, x + n, [](double v) { return v != 0; }));
      },
      kAny, false);
  row(
      "all", [](V x) { return all(x[0], 1); },
      [](const double* x, int64_t n) {
        return double(std::all_of(x, x + n, [](double v) { return v != 0; }));
      },
      kAny, false);
  row(
      "var", [](V x) { return var(x[0], 1, true); }, variance, kFloating);
  row(
      "std", [](V x) { return ramet::std(x[0], 1, true); },
      [](const double* x, int64_t n) { return std::sqrt(variance(x, n)); }, kFloating);
  row(
      "norm", [](V x) { return norm(x[0], Scalar(2), {1}); },
      [](const double* x, int64_t n) { return std::sqrt(std::inner_product(x, x + n, x, 0.0)); },
      kFloating);
  row(
      "logsumexp", [](V x) { return logsumexp(x[0], {1}); },
      [](const double* x, int64_t n) {
        double s = 0;
        for (int64_t i = 0; i < n; ++i) s += std::exp(x[i]);
        return std::log(s);
      },
      kAny);
}

void add_losses(std::vector<Row>& t) {
  const auto row = [&t](const char* name, Tensor (*f)(const Tensor&, const Tensor&),
                        double (*term)(double, double), double lo, double hi) {
    add_row(
        t, name, {{{3, 4}, lo, hi}, {{3, 4}, lo, hi}}, [f](V x) { return f(x[0], x[1]); },
        [term](P x) {
          double s = 0;
          for (size_t i = 0; i < x[0].v.size(); ++i) s += term(x[0].v[i], x[1].v[i]);
          return Plain{{}, {s / double(x[0].v.size())}};
        },
        kFloating, true, {{{120, 131}, lo, hi}, {{120, 131}, lo, hi}});
  };
  row(
      "mse_loss", [](const Tensor& a, const Tensor& b) { return mse_loss(a, b); },
      [](double a, double b) { return (a - b) * (a - b); }, -2, 2);
  row(
      "l1_loss", [](const Tensor& a, const Tensor& b) { return l1_loss(a, b); },
      [](double a, double b) { return std::fabs(a - b); }, -2, 2);
}

void add_views_and_joins(std::vector<Row>& t) {
  const std::vector<Input> in = {{{3, 4}}};
  add_row(
      t, "transpose", in, [](V x) { return transpose(x[0], 0, 1); },
      moved({4, 3}, [](int64_t i) { return i % 3 * 4 + i / 3; }), kAny);
  add_row(
      t, "t", in, [](V x) { return ramet::t(x[0]); },
      moved({4, 3}, [](int64_t i) { return i % 3 * 4 + i / 3; }), kAny);
  add_row(
      t, "permute", in,
      [](V x) {
        return permute(x[0], {1, 0});
      },
      moved({4, 3}, [](int64_t i) { return i % 3 * 4 + i / 3; }), kAny);
  add_row(
      t, "reshape", in,
      [](V x) {
        return reshape(x[0], {2, -1});
      },
      moved({2, 6}, [](int64_t i) { return i; }), kAny);
  add_row(
      t, "flatten", in, [](V x) { return flatten(x[0]); }, moved({12}, [](int64_t i) { return i; }),
      kAny);
  add_row(
      t, "unsqueeze", in, [](V x) { return unsqueeze(x[0], 1); },
      moved({3, 1, 4}, [](int64_t i) { return i; }), kAny);
  add_row(
      t, "narrow", in, [](V x) { return narrow(x[0], 1, 1, 2); },
      moved({3, 2}, [](int64_t i) { return i / 2 * 4 + 1 + i % 2; }), kAny);
  add_row(
      t, "select", in, [](V x) { return select(x[0], 0, -1); },
      moved({4}, [](int64_t i) { return 8 + i; }), kAny);
  add_row(
      t, "slice", in, [](V x) { return slice(x[0], 1, 1, 4, 2); },
      moved({3, 2}, [](int64_t i) { return i / 2 * 4 + 1 + i % 2 * 2; }), kAny);
  add_row(
      t, "diagonal", in, [](V x) { return diagonal(x[0], 1); },
      moved({3}, [](int64_t i) { return i * 5 + 1; }), kAny);
  add_row(
      t, "flip", in, [](V x) { return flip(x[0], {1}); },
      moved({3, 4}, [](int64_t i) { return i / 4 * 4 + 3 - i % 4; }), kAny);
  add_row(
      t, "clone", in, [](V x) { return clone(x[0]); }, moved({3, 4}, [](int64_t i) { return i; }),
      kAny);
  const auto joined = [](std::vector<int64_t> sizes) {
    return [sizes](P x) {
      Plain out{sizes, x[0].v};
      out.v.insert(out.v.end(), x[1].v.begin(), x[1].v.end());
      return out;
    };
  };
  add_row(
      t, "cat", {{{2, 3}}, {{1, 3}}}, [](V x) { return cat(x); }, joined({3, 3}), kAny);
  add_row(
      t, "vstack", {{{2, 3}}, {{1, 3}}}, [](V x) { return vstack(x); }, joined({3, 3}), kAny);
  add_row(
      t, "stack", {{{2, 3}}, {{2, 3}}}, [](V x) { return stack(x); }, joined({2, 2, 3}), kAny);
}

}  // namespace

const std::vector<Row>& rows() {
  static const std::vector<Row> table = [] {
    std::vector<Row> t;
    add_binary(t);
    add_unary(t);
    add_activations(t);
    add_choices(t);
    add_rows(t);
    add_reductions(t);
    add_losses(t);
    add_views_and_joins(t);
    return t;
  }();
  return table;
}

}  // namespace op_table
}  // namespace ramet
