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

// Compares the backward pass of a function with differences of its values.
class FirstOrder {
 public:
  FirstOrder(const char* name, const CheckedFunction& f, const std::vector<Tensor>& inputs,
             Others others, const GradcheckOptions& o)
      : name_(name), f_(f), inputs_(inputs), o_(o) {
    for (const Tensor& x : inputs) {
      if (!x.defined() || !x.requires_grad()) continue;
      RAMET_CHECK(x.scalar_type() == kDouble && x.is_contiguous(), name,
                  "inputs that require grad must be contiguous float64: got ", describe(x));
      wrt_.push_back(x);
    }
    RAMET_CHECK(!wrt_.empty(), name, "expects at least one input that requires grad");
    const std::vector<Tensor> all = f(inputs);
    y_ = differentiable(all);
    // then nothing may depend on the inputs
    RAMET_CHECK(!y_.outputs.empty(), name, "no output requires grad");
    for (size_t k = 0; k < all.size() && others == Others::kConstant; ++k)
      if (std::find(y_.index.begin(), y_.index.end(), k) == y_.index.end()) constant_.push_back(k);
  }

  void check() {
    compute_jacobian();
    for (size_t i = 0; i < wrt_.size(); ++i) {
      for (int64_t j = 0; j < wrt_[i].numel(); ++j) {
        const Outputs up = outputs_near(i, j, o_.eps), down = outputs_near(i, j, -o_.eps);
        for (size_t k : constant_) check_constant(up, down, k, i, j);
        for (size_t k = 0; k < y_.outputs.size(); ++k) check_column(up, down, k, i, j);
      }
    }
  }

 private:
  using Outputs = std::vector<std::vector<double>>;  // [output][element]

  void compute_jacobian() {
    jacobian_.resize(y_.outputs.size());
    for (size_t k = 0; k < y_.outputs.size(); ++k)
      for (int64_t e = 0; e < y_.outputs[k].numel(); ++e) {
        jacobian_[k].push_back(gradients_of(k, e));
        if (o_.check_repeat && e == 0) check_same_bits(jacobian_[k][0], gradients_of(k, 0), k);
      }
  }
  // The gradients of one element of an output.
  std::vector<Tensor> gradients_of(size_t k, int64_t element) const {
    return grad({y_.outputs[k]}, wrt_, {one_at(y_.outputs[k], element)}, /*retain_graph=*/true,
                /*create_graph=*/false, /*allow_unused=*/true);
  }
  void check_same_bits(const std::vector<Tensor>& row, const std::vector<Tensor>& again,
                       size_t k) const {
    for (size_t i = 0; i < row.size(); ++i) {
      if (!row[i].defined()) continue;
      const auto a = values(row[i]), b = values(again[i]);
      RAMET_CHECK(a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0,
                  name_, "Backward is not reentrant: two calls give different bits for output ",
                  y_.index[k], ", input ", i);
    }
  }
  // All outputs where element j of input i is larger by `step`.
  Outputs outputs_near(size_t i, int64_t j, double step) {
    Moved moved(wrt_[i].data_ptr<double>() + j);
    moved.by(step);
    Outputs out;
    for (const Tensor& t : f_(inputs_)) out.push_back(values(t));
    return out;
  }
  // No gradient at all is the gradient 0.
  void check_constant(const Outputs& up, const Outputs& down, size_t k, size_t i, int64_t j) const {
    for (size_t e = 0; e < std::max(up[k].size(), down[k].size()); ++e) {
      const double above = up[k].empty() ? 0 : up[k][e], below = down[k].empty() ? 0 : down[k][e],
                   numeric = (above - below) / (2 * o_.eps);
      const bool still = above == below || std::fabs(numeric) <= o_.atol ||
                         (std::isnan(above) && std::isnan(below));
      RAMET_CHECK(still, name_, "output ", k, " does not require grad, but its element ", e,
                  " depends on input ", i, " element ", j, ": numerical ", numeric, ", expected 0");
    }
  }
  // The derivatives of all elements of differentiable output k.
  void check_column(const Outputs& up, const Outputs& down, size_t k, size_t i, int64_t j) const {
    const size_t output = y_.index[k];
    for (size_t e = 0; e < up[output].size(); ++e) {
      const double numeric = (up[output][e] - down[output][e]) / (2 * o_.eps);
      const Tensor& g = jacobian_[k][e][i];
      double analytic = 0;
      if (g.defined()) {
        RAMET_CHECK(same_sizes(g, wrt_[i]) && g.scalar_type() == kDouble, name_,
                    "gradient of input ", i, ": got ", describe(g), ", expected ",
                    describe(wrt_[i]));
        analytic = values(g)[static_cast<size_t>(j)];
      }
      const bool close = std::fabs(numeric - analytic) <= o_.atol + o_.rtol * std::fabs(numeric) ||
                         (std::isnan(numeric) && std::isnan(analytic));
      RAMET_CHECK(close, name_, "Jacobian mismatch for output ", output, " element ", e,
                  " with respect to input ", i, " element ", j, ": numerical ", numeric,
                  ", analytical ", analytic);
    }
  }

  const char* const name_;
  const CheckedFunction& f_;
  const std::vector<Tensor>& inputs_;
  const GradcheckOptions& o_;
  std::vector<Tensor> wrt_;       // the inputs that require grad
  Differentiable y_;              // the outputs that do
  std::vector<size_t> constant_;  // outputs that must not depend on the inputs
  std::vector<std::vector<std::vector<Tensor>>> jacobian_;  // [output][element][input]
};

void check_first_order(const char* name, const CheckedFunction& f,
                       const std::vector<Tensor>& inputs, Others others,
                       const GradcheckOptions& o) {
  FirstOrder(name, f, inputs, others, o).check();
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
