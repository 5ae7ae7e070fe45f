// Rows of the operation table: losses.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "autograd/ops.h"
#include "tests/autograd/table/op_table_suite.h"

namespace ramet {
namespace op_table {
namespace {

constexpr uint16_t kHalfs = kFloats & ~kWide;

double sum_of(const std::vector<double>& v) { return std::accumulate(v.begin(), v.end(), 0.0); }

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
  const auto call = [f = loss.call](int64_t reduction) {
    return [=](V x) { return f(x, reduction); };
  };
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
  t["mse_loss"].writes([](Tensor& o, V x) { return mse_loss_out(o, x[0], x[1]); });
  t["mse_loss.none"].writes(
      [](Tensor& o, V x) { return mse_loss_out(o, x[0], x[1], Reduction::None); });
  t["smooth_l1_loss"].writes(
      [](Tensor& o, V x) { return smooth_l1_loss_out(o, x[0], x[1], Reduction::Mean, 0.75); });
  t["huber_loss.none"].writes(
      [](Tensor& o, V x) { return huber_loss_out(o, x[0], x[1], Reduction::None, 0.75); });
  const Sample chances = {real({3, 4}, 0.1, 0.9), real({3, 4}, 0.1, 0.9)};
  add_elementwise(
      t, {"binary_cross_entropy", "binary_cross_entropy.none", "binary_cross_entropy.sum", chances,
          [](V x, int64_t r) { return binary_cross_entropy(x[0], x[1], {}, r); },
          [](D x) { return entropy(x[0], x[1]); }});
  t["binary_cross_entropy.none"].writes(
      [](Tensor& o, V x) { return binary_cross_entropy_out(o, x[0], x[1], {}, Reduction::None); });
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
                      [](D x) { return (x[1] == 0 ? 0 : x[1] * std::log(x[1])) - x[1] * x[0]; }});
  add_elementwise(t, {"kl_div.log", "kl_div.log_none", "kl_div.log_sum", logs,
                      [](V x, int64_t r) { return kl_div(x[0], x[1], r, true); },
                      [](D x) { return std::exp(x[1]) * (x[1] - x[0]); }});
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
  const auto row = [&t](const char* name, Samples samples, Sample large, Call call,
                        std::function<double(P, int64_t)> f) -> Row& {
    return t
        .row(name, kFloats, std::move(samples), std::move(call),
             [f](P x) { return made({x[0].size(0)}, [&](const Index& i) { return f(x, i[0]); }); })
        .big(std::move(large), 7)
        .within(8);
  };
  const auto at = [](const Plain& x, int64_t i, int64_t k) { return x.at({i, k}); };
  row(
      "cosine_embedding_loss",
      {{real({4, 5}), real({4, 5}), real({4})}, {real({0, 3}), real({0, 3}), real({0})}},
      {real({700, 31}), real({700, 31}), real({700})},
      [](V x) { return cosine_embedding_loss(x[0], x[1], signs(x[2]), 0.25, Reduction::None); },
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
  row(
      "triplet_margin_loss", triples, many,
      [](V x) {
        return triplet_margin_loss(x[0], x[1], x[2], 0.5, 2, 0.125, false, Reduction::None);
      },
      [=](P x, int64_t i) {
        return hinge(distance(x[0], x[1], i) - distance(x[0], x[2], i) + 0.5);
      })
      .not_scalar("samples are rows here")
      .gives(floating)
      .only(kSigned | kFloats)
      .dtypes = kNumbers;
  row(
      "triplet_margin_loss.swap", triples, many,
      [](V x) {
        return triplet_margin_loss(x[0], x[1], x[2], 0.5, 2, 0.125, true, Reduction::None);
      },
      [=](P x, int64_t i) {
        const double far = distance(x[0], x[2], i), other = distance(x[1], x[2], i);
        return hinge(distance(x[0], x[1], i) - (other < far ? other : far) + 0.5);
      })
      .not_scalar("samples are rows here")
      .gives(floating)
      .only(kSigned | kFloats)
      .dtypes = kNumbers;
  row(
      "multi_margin_loss",
      {{real({4, 5}), index({4}, 5)}, {real({0, 3}), index({0}, 3)}, {real({1, 1}), index({1}, 1)}},
      {real({700, 31}), index({700}, 31)},
      [](V x) {
        return multi_margin_loss(x[0], x[1], 2, 0.5, arange(1, x[0].size(1) + 1, x[0].options()),
                                 Reduction::None);
      },
      [=](P x, int64_t i) {
        const auto y = int64_t(x[1].at({i}));
        double s = 0;
        for (int64_t k = 0; k < x[0].size(1); ++k)
          if (k != y)
            s += double(y + 1) * std::pow(hinge(0.5 - at(x[0], i, y) + at(x[0], i, k)), 2);
        return s / double(x[0].size(1));
      })
      .writes([](Tensor& o, V x) {
        return multi_margin_loss_out(o, x[0], x[1], 2, 0.5,
                                     arange(1, x[0].size(1) + 1, x[0].options()), Reduction::None);
      });
  // Of targets that are drawn from 0 on, the last column ends the list.
  const auto ended = [](const Tensor& y) {
    return y.size(1) < 2
               ? y
               : cat({y.narrow(1, 0, y.size(1) - 1), full_like(y.narrow(1, 0, 1), -1)}, 1);
  };
  row(
      "multilabel_margin_loss",
      {{real({4, 5}), distinct({4, 5}, 5)}, {real({0, 3}), index({0, 3}, 3)}},
      {real({700, 31}), index({700, 31}, 31)},
      [=](V x) { return multilabel_margin_loss(x[0], ended(x[1]), Reduction::None); },
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
      })
      .writes([=](Tensor& o, V x) {
        return multilabel_margin_loss_out(o, x[0], ended(x[1]), Reduction::None);
      })
      .small("pairs of classes are compared, of which emulated threads take 30 s for so many");
}

