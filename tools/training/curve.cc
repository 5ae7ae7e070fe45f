#include "tools/training/curve.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tools/training/canvas.h"
#include "tools/training/progress.h"

namespace ramet::training {

namespace {

constexpr Color kPaper{255, 255, 255}, kInk{38, 43, 51}, kSoft{120, 128, 140}, kGrid{228, 231, 236},
    kAxis{150, 157, 168};
constexpr Color kLoss{37, 99, 190}, kAccuracy{211, 84, 38}, kOther{20, 140, 120};

// A range and its ticks: multiples of 1, 2 or 5 times a power of ten, about `wanted` of them
// (Heckbert 1990).
struct Axis {
  double low, high, step;
  int decimals;

  Axis(double from, double to, int wanted) {
    if (!(to > from)) to = from + 1;
    const double raw = (to - from) / wanted, power = std::pow(10.0, std::floor(std::log10(raw))),
                 rest = raw / power;
    step = (rest < 1.5 ? 1 : rest < 3.5 ? 2 : rest < 7.5 ? 5 : 10) * power;
    low = std::floor(from / step + 1e-9) * step;
    high = std::ceil(to / step - 1e-9) * step;
    decimals = std::max(0, static_cast<int>(-std::floor(std::log10(step) + 1e-9)));
  }
  std::string label(double v) const { return fixed(v == 0 ? 0.0 : v, decimals); }
};

struct Panel {
  Canvas& canvas;
  double left, top, width, height;
  Axis x, y;

  double px(double v) const { return left + (v - x.low) / (x.high - x.low) * width; }
  double py(double v) const {
    return top + height - (std::clamp(v, y.low, y.high) - y.low) / (y.high - y.low) * height;
  }

