// Rows of the operation table: losses of classes and of sequences of labels.
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

struct LinearSizes {
  int64_t rows, features, classes;
};

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
        .row(name, kFloats, all,
             CALL(cross_entropy_loss, x[0], x[1], weights_of(x[0], c), c.reduction, c.ignored,
                  c.smoothing),
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
  line(t.row("cross_entropy_loss.line", kFloats, one, CALL(cross_entropy_loss, x[0], x[1]),
             [](P x) { return class_loss(x, {true}); }),
       "a row belongs to one block, however long it is");
  line(t.row("nll_loss.line", kFloats, one, CALL(nll_loss, x[0], x[1]),
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
  // x: rows of numbers, a weight of each class, targets and, for a fourth, a bias. `chunks`:
  // several of few rows, and of many.
  const auto linear_of = [&](const char* name, Classes c, bool chunks) {
    std::vector<LinearSizes> sizes = {{4, 3, 5}, {3, 0, 4}, {1, 2, 1}};
    // The mean of no losses is no number, whatever the weights are.
    if (c.reduction != Reduction::Mean) sizes.push_back({0, 2, 3});
    Samples samples;
    for (const auto& [n, in, classes] : sizes)
      samples.push_back({real({n, in}, -1, 1), real({classes, in}, -1, 1), index({n}, classes),
                         real({classes}, -1, 1)});
    t.row(
         name, kFloats, samples,
         [=](V x) {
           const int64_t rows = x[0].size(0);
           return linear_cross_entropy(
               x[0], x[1], x[2], x[3],
               c.weighted ? std::optional<Tensor>(arange(1, x[1].size(0) + 1, x[1].options()))
                          : std::nullopt,
               c.reduction, c.ignored, c.smoothing,
               chunks ? std::optional<int64_t>(rows > 8 ? 128 : 2) : std::nullopt);
         },
         [c](P x) {
           const Plain logits = made({x[0].size(0), x[1].size(0)}, [&](const Index& i) {
             double sum = x[3].at({i[1]});
             for (int64_t k = 0; k < x[0].size(1); ++k)
               sum += x[0].at({i[0], k}) * x[1].at({i[1], k});
             return sum;
           });
           return class_loss({logits, x[2]}, c);
         })
        .big({real({300, 40}, -1, 1), real({90, 40}, -1, 1), index({300}, 90), real({90}, -1, 1)})
        .in_one("on a GPU a product's order of sums depends on its rows")
        .small("products of small matrices")
        .within(8);
  };
  linear_of("linear_cross_entropy", {true}, false);
  linear_of("linear_cross_entropy.none", {true, false, Reduction::None}, true);
  linear_of("linear_cross_entropy.smooth", {true, true, Reduction::Sum, 0.25, 1}, true);
  t.row("cross_entropy_loss.probabilities", kFloats,
        {{real({3, 4}, -3, 3), real({3, 4}, 0.1, 0.9)}, {real({0, 4}), real({0, 4})}},
        CALL(cross_entropy_loss, x[0], x[1]),
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
    t.row(name, kFloats, samples, CALL(f, x[0], x[1], weights_of(x[0], c), c.reduction, c.ignored),
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
  t["nll_loss"].writes(OUT(nll_loss, x[0], x[1]));
  t["nll_loss2d.none"].writes(OUT(nll_loss2d, x[0], x[1], {}, Reduction::None));
  likelihood("nll_loss_nd", nll_loss_nd, all, {false, true, Reduction::Sum}, large_lines);
}

// ---- sequences of labels

double log_sum(double a, double b, double c) {
  const double top = std::fmax(a, std::fmax(b, c));
  if (top == -INFINITY) return a + b + c;  // NaN where one is
  return top + std::log(std::exp(a - top) + std::exp(b - top) + std::exp(c - top));
}
// The loss of sample b of x [steps, batch, classes] with these labels; the last class is the blank.
// Sums over prefixes of the labels with blanks between.
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
  t.row("ctc_loss", kWide, all, CALL(ctc_loss, x[0], x[1], x[2], x[3], x[0].size(2) - 1),
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
  t.row("ctc_loss.none", kWide, any,
        CALL(ctc_loss, x[0], x[1], x[2], x[3], x[0].size(2) - 1, Reduction::None, true),
        [](P x) {
          return Plain{{x[0].size(1)}, sequence_losses(x, true)};
        })
      .also(kHalfs)
      .big(large)
      .sliced({1, 0, 0, 0}, 0)
      .not_scalar(rank)
      .within(8);
  // Labels of all samples one after the other, as many of each.
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

RAMET_OP_TABLE(add_classes, add_sequences);

}  // namespace
}  // namespace op_table
}  // namespace ramet
