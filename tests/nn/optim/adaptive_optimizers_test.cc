// Adagrad and what came after it, against numbers from PyTorch 2.15 in float64, and against their
// formulas in long double. What all optimizers have in common is in optim_test.cc.
#include "nn/optim/adadelta.h"
#include "nn/optim/adagrad.h"
#include "nn/optim/adamax.h"
#include "nn/optim/nadam.h"
#include "nn/optim/radam.h"
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

TEST(Adamax, AsInPyTorch) {
  expect_twelve_steps<Adamax>(
      AdamaxOptions(),
      {0.0934068540191252, 0.440715798092173, 0.732587140963504, 0.928000994837351, 1.0010736573881,
       0.286821805176693, 0.921961368515252, 0.853528662051082, 0.134858949537524});
  expect_twelve_steps<Adamax>(
      AdamaxOptions(.05).betas(std::make_tuple(.8, .95)).eps(1e-3).weight_decay(.1),
      {-0.345407005471313, -0.109060480829737, 0.243832075980784, 0.665497960435667,
       1.04329259149584, 0.102753252916352, 0.697815494289002, 0.653171030177189,
       0.0405324226257795});
  expect_twelve_steps<Adamax>(
      AdamaxOptions(.05).weight_decay(.1).maximize(true),
      {0.46524474869703, 0.984858335012967, 1.20871679353861, 1.18248396892251, 0.912249486803309,
       0.507057064404438, 1.16199184861345, 1.08374855113662, 0.297610622730169});
}
TEST(Adamax, EveryCombinationOfOptions) {
  for (double decay : {0.0, 0.125})
    expect_formula<Adamax>(
        AdamaxOptions(0.0625).betas(std::make_tuple(0.75, 0.875)).eps(1e-3).weight_decay(decay),
        [&](R& w, R g, States& s, R lr, int t) {
          g += decay * w;
          s[0] = 0.75L * s[0] + 0.25L * g;
          s[1] = std::max(0.875L * s[1], std::abs(g) + static_cast<R>(1e-3));
          w -= lr / (1 - std::pow(0.75L, static_cast<R>(t))) * s[0] / s[1];
        });
  expect_maximize<Adamax>(AdamaxOptions(.1).weight_decay(.1));
}

TEST(Adamax, RangesAndFiles) {
  const Tensor p = ones({1}).requires_grad_();
  using O = AdamaxOptions;
  EXPECT_ERROR_TEXT(Adamax({p}, O(-0.5)), "[Adamax] Invalid learning rate: -0.5");
  EXPECT_ERROR_TEXT(Adamax({p}, O().betas(std::make_tuple(1.0, 0.5))),
                    "[Adamax] Invalid beta parameter at index 0: 1");
  EXPECT_ERROR_TEXT(Adamax({p}, O().betas(std::make_tuple(0.5, NAN))),
                    "[Adamax] Invalid beta parameter at index 1: nan");
  EXPECT_ERROR_TEXT(Adamax({p}, O().eps(-1)), "[Adamax] Invalid epsilon value: -1");
  EXPECT_ERROR_TEXT(Adamax({p}, O().weight_decay(-1)), "[Adamax] Invalid weight_decay value: -1");
  EXPECT_EQ(names_in_files(O()),
            (Names{"beta1", "beta2", "eps", "lr", "maximize", "weight_decay"}));
  EXPECT_EQ(names_in_files(AdamaxParamState()), (Names{"exp_avg", "exp_inf", "step"}));
}

TEST(RAdam, AsInPyTorch) {
  expect_twelve_steps<RAdam>(RAdamOptions(.05),
                             {0.0401492506041518, 0.244065625207037, 0.480049325499363,
                              0.735464525001294, 0.956218066582218, 0.177461617081968,
                              0.744412728088762, 0.655252802556791, -0.0383136943633467});
  expect_twelve_steps<RAdam>(
      RAdamOptions(.05).betas(std::make_tuple(.8, .95)).eps(1e-3).weight_decay(.1),
      {-0.0644387294409442, 0.145610860532496, 0.405934646270661, 0.714506268773584,
       1.01267166584535, 0.170298950890421, 0.71943710334133, 0.645925898929448,
       -0.000471578180647981});
  expect_twelve_steps<RAdam>(
      RAdamOptions(.05).weight_decay(.1).decoupled_weight_decay(true).maximize(true),
      {0.170858637218452, 0.645466460307831, 0.97002963777455, 1.08169371110009, 0.983379376588139,
       0.395112788039911, 1.06626876124828, 1.02165587423327, 0.310764464002875});
}
TEST(RAdam, EveryCombinationOfOptions) {
  for (double decay : {0.0, 0.125})
    for (bool decoupled : {false, true})
      expect_formula<RAdam>(
          RAdamOptions(0.0625)
              .betas(std::make_tuple(0.75, 0.9375))
              .eps(1e-3)
              .weight_decay(decay)
              .decoupled_weight_decay(decoupled),
          [&](R& w, R g, States& s, R lr, int t) {
            if (decoupled) w *= 1 - lr * decay;
            else g += decay * w;
            s[0] = 0.75L * s[0] + 0.25L * g, s[1] = 0.9375L * s[1] + 0.0625L * g * g;
            const R power = std::pow(0.9375L, static_cast<R>(t)), rho = 31,
                    r = rho - 2 * t * power / (1 - power);
            ASSERT_EQ(r > 5, t > 5);  // both ways are taken
            const R step = lr * s[0] / (1 - std::pow(0.75L, static_cast<R>(t)));
            w -= r > 5 ? step * std::sqrt(1 - power) / (std::sqrt(s[1]) + static_cast<R>(1e-3)) *
                             std::sqrt((r - 4) * (r - 2) * rho / ((rho - 4) * (rho - 2) * r))
                       : step;
          });
  expect_maximize<RAdam>(RAdamOptions(.1).weight_decay(.1));
}

