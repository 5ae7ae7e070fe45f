// By gradcheck: central differences of the forward do not use the backward.
#include <cmath>

#include "tools/labs/01_backward/lab.h"

namespace ramet::labs {
namespace {

Tensor some_x() { return tensor({{-3.0, -1.25, -0.5, 0.0}, {0.25, 0.5, 1.0, 2.5}}, kDouble); }
Tensor some_beta() { return tensor({1.5}, kDouble); }

std::string compared_with_differences(const BackwardLab& answer, const Tensor& x,
                                      const Tensor& beta) {
  try {
    autograd::gradcheck(
        [&](const std::vector<Tensor>& in) {
          return std::vector<Tensor>{answer.swish(in[0], in[1])};
        },
        {x, beta});
  } catch (const Error& e) {
    const bool both = x.requires_grad() && beta.requires_grad();
    wrong(
        "central differences of the forward (numerical) and your backward (analytical) disagree. "
        "Input 0 is ",
        x.requires_grad() ? "x" : "beta", both ? ", input 1 is beta: " : ": ", e.what());
  }
  return words("central differences of ", x.numel(), " elements give the same");
}

}  // namespace

void grade(const BackwardLab& answer, Report& report) {
  report.step("the forward", "the line of forward() that computes was right in the file as it came",
              [&]() -> std::string {
                const Tensor x = some_x(), y = answer.swish(x, some_beta());
                expect(y.sizes() == x.sizes(), "the result has the shape ", y.sizes(),
                       ", expected that of x, ", x.sizes());
                for (int64_t i = 0; i < x.numel(); ++i) {
                  const double v = x.data_ptr<double>()[i], want = v / (1 + std::exp(-1.5 * v)),
                               got = y.contiguous().data_ptr<double>()[i];
                  expect(std::fabs(got - want) < 1e-12, "for x = ", v, " and beta = 1.5 it gives ",
                         got, ", expected ", want);
                }
                return words(x.numel(), " numbers are right");
              });
  report.step("the gradient of x",
              "x stands in the formula twice: task.md, \"The product rule, by hand\"; what a "
              "backward gets and "
              "gives: chapter 2",
              [&]() -> std::string {
                return compared_with_differences(answer, some_x().requires_grad_(), some_beta());
              });
  report.step(
      "the gradient of beta",
      "beta is one number that every element of x meets: task.md, \"One number, many uses\"",
      [&]() -> std::string {
        return compared_with_differences(answer, some_x(), some_beta().requires_grad_());
      });
  report.step("both at once, and no element at all", "shapes of gradients: chapter 2",
              [&]() -> std::string {
                compared_with_differences(answer, some_x().requires_grad_(),
                                          some_beta().requires_grad_());
                const Tensor none = empty({0, 3}, kDouble).requires_grad_();
                answer.swish(none, some_beta()).sum().backward();
                expect(none.grad().defined() && none.grad().sizes() == none.sizes(),
                       "an x of shape [0, 3] gets no gradient of that shape");
                return "as expected";
              });
  report.step("a changed input",
              "chapter 4: which ways to keep a tensor compare its version when it is used",
              [&]() -> std::string {
                const Tensor x = some_x().requires_grad_();
                const Tensor y = answer.swish(x, some_beta());
                {
                  NoGradGuard no_grad;
                  Tensor(x).mul_(-2);
                }
                std::string said;
                try {
                  y.sum().backward();
                } catch (const Error& e) { said = e.what(); }
                if (said.empty())
                  wrong(
                      "x was multiplied by -2 in place between forward and backward. An Error was "
                      "expected; backward() went on with the new values and gave ",
                      x.grad().flatten()[0].item<double>(), " for the first element");
                return "refused, as it should be";
              });
}

}  // namespace ramet::labs