// ---- classes

struct Classes {
  bool softmax;           ///< of logits: cross entropy
  bool weighted = false;  ///< class k weighs k + 1
  int64_t reduction = Reduction::Mean;
  double smoothing = 0;
  int64_t ignored = -100;
};
Plain class_loss(P x, const Classes& c) {
  const Plain &scores = x[0], &target = x[1];
  const size_t dim = scores.rank() == 1 ? 0 : 1;
  const int64_t classes = scores.sizes[dim];
  double weights = 0;
  Plain losses = made(target.sizes, [&](const Index& i) {
    const auto t = static_cast<int64_t>(target.at(i));
    if (t == c.ignored) return 0.0;
    std::vector<double> line;
    Index at = i;
    at.insert(at.begin() + int64_t(dim), 0);
    for (at[dim] = 0; at[dim] < classes; ++at[dim]) line.push_back(scores.at(at));
    double log_sum = 0;
    if (c.softmax) {  // of a line with an infinity: NaN
      const double top = *std::max_element(line.begin(), line.end());
      for (double v : line) log_sum += std::exp(v - top);
      log_sum = top + std::log(log_sum);
    }
    const auto weight = [&](int64_t k) { return c.weighted ? double(k + 1) : 1; };
    double loss = -(1 - c.smoothing) * weight(t) * (line[size_t(t)] - log_sum);
    for (int64_t k = 0; k < classes && c.smoothing > 0; ++k)
      loss -= c.smoothing / double(classes) * weight(k) * (line[size_t(k)] - log_sum);
    weights += weight(t);
    return loss;
  });
  if (c.reduction == Reduction::None) return losses;
  const double s = sum_of(losses.v);
  return Plain{{}, {c.reduction == Reduction::Mean ? s / weights : s}};
}
// Of class_loss times `factor`, with respect to scores [n, classes].
Plain class_gradient(P x, const Classes& c, double factor) {
  const Plain &scores = x[0], &target = x[1];
  const int64_t classes = scores.size(1);
  const auto weight = [&](int64_t k) { return c.weighted ? double(k + 1) : 1; };
  double weights = 0, all = 0;
  for (double t : target.v)
    if (int64_t(t) != c.ignored) weights += weight(int64_t(t));
  for (int64_t k = 0; k < classes; ++k) all += weight(k);
  return made(scores.sizes, [&](const Index& i) {
    const auto t = int64_t(target.at({i[0]}));
    if (t == c.ignored) return 0.0;
    double top = -INFINITY, sum = 0;
    for (int64_t k = 0; k < classes; ++k) top = std::max(top, scores.at({i[0], k}));
    for (int64_t k = 0; k < classes; ++k) sum += std::exp(scores.at({i[0], k}) - top);
    const double each = c.smoothing / double(classes), one = (1 - c.smoothing) * weight(t),
                 p = std::exp(scores.at(i) - top) / sum;
    const double g = (one + each * all) * p - each * weight(i[1]) - (i[1] == t ? one : 0);
    return factor * g / (c.reduction == Reduction::Mean ? weights : 1);
  });
}
std::optional<Tensor> weights_of(const Tensor& x, const Classes& c) {
  if (!c.weighted) return {};
  return arange(1, x.size(x.dim() == 1 ? 0 : 1) + 1, x.options());
}