TEST(RAdam, RangesAndFiles) {
  const Tensor p = ones({1}).requires_grad_();
  using O = RAdamOptions;
  EXPECT_ERROR_TEXT(RAdam({p}, O(-0.5)), "[RAdam] Invalid learning rate: -0.5");
  EXPECT_ERROR_TEXT(RAdam({p}, O().betas(std::make_tuple(1.0, 0.5))),
                    "[RAdam] Invalid beta parameter at index 0: 1");
  EXPECT_ERROR_TEXT(RAdam({p}, O().betas(std::make_tuple(0.5, NAN))),
                    "[RAdam] Invalid beta parameter at index 1: nan");
  EXPECT_ERROR_TEXT(RAdam({p}, O().eps(-1)), "[RAdam] Invalid epsilon value: -1");
  EXPECT_ERROR_TEXT(RAdam({p}, O().weight_decay(-1)), "[RAdam] Invalid weight_decay value: -1");
  EXPECT_EQ(names_in_files(O()), (Names{"beta1", "beta2", "decoupled_weight_decay", "eps", "lr",
                                        "maximize", "weight_decay"}));
  EXPECT_EQ(names_in_files(RAdamParamState()), (Names{"exp_avg", "exp_avg_sq", "step"}));
}

TEST(Adadelta, AsInPyTorch) {
  expect_twelve_steps<Adadelta>(
      AdadeltaOptions(),
      {0.0230531090759666, 0.421328687995189, 0.730571446426077, 0.938542987050319,
       1.03500219781293, 0.292395529872275, 0.92738590191946, 0.86125679566536, 0.145499112408714});
  expect_twelve_steps<Adadelta>(AdadeltaOptions(.5).rho(.8).eps(1e-3).weight_decay(.1),
                                {-0.581196400172178, -0.000901509219896504, 0.503259538824416,
                                 0.913820039267289, 1.31276320153578, 0.281434691260087,
                                 0.867194734500273, 0.826833012428748, 0.199075225319882});
  expect_twelve_steps<Adadelta>(
      AdadeltaOptions().weight_decay(.1).maximize(true),
      {0.172404206606741, 0.5022464357955, 0.770336657351275, 0.935362644294869, 0.953910520792098,
       0.297419070555651, 0.933026758919705, 0.861878844515526, 0.136208391757073});
}
TEST(Adadelta, EveryCombinationOfOptions) {
  for (double decay : {0.0, 0.125})
    expect_formula<Adadelta>(AdadeltaOptions(0.5).rho(0.875).eps(1e-3).weight_decay(decay),
                             [&](R& w, R g, States& s, R lr, int) {
                               const R eps = static_cast<R>(1e-3);
                               g += decay * w;
                               s[0] = 0.875L * s[0] + 0.125L * g * g;
                               const R step = std::sqrt(s[1] + eps) / std::sqrt(s[0] + eps) * g;
                               s[1] = 0.875L * s[1] + 0.125L * step * step;
                               w -= lr * step;
                             });
  expect_maximize<Adadelta>(AdadeltaOptions(.5).eps(1e-3).weight_decay(.1));
}
TEST(Adadelta, RangesAndFiles) {
  const Tensor p = ones({1}).requires_grad_();
  using O = AdadeltaOptions;
  EXPECT_ERROR_TEXT(Adadelta({p}, O(-0.5)), "[Adadelta] Invalid learning rate: -0.5");
  EXPECT_ERROR_TEXT(Adadelta({p}, O().rho(1.5)), "[Adadelta] Invalid rho value: 1.5");
  EXPECT_ERROR_TEXT(Adadelta({p}, O().rho(NAN)), "[Adadelta] Invalid rho value: nan");
  EXPECT_ERROR_TEXT(Adadelta({p}, O().eps(-1)), "[Adadelta] Invalid epsilon value: -1");
  EXPECT_ERROR_TEXT(Adadelta({p}, O().weight_decay(-1)),
                    "[Adadelta] Invalid weight_decay value: -1");
  Adadelta({p}, O().rho(1));
  EXPECT_EQ(names_in_files(O()), (Names{"eps", "lr", "maximize", "rho", "weight_decay"}));
  EXPECT_EQ(names_in_files(AdadeltaParamState()), (Names{"acc_delta", "square_avg", "step"}));
}

