// By gradcheck of the gradient, by the formula, and by central differences of the penalty.
#include <cmath>

#include "tools/labs/02_double_backward/lab.h"

namespace ramet::labs {
namespace {

Tensor some_x() { return tensor({-2.0, -1.0, -0.25, 0.0, 0.5, 1.5}, kDouble).requires_grad_(); }

using Check = bool (*)(const autograd::CheckedFunction&, const std::vector<Tensor>&);

std::string compared_with_differences(const DoubleBackwardLab& answer, const char* of,
                                      Check check) {
  try {
    check([&](const std::vector<Tensor>& in) { return std::vector<Tensor>{answer.gauss(in[0])}; },
          {some_x()});
  } catch (const Error& e) {
    const std::string said = e.what();
    if (said.find("no output requires grad") != std::string::npos)
      wrong(
          "the gradient that your backward gives has no history: nothing was recorded while it was "
          "computed, so it has no derivative");
    if (said.find("incorrect number of gradients") != std::string::npos) wrong(said);
    wrong("central differences of ", of, " disagree with what your backward gives: ", said);
  }
  return "central differences give the same";
}

double penalty_of(const DoubleBackwardLab& answer, nn::Sequential net, const Tensor& x) {
  return answer.penalty(net, x).item<double>();
}

std::string grade_curvature(const DoubleBackwardLab& answer) {
  const Tensor x = some_x(), got = answer.curvature(x);
  expect(got.defined() && got.sizes() == x.sizes(), "the result has not the shape of x");
  for (int64_t i = 0; i < x.numel(); ++i) {
    const double v = x.data_ptr<double>()[i], want = (v * v - 1) * std::exp(-v * v / 2),
                 is = got.data_ptr<double>()[i];
    expect(std::fabs(is - want) < 1e-10, "at x = ", v, " it gives ", is,
           ", and the second derivative is ", want);
  }
  expect(!x.grad().defined(),
         "x has a gradient after curvature(): what autograd::grad() computes "
         "is returned, what backward() computes is added into grad()");
  return words(x.numel(), " numbers are right");
}

std::string grade_penalty(const DoubleBackwardLab& answer) {
  manual_seed(3);
  nn::Sequential net(nn::Linear(3, 5), nn::Tanh(), nn::Linear(5, 1));
  net->to(kDouble);
  const Tensor x = randn({4, 3}, kDouble).requires_grad_();
  const Tensor loss = answer.penalty(net, x);
  expect(loss.numel() == 1, "the result has ", loss.numel(), " elements, expected one number");
  for (const auto& named : net->named_parameters())
    expect(!named.value().grad().defined(), "the parameter ", named.key(),
           " has a gradient after penalty(), and nobody has called backward() yet");
  expect(!x.grad().defined(), "x has a gradient after penalty()");

  // The lengths by central differences of net(x).
  double want = 0;
  {
    NoGradGuard no_grad;
    for (int64_t row = 0; row < 4; ++row) {
      double length = 0;
      for (int64_t column = 0; column < 3; ++column) {
        const auto shifted = [&](double by) {
          Tensor at = x.detach().clone();
          at[row][column] += by;
          return net->forward(at)[row].item<double>();
        };
        length += std::pow((shifted(1e-5) - shifted(-1e-5)) / 2e-5, 2);
      }
      want += std::pow(std::sqrt(length) - 1, 2) / 4;
    }
  }
  expect(std::fabs(loss.item<double>() - want) < 1e-7, "it gives ", loss.item<double>(),
         ", and with slopes by central differences of net(x) it is ", want);

  loss.backward();
  Tensor weight = net->parameters()[0];
  expect(weight.grad().defined(),
         "after backward() of the penalty the first weight has no gradient: nothing leads there");
  NoGradGuard no_grad;
  const double was = weight[1][2].item<double>(), got = weight.grad()[1][2].item<double>();
  const auto at = [&](double value) {
    weight[1][2].fill_(value);
    EnableGradGuard with_grad;
    return penalty_of(answer, net, x);
  };
  const double slope = (at(was + 1e-5) - at(was - 1e-5)) / 2e-5;
  expect(std::fabs(got - slope) < 1e-6, "d(penalty)/d(weight[1][2]) is ", got,
         " by your graph and ", slope, " by central differences");
  return words("the penalty is ", want, ", its slope by a weight ", slope);
}

}  // namespace

void grade(const DoubleBackwardLab& answer, Report& report) {
  report.step("the first derivative of gauss",
              "one gradient for each argument of forward; the derivative of exp(u) is exp(u) times "
              "that of u, and what comes in as grads[0] is a factor of it: chapters 1 and 2",
              [&]() -> std::string {
                return compared_with_differences(
                    answer, "gauss()",
                    [](const autograd::CheckedFunction& f, const std::vector<Tensor>& in) {
                      return autograd::gradcheck(f, in);
                    });
              });
  report.step(
      "the second derivative of gauss",
      "what backward() computes from is recorded only if it came by save_for_backward(), and "
      "only while nobody has switched recording off: chapter 6",
      [&]() -> std::string {
        return compared_with_differences(
            answer, "the gradient of gauss()",
            [](const autograd::CheckedFunction& f, const std::vector<Tensor>& in) {
              return autograd::gradgradcheck(f, in);
            });
      });
  report.step(
      "curvature",
      "a gradient is a number like any other unless it was asked for with a history: chapter "
      "6, and the fifth argument of autograd::grad() (autograd/graph/engine.h)",
      [&] { return grade_curvature(answer); });
  report.step(
      "penalty",
      "chapter 6, \"A loss with a gradient inside\"; backward() adds into the grad() of every leaf",
      [&] { return grade_penalty(answer); });
}

}  // namespace ramet::labs
