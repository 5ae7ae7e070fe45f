// Steps of an optimizer with prescribed gradients: against PyTorch's numbers, and against a formula
// of the test's own in long double.
#pragma once
#include <sstream>

#include "autograd/grad_mode.h"
#include "autograd/ops/make/factory.h"
#include "nn/serialize/archive.h"
#include "tests/nn/support.h"

namespace ramet::testing {

inline std::vector<Tensor> two_parameters() {
  return {sines(5).requires_grad_(), sines(4, 0.9, 0.3).requires_grad_()};
}

/// Steps number `from` to `to`; the second parameter has no gradient in the third. Then both
/// parameters. `before(optimizer, s)` is called before each step.
template <class Optimizer, class Before = void (*)(Optimizer&, int)>
std::vector<double> prescribed_steps(
    const std::vector<Tensor>& p, Optimizer& optimizer, int from, int to,
    const Before& before = [](Optimizer&, int) {}) {
  for (int s = from; s < to; ++s) {
    optimizer.zero_grad();
    const NoGradGuard off;
    p[0].mutable_grad() = sines(5, 0.7, 0.2 * s) + p[0] * 0.1;
    if (s != 2) p[1].mutable_grad() = sines(4, 0.3, 0.5 * s) + p[1] * 0.2;
    before(optimizer, s);
    optimizer.step();
  }
  std::vector<double> out = values(p[0]);
  for (double v : values(p[1])) out.push_back(v);
  return out;
}

/// Eight steps, the rate another from the fourth on, in float32 and float64:
/// formula(w, g, states, lr, t) is one element's step number t = 1, 2, ... `filled` is what the
/// states are filled with at first, `narrow` the tolerance in float32.
template <class Optimizer, class Options, class Formula>
void expect_formula(const Options& options, const Formula& formula,
                    const std::vector<long double>& filled = {0, 0, 0}, double narrow = 2e-6) {
  using R = long double;
  for (ScalarType t : {kFloat, kDouble}) {
    const Tensor p = sines(131).to(t).requires_grad_();
    Optimizer optimizer({p}, options);
    const std::vector<double> start = values(p);
    std::vector<R> want(start.begin(), start.end());
    std::vector<std::vector<R>> states(want.size(), filled);
    for (int step = 1; step <= 8; ++step) {
      if (step == 4) optimizer.param_groups()[0].options().set_lr(options.lr() / 2);
      p.mutable_grad() = sines(131, 0.7, 0.9 * step).to(t);
      const std::vector<double> g = values(p.grad());
      optimizer.step();
      const R lr = step < 4 ? options.lr() : options.lr() / 2;
      for (size_t i = 0; i < want.size(); ++i)
        formula(want[i], static_cast<R>(g[i]), states[i], lr, step);
    }
    const std::vector<double> got = values(p);
    for (size_t i = 0; i < want.size(); ++i)
      ASSERT_NEAR(
          got[i], static_cast<double>(want[i]),
          (t == kFloat ? narrow : 1e-14) * std::max(1.0, std::abs(static_cast<double>(want[i]))))
          << t << ", " << i;
  }
}

/// maximize() with gradients is a step with -gradients: the same bits.
template <class Optimizer, class Options> void expect_maximize(const Options& options) {
  for (ScalarType t : {kFloat, kDouble, kBFloat16}) {
    const Tensor p = sines(67).to(t).requires_grad_(), q = p.detach().clone().requires_grad_();
    Optimizer up({p}, Options(options).maximize(true)), down({q}, options);
    for (int step = 0; step < 7; ++step) {
      const Tensor g = sines(67, 0.7, 0.9 * step).to(t);
      p.mutable_grad() = g, q.mutable_grad() = g.neg();
      up.step(), down.step();
    }
    EXPECT_TRUE(p.equal(q)) << t;
    EXPECT_FALSE(p.equal(sines(67).to(t)));
  }
}

/// What an optimizer or schedule has in files, by name.
template <class Thing> std::string names_in_files(const Thing& thing) {
  serialize::OutputArchive out;
  thing.serialize(out);
  std::stringstream file;
  out.save_to(file);
  serialize::InputArchive in;
  in.load_from(file);
  std::string names;
  for (const std::string& key : in.keys()) names += (names.empty() ? "" : " ") + key;
  return names;
}

/// Saves one and loads the other from it.
template <class From, class To> void pass_on(From& from, To& to) {
  serialize::OutputArchive out;
  from.save(out);
  std::stringstream file;
  out.save_to(file);
  serialize::InputArchive in;
  in.load_from(file);
  to.load(in);
}

}  // namespace ramet::testing
