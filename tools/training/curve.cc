#include "tools/training/curve.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tools/see/plot.h"
#include "tools/training/progress.h"

namespace ramet::training {

namespace {

using see::Color;
using see::Curve;

constexpr Color kLoss{0, 114, 178}, kScore{213, 94, 0}, kOther{0, 158, 115};

// Number 0 is the loss.
double loss_of(const StepRecord& r, size_t number) {
  return number == 0 ? r.loss : number <= r.more.size() ? r.more[number - 1].value : std::nan("");
}

// The range of the losses without the first outliers; from 0 where that is not far.
void set_range(see::AxisOptions& axis, std::vector<double> losses) {
  if (losses.empty()) return;
  std::sort(losses.begin(), losses.end());
  const double high =
      losses[static_cast<size_t>(std::ceil(0.995 * static_cast<double>(losses.size() - 1)))];
  if (!(high > losses[0])) return;
  const double margin = 0.03 * (high - losses[0]),
               low = losses[0] >= 0 && losses[0] < 0.35 * high ? 0 : losses[0] - margin;
  axis.low(low).high(high + margin);
}

// The loss of single batches is noise around a curve. Points in the background show it; the line in
// front is their average over a window. The window is narrow where the loss falls fast, at the
// start.
void add_loss(see::Panel& panel, const std::vector<StepRecord>& steps, size_t number,
              double per_epoch, const std::string& name) {
  Color color = number == 0 ? kLoss : kOther;
  std::vector<double> places, values, smooth, sums = {0};
  for (const StepRecord& r : steps) {
    const double value = loss_of(r, number);
    if (!std::isfinite(value)) continue;
    places.push_back(static_cast<double>(r.step) / per_epoch);
    values.push_back(value);
    sums.push_back(sums.back() + value);
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t reach = values.size() > 10 ? std::min(1 + i / 6, 1 + values.size() / 50) : 0;
    const size_t from = i < reach ? 0 : i - reach, to = std::min(values.size(), i + reach + 1);
    smooth.push_back((sums[to] - sums[from]) / static_cast<double>(to - from));
  }
  Curve line(name, places, smooth), points("", places, values);
  line.color = color, line.width = number == 0 ? 2.6 : 2;
  color.alpha = 0.22;
  points.color = color, points.style = Curve::Style::kPoints;
  points.width = values.size() > 300 ? 1.3 : 2.2;
  if (values.size() > 10) panel.curves.push_back(points);
  panel.curves.push_back(line);
}

}  // namespace

std::string draw_curve(const History& history, int64_t steps_per_epoch, const std::string& title,
                       const std::string& subtitle, const std::string& score) {
  const auto& steps = history.steps();
  const auto& epochs = history.epochs();
  const double per_epoch = std::max<double>(1, static_cast<double>(steps_per_epoch)),
               last = std::max(
                   1.0, steps.empty() ? 1.0 : static_cast<double>(steps.back().step) / per_epoch);
  const see::AxisOptions x = see::AxisOptions("epoch").low(0).high(last).whole(last > 1);

  see::Panel loss{{}, "Training loss", x, {}};
  const size_t others = steps.empty() ? 0 : steps[0].more.size();
  std::vector<double> losses;
  for (const StepRecord& r : steps)
    for (size_t k = 0; k <= others; ++k)
      if (std::isfinite(loss_of(r, k))) losses.push_back(loss_of(r, k));
  set_range(loss.y, losses);
  for (size_t k = 0; k <= others; ++k) {
    const std::string name = k == 0 ? "loss" : readable(steps[0].more[k - 1].name);
    add_loss(loss, steps, k, per_epoch, others == 0 ? "" : name);
  }

  std::vector<double> places, values;
  Curve line("", places, values);
  double worst = std::numeric_limits<double>::infinity(), best = -worst;
  for (const EpochRecord& r : epochs) {
    const double value = r.test(score);
    line.x.push_back(static_cast<double>(r.step) / per_epoch);
    line.y.push_back(100 * value);
    line.labels.push_back(fixed(100 * value, 2) + "%");
    if (std::isfinite(value)) worst = std::min(worst, value), best = std::max(best, value);
  }
  line.style = Curve::Style::kLineAndPoints, line.color = kScore, line.width = 2.6;
  see::Panel test{{line}, "Test " + readable(score), x, see::AxisOptions().unit("%")};
  if (best >= worst) {
    const double margin = std::max(0.01, (best - worst) * 0.35);
    test.y.low(100 * std::max(0.0, worst - margin)).high(100 * std::min(1.0, best + margin));
  }
  return see::plot_bytes(
      {loss, test}, ".png",
      see::PlotOptions().title(title).subtitle(subtitle).width(1280).height(640));
}

}  // namespace ramet::training
