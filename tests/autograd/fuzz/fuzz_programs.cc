#include "tests/autograd/fuzz/fuzz_programs.h"

#include <algorithm>
#include <cmath>

#include "autograd/autograd.h"
#include "autograd/ops.h"
#include "tests/autograd/check.h"

namespace ramet {
namespace fuzz {
namespace {

constexpr size_t kMaxVars = 9;
constexpr double kTolerance =
    1e-8;  // values up to 6, derivatives up to 1000, some forgotten digits

double weight(size_t k) { return 0.3 + static_cast<double>(k * 37 % 11) * 0.1; }

}  // namespace

double largest(const std::vector<Dual>& values) {
  double m = 0;
  for (const Dual& v : values) {
    m = std::max(m, std::fabs(v.value) / 6);
    for (double s : v.slope) m = std::max(m, std::fabs(s) / 1000);
  }
  return m;
}

void Program::push(const std::string& text, Tensor t, Twin w) {
  say("v" + std::to_string(next_) + " = " + text);
  vars_.push_back({std::move(t), std::move(w), next_++});
}
void Program::push(const std::string& text, Tensor t, const Shape& sizes,
                   const std::vector<Dual>& values, bool grad) {
  // Values and derivatives stay small, so that one tolerance fits.
  const bool tame = largest(values) > 1;
  std::vector<Dual> v = values;
  if (tame)
    for (Dual& x : v) x = x * number(0.0625);
  push(tame ? "(" + text + ") * 0.0625" : text, tame ? t * 0.0625 : t, fresh(sizes, v, grad));
}

void Program::step() {
  if (vars_.size() > kMaxVars) vars_.erase(vars_.begin());
  const int64_t kind = vars_.empty() ? 0 : tape_.below(22);
  if (kind < 2) push_new();
  else if (kind < 8) push_view();
  else if (kind < 10) push_unary();
  else if (kind < 12) push_binary();
  else if (kind < 13) push_joined();
  else if (kind < 14) push_reduced();
  else if (kind < 15) push_alias();
  else if (kind < 20) write_inplace(kind == 19);
  else turn(tape_.one_in(3));
}

void Program::check_values() {
  for (const Var& x : vars_) {
    const std::vector<double> got = values(x.t);
    for (size_t i = 0; i < got.size(); ++i) {
      const double want = x.w[i].value;
      if (!(std::fabs(got[i] - want) <= kTolerance)) {
        RC_FAIL(detail::join("v", x.number, "[", i, "]: got ", got[i], ", expected ", want, "\n",
                             text_.str()));
      }
      for (double slope : x.w[i].slope) {
        if (slope != 0 && !x.t.requires_grad())
          RC_FAIL(detail::join("v", x.number, " does not require grad\n", text_.str()));
      }
    }
  }
}

void Program::compare(const char* what, const std::vector<Tensor>& got, double factor) {
  for (size_t n = 0; n < leaves_.size(); ++n) {
    const Leaf& leaf = leaves_[n];
    const std::vector<double> g = got[n].defined()
                                      ? values(got[n])
                                      : std::vector<double>(static_cast<size_t>(leaf.t.numel()), 0);
    for (size_t i = 0; i < g.size(); ++i) {
      const double want = factor * total_[leaf.first + i];
      if (!(std::fabs(g[i] - want) <= kTolerance * (1 + std::fabs(want)) * 100)) {
        RC_FAIL(detail::join(what, ", gradient of v", leaf.number, "[", i, "]: got ", g[i],
                             ", expected ", want, "\n", text_.str()));
      }
    }
  }
}

void Program::check_gradients(Outcomes& outcomes) {
  Tensor sum;
  size_t k = 0;
  for (const Var& x : vars_) {
    if (!x.t.requires_grad()) continue;
    Tensor weights(TensorBase::empty(x.t.sizes(), kDouble, Device(kCPU, 0)));
    for (size_t i = 0; i < x.w.at.size(); ++i, ++k) {
      weights.data_ptr<double>()[i] = weight(k);
      const Dual part = x.w[i] * number(weight(k));
      for (size_t s = 0; s < kSlots; ++s) total_[s] += part.slope[s];
    }
    const Tensor part = (x.t * weights).sum();
    sum = sum.defined() ? sum + part : part;
  }
  if (!sum.defined()) {
    ++outcomes.constant;
    return;
  }
  std::vector<Tensor> inputs;
  for (const Leaf& leaf : leaves_) inputs.push_back(leaf.t);
  const auto collected = [&] {
    std::vector<Tensor> out;
    for (const Leaf& leaf : leaves_)
      out.push_back(leaf.t.grad().defined() ? leaf.t.grad().detach().clone() : Tensor());
    return out;
  };
  const auto same = [&](const char* what, const std::vector<Tensor>& a,
                        const std::vector<Tensor>& b, double factor) {
    for (size_t i = 0; i < a.size(); ++i) {
      bool equal = a[i].defined() == b[i].defined();
      if (equal && a[i].defined()) {
        std::vector<double> x = values(a[i]);
        const std::vector<double> y = values(b[i]);
        for (double& v : x) v *= factor;
        equal = x == y;
      }
      if (!equal)
        RC_FAIL(detail::join(what, ": other bits for v", leaves_[i].number, "\n", text_.str()));
    }
  };
  const std::string refusal = "has been modified by an inplace operation";
  std::vector<Tensor> general;
  const std::string error = error_of([&] {
    general = autograd::grad({sum}, inputs, {}, /*retain_graph=*/true, /*create_graph=*/false,
                             /*allow_unused=*/true);
  });
  if (error != "no error") {
    if (!overwritten_ || !contains(error, refusal)) RC_FAIL(error + "\n" + text_.str());
    // Another node may be the first one that notices: backward() runs what leads to no leaf, too.
    const std::string fast = error_of([&] { sum.backward(); });
    if (!contains(fast, refusal))
      RC_FAIL("grad: " + error + "\nbackward: " + fast + "\n" + text_.str());
    ++outcomes.refused;
    return;
  }
  compare("grad", general, 1);
  // backward() runs all there is, what leads to no leaf too.
  const std::string fast = error_of([&] { sum.backward({}, /*retain_graph=*/true); });
  if (fast != "no error") {
    if (!overwritten_ || !contains(fast, refusal)) RC_FAIL(fast + "\n" + text_.str());
    ++outcomes.refused;
    return;
  }
  same("grad and backward", general, collected(), 1);
  sum.backward({}, /*retain_graph=*/true);
  same("backward twice", general, collected(), 2);
  same("create_graph", general,
       autograd::grad({sum}, inputs, {}, true, /*create_graph=*/true, true), 1);
  sum.backward();
  compare("backward three times", collected(), 3);
  ++outcomes.compared;
}

void Program::run(Outcomes& outcomes) {
  try {
    while (tape_.left()) step();
    check_values();
    check_gradients(outcomes);
  } catch (const Error& e) { RC_FAIL(e.what() + ("\n" + text_.str())); }
}

}  // namespace fuzz
}  // namespace ramet
