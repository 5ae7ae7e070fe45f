// Optimizers that use only the sign or the size of a gradient, against numbers from PyTorch 2.15 in
// float64, and against their formulas in long double. What all optimizers have in common is in
// optim_test.cc.
#include "nn/optim/asgd.h"
#include "nn/optim/lion.h"
#include "nn/optim/rprop.h"
#include "tests/nn/optim/prescribed_steps.h"

namespace ramet::optim {
namespace {

using R = long double;
using States = std::vector<R>;
using testing::expect_formula;
using testing::expect_maximize;
using testing::expect_twelve_steps;
using testing::names_in_files;
using Names = std::vector<std::string>;

TEST(Rprop, AsInPyTorch) {
  expect_twelve_steps<Rprop>(
      RpropOptions(), {-0.286026721575625, 0.0659741531286829, 0.590589374100293, 0.932385566879068,
                       1.08220902569429, 0.263007515461339, 0.899526394767226, 0.865947875448874,
                       0.151735432059867});
  expect_twelve_steps<Rprop>(
      RpropOptions(.05).etas(std::make_tuple(.4, 1.5)).step_sizes(std::make_tuple(.01, .1)),
      {-1.01522169916283, -0.663220824458517, 0.0262804051402927, 0.804099356319068,
       1.46481561513429, 0.0605202066613396, 0.897039085967226, 0.828209366648874,
       0.206120008059867});
  expect_twelve_steps<Rprop>(
      RpropOptions(.05).maximize(true),
      {2.08880341290117, 2.44080428760548, 1.92022000194029, 0.972668303519068, 0.587848562334291,
       0.45808366266134, 1.09460254196723, 0.957012246648874, 0.0880428880598672});
}
TEST(Rprop, TheFormula) {
  expect_formula<Rprop>(
      RpropOptions(0.0625).etas(std::make_tuple(0.25, 1.5)).step_sizes(std::make_tuple(0.02, 0.1)),
      [](R& w, R g, States& s, R, int) {
        const R sign = g * s[0];
        s[1] *= sign > 0 ? 1.5L : sign < 0 ? 0.25L : 1;
        s[1] = std::min(std::max(s[1], static_cast<R>(0.02)), static_cast<R>(0.1));
        s[0] = sign < 0 ? 0 : g;
        if (s[0] != 0) w -= s[0] > 0 ? s[1] : -s[1];
      },
      {0, 0.0625});
  expect_maximize<Rprop>(RpropOptions(.1));
}
// As in PyTorch: no step, and the one after it is as the first.
TEST(Rprop, NotANumber) {
  const Tensor p = ones({2}).requires_grad_();
  Rprop rprop({p}, RpropOptions(0.25));
  p.mutable_grad() = tensor({NAN, 1.0f});
  rprop.step();
  expect_values(p, {1, 0.75});
  p.mutable_grad() = tensor({1.0f, 1.0f});
  rprop.step();
  expect_values(p, {0.75, 0.45}, 1e-6);
}
TEST(Rprop, RangesAndFiles) {
  const Tensor p = ones({1}).requires_grad_();
  using O = RpropOptions;
  EXPECT_ERROR_TEXT(Rprop({p}, O(-0.5)), "[Rprop] Invalid learning rate: -0.5");
  EXPECT_ERROR_TEXT(Rprop({p}, O().etas(std::make_tuple(0.0, 2.0))),
                    "[Rprop] Invalid eta values: 0, 2");
  EXPECT_ERROR_TEXT(Rprop({p}, O().etas(std::make_tuple(0.5, 1.0))),
                    "[Rprop] Invalid eta values: 0.5, 1");
  EXPECT_ERROR_TEXT(Rprop({p}, O().etas(std::make_tuple(NAN, 2.0))),
                    "[Rprop] Invalid eta values: nan, 2");
  EXPECT_EQ(names_in_files(O()),
            (Names{"etaminus", "etaplus", "lr", "maximize", "step_size_max", "step_size_min"}));
  EXPECT_EQ(names_in_files(RpropParamState()), (Names{"prev", "step", "step_size"}));
}

// PyTorch has none: the paper's program 2, by hand.
TEST(Lion, TwoSteps) {
  const Tensor p = full({3}, 1.0, kDouble).requires_grad_();
  Lion lion({p}, LionOptions(0.25).betas(std::make_tuple(0.5, 0.75)).weight_decay(0.5));
  p.mutable_grad() = doubles({2, -4, 0});
  lion.step();  // sign(0.5 g), m = 0.25 g
  expect_values(p, {0.875 - 0.25, 0.875 + 0.25, 0.875});
  p.mutable_grad() = doubles({-0.25, 2, 3});
  lion.step();  // 0.5 m + 0.5 g: 0.125, 0.5, 1.5
  expect_values(p, {0.625 * 0.875 - 0.25, 1.125 * 0.875 - 0.25, 0.875 * 0.875 - 0.25});
  expect_values(static_cast<LionParamState&>(*lion.state().at(p.impl())).exp_avg(),
                {0.375 - 0.0625, -0.75 + 0.5, 0.75});
}
TEST(Lion, TheFormula) {
  for (double decay : {0.0, 0.125})
    expect_formula<Lion>(
        LionOptions(0.0625).betas(std::make_tuple(0.75, 0.875)).weight_decay(decay),
        [&](R& w, R g, States& s, R lr, int) {
          const R way = 0.75L * s[0] + 0.25L * g;
          w = w * (1 - lr * decay) - (way > 0 ? lr : way < 0 ? -lr : 0);
          s[0] = 0.875L * s[0] + 0.125L * g;
        });
  expect_maximize<Lion>(LionOptions(.1).weight_decay(.1));
}
TEST(Lion, RangesAndFiles) {
  const Tensor p = ones({1}).requires_grad_();
  using O = LionOptions;
  EXPECT_ERROR_TEXT(Lion({p}, O(-0.5)), "[Lion] Invalid learning rate: -0.5");
  EXPECT_ERROR_TEXT(Lion({p}, O().betas(std::make_tuple(1.0, 0.5))),
                    "[Lion] Invalid beta parameter at index 0: 1");
  EXPECT_ERROR_TEXT(Lion({p}, O().weight_decay(-1)), "[Lion] Invalid weight_decay value: -1");
  EXPECT_EQ(names_in_files(O()), (Names{"beta1", "beta2", "lr", "maximize", "weight_decay"}));
  EXPECT_EQ(names_in_files(LionParamState()), Names{"exp_avg"});
}

TEST(ASGD, AsInPyTorch) {
  expect_twelve_steps<ASGD>(
      ASGDOptions(),
      {0.02560955255812, 0.365900210515203, 0.68693675776723, 0.933546549354124, 1.05190735005797,
       0.295642532798304, 0.921151253730859, 0.855840599362912, 0.150484043057822});
  expect_twelve_steps<ASGD>(
      ASGDOptions(.1).lambd(.05).alpha(.6).t0(3).weight_decay(.1),
      {-0.655914163195626, -0.429464018914369, 0.113688706423369, 0.7900110515505, 1.32807756272065,
       0.305371775775339, 0.763018935732768, 0.729661143254394, 0.239504762330944});
  expect_twelve_steps<ASGD>(
      ASGDOptions(.1).lambd(.05).t0(-2).maximize(true),
      {0.944412107398024, 1.40981964112037, 1.37619416657183, 0.962183134599939, 0.429217009801696,
       0.318312809920751, 1.03723290299721, 0.932871822601436, 0.068507657564476});
}
// A step's rate counts for the next one.
TEST(ASGD, WithASchedule) {
  const std::vector<Tensor> p = testing::two_parameters();
  ASGD asgd(p, ASGDOptions(.1).lambd(.05).t0(3));
  const auto rate = [](ASGD& o, int s) { o.param_groups()[0].options().set_lr(.1 / (s + 1)); };
  expect_values(doubles(testing::prescribed_steps(p, asgd, 0, 12, rate)),
                {-0.0562364764526603, 0.12849337362396, 0.398404224642538, 0.717841594120498,
                 0.995794295817847, 0.180155936352154, 0.727561073761933, 0.642961009305976,
                 -0.024214008092765});
}
TEST(ASGD, TheAverage) {
  const Tensor p = sines(5).requires_grad_();
  ASGD asgd({p}, ASGDOptions(.1).lambd(.05).t0(3));
  for (int s = 0; s < 12; ++s) {
    p.mutable_grad() = sines(5, .7, .2 * s);
    asgd.step();
  }
  const auto& state = static_cast<ASGDParamState&>(*asgd.state().at(p.impl()));
  expect_values(state.ax(), {-0.388769582550983, -0.246092274542864, 0.160659438487659,
                             0.733177866616689, 1.26253011765721});
  EXPECT_NEAR(state.eta(), .1 / std::pow(1.06, .75), 1e-15);
}
TEST(ASGD, EveryCombinationOfOptions) {
  for (double decay : {0.0, 0.125})
    for (double t0 : {-3.0, 2.0, 1e6})
      expect_formula<ASGD>(ASGDOptions(0.0625).lambd(0.25).alpha(0.5).t0(t0).weight_decay(decay),
                           [&](R& w, R g, States& s, R lr, int t) {
                             g += decay * w;
                             const R eta = t == 1 ? lr : s[1];
                             w = (1 - 0.25L * eta) * w - eta * g;
                             const R mu =
                                 t == 1 ? 1 : 1 / std::max(1.0L, static_cast<R>(t - 1 - t0));
                             s[0] += mu * (w - s[0]);
                             s[1] = lr / std::sqrt(1 + 0.25L * lr * t);
                           });
  expect_maximize<ASGD>(ASGDOptions(.1).lambd(.1).weight_decay(.1));
}
TEST(ASGD, RangesAndFiles) {
  const Tensor p = ones({1}).requires_grad_();
  using O = ASGDOptions;
  EXPECT_ERROR_TEXT(ASGD({p}, O(-0.5)), "[ASGD] Invalid learning rate: -0.5");
  EXPECT_ERROR_TEXT(ASGD({p}, O().lambd(-1)), "[ASGD] Invalid lambd value: -1");
  EXPECT_ERROR_TEXT(ASGD({p}, O().alpha(NAN)), "[ASGD] Invalid alpha value: nan");
  EXPECT_ERROR_TEXT(ASGD({p}, O().weight_decay(-1)), "[ASGD] Invalid weight_decay value: -1");
  EXPECT_EQ(names_in_files(O()), (Names{"alpha", "lambd", "lr", "maximize", "t0", "weight_decay"}));
  EXPECT_EQ(names_in_files(ASGDParamState()), (Names{"ax", "eta", "step"}));
}

}  // namespace
}  // namespace ramet::optim
