// Optimizers against numbers from PyTorch 2.15 in float64.
#include "autograd/grad_mode.h"
#include "autograd/ops/make/factory.h"
#include "nn/layers/basic/linear.h"
#include "nn/serialize/archive.h"
#include "tests/nn/support.h"
#include "tests/optimizers.h"

namespace ramet::optim {
namespace {

// Five steps with prescribed gradients; the second parameter has none in the third step. Then both
// parameters.
template <class Make>
std::vector<double> five_steps(const std::vector<Tensor>& p, Make make, int from = 0, int to = 5) {
  auto optimizer = make(p);
  for (int s = from; s < to; ++s) {
    optimizer.zero_grad();
    const NoGradGuard off;
    p[0].mutable_grad() = sines(5, 0.7, 0.2 * s) + p[0] * 0.1;
    if (s != 2) p[1].mutable_grad() = sines(4, 0.3, 0.5 * s) + p[1] * 0.2;
    optimizer.step();
  }
  std::vector<double> out = values(p[0]);
  for (double v : values(p[1])) out.push_back(v);
  return out;
}
std::vector<Tensor> parameters() {
  return {sines(5).requires_grad_(), sines(4, 0.9, 0.3).requires_grad_()};
}

template <class Make> void expect_five_steps(Make make, const std::vector<double>& expected) {
  // Over the flat store, over parameters that cannot be moved (another tensor shares their memory),
  // and over strided ones.
  const std::vector<Tensor> flat = parameters();
  expect_values(doubles(five_steps(flat, make)), expected, 1e-13);
  const std::vector<Tensor> loose = parameters();
  const Tensor alias = loose[0].detach(), other = loose[1].detach();
  expect_values(doubles(five_steps(loose, make)), expected, 1e-13);
  EXPECT_TRUE(same_bits(alias, loose[0]));
  std::vector<Tensor> strided;
  for (const Tensor& p : parameters()) {
    const Tensor wide = zeros({p.size(0), 2}, kDouble);
    wide.select(1, 0).copy_(p.detach());
    strided.push_back(wide.select(1, 0).detach().requires_grad_());
    ASSERT_FALSE(strided.back().is_contiguous());
  }
  expect_values(doubles(five_steps(strided, make)), expected, 1e-13);
}

TEST(SGD, Plain) {
  expect_five_steps([](const std::vector<Tensor>& p) { return SGD(p, SGDOptions(0.1)); },
                    {-0.0806808991947613, 0.0187689831129877, 0.25649286341918, 0.612907098312012,
                     0.980214876641085, 0.0378501491637263, 0.592966583323147, 0.521316927354689,
                     -0.128324416582749});
}
TEST(SGD, Momentum) {
  expect_five_steps(
      [](const std::vector<Tensor>& p) { return SGD(p, SGDOptions(0.1).momentum(0.9)); },
      {-0.253362712583005, -0.632726482877367, -0.579682731253034, -0.034652647246141,
       0.80086539002703, -0.161102679210845, 0.225471273504867, 0.0789903244327955,
       -0.549582856407512});
}
TEST(SGD, DampeningAndWeightDecay) {
  expect_five_steps(
      [](const std::vector<Tensor>& p) {
        return SGD(p, SGDOptions(0.1).momentum(0.9).dampening(0.3).weight_decay(0.05));
      },
      {-0.151136639923681, -0.408111190922276, -0.342012736390368, 0.0982815672317216,
       0.759029581332657, -0.0411336742836943, 0.355113235676366, 0.208763186229755,
       -0.429383383700494});
}
TEST(SGD, Nesterov) {
  expect_five_steps(
      [](const std::vector<Tensor>& p) {
        return SGD(p, SGDOptions(0.1).momentum(0.9).nesterov(true).weight_decay(0.01));
      },
      {-0.403233178039877, -0.944933702007591, -0.914911699359658, -0.247475934883432,
       0.795246928782187, -0.365647874999483, -0.0302047284810607, -0.164714525293737,
       -0.722257319775267});
}
TEST(Adam, Plain) {
  expect_five_steps([](const std::vector<Tensor>& p) { return Adam(p, AdamOptions(0.01)); },
                    {0.0655525268240812, 0.411583138327552, 0.701443985486881, 0.890820382271213,
                     0.968185879661613, 0.259738247220025, 0.892708226685119, 0.823510145517407,
                     0.102339586643015});
}
TEST(Adam, WeightDecayAndAmsgrad) {
  expect_five_steps(
      [](const std::vector<Tensor>& p) {
        return Adam(p, AdamOptions(0.02)
                           .betas(std::make_tuple(0.8, 0.95))
                           .eps(1e-6)
                           .weight_decay(0.1)
                           .amsgrad(true));
      },
      {0.0168162004790362, 0.36081108442479, 0.651803762679181, 0.843178673957382,
       0.929635817372949, 0.221037009536643, 0.852280512491702, 0.783581976521045,
       0.0643428999873482});
}
TEST(AdamW, Plain) {
  expect_five_steps(
      [](const std::vector<Tensor>& p) { return AdamW(p, AdamWOptions(0.02).weight_decay(0.1)); },
      {0.0205842890204886, 0.357186259214395, 0.644537026998631, 0.833634620936999,
       0.927342494990332, 0.221811269026238, 0.846168734317703, 0.777172903384899,
       0.0627153265085512});
}
TEST(AdamW, Amsgrad) {
  expect_five_steps(
      [](const std::vector<Tensor>& p) {
        return AdamW(p, AdamWOptions(0.02).betas(std::make_tuple(0.7, 0.9)).amsgrad(true));
      },
      {0.0140670814299116, 0.359728103154488, 0.651327600171399, 0.844625867458445,
       0.949821004354897, 0.219460526347087, 0.851011932749326, 0.782919744689711,
       0.0654715174505799});
}

TEST(RMSprop, Plain) {
  expect_five_steps([](const std::vector<Tensor>& p) { return RMSprop(p, RMSpropOptions()); },
                    {-0.328263944702396, 0.111015007369415, 0.437548959972799, 0.672654938533134,
                     0.937191735296741, -0.0554536111987314, 0.618805453682828, 0.582573683031881,
                     -0.0983045917335164});
}
TEST(RMSprop, WeightDecay) {
  expect_five_steps(
      [](const std::vector<Tensor>& p) {
        return RMSprop(p, RMSpropOptions(0.02).alpha(0.9).eps(1e-4).weight_decay(0.1));
      },
      {-0.168264009503584, 0.234050054154632, 0.545200506433163, 0.760001757538089,
       0.925822807002677, 0.0726481906011042, 0.732017749555959, 0.681433382257731,
       -0.014357581665728});
}
TEST(RMSprop, Momentum) {
  expect_five_steps(
      [](const std::vector<Tensor>& p) { return RMSprop(p, RMSpropOptions(0.02).momentum(0.9)); },
      {-2.29762413207847, -1.53642492284598, -1.09698785462061, -0.716428476661895,
       0.161651557593744, -1.38162819242834, -0.597670011246515, -0.551913938686292,
       -1.13872983162579});
}
TEST(RMSprop, Centered) {
  expect_five_steps(
      [](const std::vector<Tensor>& p) {
        return RMSprop(p, RMSpropOptions(0.02).alpha(0.8).centered(true));
      },
      {-0.139042419866323, 0.232173388617182, 0.544295766376019, 0.770081881309403,
       0.967566928477273, 0.102620885427692, 0.746689796530656, 0.694505174786679,
       0.000872754694058822});
}
TEST(RMSprop, All) {
  expect_five_steps(
      [](const std::vector<Tensor>& p) {
        return RMSprop(
            p, RMSpropOptions(0.005).alpha(0.7).eps(1e-3).weight_decay(0.05).momentum(0.5).centered(
                   true));
      },
      {0.0191572276024262, 0.368130944458872, 0.664682521750489, 0.866237681645792,
       0.971313803401656, 0.227619641081128, 0.863241783497573, 0.798541990509655,
       0.0854638292290693});
}

// Each combination of options against the formula in long double, in float32 and float64. It covers
// the first steps, steps on the state of earlier ones, and another rate.
TEST(RMSprop, EveryCombinationOfOptions) {
  using R = long double;
  for (ScalarType t : {kFloat, kDouble})
    for (int options = 0; options < 8; ++options) {
      const bool decays = options & 1, with_momentum = options & 2, centered = options & 4;
      const double decay = decays ? 0.1 : 0, momentum = with_momentum ? 0.75 : 0;
      const Tensor p = sines(131).to(t).requires_grad_();
      RMSprop rmsprop({p}, RMSpropOptions(0.01)
                               .alpha(0.875)
                               .eps(1e-3)
                               .weight_decay(decay)
                               .momentum(momentum)
                               .centered(centered));
      std::vector<double> start = values(p);
      std::vector<R> want(start.begin(), start.end()), v(131), buffer(131), mean(131);
      for (int step = 0; step < 6; ++step) {
        const double lr = step < 3 ? 0.01 : 0.02;
        rmsprop.param_groups()[0].options().set_lr(lr);
        p.mutable_grad() = sines(131, 0.7, 0.9 * step).to(t);
        const std::vector<double> g = values(p.grad());
        rmsprop.step();
        for (size_t i = 0; i < want.size(); ++i) {
          const R d = g[i] + decay * want[i];
          v[i] = 0.875L * v[i] + 0.125L * d * d;
          mean[i] = 0.875L * mean[i] + 0.125L * d;
          const R update =
              d / (std::sqrt(centered ? v[i] - mean[i] * mean[i] : v[i]) + static_cast<R>(1e-3));
          buffer[i] = momentum * buffer[i] + update;
          want[i] -= lr * (with_momentum ? buffer[i] : update);
        }
      }
      const double tolerance = t == kFloat ? 1e-6 : 1e-14;
      const std::vector<double> got = values(p);
      for (size_t i = 0; i < want.size(); ++i)
        ASSERT_NEAR(got[i], static_cast<double>(want[i]),
                    tolerance * std::max(1.0, std::abs(static_cast<double>(want[i]))))
            << "options " << options << ", " << t << ", " << i;
      const auto& state = static_cast<RMSpropParamState&>(*rmsprop.state().at(p.impl()));
      EXPECT_EQ(state.step(), 6);
      EXPECT_EQ(state.momentum_buffer().defined(), with_momentum);
      EXPECT_EQ(state.grad_avg().defined(), centered);
    }
}

TEST(Optimizer, AParameterWithoutGradientIsNotTouched) {
  Tensor a = ones({3}).requires_grad_(), b = ones({3}).requires_grad_();
  AdamW optimizer({a, b}, AdamWOptions(0.1).weight_decay(0.5));
  a.sum().backward();
  const uint32_t version = b.version();
  optimizer.step();
  expect_values(b, {1, 1, 1});
  EXPECT_EQ(b.version(), version);
  EXPECT_EQ(optimizer.state().size(), 1u);
  EXPECT_EQ(optimizer.state().count(a.impl()), 1u);
  EXPECT_LT(values(a)[0], 1);
}

TEST(Optimizer, AStepIsSeenAsAChangeOfEachParameter) {
  nn::Linear linear(2, 2);
  SGD optimizer(linear->parameters(), 0.1);
  const Tensor x = ones({1, 2}).requires_grad_();
  const Tensor y = linear(x).sum();
  y.backward({}, /*retain_graph=*/true);
  optimizer.step();
  EXPECT_ERROR_TEXT(y.backward(), "modified by an inplace operation");
}

TEST(Optimizer, TheClosureRunsWithGradientsOn) {
  Tensor w = ones({1}).requires_grad_();
  SGD optimizer({w}, 0.5);
  const NoGradGuard off;
  const Tensor loss = optimizer.step([&] {
    optimizer.zero_grad();
    Tensor l = (w * w).sum();
    l.backward();
    return l;
  });
  EXPECT_EQ(loss.item<double>(), 1);
  expect_values(w, {0});
}

TEST(Optimizer, GroupsHaveOptionsAndInheritTheRest) {
  Tensor a = ones({1}).requires_grad_(), b = ones({1}).requires_grad_(),
         c = ones({1}).requires_grad_();
  std::vector<OptimizerParamGroup> groups;
  groups.emplace_back(std::vector<Tensor>{a});
  groups.emplace_back(std::vector<Tensor>{b},
                      std::make_unique<SGDOptions>(SGDOptions(0.25).weight_decay(1)));
  SGD optimizer(groups, SGDOptions(0.5).momentum(0.9));
  const auto options = [&](size_t g) {
    return static_cast<SGDOptions&>(optimizer.param_groups()[g].options());
  };
  EXPECT_EQ(options(1).lr(), 0.25);
  EXPECT_EQ(options(1).momentum(), 0.9);
  EXPECT_EQ(options(1).weight_decay(), 1);
  EXPECT_EQ(options(0).weight_decay(), 0);
  optimizer.add_param_group(OptimizerParamGroup({c}));
  EXPECT_EQ(optimizer.size(), 3u);
  for (const Tensor& p : {a, b, c}) p.mutable_grad() = ones({1});
  static_cast<SGDOptions&>(optimizer.param_groups()[2].options()).lr(1);
  optimizer.step();
  expect_values(a, {0.5});
  expect_values(b, {0.5});
  expect_values(c, {0});
  optimizer.param_groups()[0].options().set_lr(2);
  EXPECT_EQ(options(0).get_lr(), 2);
}

TEST(Optimizer, ChecksParametersAndOptions) {
  Tensor a = ones({1}).requires_grad_();
  EXPECT_ERROR_TEXT(SGD({a, a}, 0.1), "some parameters appear in more than one parameter group");
  EXPECT_ERROR_TEXT(SGD({a * 2}, 0.1), "can't optimize a non-leaf Tensor");
  EXPECT_ERROR_TEXT(SGD({a}, -1), "Invalid learning rate: -1");
  EXPECT_ERROR_TEXT(SGD({a}, SGDOptions(1).nesterov(true)),
                    "Nesterov momentum requires a momentum and zero dampening");
  EXPECT_ERROR_TEXT(Adam({a}, AdamOptions().betas(std::make_tuple(0.5, 1.0))),
                    "Invalid beta parameter at index 1: 1");
  EXPECT_ERROR_TEXT(AdamW({a}, AdamWOptions().eps(-1)), "Invalid epsilon value: -1");
}

TEST(Optimizer, HalfPrecisionParameters) {
  Tensor w = ones({4}, kBFloat16).requires_grad_();
  w.mutable_grad() = ones({4}, kBFloat16);
  Adam({w}, AdamOptions(0.25)).step();
  expect_values(w, {0.75, 0.75, 0.75, 0.75}, 1e-2);
  w.mutable_grad() = ones({4}, kBFloat16);
  SGD({w}, SGDOptions(0.25).momentum(0.5)).step();
  expect_values(w, {0.5, 0.5, 0.5, 0.5}, 1e-2);
}

// Gaps, another order of dimensions, gradients of another layout or dtype: the same bits, in every
// dtype, since one formula computes them.
TEST(Optimizer, LayoutsChangeNoBits) {
  for (ScalarType t : {kFloat, kDouble, kHalf, kBFloat16}) {
    const Tensor start = sines(600).view({20, 30}).to(t),
                 row = sines(600, 0.7).view({20, 30}).to(t);
    const Tensor column = row.t().contiguous().t();
    const auto parameters = [&] {
      const Tensor wide = zeros({20, 30, 2}, t);
      wide.select(2, 0).copy_(start);
      std::vector<Tensor> p{start.clone(), start.clone(), start.t().contiguous().t(),
                            wide.select(2, 0), wide.select(2, 0).clone().t().contiguous().t()};
      for (Tensor& one : p) one = one.detach().requires_grad_();
      return p;
    };
    for (const testing::AnyOptimizer& any : testing::all_optimizers()) {
      const std::vector<Tensor> p = parameters();
      const auto optimizer = any(p);
      for (int step = 1; step < 4; ++step) {
        for (size_t i = 0; i < p.size(); ++i)
          p[i].mutable_grad() = (i == 0 || i == 3 ? row : column).mul(step);
        optimizer->step();
      }
      for (size_t i = 1; i < p.size(); ++i)
        EXPECT_TRUE(p[i].equal(p[0])) << any.name << ", parameter " << i << ", " << t;
      EXPECT_FALSE(p[0].equal(start));
    }
  }
}

// A parameter that was cast keeps its state, in the state's dtype.
TEST(Optimizer, AStateOfAnotherDtype) {
  const Tensor p = ones({3}).requires_grad_();
  Adam adam({p}, AdamOptions(0.25));
  p.mutable_grad() = ones({3});
  adam.step();
  p.set_data(p.detach().to(kDouble));
  p.mutable_grad() = full({3}, 3, kDouble);
  adam.step();
  const auto& state = static_cast<AdamParamState&>(*adam.state().at(p.impl()));
  EXPECT_EQ(state.exp_avg().scalar_type(), kFloat);
  EXPECT_EQ(state.step(), 2);
  expect_values(state.exp_avg(), {0.39, 0.39, 0.39}, 1e-6);
  const double m = 0.39 / (1 - 0.81), v = (0.001 * 0.999 + 0.009) / (1 - 0.999 * 0.999),
               expected = 0.75 - 0.25 * m / std::sqrt(v);
  expect_values(p, {expected, expected, expected}, 1e-6);
}

TEST(Optimizer, AnEmptyParameter) {
  for (const testing::AnyOptimizer& any : testing::all_optimizers()) {
    const Tensor p = zeros({0, 3}).requires_grad_(), q = ones({2}).requires_grad_();
    const auto optimizer = any({p, q});
    p.mutable_grad() = zeros({0, 3}), q.mutable_grad() = ones({2});
    optimizer->step();
    EXPECT_LT(values(q)[1], 1) << any.name;
    EXPECT_EQ(p.numel(), 0);
  }
}

// A gradient that is no number reaches the parameter, and no other element. (Rprop's:
// Rprop.NotANumber.)
TEST(Optimizer, NotANumber) {
  for (const testing::AnyOptimizer& any : testing::all_optimizers()) {
    const Tensor p = ones({2}).requires_grad_();
    const auto optimizer = any({p});
    p.mutable_grad() = tensor({NAN, 1.0f});
    optimizer->step();
    EXPECT_TRUE(std::isnan(values(p)[0]) || std::string(any.name) == "Rprop") << any.name;
    EXPECT_LT(values(p)[1], 1) << any.name;
  }
}

// Three steps, a file, and two of an optimizer that is made with other options.
TEST(Optimizer, EachGoesOnFromAFile) {
  for (const testing::AnyOptimizer& any : testing::all_optimizers()) {
    const auto steps = [](Optimizer& optimizer, const Tensor& p, int from, int to) {
      for (int s = from; s < to; ++s) {
        p.mutable_grad() = sines(9, 0.7, 0.4 * s).to(kFloat);
        optimizer.step();
      }
    };
    const Tensor p = sines(9).to(kFloat).requires_grad_();
    const auto whole = any({p});
    steps(*whole, p, 0, 3);
    whole->param_groups()[0].options().set_lr(0.3);
    serialize::OutputArchive archive;
    whole->save(archive);
    std::stringstream file;
    archive.save_to(file);
    const Tensor q = p.detach().clone().requires_grad_();
    steps(*whole, p, 3, 5);
    const auto resumed = any({q});
    serialize::InputArchive in;
    in.load_from(file);
    resumed->load(in);
    EXPECT_EQ(resumed->param_groups()[0].options().get_lr(), 0.3);
    steps(*resumed, q, 3, 5);
    EXPECT_TRUE(q.equal(p)) << any.name;
  }
}

TEST(Optimizer, ADtypeThatHasNoSteps) {
  Tensor p = ones({2}, kLong);
  SGD sgd({p}, 1);
  p.mutable_grad() = ones({2}, kLong);
  EXPECT_ERROR_TEXT(sgd.step(), "the dtype of a parameter: got");
}

TEST(Options, Equality) {
  EXPECT_TRUE(AdamOptions() == AdamOptions(1e-3));
  EXPECT_FALSE(AdamOptions() == AdamOptions().betas(std::make_tuple(0.9, 0.99)));
  EXPECT_FALSE(AdamOptions() == AdamOptions().amsgrad(true));
  EXPECT_FALSE(AdamWOptions() == AdamWOptions().eps(1e-7));
  EXPECT_TRUE(SGDOptions(1).momentum(0.5) == SGDOptions(1).momentum(0.5));
  EXPECT_FALSE(SGDOptions(1).dampening(0.5) == SGDOptions(1));
}

TEST(Options, AGroupTakesWhatHasItsDefault) {
  const Tensor a = ones({1}).requires_grad_();
  std::vector<OptimizerParamGroup> groups;
  groups.emplace_back(std::vector<Tensor>{a},
                      std::make_unique<AdamWOptions>(AdamWOptions().eps(1)));
  AdamW adam(
      groups,
      AdamWOptions(0.5).betas(std::make_tuple(0.25, 0.75)).eps(2).weight_decay(3).amsgrad(true));
  EXPECT_TRUE(
      static_cast<AdamWOptions&>(adam.param_groups()[0].options()) ==
      AdamWOptions(0.5).betas(std::make_tuple(0.25, 0.75)).eps(1).weight_decay(3).amsgrad(true));
}

TEST(Options, Ranges) {
  const Tensor a = ones({1}).requires_grad_();
  const auto betas = [](double one, double two) {
    return AdamOptions().betas(std::make_tuple(one, two));
  };
  EXPECT_ERROR_TEXT(Adam({a}, AdamOptions(NAN)), "[Adam] Invalid learning rate: nan");
  EXPECT_ERROR_TEXT(Adam({a}, betas(-0.5, 0.5)), "[Adam] Invalid beta parameter at index 0: -0.5");
  EXPECT_ERROR_TEXT(Adam({a}, betas(0.5, NAN)), "[Adam] Invalid beta parameter at index 1: nan");
  EXPECT_ERROR_TEXT(AdamW({a}, AdamWOptions().weight_decay(-2)),
                    "[AdamW] Invalid weight_decay value: -2");
  EXPECT_ERROR_TEXT(SGD({a}, SGDOptions(1).momentum(-1)), "[SGD] Invalid momentum value: -1");
  EXPECT_ERROR_TEXT(SGD({a}, SGDOptions(1).weight_decay(-1)),
                    "[SGD] Invalid weight_decay value: -1");
  using R = RMSpropOptions;
  EXPECT_ERROR_TEXT(RMSprop({a}, R(-0.5)), "[RMSprop] Invalid learning rate: -0.5");
  EXPECT_ERROR_TEXT(RMSprop({a}, R().alpha(-1)), "[RMSprop] Invalid alpha value: -1");
  EXPECT_ERROR_TEXT(RMSprop({a}, R().alpha(NAN)), "[RMSprop] Invalid alpha value: nan");
  EXPECT_ERROR_TEXT(RMSprop({a}, R().eps(-1)), "[RMSprop] Invalid epsilon value: -1");
  EXPECT_ERROR_TEXT(RMSprop({a}, R().momentum(-1)), "[RMSprop] Invalid momentum value: -1");
  EXPECT_ERROR_TEXT(RMSprop({a}, R().weight_decay(-1)), "[RMSprop] Invalid weight_decay value: -1");
  Adam({a}, betas(0, 0).eps(0)), RMSprop({a}, R(0).alpha(2).eps(0)),
      SGD({a}, SGDOptions(INFINITY).dampening(-1));
}

// What files have, by name: those that exist must be read.
TEST(Optimizer, NamesInFiles) {
  const auto names = [](const auto& thing) {
    serialize::OutputArchive out;
    thing.serialize(out);
    std::stringstream file;
    out.save_to(file);
    serialize::InputArchive in;
    in.load_from(file);
    return in.keys();
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names(SGDOptions(1)),
            (Names{"dampening", "lr", "momentum", "nesterov", "weight_decay"}));
  EXPECT_EQ(names(AdamOptions()),
            (Names{"amsgrad", "beta1", "beta2", "eps", "lr", "weight_decay"}));
  EXPECT_EQ(names(AdamWOptions()), names(AdamOptions()));
  EXPECT_EQ(names(RMSpropOptions()),
            (Names{"alpha", "centered", "eps", "lr", "momentum", "weight_decay"}));
  EXPECT_EQ(names(RMSpropParamState()), (Names{"square_avg", "step"}));
  EXPECT_EQ(names(RMSpropParamState().grad_avg(ones(1)).momentum_buffer(ones(1))),
            (Names{"grad_avg", "momentum_buffer", "square_avg", "step"}));
  EXPECT_EQ(names(SGDParamState()), Names());
  EXPECT_EQ(names(SGDParamState().momentum_buffer(ones(1))), Names{"momentum_buffer"});
  EXPECT_EQ(names(AdamParamState()), (Names{"exp_avg", "exp_avg_sq", "step"}));
  EXPECT_EQ(names(AdamParamState().max_exp_avg_sq(ones(1))),
            (Names{"exp_avg", "exp_avg_sq", "max_exp_avg_sq", "step"}));
}

TEST(Optimizer, ResumesBitForBit) {
  const auto make = [](const std::vector<Tensor>& p) {
    return Adam(p, AdamOptions(0.02).amsgrad(true).weight_decay(0.1));
  };
  const std::vector<Tensor> whole = parameters(), cut = parameters();
  const std::vector<double> expected = five_steps(whole, make);

  std::stringstream file;
  {
    auto optimizer = make(cut);
    for (int s = 0; s < 3; ++s) {
      optimizer.zero_grad();
      const NoGradGuard off;
      cut[0].mutable_grad() = sines(5, 0.7, 0.2 * s) + cut[0] * 0.1;
      if (s != 2) cut[1].mutable_grad() = sines(4, 0.3, 0.5 * s) + cut[1] * 0.2;
      optimizer.step();
    }
    static_cast<AdamOptions&>(optimizer.param_groups()[0].options()).lr(0.02);
    serialize::OutputArchive archive;
    archive.write("weights", cut[0]);
    optimizer.save(archive);
    archive.save_to(file);
  }
  const std::vector<Tensor> resumed{cut[0].detach().clone().requires_grad_(),
                                    cut[1].detach().clone().requires_grad_()};
  const std::vector<double> got = five_steps(
      resumed,
      [&](const std::vector<Tensor>& p) {
        Adam optimizer(p, AdamOptions(0.5));
        serialize::InputArchive archive;
        archive.load_from(file);
        optimizer.load(archive);
        EXPECT_EQ(optimizer.param_groups()[0].options().get_lr(), 0.02);
        return optimizer;
      },
      3, 5);
  EXPECT_EQ(got, expected);
}

TEST(Optimizer, LoadRefusesWhatDoesNotFit) {
  Tensor a = ones({2}).requires_grad_(), b = ones({2}).requires_grad_();
  Adam one({a}, 0.1), two({a, b}, 0.2);
  std::stringstream file;
  serialize::OutputArchive archive;
  one.save(archive);
  archive.save_to(file);
  serialize::InputArchive in;
  in.load_from(file);
  EXPECT_ERROR_TEXT(two.load(in),
                    "doesn't match the size of the optimizer's group 0: got 1, expected 2");
  EXPECT_EQ(two.param_groups()[0].options().get_lr(), 0.2);
}

TEST(Optimizer, ARefusedLoadChangesNothing) {
  const auto archive_of = [](Optimizer& optimizer) {
    serialize::OutputArchive archive;
    optimizer.save(archive);
    std::stringstream file;
    archive.save_to(file);
    serialize::InputArchive in;
    in.load_from(file);
    return in;
  };
  const auto stepped = [](IntArrayRef sizes, const auto& make) {
    const Tensor p = ones(sizes).requires_grad_();
    auto optimizer = make(p);
    (p * 2).sum().backward();
    optimizer.step();
    return std::pair(p, std::move(optimizer));
  };
  auto [p, adam] = stepped({2}, [](const Tensor& t) { return Adam({t}, 0.1); });
  auto [q, adamw] = stepped({2}, [](const Tensor& t) { return AdamW({t}, 0.2); });
  auto [r, large] = stepped({3}, [](const Tensor& t) { return Adam({t}, 0.3); });
  auto in = archive_of(adam);
  EXPECT_ERROR_TEXT(adamw.load(in),
                    "another optimizer's: got ramet::optim::AdamOptions, expected "
                    "ramet::optim::AdamWOptions");
  EXPECT_EQ(static_cast<AdamWOptions&>(adamw.param_groups()[0].options()).weight_decay(), 1e-2);
  auto again = archive_of(adam);
  EXPECT_ERROR_TEXT(large.load(again), "expected the sizes of");
  EXPECT_EQ(large.param_groups()[0].options().get_lr(), 0.3);
  const std::vector<double> before = values(r);
  large.step();
  EXPECT_NE(values(r), before);
}

}  // namespace
}  // namespace ramet::optim
