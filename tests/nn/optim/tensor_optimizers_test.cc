// Optimizers that are no formula of an element, against numbers from PyTorch 2.15. LBFGS treats all
// parameters as one vector, and Muon makes matrices orthogonal.
#include "autograd/autograd.h"
#include "autograd/ops.h"
#include "nn/optim/lbfgs.h"
#include "nn/optim/muon.h"
#include "tests/nn/optim/prescribed_steps.h"

namespace ramet::optim {
namespace {

using testing::pass_on;

/// (1 - x)^2 + 100 (y - x^2)^2 from (-1.2, 1).
struct Rosenbrock {
  explicit Rosenbrock(const LBFGSOptions& options)
      : p{full({1}, -1.2, kDouble).requires_grad_(), ones({1}, kDouble).requires_grad_()},
        lbfgs(p, options),
        sign(options.maximize() ? -1 : 1) {}
  Tensor loss() {
    ++calls;
    lbfgs.zero_grad();
    const Tensor valley = p[1] - p[0] * p[0], slope = 1 - p[0];
    const Tensor l = (slope * slope + valley * valley * 100).sum() * sign;
    l.backward();
    return l;
  }
  double step() {
    return lbfgs.step([this] { return loss(); }).item<double>();
  }
  LBFGSParamState& state() { return static_cast<LBFGSParamState&>(*lbfgs.state().at(p[0].impl())); }
  std::vector<Tensor> p;
  LBFGS lbfgs;
  double sign;
  int calls = 0;
};

/// The first loss of each step, and where it ends; how often the loss was computed, and iterations.
void expect_rosenbrock(const LBFGSOptions& options, const std::vector<double>& expected, int calls,
                       int64_t iterations, double tolerance = 1e-10) {
  Rosenbrock r(options);
  std::vector<double> got;
  while (got.size() < expected.size()) {
    got.push_back(r.step());
    for (const Tensor& p : r.p) got.push_back(p.item<double>());
  }
  expect_first_values(doubles(got), expected, tolerance);
  EXPECT_EQ(r.calls, calls);
  EXPECT_EQ(r.state().func_evals(), calls);
  EXPECT_EQ(r.state().n_iter(), iterations);
}
LBFGSOptions wolfe(int64_t max_iter) {
  return LBFGSOptions().max_iter(max_iter).line_search_fn("strong_wolfe");
}

TEST(LBFGS, RosenbrockAsInPyTorch) {
  expect_rosenbrock(wolfe(4),
                    {24.2, -1.02887953483197, 1.06550295168486, 4.12112677576564,
                     -0.943127801208324, 0.852966272541092, 3.90914427952064, -0.516027772885202,
                     0.226545825790235, 2.4562577215805, -0.256089576896647, 0.0372619816162237},
                    20, 13);
  expect_rosenbrock(wolfe(4).history_size(2),
                    {24.2, -1.02887953483197, 1.06550295168486, 4.12112677576564,
                     -0.888128305847943, 0.741017751499924, 3.79307425127235, -0.512530907613672,
                     0.218768595746617, 2.48064054967415, -0.254234222805284, 0.0496259694183834,
                     1.59563070576467, 0.0320392952438503, -0.0025686396725258},
                    25, 16);
  expect_rosenbrock(
      wolfe(4).lr(.5).maximize(true),
      {-24.2, -1.01001019703927, 1.06874081420153, -4.27653353335124, -1.02380290657157,
       1.05714720541058, -4.1038329331126, -1.00984492672499, 1.01064284557605},
      15, 12);
  expect_rosenbrock(LBFGSOptions(.01).max_iter(5),
                    {24.2, -1.18761149849989, 1.00558588986013, 21.1747964871127, -1.18153177898886,
                     1.00975886352084, 19.6786423357021, -1.17599619702973, 1.01464666981995,
                     18.3009500949622, -1.17094811637972, 1.02007374398029},
                    20, 20);
}
// What is left of max_eval ends a line search, at the best point; none is left in the last case.
TEST(LBFGS, MaxEval) {
  expect_rosenbrock(wolfe(10).max_eval(4),
                    {24.2, -1.02845657455623, 1.06818745574868, 4.12558671367404, -1.0203084803941,
                     1.03527698664675, 4.08495537632738, -0.880213164965873, 0.727477206071998},
                    12, 8);
  expect_rosenbrock(wolfe(10).max_eval(1), {24.2, -1.2, 1, 24.2, -1.2, 1}, 4, 2);
  expect_rosenbrock(wolfe(10).max_eval(-3), {24.2, -1.2, 1}, 2, 1);
  EXPECT_EQ(*static_cast<LBFGSOptions&>(Rosenbrock(wolfe(7)).lbfgs.defaults()).max_eval(), 8);
  const auto most = wolfe(INT64_MAX);
  EXPECT_EQ(*static_cast<LBFGSOptions&>(Rosenbrock(most).lbfgs.defaults()).max_eval(), INT64_MAX);
}
TEST(LBFGS, FindsTheMinimum) {
  expect_rosenbrock(wolfe(100), {24.2, 0.999981421079137, 0.999961965181099, 4.22145751126331e-10},
                    44, 36, 1e-7);
  Rosenbrock r(wolfe(200).tolerance_change(1e-16).tolerance_grad(1e-12));
  r.step();
  expect_values(r.p[0], {1}, 1e-9);
  expect_values(r.p[1], {1}, 1e-9);
  const int calls = r.calls;  // no gradient is larger than tolerance_grad now
  r.step();
  EXPECT_EQ(r.calls, calls + 1);
}

/// tanh(x w + b) fitted to y; `w` may lie otherwise, one parameter has no part in it.
struct Regression {
  Regression(const Tensor& w, const LBFGSOptions& options)
      : p{w, sines(4).requires_grad_(), sines(3, .9, .3).requires_grad_()}, lbfgs(p, options) {}
  std::vector<double> steps(int n) {
    std::vector<double> losses;
    for (int i = 0; i < n; ++i)
      losses.push_back(lbfgs
                           .step([this] {
                             lbfgs.zero_grad();
                             const Tensor d = tanh(matmul(x, p[0]) + p[2]) - y;
                             const Tensor loss = (d * d).mean();
                             loss.backward();
                             return loss;
                           })
                           .item<double>());
    return losses;
  }
  void expect(const std::vector<double>& w, const std::vector<double>& b, double tolerance) {
    expect_values(p[0], w, tolerance);
    expect_values(p[2], b, tolerance);
    EXPECT_TRUE(same_bits(p[1], sines(4)));
  }
  Tensor x = sines(16, .7, .2).view({8, 2}), y = sines(24, 1.3, .5).view({8, 3}) * .8;
  std::vector<Tensor> p;
  LBFGS lbfgs;
};
Tensor weights() { return sines(6).view({2, 3}).clone().requires_grad_(); }

TEST(LBFGS, RegressionAsInPyTorch) {
  Regression plain(weights(), LBFGSOptions().max_iter(5));
  expect_values(doubles(plain.steps(4)),
                {0.834882643510358, 1.05865984353234, 1.03714907546478, 1.18922001128229}, 1e-9);
  Regression searched(weights(), wolfe(5));
  expect_values(doubles(searched.steps(4)),
                {0.834882643510358, 0.32273847771167, 0.311631440891368, 0.311589115527347}, 1e-10);
  searched.expect({-0.15965143036939, -0.172794970212837, 0.0727487599600488, 0.0709105553674228,
                   0.272348951836469, 0.0765884800685749},
                  {0.0278311113119877, 0.00684656561808545, -0.0237440859454091}, 1e-9);
  Regression few(weights(), LBFGSOptions(.5).max_iter(20).history_size(3));
  expect_values(doubles(few.steps(3)), {0.834882643510358, 0.311589546579452, 0.311588926791412},
                1e-10);
}
TEST(LBFGS, OtherLayoutsAndDtypes) {
  Regression row(weights(), wolfe(5));
  row.steps(4);
  const Tensor wide = zeros({3, 2, 2}, kDouble);
  wide.select(2, 0).t().copy_(weights().detach());
  Regression strided(wide.select(2, 0).t().detach().requires_grad_(), wolfe(5));
  ASSERT_FALSE(strided.p[0].is_contiguous());
  strided.steps(4);
  strided.expect(values(row.p[0]), values(row.p[2]), 1e-12);
  EXPECT_EQ(wide.select(2, 1).abs().sum().item<double>(), 0);
  // One vector of float64 where one parameter is.
  Regression mixed(weights().detach().to(kFloat).requires_grad_(), wolfe(5));
  mixed.x = mixed.x.to(kFloat), mixed.y = mixed.y.to(kFloat);
  mixed.p[2] = mixed.lbfgs.parameters()[2] = sines(3, .9, .3).to(kFloat).requires_grad_();
  mixed.steps(4);
  mixed.expect(values(row.p[0]), values(row.p[2]), 1e-3);
  EXPECT_EQ(mixed.p[0].scalar_type(), kFloat);
}

TEST(LBFGS, ResumesBitForBit) {
  Rosenbrock whole(wolfe(3).history_size(4)), first(wolfe(3).history_size(4));
  for (int i = 0; i < 5; ++i) whole.step();
  for (int i = 0; i < 3; ++i) first.step();
  Rosenbrock second(LBFGSOptions(7));
  for (size_t i = 0; i < 2; ++i) second.p[i].detach().copy_(first.p[i]);
  pass_on(first.lbfgs, second.lbfgs);
  for (int i = 0; i < 2; ++i) second.step();
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(same_bits(second.p[i], whole.p[i]));
  EXPECT_EQ(second.state().func_evals(), whole.state().func_evals());
  // before the first step
  Rosenbrock fresh(wolfe(3)), other(wolfe(3));
  pass_on(fresh.lbfgs, other.lbfgs);
  EXPECT_TRUE(other.lbfgs.state().empty());

  Tensor one = ones({1}, kDouble).requires_grad_();
  LBFGS small({one, ones({2}, kDouble).requires_grad_()}, wolfe(2));
  EXPECT_ERROR_TEXT(pass_on(first.lbfgs, small), "[LBFGS] loaded state: got ");
  EXPECT_TRUE(small.state().empty());
}
// A closure that throws, in the first line search or later: nothing has changed.
TEST(LBFGS, AStepIsWhole) {
  for (const LBFGSOptions& options : {wolfe(5), LBFGSOptions(.01).max_iter(5)})
    for (int at = 1; at <= 4; ++at) {
      Rosenbrock reference(options), r(options);
      for (int i = 0; i < 2; ++i) reference.step();
      r.step();
      const double x = r.p[0].item<double>();
      const int64_t evals = r.state().func_evals();
      int calls = 0;
      EXPECT_ERROR_TEXT(r.lbfgs.step([&] {
        if (++calls == at) fail("loss", "no more");
        return r.loss();
      }),
                        "no more");
      EXPECT_EQ(r.p[0].item<double>(), x);
      EXPECT_EQ(r.state().func_evals(), evals);
      r.step();
      EXPECT_EQ(r.p[0].item<double>(), reference.p[0].item<double>());
    }
}
// A line search goes back from where the loss is no number; PyTorch's goes on into it.
TEST(LBFGS, NotANumber) {
  const Tensor p = full({1}, 0.5, kDouble).requires_grad_();
  LBFGS lbfgs({p}, wolfe(20).lr(100));
  double last = 0;
  const auto loss = [&] {
    lbfgs.zero_grad();
    const Tensor l = (p - p.log()).sum();  // its minimum is at 1; NaN below 0
    l.backward();
    last = l.item<double>();
    return l;
  };
  for (int i = 0; i < 3; ++i) lbfgs.step(loss);
  expect_values(p, {1}, 1e-5);
  // with no number anywhere it stays where it is
  const Tensor q = full({1}, -1, kDouble).requires_grad_();
  LBFGS lost({q}, wolfe(4));
  lost.step([&] {
    lost.zero_grad();
    const Tensor l = q.log().sum();
    l.backward();
    return l;
  });
  EXPECT_EQ(q.item<double>(), -1);
}

TEST(LBFGS, Refusals) {
  const Tensor p = ones({2}).requires_grad_(), q = ones({2}).requires_grad_();
  using Groups = std::vector<OptimizerParamGroup>;
  EXPECT_ERROR_TEXT(LBFGS(Groups{std::vector<Tensor>{p}, std::vector<Tensor>{q}}),
                    "[LBFGS] LBFGS doesn't support per-parameter options (parameter groups): got 2 "
                    "groups, expected 1");
  EXPECT_ERROR_TEXT(LBFGS({p}, LBFGSOptions(-1)), "[LBFGS] Invalid learning rate: -1");
  EXPECT_ERROR_TEXT(LBFGS({p}, LBFGSOptions().history_size(0)),
                    "[LBFGS] history_size: got 0, expected at least 1");
  EXPECT_ERROR_TEXT(LBFGS({p}, LBFGSOptions().line_search_fn("weak")),
                    "[LBFGS] only 'strong_wolfe' is supported: got line_search_fn 'weak'");
  LBFGS lbfgs({p});
  EXPECT_ERROR_TEXT(lbfgs.step(nullptr), "[LBFGS] LBFGS requires a closure function: got none");
  EXPECT_ERROR_TEXT(lbfgs.step([&] {
    p.mutable_grad() = ones({3});
    return ones({});
  }),
                    "[LBFGS] the gradient of ");
  lbfgs.add_param_group(std::vector<Tensor>{q});
  EXPECT_ERROR_TEXT(lbfgs.step([] { return ones({}); }), "got 2 groups, expected 1");
  EXPECT_TRUE(lbfgs.state().empty());
  LBFGS none(std::vector<Tensor>{});
  EXPECT_EQ(none.step([] { return full({}, 3); }).item<float>(), 3);
  LBFGS empty({ones({0}).requires_grad_()});
  EXPECT_EQ(empty.step([] { return full({}, 4); }).item<float>(), 4);
  // steps of no iteration
  LBFGS idle({q}, LBFGSOptions().max_iter(0));
  idle.step([&] { return q.mutable_grad() = ones({2}), ones({}); });
  expect_values(q, {1, 1});
}

// A step is bfloat16 products times the rate: where sums round otherwise than PyTorch's, one of
// their 256 steps lies between.
TEST(Muon, AsInPyTorch) {
  const auto expect = [](const MuonOptions& options, int steps, const std::vector<double>& wanted,
                         const std::vector<double>& momentum) {
    const std::vector<Tensor> p{sines(6).view({2, 3}).requires_grad_(),
                                sines(8, .9, .3).view({4, 2}).requires_grad_()};
    Muon muon(p, options);
    for (int s = 0; s < steps; ++s) {
      muon.zero_grad();
      const NoGradGuard off;
      p[0].mutable_grad() = sines(6, .7, .2 * s).view({2, 3}) + p[0] * .1;
      if (s != 2) p[1].mutable_grad() = sines(8, .3, .5 * s).view({4, 2}) + p[1] * .2;
      muon.step();
    }
    std::vector<double> got = values(p[0]);
    for (double v : values(p[1])) got.push_back(v);
    expect_values(doubles(got), wanted, options.lr() * .01);
    const auto& state = static_cast<MuonParamState&>(*muon.state().at(p[0].impl()));
    expect_values(state.momentum_buffer(), momentum, options.lr() * .01);
  };
  expect(MuonOptions(), 1,
         {0.109772114266857, 0.461166591373929, 0.750326370849779, 0.938040602633436,
          0.999283992947777, 0.925398296511089, 0.29611489734594, 0.931128289842883,
          0.862750157370567, 0.14073300771742, -0.688230474789809, -0.996319108874446,
          -0.551102799276123, 0.311112461812609},
         {0.000548891504185875, 0.034519780239592, 0.0530288885251245, 0.0478559651140391,
          0.0217484855834667, -0.0129131037805402});
  expect(MuonOptions(), 8,
         {0.107190452918982, 0.456915454571842, 0.746166029932609, 0.932565217044461,
          0.998047615999428, 0.928452954709093, 0.295419406240578, 0.925809229949487,
          0.8575906293913, 0.141229482585691, -0.690301283507994, -0.992912067836819,
          -0.549992046088309, 0.311595802491557},
         {0.21130030674349, 0.316087369597757, 0.277416198458378, 0.116713114445883,
          -0.0882751514019004, -0.240482173170692});
  expect(
      MuonOptions(.1).weight_decay(.5).momentum(.8).nesterov(false).adjust_lr_fn("match_rms_adamw"),
      8,
      {-0.00901030050468999, 0.175682031372676, 0.377231983919188, 0.458611923911431,
       0.641270900779475, 0.735844079745429, 0.199376238269442, 0.528974540184664,
       0.484969799667982, 0.110214839196518, -0.5512999394293, -0.630535227738553,
       -0.376435079686892, 0.233642987998591},
      {0.614197749612362, 0.782001119419694, 0.59213927997135, 0.137494743151751,
       -0.358405919635458, -0.663977899366353});
  expect(MuonOptions(.1)
             .ns_steps(3)
             .ns_coefficients(std::make_tuple(2, -1.5, .5))
             .adjust_lr_fn("spectral_unclamped"),
         8,
         {-0.128269319726865, 0.0248887330837737, 0.298963359874916, 0.377925836125838,
          0.852904861981649, 1.20938036302427, 0.155025340259393, 0.257307111013322,
          0.200146433712471, 0.121067221890879, -0.964109297849024, -0.636520791282115,
          -0.453361492425686, 0.334656329682531},
         {0.208885954768403, 0.309359912051085, 0.269224730947521, 0.107157310033497,
          -0.0917750850713874, -0.237065194529759});
}
// The iteration in float64 where only results are bfloat16, of a tall matrix and a wide one, in
// every dtype.
TEST(Muon, TheIteration) {
  const auto rounded = [](const Tensor& t) { return t.to(kBFloat16).to(kDouble); };
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{40, 24}, {5, 70}}) {
    const Tensor g = sines(rows * columns, 1.7, .3).view({rows, columns}) * .2 +
                     eye(rows, columns, kDouble) * sines(columns, .9, 1).add(2);
    Tensor x = rounded(g);
    x = rounded(x / rounded((x * x).sum().sqrt()));
    for (int i = 0; i < 5; ++i) {
      const Tensor gram = rounded(matmul(x.t(), x));
      x = rounded(x * 3.4445 + matmul(x, rounded(gram * -4.775 + matmul(gram, gram) * 2.0315)));
    }
    const double taller = static_cast<double>(rows) / static_cast<double>(columns);
    for (ScalarType t : {kFloat, kDouble, kBFloat16, kHalf}) {
      const Tensor p = zeros({rows, columns}, t).requires_grad_();
      Muon muon({p}, MuonOptions(.5).momentum(0));
      p.mutable_grad() = g.to(t);
      muon.step();
      const Tensor wanted = x * (-.5 * std::sqrt(std::max(1.0, taller)));
      EXPECT_LT((p.detach().to(kDouble) - wanted).abs().max().item<double>(), .02) << t << rows;
      EXPECT_GT(wanted.abs().max().item<double>(), .3);
    }
  }
}
TEST(Muon, GoesOnFromAFileAndAfterAnEmptyMatrix) {
  const auto steps = [](Optimizer& optimizer, const Tensor& p, int from, int to) {
    for (int s = from; s < to; ++s) {
      p.mutable_grad() = sines(12, 0.7, 0.4 * s).view({3, 4}).to(kFloat);
      optimizer.step();
    }
  };
  const Tensor p = sines(12).view({3, 4}).to(kFloat).requires_grad_();
  const Tensor none = zeros({0, 3}).requires_grad_();
  none.mutable_grad() = zeros({0, 3});
  Muon whole({none, p}, MuonOptions(.1).adjust_lr_fn("spectral_unclamped"));
  steps(whole, p, 0, 3);
  const Tensor q = p.detach().clone().requires_grad_();
  Muon resumed({none, q});
  pass_on(whole, resumed);
  steps(whole, p, 3, 5), steps(resumed, q, 3, 5);
  EXPECT_TRUE(q.equal(p));
}
TEST(Muon, Refusals) {
  const Tensor p = ones({2, 3}).requires_grad_(), bias = ones({3}).requires_grad_();
  using O = MuonOptions;
  EXPECT_ERROR_TEXT(
      Muon({p, bias}),
      "[Muon] Muon only supports 2D parameters whereas we found a parameter with size: [3]");
  EXPECT_ERROR_TEXT(Muon({p}, O(-1)), "[Muon] Invalid learning rate: -1");
  EXPECT_ERROR_TEXT(Muon({p}, O().momentum(-.5)), "[Muon] Invalid momentum value: -0.5");
  EXPECT_ERROR_TEXT(Muon({p}, O().weight_decay(NAN)), "[Muon] Invalid weight_decay value: nan");
  EXPECT_ERROR_TEXT(Muon({p}, O().ns_steps(100)),
                    "[Muon] Number of steps: got 100, expected 0 to 99");
  EXPECT_ERROR_TEXT(Muon({p}, O().adjust_lr_fn("big")),
                    "[Muon] Adjust learning rate function is "
                    "not supported: got big, expected ");
  Muon muon({p});
  muon.add_param_group(std::vector<Tensor>{bias});
  p.mutable_grad() = ones({2, 3});
  EXPECT_ERROR_TEXT(muon.step(), "Muon only supports 2D parameters");
  EXPECT_TRUE(muon.state().empty());
  Muon other({p});
  p.set_data(ones({3, 2}));
  EXPECT_ERROR_TEXT(other.step(), "the gradient of ");
}

}  // namespace
}  // namespace ramet::optim
