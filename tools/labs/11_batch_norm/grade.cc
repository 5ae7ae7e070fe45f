// Compared with the library's BatchNorm1d of the whole batch, in float64.
#include <cmath>

#include "tools/labs/11_batch_norm/lab.h"

namespace ramet::labs {
namespace {

constexpr int64_t kFeatures = 3;
constexpr double kMomentum = 0.3, kEps = 1e-5;

/// The same rows on one device, and cut into pieces on several.
struct Both {
  nn::BatchNorm1d whole{nn::BatchNormOptions(kFeatures).momentum(kMomentum).eps(kEps)};
  Tensor x, twin;  // the leaves
  Tensor weight, bias, mean, var;
  Tensor want;
  std::vector<Tensor> results;

  Both(const BatchNormLab& answer, const std::vector<int64_t>& rows, Dtype dtype = kDouble,
       double centre = 0) {
    manual_seed(17);
    int64_t count = 0;
    for (const int64_t r : rows) count += r;
    // Rows that come later are larger, so that pieces differ.
    x = (randn({count, kFeatures}, kDouble) + arange(count, kDouble).view({count, 1}) * 0.5 +
         centre)
            .to(dtype)
            .requires_grad_();
    twin = x.detach().to(kDouble).requires_grad_();
    whole->to(kDouble);
    {
      NoGradGuard no_grad;
      whole->weight.copy_(tensor({0.5, 2.0, -1.0}, kDouble));
      whole->bias.copy_(tensor({0.0, 1.0, -0.25}, kDouble));
    }
    weight = whole->weight.detach().to(dtype).clone().requires_grad_();
    bias = whole->bias.detach().to(dtype).clone().requires_grad_();
    mean = zeros({kFeatures}, dtype);
    var = ones({kFeatures}, dtype);
    want = whole->forward(twin);

    std::vector<Tensor> pieces;
    int64_t from = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      pieces.push_back(x.narrow(0, from, rows[i]).to(Device(kCPU, static_cast<DeviceIndex>(i))));
      from += rows[i];
    }
    results = answer.batch_norm(pieces, weight, bias, mean, var, kMomentum, kEps);
    expect(results.size() == pieces.size(), results.size(), " results for ", pieces.size(),
           " pieces");
    for (size_t i = 0; i < results.size(); ++i)
      expect(results[i].sizes() == pieces[i].sizes() && results[i].device() == pieces[i].device(),
             "result ", i, " has another shape, or is on another device, than piece ", i);
  }

  Tensor result() const {
    std::vector<Tensor> rows;
    for (const Tensor& r : results) rows.push_back(r.to(Device(kCPU, 0)).to(kDouble));
    return cat(rows);
  }
};

/// Wrong where an element of `got` is further than `tolerance` from `want`'s.
void expect_close(const Tensor& got, const Tensor& want, double tolerance,
                  const std::string& what) {
  const Tensor g = got.detach().to(kDouble).flatten(), w = want.detach().to(kDouble).flatten();
  expect(g.numel() == w.numel(), what, " has ", g.numel(), " elements, expected ", w.numel());
  for (int64_t i = 0; i < g.numel(); ++i) {
    const double a = g[i].item<double>(), b = w[i].item<double>();
    expect(std::fabs(a - b) <= tolerance, "element ", i, " of ", what, " is ", a,
           ", and on the whole batch ", b);
  }
}

/// Wrong where `got` is still `was`.
void expect_changed(const Tensor& got, const Tensor& was, const std::string& what) {
  expect(!equal(got, was), what, " is as it was before the call, ", was[0].item<double>(),
         " in each element: nothing was written into it");
}

std::string check_forward(const BatchNormLab& answer, const std::vector<int64_t>& rows) {
  const Both both(answer, rows);
  expect_close(both.result(), both.want, 1e-9, "the result");
  return words(both.result().numel(), " numbers as on the whole batch");
}

}  // namespace

void grade(const BatchNormLab& answer, Report& report) {
  report.step("one piece", "moments of one piece: task.md",
              [&] { return check_forward(answer, {6}); });
  report.step("pieces of 4 and 4 rows",
              "what do the squares of the pieces not know of each other? task.md, \"Moments of all "
              "rows\"",
              [&] {
                return check_forward(answer, {4, 4});
              });
  report.step("pieces of 5 and 3 rows, and of 2, 1 and 6",
              "how many rows does each mean stand for? task.md", [&]() -> std::string {
                check_forward(answer, {5, 3});
                return check_forward(answer, {2, 1, 6});
              });
  report.step("numbers far from zero",
              "a difference of two large numbers that are nearly the same has few digits left: "
              "chapter 12",
              [&]() -> std::string {
                const Both both(answer, {8, 8}, kFloat, 8000);
                expect_close(both.result(), both.want, 5e-3,
                             "the result for x around 8000 in float32");
                return "48 numbers around 8000 in float32 as on the whole batch";
              });
  report.step("the running mean",
              "in place, a part of the old one and a part of this batch's: task.md",
              [&]() -> std::string {
                const Both both(answer, {5, 3});
                expect_changed(both.mean, zeros({kFeatures}, kDouble), "running_mean");
                expect_close(both.mean, both.whole->running_mean, 1e-9, "running_mean");
                return "as on the whole batch";
              });
  report.step("the running variance", "which of the two variances does LibTorch keep? task.md",
              [&]() -> std::string {
                const Both both(answer, {5, 3});
                expect_changed(both.var, ones({kFeatures}, kDouble), "running_var");
                expect_close(both.var, both.whole->running_var, 1e-9, "running_var");
                return "as on the whole batch";
              });
  report.step(
      "gradients",
      "each result depends on every row, by way of the mean and the variance: chapters 6 and 8",
      [&]() -> std::string {
        const Both both(answer, {5, 3});
        const Tensor factor =
            arange(24, kDouble).view({8, 3}).sin();  // not all alike: those sum to 0
        (both.want * factor).sum().backward();
        (both.result() * factor).sum().backward();
        expect(both.x.grad().defined(), "x has no gradient");
        expect_close(both.x.grad(), both.twin.grad(), 1e-9, "the gradient of x");
        expect_close(both.weight.grad(), both.whole->weight.grad(), 1e-9, "the gradient of weight");
        expect_close(both.bias.grad(), both.whole->bias.grad(), 1e-9, "the gradient of bias");
        return "x, weight and bias as on the whole batch";
      });
}

}  // namespace ramet::labs
