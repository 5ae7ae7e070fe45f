#include "autograd/gradcheck.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "autograd/autograd.h"

namespace ramet {
namespace autograd {
namespace {

// The elements; empty for an undefined tensor.
std::vector<double> values(const Tensor& t) {
  if (!t.defined()) return {};
  NoGradGuard off;
  const Tensor d = t.detach().to(kDouble).contiguous();
  const double* p = d.data_ptr<double>();
  return std::vector<double>(p, p + d.numel());
}

struct Differentiable {
  std::vector<Tensor> outputs;  // floating point ones that require grad
  std::vector<size_t> index;    // their places among all outputs
};
Differentiable differentiable(const std::vector<Tensor>& all) {
  Differentiable d;
  for (size_t i = 0; i < all.size(); ++i) {
    if (!all[i].defined() || !is_floating(all[i].scalar_type()) || !all[i].requires_grad())
      continue;
    d.outputs.push_back(all[i]);
    d.index.push_back(i);
  }
  return d;
}

Tensor one_at(const Tensor& like, int64_t at) {
  NoGradGuard off;
  Tensor t(TensorBase::empty(like.sizes(), like.scalar_type(), like.device()));
  t.zero_();
  t.view({-1}).select(0, at).fill_(1);
  return t;
}

// Moves an element, and restores it at the end, also where the function throws.
class Moved {
 public:
  explicit Moved(double* element) : element_(element), was_(*element) {}
  ~Moved() { *element_ = was_; }
  Moved(const Moved&) = delete;
  Moved& operator=(const Moved&) = delete;
  void by(double step) { *element_ = was_ + step; }

