// By gradcheck: central differences of the forward do not use the backward. And by the formula:
// what backward() itself returns, before the engine sums or casts it.
#include <atomic>
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
    if (std::string(e.what()).find("incorrect number of gradients") != std::string::npos)
      wrong(e.what());
    const bool both = x.requires_grad() && beta.requires_grad();
    wrong(
        "central differences of the forward (numerical) and your backward (analytical) disagree. "
        "Input 0 is ",
        x.requires_grad() ? "x" : "beta", both ? ", input 1 is beta: " : ": ", e.what());
  }
  return words("central differences of ", x.numel(), " elements give the same");
}

/// Counts nodes of the library that a backward pass runs.
class RunNodes {
 public:
  RunNodes() {
    Observer o;
    o.scope_begin = [this](const Scope& s) {
      if (s.name.find("Backward") != std::string::npos) ++count_;
    };
    number_ = add_observer(std::move(o));
  }
  ~RunNodes() { remove_observer(number_); }
  int count() const { return count_; }

 private:
  std::atomic<int> count_{0};
  uint64_t number_ = 0;
};

/// What backward() returns for the gradient `grad` of swish(x, beta), where no engine is between.
autograd::tensor_list returned(const BackwardLab& answer, const Tensor& x, const Tensor& beta,
                               const Tensor& grad) {
  const RunNodes nodes;
  const Tensor y = answer.swish(x, beta);
  const auto node = y.grad_fn();
  auto* function = dynamic_cast<autograd::FunctionNode*>(node.get());
  expect(function != nullptr,
         "swish() does not go by way of Swish::apply(): its result was recorded as ",
         node ? node->name() : "nothing");
  NoGradGuard no_grad;
  const autograd::tensor_list both = answer.backward(&function->ctx, {grad});
  expect(nodes.count() == 0,
         "while your forward and your backward ran, so did a backward pass of the "
         "library, of ",
         nodes.count(), " nodes: here the derivative is yours to write");
  expect(both.size() == 2, "backward() returned ", both.size(),
         both.size() == 1 ? " gradient" : " gradients",
         ", expected 2: forward() has two arguments");
  const Tensor* arguments[] = {&x, &beta};
  const char* names[] = {"x", "beta"};
  for (size_t i = 0; i < 2; ++i) {
    expect(both[i].defined(), "the gradient of ", names[i],
           " that backward() returned is undefined");
    expect(both[i].sizes() == arguments[i]->sizes(), "the gradient of ", names[i],
           " that backward() returned has the shape ", both[i].sizes(), ", expected that of ",
           names[i], ", ", arguments[i]->sizes());
  }
  return both;
}

std::string check_shapes(const BackwardLab& answer) {
  const Tensor x = some_x().requires_grad_();
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{1}, {}, {1, 1}}) {
    const Tensor beta = full(shape, 1.5, kDouble).requires_grad_();
    returned(answer, x, beta, ones_like(x));
  }
  return "two gradients, each with the shape of its argument";
}

/// Differences of the forward have 11 right digits at best; the formula has 15.
std::string check_digits(const BackwardLab& answer) {
  const Tensor x = some_x().requires_grad_(), beta = some_beta().requires_grad_();
  const Tensor grad = tensor({{0.5, -1.0, 2.0, 0.25}, {-0.75, 1.5, 1.0, -0.5}}, kDouble);
  const auto both = returned(answer, x, beta, grad);
  const auto near = [](double got, double want, const auto&... of) {
    const double off = std::fabs(got - want);
    expect(off <= 1e-13 * (1 + std::fabs(want)), of..., " differs by ", off,
           " from the derivative, ",
           off < 1e-4 ? "more than a formula in float64 rounds: is it an estimate, or in float32?"
                      : "where the gradient of the result is not 1 everywhere");
  };
  double for_beta = 0;
  const Tensor for_x = both[0].to(kDouble).contiguous();
  for (int64_t i = 0; i < x.numel(); ++i) {
    const double v = x.data_ptr<double>()[i], g = grad.data_ptr<double>()[i],
                 s = 1 / (1 + std::exp(-1.5 * v)), slope = s * (1 - s);
    near(for_x.data_ptr<double>()[i], g * (s + 1.5 * v * slope), "element ", i,
         " of the gradient of x");
    for_beta += g * v * v * slope;
  }
  near(both[1].to(kDouble).item<double>(), for_beta, "the gradient of beta");
  return words(x.numel() + 1, " numbers to 13 digits");
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
  report.step(
      "what backward returns",
      "one gradient for each argument of forward, in their order and with their shapes; all "
      "elements of x meet beta: task.md, \"One number, many uses\"; chapter 2",
      [&] { return check_shapes(answer); });
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
  report.step("all digits of both",
              "a derivative by rules is as exact as the forward: task.md, \"The product rule, by "
              "hand\"; chapter 1",
              [&] { return check_digits(answer); });
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
