// Adagrad and what came after it, against numbers from PyTorch 2.15 in float64, and against their
// formulas in long double. What all optimizers have in common is in optim_test.cc.
#include "nn/optim/adagrad.h"
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

TEST(Adagrad, AsInPyTorch) {
  expect_twelve_steps<Adagrad>(
      AdagradOptions(), {0.0332574866941396, 0.407023658999532, 0.713991118794929,
                         0.927254328457199, 1.03015193712136, 0.272216790819225, 0.911257938143002,
                         0.848046171862437, 0.135962343040335});
  expect_twelve_steps<Adagrad>(
      AdagradOptions(.1).lr_decay(.05).weight_decay(.1).initial_accumulator_value(.3).eps(1e-4),
      {-0.310549224306341, 0.0369346414171406, 0.430442623722816, 0.784493807180158,
       1.14173143104042, 0.170501341357851, 0.744284711772884, 0.707322767949327,
       0.0836246671651038});
  expect_twelve_steps<Adagrad>(
      AdagradOptions(.1).weight_decay(.05).maximize(true),
      {0.877646769051282, 1.01384147764107, 1.12229649549469, 1.03846644741611, 0.656967009730959,
       0.545821443431602, 1.14333343688759, 1.01451299577776, 0.202508736521576});
}
TEST(Adagrad, EveryCombinationOfOptions) {
  for (double lr_decay : {0.0, 0.25})
    for (double decay : {0.0, 0.125})
      for (double first : {0.0, 0.5}) {
        const AdagradOptions o = AdagradOptions(0.0625)
                                     .lr_decay(lr_decay)
                                     .weight_decay(decay)
                                     .initial_accumulator_value(first)
                                     .eps(1e-3);
        expect_formula<Adagrad>(o,
                                [&](R& w, R g, States& s, R lr, int t) {
                                  g += decay * w;
                                  s[0] += g * g;
                                  w -= lr / (1 + (t - 1) * lr_decay) * g /
                                       (std::sqrt(s[0]) + static_cast<R>(1e-3));
                                },
                                {first});
      }
  expect_maximize<Adagrad>(AdagradOptions(.1).weight_decay(.1));
}
TEST(Adagrad, State) {
  const Tensor p = ones({2, 3}).requires_grad_();
  std::vector<OptimizerParamGroup> groups;
  // LibTorch takes the first value of every parameter's sum from the optimizer.
  groups.emplace_back(std::vector<Tensor>{p}, std::make_unique<AdagradOptions>(
                                                  AdagradOptions(1).initial_accumulator_value(8)));
  Adagrad adagrad(groups, AdagradOptions().initial_accumulator_value(2));
  p.mutable_grad() = full({2, 3}, 0.5);
  adagrad.step();
  const auto& state = static_cast<AdagradParamState&>(*adagrad.state().at(p.impl()));
  EXPECT_EQ(state.step(), 1);
  EXPECT_EQ(state.sum().sizes(), p.sizes());
  expect_values(state.sum(), {2.25, 2.25, 2.25, 2.25, 2.25, 2.25});
  EXPECT_EQ(names_in_files(state), (Names{"step", "sum"}));
  EXPECT_EQ(names_in_files(AdagradOptions()), (Names{"eps", "initial_accumulator_value", "lr",
                                                     "lr_decay", "maximize", "weight_decay"}));
  EXPECT_FALSE(AdagradOptions() == AdagradOptions().maximize(true));
  EXPECT_TRUE(AdagradOptions() == AdagradOptions(1e-2).eps(1e-10));
}
TEST(Adagrad, Ranges) {
  const Tensor p = ones({1}).requires_grad_();
  using O = AdagradOptions;
  EXPECT_ERROR_TEXT(Adagrad({p}, O(-0.5)), "[Adagrad] Invalid learning rate: -0.5");
  EXPECT_ERROR_TEXT(Adagrad({p}, O().lr_decay(-1)), "[Adagrad] Invalid lr_decay value: -1");
  EXPECT_ERROR_TEXT(Adagrad({p}, O().weight_decay(NAN)),
                    "[Adagrad] Invalid weight_decay value: nan");
  EXPECT_ERROR_TEXT(Adagrad({p}, O().initial_accumulator_value(-1)),
                    "[Adagrad] Invalid initial_accumulator_value value: -1");
  EXPECT_ERROR_TEXT(Adagrad({p}, O().eps(-1)), "[Adagrad] Invalid epsilon value: -1");
}

}  // namespace
}  // namespace ramet::optim