void add_classes(Table& t) {
  const Samples images = {{real({2, 3, 2, 2}, -3, 3), index({2, 2, 2}, 3)},
                          {real({0, 3, 2, 2}, -3, 3), index({0, 2, 2}, 3)}},
                lines = {{real({4, 5}, -3, 3), index({4}, 5)},
                         {real({1, 1}, -3, 3), index({1}, 1)},
                         {real({5}, -3, 3), index({}, 5)},
                         {real({0, 3}, -3, 3), index({0}, 3)}},
                all = {{real({4, 5}, -3, 3), index({4}, 5)},
                       {real({5}, -3, 3), index({}, 5)},
                       {real({2, 3, 4}, -3, 3), index({2, 4}, 3)},
                       {real({2, 3, 2, 2}, -3, 3), index({2, 2, 2}, 3)},
                       {real({0, 3}, -3, 3), index({0}, 3)}};
  const Sample large = {real({110, 111}, -3, 3), index({110}, 111)},
               large_lines = {real({20000, 5}, -3, 3), index({20000}, 5)},
               large_images = {real({70, 3, 9, 9}, -3, 3), index({70, 9, 9}, 3)};
  using Function =
      Tensor (*)(const Tensor&, const Tensor&, const std::optional<Tensor>&, int64_t, int64_t);
  const auto entropy_of = [&](const char* name, Classes c) -> Row& {
    const bool batched = c.reduction == Reduction::None;
    return t
        .row(
            name, kFloats, all,
            [c](V x) {
              return cross_entropy_loss(x[0], x[1], weights_of(x[0], c), c.reduction, c.ignored,
                                        c.smoothing);
            },
            [c](P x) { return class_loss(x, c); })
        .big(large, batched ? 3 : 0)
        .within(4);
  };
  entropy_of("cross_entropy_loss", {true}).slim({real({100000, 10}, -3, 3), index({100000}, 10)});
  entropy_of("cross_entropy_loss.weighted", {true, true});
  entropy_of("cross_entropy_loss.smooth", {true, true, Reduction::Sum, 0.25});
  entropy_of("cross_entropy_loss.none", {true, false, Reduction::None});
  entropy_of("cross_entropy_loss.ignore", {true, false, Reduction::Sum, 0, 1});
  const Samples one = {{real({5}, -3, 3), index({}, 5)}, {real({1}, -3, 3), index({}, 1)}};
  const auto line = [&](Row& row, const char* reason) {
    row.big({real({16000}, -3, 3), index({}, 16000)})
        .not_empty("refused: a target is one of the classes")
        .alone("a row is one thread's")
        .narrow(reason)
        .within(4);
  };
  line(t.row(
           "cross_entropy_loss.line", kFloats, one,
           [](V x) { return cross_entropy_loss(x[0], x[1]); },
           [](P x) { return class_loss(x, {true}); }),
       "a row belongs to one block, however long it is");
  line(t.row(
           "nll_loss.line", kFloats, one, [](V x) { return nll_loss(x[0], x[1]); },
           [](P x) { return class_loss(x, {false}); }),
       "one element of each row is looked at");
  // The consuming form gives its gradient once, which gradcheck does not: its rows are the loss and
  // the gradient as values.
  const Samples rows = {{real({4, 5}, -3, 3), index({4}, 5)}, {real({0, 3}, -3, 3), index({0}, 3)}};
  const auto consuming_of = [&](const char* name, Classes c, bool gradient) {
    Row& row = t.row(
                    name, kFloats, rows,
                    [=](V x) {
                      const Tensor leaf = x[0].detach().requires_grad_(),
                                   logits = leaf.clone(MemoryFormat::Contiguous),
                                   loss = cross_entropy_loss_consuming(
                                       logits, x[1], weights_of(x[0], c), c.reduction, c.ignored,
                                       c.smoothing);
                      if (gradient) loss.mul(2).backward();
                      return gradient ? leaf.grad() : loss.detach();
                    },
                    [=](P x) { return gradient ? class_gradient(x, c, 2) : class_loss(x, c); })
                   .big(large)
                   .no_gradient()
                   .within(4);
    if (gradient && c.reduction == Reduction::Sum) row.big(large, 3);
    else if (gradient) row.in_one("all rows share the sum of the weights");
  };
  consuming_of("cross_entropy_loss_consuming", {true}, false);
  consuming_of("cross_entropy_loss_consuming.smooth", {true, true, Reduction::Sum, 0.25, 1}, false);
  consuming_of("cross_entropy_loss_consuming.gradient", {true, true, Reduction::Mean, 0.25}, true);
  consuming_of("cross_entropy_loss_consuming.ignore", {true, false, Reduction::Sum, 0, 1}, true);
  t.row(
       "cross_entropy_loss.probabilities", kFloats,
       {{real({3, 4}, -3, 3), real({3, 4}, 0.1, 0.9)}, {real({0, 4}), real({0, 4})}},
       [](V x) { return cross_entropy_loss(x[0], x[1]); },
       [](P x) {
         double s = 0;
         for (int64_t i = 0; i < x[0].size(0); ++i) {
           double total = 0;
           for (int64_t k = 0; k < x[0].size(1); ++k) total += std::exp(x[0].at({i, k}));
           for (int64_t k = 0; k < x[0].size(1); ++k)
             s -= x[1].at({i, k}) * (x[0].at({i, k}) - std::log(total));
         }
         return Plain{{}, {s / double(x[0].size(0))}};
       })
      .big({real({110, 111}, -3, 3), real({110, 111}, 0.001, 0.01)})
      .within(4);
  const auto likelihood = [&](const char* name, Function f, const Samples& samples, Classes c,
                              const Sample& many) {
    t.row(
         name, kFloats, samples,
         [f, c](V x) { return f(x[0], x[1], weights_of(x[0], c), c.reduction, c.ignored); },
         [c](P x) { return class_loss(x, c); })
        .big(many, c.reduction == Reduction::None ? 3 : 0)
        .within(4);
  };
  likelihood("nll_loss", nll_loss, lines, {false}, large_lines);
  likelihood("nll_loss.weighted", nll_loss, lines, {false, true}, large_lines);
  likelihood("nll_loss.none", nll_loss, lines, {false, true, Reduction::None}, large_lines);
  likelihood("nll_loss.ignore", nll_loss, lines, {false, true, Reduction::Sum, 0, 0}, large_lines);
  likelihood("nll_loss2d", nll_loss2d, images, {false, true}, large_images);
  likelihood("nll_loss2d.none", nll_loss2d, images, {false, false, Reduction::None}, large_images);
  t["nll_loss"].writes([](Tensor& o, V x) { return nll_loss_out(o, x[0], x[1]); });
  t["nll_loss2d.none"].writes(
      [](Tensor& o, V x) { return nll_loss2d_out(o, x[0], x[1], {}, Reduction::None); });
  likelihood("nll_loss_nd", nll_loss_nd, all, {false, true, Reduction::Sum}, large_lines);
}

