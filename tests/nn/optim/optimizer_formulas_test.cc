// Optimizers against their formulas in long double, for each combination of options. What the
// kernels of SGD and Adam compute: tests/kernels/optim.
#include "nn/optim/adadelta.h"
#include "nn/optim/adagrad.h"
#include "nn/optim/adamax.h"
#include "nn/optim/asgd.h"
#include "nn/optim/lion.h"
#include "nn/optim/nadam.h"
#include "nn/optim/radam.h"
#include "nn/optim/rmsprop.h"
#include "nn/optim/rprop.h"
#include "tests/nn/optim/prescribed_steps.h"

namespace ramet::optim {
namespace {

using R = long double;
using States = std::vector<R>;
using testing::expect_formula;

TEST(RMSprop, EveryCombinationOfOptions) {
  for (double decay : {0.0, 0.1})
    for (double momentum : {0.0, 0.75})
      for (bool centered : {false, true})
        expect_formula<RMSprop>(
            RMSpropOptions(0.02)
                .alpha(0.875)
                .eps(1e-3)
                .weight_decay(decay)
                .momentum(momentum)
                .centered(centered),
            [&](R& w, R g, States& s, R lr, int) {
              g += decay * w;
              s[0] = 0.875L * s[0] + 0.125L * g * g;
              s[1] = 0.875L * s[1] + 0.125L * g;
              s[2] = momentum * s[2] +
                     g / (std::sqrt(centered ? s[0] - s[1] * s[1] : s[0]) + static_cast<R>(1e-3));
              w -= lr * s[2];
            },
            {0, 0, 0}, 1e-6);
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
}

TEST(Optimizers, Maximize) {
  testing::expect_maximize<Adagrad>(AdagradOptions(.1).weight_decay(.1));
  testing::expect_maximize<Adamax>(AdamaxOptions(.1).weight_decay(.1));
  testing::expect_maximize<RAdam>(RAdamOptions(.1).weight_decay(.1));
  testing::expect_maximize<Adadelta>(AdadeltaOptions(.5).eps(1e-3).weight_decay(.1));
  testing::expect_maximize<NAdam>(NAdamOptions(.1).weight_decay(.1));
  testing::expect_maximize<Rprop>(RpropOptions(.1));
  testing::expect_maximize<Lion>(LionOptions(.1).weight_decay(.1));
  testing::expect_maximize<ASGD>(ASGDOptions(.1).lambd(.1).weight_decay(.1));
}

}  // namespace
}  // namespace ramet::optim