  void frame(const std::string& heading, const char* unit, Color color) const {
    for (double v = y.low; v < y.high + y.step / 2; v += y.step) {
      canvas.line(left, py(v), left + width, py(v), 1, kGrid);
      canvas.text(left - 12, py(v) + 5, 10, y.label(v) + unit, kSoft, Canvas::Align::kRight);
    }
    for (double v = x.low; v < x.high + x.step / 2; v += x.step) {
      canvas.line(px(v), top + height, px(v), top + height + 6, 1.2, kAxis);
      canvas.text(px(v), top + height + 24, 10, x.label(v), kSoft, Canvas::Align::kCenter);
    }
    canvas.line(left, top + height, left + width, top + height, 1.4, kAxis);
    canvas.text(left + width / 2, top + height + 50, 10.5, "epoch", kSoft, Canvas::Align::kCenter);
    canvas.text(left, top - 22, 13, heading, color, Canvas::Align::kLeft, true);
  }
};

}  // namespace

std::string draw_curve(const History& history, int64_t steps_per_epoch, const std::string& title,
                       const std::string& subtitle, const std::string& score) {
  const int width = 1280, height = 640;
  Canvas canvas(width, height, kPaper);
  canvas.text(72, 56, 19, title, kInk, Canvas::Align::kLeft, true);
  canvas.text(72, 86, 11, subtitle, kSoft);

  const auto& steps = history.steps();
  const auto& epochs = history.epochs();
  const double per_epoch = std::max<double>(1, static_cast<double>(steps_per_epoch));
  const double last =
      std::max(1.0, steps.empty() ? 1.0 : static_cast<double>(steps.back().step) / per_epoch);
  Axis x(0, last, last <= 1 ? 5 : 6);
  if (last > 1 && x.step < 1)
    x = Axis(0, std::ceil(last - 1e-9), static_cast<int>(std::ceil(last)));  // whole epochs
  x.high = std::max(last, x.low + x.step * std::floor(last / x.step + 1e-9));

  // The loss of single batches is noise around a curve: points behind, in front their average over
  // a window that is narrow where the loss falls fast, at the start. The range leaves out the first
  // outliers.
  std::vector<double> losses;
  const size_t others = steps.empty() ? 0 : steps[0].more.size();
  // Number 0 is the loss.
  const auto loss_of = [](const StepRecord& r, size_t number) {
    return number == 0 ? r.loss : number <= r.more.size() ? r.more[number - 1].value : std::nan("");
  };
  for (const StepRecord& r : steps)
    for (size_t k = 0; k <= others; ++k)
      if (std::isfinite(loss_of(r, k))) losses.push_back(loss_of(r, k));
  double low = 0, high = 1;
  if (!losses.empty()) {
    std::vector<double> sorted = losses;
    std::sort(sorted.begin(), sorted.end());
    const auto quantile = [&](double q) {
      return sorted[static_cast<size_t>(q * static_cast<double>(sorted.size() - 1))];
    };
    high = quantile(0.995) * 1.02;
    low = quantile(0) < 0.35 * high ? 0 : quantile(0) * 0.95;
  }
  Panel loss{canvas, 112, 152, 480, 398, x, Axis(low, high, 6)};
  std::string heading = "training loss";
  for (size_t k = 0; k < others; ++k) heading += ", " + readable(steps[0].more[k].name);
  loss.frame(heading, "", kLoss);
  for (size_t k = others + 1; k-- > 0;) {
    const Color color = k == 0 ? kLoss : kOther;
    std::vector<double> sums = {0}, places;
    for (const StepRecord& r : steps) {
      const double value = loss_of(r, k);
      if (!std::isfinite(value)) continue;
      places.push_back(loss.px(static_cast<double>(r.step) / per_epoch));
      sums.push_back(sums.back() + value);
      if (losses.size() > 10 && value <= loss.y.high)
        canvas.dot(places.back(), loss.py(value), losses.size() > 300 ? 1.3 : 2.2,
                   {color.r, color.g, color.b, 0.22});
    }
    Points smooth;
    for (size_t i = 0; i < places.size(); ++i) {
      const size_t reach = places.size() > 10 ? std::min(1 + i / 6, 1 + places.size() / 50) : 0;
      const size_t from = i < reach ? 0 : i - reach, to = std::min(places.size(), i + reach + 1);
      smooth.emplace_back(places[i],
                          loss.py((sums[to] - sums[from]) / static_cast<double>(to - from)));
    }
    canvas.polyline(smooth, k == 0 ? 2.6 : 2.0, color);
  }

  double worst = 1, best = 0;
  for (const EpochRecord& r : epochs)
    worst = std::min(worst, r.test(score)), best = std::max(best, r.test(score));
  if (epochs.empty()) worst = 0, best = 1;
  const double margin = std::max(0.01, (best - worst) * 0.35);
  Panel accuracy{canvas,
                 744,
                 152,
                 480,
                 398,
                 x,
                 Axis(100 * std::max(0.0, worst - margin), 100 * std::min(1.0, best + margin), 5)};
  accuracy.y.high = std::min(accuracy.y.high, 100.0);
  accuracy.frame("test " + readable(score), "%", kAccuracy);
  Points line;
  for (const EpochRecord& r : epochs) {
    line.emplace_back(accuracy.px(static_cast<double>(r.step) / per_epoch),
                      accuracy.py(100 * r.test(score)));
  }
  canvas.polyline(line, 2.6, kAccuracy);
  // Values beside the dots as far as there is room: the last one, the best, then from the left.
  std::vector<size_t> candidates, labelled;
  for (size_t i = 0; i < epochs.size(); ++i) candidates.push_back(i);
  std::stable_sort(candidates.begin(), candidates.end(), [&](size_t a, size_t b) {
    const auto rank = [&](size_t i) {
      return i + 1 == epochs.size() ? 0 : epochs[i].test(score) == best ? 1 : 2;
    };
    return rank(a) < rank(b);
  });
  for (size_t i : candidates) {
    const bool free = std::all_of(labelled.begin(), labelled.end(), [&](size_t k) {
      return std::abs(line[k].first - line[i].first) > 72;
    });
    if (free) labelled.push_back(i);
  }
  for (size_t i = 0; i < epochs.size(); ++i) {
    canvas.dot(line[i].first, line[i].second, 5.5, kPaper);
    canvas.dot(line[i].first, line[i].second, 4.2, kAccuracy);
  }
  for (size_t i : labelled) {
    const auto [at, up] = line[i];
    const bool at_edge = at > accuracy.left + accuracy.width - 30;
    canvas.text(at_edge ? at + 4 : at, up - 14, 10.5, fixed(100 * epochs[i].test(score), 2) + "%",
                kInk, at_edge ? Canvas::Align::kRight : Canvas::Align::kCenter,
                i + 1 == epochs.size());
  }
  return canvas.png();
}

}  // namespace ramet::training