 private:
  double* element_;
  const double was_;
};

// How to treat outputs without history: ignore them, or require that they stay constant.
enum class Others { kIgnored, kConstant };

void check_first_order(const char* name, const CheckedFunction& f,
                       const std::vector<Tensor>& inputs, Others others,
                       const GradcheckOptions& o) {
  std::vector<Tensor> wrt;
  for (const Tensor& x : inputs) {
    if (!x.defined() || !x.requires_grad()) continue;
    RAMET_CHECK(x.scalar_type() == kDouble && x.is_contiguous(), name,
                "inputs that require grad must be contiguous float64: got ", describe(x));
    wrt.push_back(x);
  }
  RAMET_CHECK(!wrt.empty(), name, "expects at least one input that requires grad");
  const std::vector<Tensor> all = f(inputs);
  const Differentiable y = differentiable(all);
  if (y.outputs.empty()) {  // then nothing may depend on the inputs
    fail(name, "no output requires grad");
  }
  std::vector<size_t> constant;
  for (size_t k = 0; k < all.size() && others == Others::kConstant; ++k)
    if (std::find(y.index.begin(), y.index.end(), k) == y.index.end()) constant.push_back(k);
  // jacobian[output][element][input]
  std::vector<std::vector<std::vector<Tensor>>> jacobian(y.outputs.size());
  for (size_t k = 0; k < y.outputs.size(); ++k)
    for (int64_t e = 0; e < y.outputs[k].numel(); ++e) {
      const Tensor seed = one_at(y.outputs[k], e);
      auto row = grad({y.outputs[k]}, wrt, {seed}, /*retain_graph=*/true, /*create_graph=*/false,
                      /*allow_unused=*/true);
      if (o.check_repeat && e == 0) {
        const auto again = grad({y.outputs[k]}, wrt, {seed}, true, false, true);
        for (size_t i = 0; i < row.size(); ++i) {
          if (!row[i].defined()) continue;
          const auto a = values(row[i]), b = values(again[i]);
          RAMET_CHECK(a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0,
                      name, "Backward is not reentrant: two calls give different bits for output ",
                      y.index[k], ", input ", i);
        }
      }
      jacobian[k].push_back(std::move(row));
    }
  for (size_t i = 0; i < wrt.size(); ++i) {
    double* x = wrt[i].data_ptr<double>();
    for (int64_t j = 0; j < wrt[i].numel(); ++j) {
      const auto evaluate = [&](double step) {
        Moved moved(x + j);
        moved.by(step);
        std::vector<std::vector<double>> out;
        for (const Tensor& t : f(inputs)) out.push_back(values(t));
        return out;
      };
      const auto up = evaluate(o.eps), down = evaluate(-o.eps);
      for (size_t k : constant) {
        // No gradient at all is the gradient 0.
        for (size_t e = 0; e < std::max(up[k].size(), down[k].size()); ++e) {
          const double above = up[k].empty() ? 0 : up[k][e],
                       below = down[k].empty() ? 0 : down[k][e],
                       numeric = (above - below) / (2 * o.eps);
          const bool still = above == below || std::fabs(numeric) <= o.atol ||
                             (std::isnan(above) && std::isnan(below));
          RAMET_CHECK(still, name, "output ", k, " does not require grad, but its element ", e,
                      " depends on input ", i, " element ", j, ": numerical ", numeric,
                      ", expected 0");
        }
      }
      for (size_t k = 0; k < y.outputs.size(); ++k)
        for (size_t e = 0; e < up[y.index[k]].size(); ++e) {
          const double numeric = (up[y.index[k]][e] - down[y.index[k]][e]) / (2 * o.eps);
          const Tensor& g = jacobian[k][e][i];
          double analytic = 0;
          if (g.defined()) {
            RAMET_CHECK(same_sizes(g, wrt[i]) && g.scalar_type() == kDouble, name,
                        "gradient of input ", i, ": got ", describe(g), ", expected ",
                        describe(wrt[i]));
            analytic = values(g)[static_cast<size_t>(j)];
          }
          const bool close =
              std::fabs(numeric - analytic) <= o.atol + o.rtol * std::fabs(numeric) ||
              (std::isnan(numeric) && std::isnan(analytic));
          RAMET_CHECK(close, name, "Jacobian mismatch for output ", y.index[k], " element ", e,
                      " with respect to input ", i, " element ", j, ": numerical ", numeric,
                      ", analytical ", analytic);
        }
    }
  }
}

bool guarded(const GradcheckOptions& o, const std::function<void()>& check) {
  EnableGradGuard on;
  if (o.raise_exception) {
    check();
    return true;
  }
  try {
    check();
  } catch (const Error&) { return false; }
  return true;
}

}  // namespace

bool gradcheck(const CheckedFunction& f, const std::vector<Tensor>& inputs,
               const GradcheckOptions& o) {
  return guarded(o, [&] { check_first_order("gradcheck", f, inputs, Others::kIgnored, o); });
}

bool gradgradcheck(const CheckedFunction& f, const std::vector<Tensor>& inputs,
                   std::vector<Tensor> seeds, const GradcheckOptions& o) {
  return guarded(o, [&] {
    const Differentiable y = differentiable(f(inputs));
    RAMET_CHECK(!y.outputs.empty(), "gradgradcheck", "no output requires grad");
    if (seeds.empty()) {
      NoGradGuard off;
      for (const Tensor& t : y.outputs) {
        Tensor s(TensorBase::empty(t.sizes(), t.scalar_type(), t.device()));
        double* p = s.data_ptr<double>();
        for (int64_t i = 0; i < s.numel(); ++i)
          p[i] = std::sin(static_cast<double>(i) * 1.7 + 0.3) + 0.5;
        s.requires_grad_();
        seeds.push_back(s);
      }
    }
    RAMET_CHECK(seeds.size() == y.outputs.size(), "gradgradcheck", "grad_outputs: got ",
                seeds.size(), ", expected ", y.outputs.size());
    const size_t n = inputs.size();
    const CheckedFunction first = [&](const std::vector<Tensor>& all) {
      const std::vector<Tensor> x(all.begin(), all.begin() + static_cast<ptrdiff_t>(n)),
          g(all.begin() + static_cast<ptrdiff_t>(n), all.end());
      std::vector<Tensor> wrt;
      for (const Tensor& t : x)
        if (t.defined() && t.requires_grad()) wrt.push_back(t);
      return grad(differentiable(f(x)).outputs, wrt, g, /*retain_graph=*/true,
                  /*create_graph=*/true, /*allow_unused=*/true);
    };
    std::vector<Tensor> all = inputs;
    all.insert(all.end(), seeds.begin(), seeds.end());
    check_first_order("gradgradcheck", first, all, Others::kConstant, o);
  });
}

}  // namespace autograd
}  // namespace ramet
