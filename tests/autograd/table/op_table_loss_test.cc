// Rows of the operation table: losses of elements and of samples.
#include <cmath>

#include "autograd/ops.h"
#include "tests/autograd/table/op_table_suite.h"

namespace ramet {
namespace op_table {
namespace {

// One loss with its three reductions, from the loss of one element.
struct Elementwise {
  const char *mean, *none, *sum;
  Sample inputs;
  std::function<Tensor(V, int64_t)> call;
  Point term;
  double slack = 4;
  uint16_t none_dtypes = kFloats, sum_dtypes = kFloats;
};
void add_elementwise(Table& t, const Elementwise& loss) {
  Samples samples = {loss.inputs, loss.inputs, loss.inputs};
  Sample large = loss.inputs;
  for (size_t k = 0; k < loss.inputs.size(); ++k) {
    samples[0][k].sizes = {3, 4};
    samples[1][k].sizes = {};
    samples[2][k].sizes = {2, 0};
    large[k].sizes = {120, 131};
  }
  const auto whole = [term = loss.term](P x, bool mean) {
    double s = 0;
    std::vector<double> v(x.size());
    for (size_t i = 0; i < x[0].v.size(); ++i) {
      for (size_t k = 0; k < x.size(); ++k) v[k] = x[k].v[i];
      s += term(v.data());
    }
    return Plain{{}, {mean ? s / static_cast<double>(x[0].v.size()) : s}};
  };
  const auto call = [f = loss.call](int64_t reduction) { return EXPRESSION(f(x, reduction)); };
  const auto row = [&](const char* name, uint16_t dtypes, Reduction::Reduction r) -> Row& {
    return t
        .row(name, dtypes, samples, call(r), [=](P x) { return whole(x, r == Reduction::Mean); })
        .big(large)
        .within(loss.slack);
  };
  row(loss.mean, kFloats, Reduction::Mean);
  // Differences of unsigned numbers wrap, in LibTorch too.
  row(loss.sum, loss.sum_dtypes, Reduction::Sum).gives(widened).only(kSigned | kFloats);
  t.pointwise(loss.none, loss.none_dtypes, loss.inputs, call(Reduction::None), loss.term)
      .alike()
      .within(loss.slack)
      .only(kSigned | kFloats);
}

// -weight (t log x + (1 - t) log(1 - x)).
double entropy(double x, double t) { return -(t * std::log(x) + (1 - t) * std::log1p(-x)); }

void add_pairs(Table& t) {
  const Sample pair = {real({3, 4}), real({3, 4})};
  add_elementwise(t, {"mse_loss", "mse_loss.none", "mse_loss.sum", pair,
                      [](V x, int64_t r) { return mse_loss(x[0], x[1], r); },
                      [](D x) { return (x[0] - x[1]) * (x[0] - x[1]); }});
  add_elementwise(t, {"l1_loss", "l1_loss.none", "l1_loss.sum", pair,
                      [](V x, int64_t r) { return l1_loss(x[0], x[1], r); },
                      [](D x) { return std::fabs(x[0] - x[1]); }, 4, kNumbers, kNumbers});
  add_elementwise(t, {"smooth_l1_loss", "smooth_l1_loss.none", "smooth_l1_loss.sum", pair,
                      [](V x, int64_t r) { return smooth_l1_loss(x[0], x[1], r, 0.75); },
                      [](D x) {
                        const double d = std::fabs(x[0] - x[1]);
                        return d < 0.75 ? d * d / 1.5 : d - 0.375;
                      }});
  add_elementwise(t, {"huber_loss", "huber_loss.none", "huber_loss.sum", pair,
                      [](V x, int64_t r) { return huber_loss(x[0], x[1], r, 0.75); },
                      [](D x) {
                        const double d = std::fabs(x[0] - x[1]);
                        return d < 0.75 ? d * d / 2 : 0.75 * (d - 0.375);
                      }});
  t["mse_loss"].writes(OUT(mse_loss, x[0], x[1]));
  t["mse_loss.none"].writes(OUT(mse_loss, x[0], x[1], Reduction::None));
  t["smooth_l1_loss"].writes(OUT(smooth_l1_loss, x[0], x[1], Reduction::Mean, 0.75));
  t["huber_loss.none"].writes(OUT(huber_loss, x[0], x[1], Reduction::None, 0.75));
  const Sample chances = {real({3, 4}, 0.1, 0.9), real({3, 4}, 0.1, 0.9)};
  add_elementwise(
      t, {"binary_cross_entropy", "binary_cross_entropy.none", "binary_cross_entropy.sum", chances,
          [](V x, int64_t r) { return binary_cross_entropy(x[0], x[1], {}, r); },
          [](D x) { return entropy(x[0], x[1]); }});
  t["binary_cross_entropy.none"].writes(OUT(binary_cross_entropy, x[0], x[1], {}, Reduction::None));
  t["binary_cross_entropy"].tame("refused: outside [0, 1]");
  t["binary_cross_entropy.none"].tame("refused: outside [0, 1]");
  t["binary_cross_entropy.sum"].tame("refused: outside [0, 1]");
  add_elementwise(
      t, {"binary_cross_entropy_with_logits",
          "binary_cross_entropy_with_logits.none",
          "binary_cross_entropy_with_logits.sum",
          {real({3, 4}, -3, 3), real({3, 4}, 0.1, 0.9)},
          [](V x, int64_t r) { return binary_cross_entropy_with_logits(x[0], x[1], {}, {}, r); },
          [](D x) { return (1 - x[1]) * x[0] + std::log1p(std::exp(-x[0])); }});
  const Sample logs = {real({3, 4}, -3, -0.1), real({3, 4}, 0.1, 0.9)};
  add_elementwise(t, {"kl_div", "kl_div.none", "kl_div.sum", logs,
                      [](V x, int64_t r) { return kl_div(x[0], x[1], r); },
                      [](D x) {
                        if (x[1] == 0) return std::isnan(x[0]) ? x[0] : 0;
                        return x[1] * std::log(x[1]) - x[1] * x[0];
                      }});
  add_elementwise(t, {"kl_div.log", "kl_div.log_none", "kl_div.log_sum", logs,
                      [](V x, int64_t r) { return kl_div(x[0], x[1], r, true); },
                      [](D x) {
                        if (x[1] == -INFINITY) return std::isnan(x[0]) ? x[0] : 0;
                        return std::exp(x[1]) * (x[1] - x[0]);
                      }});
}

// ---- margins; a target is the sign of what is drawn

Tensor signs(const Tensor& x) { return x.gt(0).to(x.scalar_type()).mul(2).sub(1); }
double sign(double x) { return x > 0 ? 1 : -1; }
double hinge(double x) { return x < 0 ? 0 : x; }  // a NaN stays one

void add_signed(Table& t) {
  // Of whole numbers the losses are floating-point ones.
  const auto of_numbers = [&t](const Elementwise& loss) {
    add_elementwise(t, loss);
    for (const char* name : {loss.mean, loss.none, loss.sum})
      t[name].gives(floating).only(kSigned | kFloats).dtypes = kNumbers;
  };
  const Sample pair = {real({3, 4}, -3, 3), real({3, 4}, -3, 3)};
  of_numbers({"hinge_embedding_loss", "hinge_embedding_loss.none", "hinge_embedding_loss.sum", pair,
              [](V x, int64_t r) { return hinge_embedding_loss(x[0], signs(x[1]), 1.5, r); },
              [](D x) { return x[1] > 0 ? x[0] : hinge(1.5 - x[0]); }});
  add_elementwise(t, {"soft_margin_loss", "soft_margin_loss.none", "soft_margin_loss.sum", pair,
                      [](V x, int64_t r) { return soft_margin_loss(x[0], x[1], r); },
                      [](D x) {
                        const double y = x[0] * x[1];
                        return y < 0 ? std::log1p(std::exp(y)) - y : std::log1p(std::exp(-y));
                      }});
  of_numbers({"margin_ranking_loss",
              "margin_ranking_loss.none",
              "margin_ranking_loss.sum",
              {real({3, 4}), real({3, 4}), real({3, 4})},
              [](V x, int64_t r) { return margin_ranking_loss(x[0], x[1], signs(x[2]), 0.5, r); },
              [](D x) { return hinge(0.5 - sign(x[2]) * (x[0] - x[1])); }});
  const Sample counts = {real({3, 4}, -2, 1), real({3, 4}, 0, 4)};
  of_numbers({"poisson_nll_loss", "poisson_nll_loss.none", "poisson_nll_loss.sum", counts,
              [](V x, int64_t r) { return poisson_nll_loss(x[0], x[1], true, false, 1e-8, r); },
              [](D x) { return std::exp(x[0]) - x[1] * x[0]; }});
  of_numbers({"poisson_nll_loss.full",
              "poisson_nll_loss.full_none",
              "poisson_nll_loss.full_sum",
              {real({3, 4}, 0.5, 3), real({3, 4}, 0, 4)},
              [](V x, int64_t r) { return poisson_nll_loss(x[0], x[1], false, true, 0.25, r); },
              [](D x) {
                const double y = x[1], loss = x[0] - y * std::log(x[0] + 0.25);
                return y <= 1 ? loss : loss + y * std::log(y) - y + std::log(2 * M_PI * y) / 2;
              },
              8});
}

// Losses of samples, the rows of what is drawn; f: of one row.
void add_samples(Table& t) {
  const auto row = [&t](const char* name, Samples samples, Sample large, Calls call,
                        std::function<double(P, int64_t)> f) -> Row& {
    return t
        .row(name, kFloats, std::move(samples), std::move(call),
             [f](P x) { return made({x[0].size(0)}, [&](const Index& i) { return f(x, i[0]); }); })
        .big(std::move(large), 7)
        .within(8);
  };
  const auto at = [](const Plain& x, int64_t i, int64_t k) { return x.at({i, k}); };
  row("cosine_embedding_loss",
      {{real({4, 5}), real({4, 5}), real({4})}, {real({0, 3}), real({0, 3}), real({0})}},
      {real({700, 31}), real({700, 31}), real({700})},
      CALL(cosine_embedding_loss, x[0], x[1], signs(x[2]), 0.25, Reduction::None),
      [=](P x, int64_t i) {
        double ab = 0, aa = 1e-12, bb = 1e-12;
        for (int64_t k = 0; k < x[0].size(1); ++k) {
          const double a = at(x[0], i, k), b = at(x[1], i, k);
          ab += a * b, aa += a * a, bb += b * b;
        }
        const double cosine = ab / std::sqrt(aa * bb);
        return x[2].at({i}) > 0 ? 1 - cosine : hinge(cosine - 0.25);
      })
      .gives(floating)
      .only(kSigned | kFloats)
      .dtypes = kAll;
  const auto distance = [at](const Plain& a, const Plain& b, int64_t i) {
    double s = 0;
    for (int64_t k = 0; k < a.size(1); ++k) s += std::pow(at(a, i, k) - at(b, i, k) + 0.125, 2);
    return std::sqrt(s);
  };
  const Samples triples = {{real({4, 5}), real({4, 5}), real({4, 5})},
                           {real({0, 3}), real({0, 3}), real({0, 3})}};
  const Sample many = {real({700, 31}), real({700, 31}), real({700, 31})};
  row("triplet_margin_loss", triples, many,
      CALL(triplet_margin_loss, x[0], x[1], x[2], 0.5, 2, 0.125, false, Reduction::None),
      [=](P x, int64_t i) {
        return hinge(distance(x[0], x[1], i) - distance(x[0], x[2], i) + 0.5);
      })
      .not_scalar("samples are rows here")
      .gives(floating)
      .only(kSigned | kFloats)
      .dtypes = kNumbers;
  row("triplet_margin_loss.swap", triples, many,
      CALL(triplet_margin_loss, x[0], x[1], x[2], 0.5, 2, 0.125, true, Reduction::None),
      [=](P x, int64_t i) {
        const double far = distance(x[0], x[2], i), other = distance(x[1], x[2], i);
        return hinge(distance(x[0], x[1], i) - (other < far ? other : far) + 0.5);
      })
      .not_scalar("samples are rows here")
      .gives(floating)
      .only(kSigned | kFloats)
      .dtypes = kNumbers;
  row("multi_margin_loss",
      {{real({4, 5}), index({4}, 5)}, {real({0, 3}), index({0}, 3)}, {real({1, 1}), index({1}, 1)}},
      {real({700, 31}), index({700}, 31)},
      CALL_OUT(multi_margin_loss, x[0], x[1], 2, 0.5, arange(1, x[0].size(1) + 1, x[0].options()),
               Reduction::None),
      [=](P x, int64_t i) {
        const auto y = int64_t(x[1].at({i}));
        double s = 0;
        for (int64_t k = 0; k < x[0].size(1); ++k)
          if (k != y)
            s += double(y + 1) * std::pow(hinge(0.5 - at(x[0], i, y) + at(x[0], i, k)), 2);
        return s / double(x[0].size(1));
      });
  // Of targets that are drawn from 0 on, the last column ends the list.
  const auto ended = [](const Tensor& y) {
    return y.size(1) < 2
               ? y
               : cat({y.narrow(1, 0, y.size(1) - 1), full_like(y.narrow(1, 0, 1), -1)}, 1);
  };
  // Among 3 * 10^7 differences some are next to the corner, on one side in float32 and on the other
  // in float64. Those of multiples of 1/64 are exact.
  const auto exact = [](const Tensor& v) {
    return v.size(1) < 31 ? v : v.add(v.mul(64).round().div(64).sub(v).detach());
  };
  row("multilabel_margin_loss",
      {{real({4, 5}), distinct({4, 5}, 5)}, {real({0, 3}), index({0, 3}, 3)}},
      {real({700, 31}), index({700, 31}, 31)},
      CALL_OUT(multilabel_margin_loss, exact(x[0]), ended(x[1]), Reduction::None),
      [=](P x, int64_t i) {
        const int64_t n = x[0].size(1);
        std::vector<bool> is_class(size_t(n), false);
        for (int64_t j = 0; j + 1 < n; ++j) is_class[size_t(at(x[1], i, j))] = true;
        double s = 0;
        for (int64_t j = 0; j + 1 < n; ++j)
          for (int64_t k = 0; k < n; ++k)
            if (!is_class[size_t(k)])
              s += hinge(1 - at(x[0], i, int64_t(at(x[1], i, j))) + at(x[0], i, k));
        return s / double(n);
      });
}

RAMET_OP_TABLE(add_pairs, add_signed, add_samples);

}  // namespace
}  // namespace op_table
}  // namespace ramet