// ---- sequences of labels

double log_sum(double a, double b, double c) {
  const double top = std::fmax(a, std::fmax(b, c));
  if (top == -INFINITY) return a + b + c;  // NaN where one is
  return top + std::log(std::exp(a - top) + std::exp(b - top) + std::exp(c - top));
}
// The loss of sample b of x [steps, batch, classes], whose labels these are; the last class is the
// blank. Sums over prefixes of the labels with blanks between.
double sequence_loss(const Plain& x, int64_t b, int64_t steps, const std::vector<int64_t>& labels) {
  const int64_t blank = x.size(2) - 1;
  if (steps == 0) return labels.empty() ? 0 : INFINITY;
  std::vector<int64_t> states = {blank};
  for (int64_t label : labels) states.insert(states.end(), {label, blank});
  const size_t n = states.size();
  std::vector<double> sums(n, -INFINITY);
  for (int64_t t = 0; t < steps; ++t) {
    const std::vector<double> before = sums;
    for (size_t s = 0; s < n; ++s) {
      const bool skips = s > 1 && states[s] != states[s - 2];
      double from =
          log_sum(before[s], s > 0 ? before[s - 1] : -INFINITY, skips ? before[s - 2] : -INFINITY);
      if (t == 0) from = s < 2 ? 0 : -INFINITY;
      sums[s] = t == 0 && s > 1 ? from : from + x.at({t, b, states[s]});
    }
  }
  return -log_sum(sums[n - 1], n > 1 ? sums[n - 2] : -INFINITY, -INFINITY);
}
// Of x, padded targets, lengths of the input and of the targets.
std::vector<double> sequence_losses(P x, bool zero_infinity) {
  std::vector<double> losses;
  for (int64_t b = 0; b < x[0].size(1); ++b) {
    std::vector<int64_t> labels;
    for (int64_t i = 0; i < int64_t(x[3].v[size_t(b)]); ++i)
      labels.push_back(int64_t(x[1].at({b, i})));
    const double loss = sequence_loss(x[0], b, int64_t(x[2].v[size_t(b)]), labels);
    losses.push_back(zero_infinity && loss == INFINITY ? 0 : loss);
  }
  return losses;
}