TEST(NAdam, AsInPyTorch) {
  expect_twelve_steps<NAdam>(
      NAdamOptions(), {0.0850511467766299, 0.443183793885035, 0.738898513541512, 0.936695463440648,
                       1.01300631538807, 0.290806436196369, 0.927282239090603, 0.860037495929906,
                       0.141383399923206});
  expect_twelve_steps<NAdam>(NAdamOptions(.05)
                                 .betas(std::make_tuple(.8, .95))
                                 .eps(1e-3)
                                 .weight_decay(.1)
                                 .momentum_decay(.1),
                             {-0.561973594344149, -0.0516500961803229, 0.404467335186466,
                              0.851139809614919, 1.30193590641261, 0.189172691248963,
                              0.798293185752115, 0.771181744108929, 0.169859978075409});
  expect_twelve_steps<NAdam>(
      NAdamOptions(.05).weight_decay(.1).decoupled_weight_decay(true).maximize(true),
      {0.706994709004928, 0.891026285691318, 1.01249393782379, 0.943809335415234, 0.614454545052711,
       0.403408256993139, 1.00454539795553, 0.899228214499942, 0.130115539938839});
}
// The product is the state's: another momentum counts from then on.
TEST(NAdam, AnotherMomentum) {
  const Tensor p = sines(5).requires_grad_();
  NAdam nadam({p}, NAdamOptions(.1).momentum_decay(.1));
  for (int s = 0; s < 12; ++s) {
    *nadam.param_groups()[0].options().momentum_place() = s < 6 ? .9 : .7;
    p.mutable_grad() = sines(5, .7, .2 * s);
    nadam.step();
  }
  expect_values(p, {-1.13505609185416, -0.494488923607868, 0.227055023407616, 1.09320862487018,
                    1.94962919218982});
  const auto& state = static_cast<NAdamParamState&>(*nadam.state().at(p.impl()));
  EXPECT_NEAR(state.mu_product(), 2.07699623384994e-05, 1e-18);
}
TEST(NAdam, EveryCombinationOfOptions) {
  for (double decay : {0.0, 0.125})
    for (bool decoupled : {false, true}) {
      const auto mu = [](int t) { return 0.75L * (1 - std::pow(0.96L, t * 0.25L) / 2); };
      expect_formula<NAdam>(
          NAdamOptions(0.0625)
              .betas(std::make_tuple(0.75, 0.9375))
              .eps(1e-3)
              .weight_decay(decay)
              .momentum_decay(0.25)
              .decoupled_weight_decay(decoupled),
          [&](R& w, R g, States& s, R lr, int t) {
            if (decoupled) w *= 1 - lr * decay;
            else g += decay * w;
            s[0] = 0.75L * s[0] + 0.25L * g, s[1] = 0.9375L * s[1] + 0.0625L * g * g;
            s[2] *= mu(t);
            const R root = std::sqrt(s[1] / (1 - std::pow(0.9375L, static_cast<R>(t))));
            w -= lr * ((1 - mu(t)) / (1 - s[2]) * g + mu(t + 1) / (1 - s[2] * mu(t + 1)) * s[0]) /
                 (root + static_cast<R>(1e-3));
          },
          {0, 0, 1});
    }
  expect_maximize<NAdam>(NAdamOptions(.1).weight_decay(.1));
}

TEST(NAdam, RangesAndFiles) {
  const Tensor p = ones({1}).requires_grad_();
  using O = NAdamOptions;
  EXPECT_ERROR_TEXT(NAdam({p}, O(-0.5)), "[NAdam] Invalid learning rate: -0.5");
  EXPECT_ERROR_TEXT(NAdam({p}, O().betas(std::make_tuple(1.0, 0.5))),
                    "[NAdam] Invalid beta parameter at index 0: 1");
  EXPECT_ERROR_TEXT(NAdam({p}, O().betas(std::make_tuple(0.5, NAN))),
                    "[NAdam] Invalid beta parameter at index 1: nan");
  EXPECT_ERROR_TEXT(NAdam({p}, O().eps(-1)), "[NAdam] Invalid epsilon value: -1");
  EXPECT_ERROR_TEXT(NAdam({p}, O().weight_decay(-1)), "[NAdam] Invalid weight_decay value: -1");
  EXPECT_ERROR_TEXT(NAdam({p}, O().momentum_decay(-1)), "[NAdam] Invalid momentum_decay value: -1");
  EXPECT_EQ(names_in_files(O()), (Names{"beta1", "beta2", "decoupled_weight_decay", "eps", "lr",
                                        "maximize", "momentum_decay", "weight_decay"}));
  EXPECT_EQ(names_in_files(NAdamParamState()),
            (Names{"exp_avg", "exp_avg_sq", "mu_product", "step"}));
}

}  // namespace
}  // namespace ramet::optim