void add_sequences(Table& t) {
  const auto numbers = [](int64_t count, int64_t low, int64_t below) {
    Input in = index({count}, below);
    return in.lo = static_cast<double>(low), in;
  };
  const auto sample = [&](Index x, int64_t longest, int64_t least_steps) {
    const int64_t steps = x[0], batch = x[1], labels = std::max<int64_t>(x[2] - 1, 1);
    return Sample{real(x, -3, -0.1), index({batch, longest}, labels),
                  numbers(batch, least_steps, steps + 1), numbers(batch, 0, longest + 1)};
  };
  // Steps for every label and a blank between.
  const Samples all = {sample({5, 3, 3}, 2, 3), sample({1, 1, 1}, 0, 1), sample({4, 0, 3}, 2, 4),
                       sample({7, 2, 4}, 4, 7)};
  Samples any = all;
  any.push_back(sample({4, 6, 3}, 3, 0));
  any.push_back(sample({0, 2, 3}, 1, 0));
  const Sample large = sample({24, 100, 12}, 9, 18);
  const char* const rank = "refused: log_probs have steps and classes";
  t.row(
       "ctc_loss", kWide, all,
       [](V x) { return ctc_loss(x[0], x[1], x[2], x[3], x[0].size(2) - 1); },
       [](P x) {
         std::vector<double> losses = sequence_losses(x, false);
         for (size_t b = 0; b < losses.size(); ++b) losses[b] /= std::fmax(x[3].v[b], 1);
         return Plain{{}, {sum_of(losses) / static_cast<double>(losses.size())}};
       })
      .also(kHalfs)
      .big(large)
      .small("as many as ctc_loss.none has")
      .not_scalar(rank)
      .within(8);
  t.row(
       "ctc_loss.none", kWide, any,
       [](V x) {
         return ctc_loss(x[0], x[1], x[2], x[3], x[0].size(2) - 1, Reduction::None, true);
       },
       [](P x) {
         return Plain{{x[0].size(1)}, sequence_losses(x, true)};
       })
      .also(kHalfs)
      .big(large)
      .sliced({1, 0, 0, 0}, 0)
      .not_scalar(rank)
      .within(8);
  // Labels of all samples behind each other, as many of each.
  Sample dense = {real({24, 100, 12}, -3, -0.1), index({900}, 11), numbers(100, 17, 25)};
  t.row(
       "ctc_loss.joined", kWide,
       {{real({5, 2, 3}, -3, -0.1), index({4}, 2), numbers(2, 3, 6)},
        {real({5, 2, 3}, -3, -0.1), index({0}, 2), numbers(2, 1, 6)},
        {real({5, 0, 3}, -3, -0.1), index({0}, 2), numbers(0, 3, 6)}},
       [](V x) {
         const int64_t batch = x[0].size(1), each = x[1].numel() / std::max<int64_t>(batch, 1);
         return ctc_loss(x[0], x[1], x[2], full({batch}, each, x[1].options()), x[0].size(2) - 1,
                         Reduction::Sum);
       },
       [](P x) {
         const int64_t batch = x[0].size(1), each = count(x[1].sizes) / std::max<int64_t>(batch, 1);
         return Plain{{},
                      {sum_of(sequence_losses(
                          {x[0], Plain{{batch, each}, x[1].v}, x[2],
                           Plain{{batch}, std::vector<double>(size_t(batch), double(each))}},
                          false))}};
       })
      .also(kHalfs)
      .big(dense)
      .small("as many as ctc_loss.none has")
      .not_scalar(rank)
      .within(8);
  t.row(
       "ctc_loss.line", kWide, {{real({5, 3}, -3, -0.1), index({2}, 2)}},
       [](V x) {
         const auto length = [&](int64_t n) { return full({}, n, x[1].options()); };
         return ctc_loss(x[0], x[1], length(x[0].size(0)), length(x[1].size(0)), x[0].size(1) - 1,
                         Reduction::None);
       },
       [](P x) {
         std::vector<int64_t> labels(x[1].v.begin(), x[1].v.end());
         const Plain batched{{x[0].size(0), 1, x[0].size(1)}, x[0].v};
         return Plain{{}, {sequence_loss(batched, 0, x[0].size(0), labels)}};
       })
      .also(kHalfs)
      .big({real({400, 30}, -3, -0.1), index({60}, 29)})
      .alone("a sample is one thread's")
      .small("a sample is one block's, whatever its length")
      .not_empty("refused: a blank is one of the classes")
      .not_scalar(rank)
      .within(8);
}

std::vector<Row> rows() {
  Table t;
  add_pairs(t);
  add_signed(t);
  add_samples(t);
  add_classes(t);
  add_sequences(t);
  return t.rows();
}
RAMET_OP_TABLE(rows());

}  // namespace
}  // namespace op_table
}  // namespace ramet
