#include "nn/optim/grad_scaler.h"

#include <algorithm>
#include <tuple>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "nn/optim/call_batch_internal.h"
#include "nn/serialize/archive.h"

namespace ramet::optim {
namespace {

// 1 where a gradient of `optimizer` is not finite, by device. Divides the gradients by `scale`.
std::vector<Tensor> unscale_gradients(Optimizer& optimizer, const Tensor& scale) {
  std::vector<Tensor> found, scales;
  const auto place_of = [&](Device device) {
    for (size_t i = 0; i < found.size(); ++i)
      if (found[i].device() == device) return i;
    found.push_back(zeros({}, TensorOptions(kFloat).device(device)));
    scales.push_back(scale.to(device));
    return found.size() - 1;
  };
  // All memory first: a call that fails changes no gradient.
  std::vector<const Tensor*> dense;
  std::vector<std::pair<const Tensor*, Tensor>> scattered, wide;  // and their copies
  for (const OptimizerParamGroup& group : optimizer.param_groups())
    for (const Tensor& p : group.params()) {
      const Tensor& g = p.grad();
      if (!g.defined()) continue;
      RAMET_CHECK(g.is_floating_point(), "GradScaler", "a gradient: got ", describe(g),
                  ", expected a floating dtype");
      place_of(g.device());
      if (g.scalar_type() == kHalf) wide.emplace_back(&p, g.detach().to(kFloat).contiguous());
      else if (!g.raw_contiguous()) scattered.emplace_back(&g, g.detach().contiguous());
      else dense.push_back(&g);
    }
  auto batch = nn::detail::dense_batch<kernels::UnscaleArgs>(
      [&](const Tensor& head, kernels::UnscaleArgs& args) {
        const size_t at = place_of(head.device());
        args.scale = static_cast<const float*>(scales[at].ptr());
        args.found = static_cast<float*>(found[at].ptr());
        kernels::unscale(head.stream(), args);
      });
  for (const Tensor* g : dense) {
    batch.add(*g);
    g->storage_impl()->wrote("GradScaler.unscale_");
  }
  for (const auto& [g, copy] : scattered) batch.add(copy);
  for (const auto& [p, copy] : wide) batch.add(copy);
  batch.flush();
  for (const auto& [g, copy] : scattered) g->copy_(copy);
  for (const auto& [p, copy] : wide) p->mutable_grad() = copy;
  return found;
}

}  // namespace

GradScaler::GradScaler(GradScalerOptions options) : options_(std::move(options)) {
  check(options_);
}

void GradScaler::check(const GradScalerOptions& o) {
  const auto fail_unless = [](bool fits, const char* what, auto got, const char* expected) {
    RAMET_CHECK(fits, "GradScaler", what, ": got ", got, ", expected ", expected);
  };
  fail_unless(o.init_scale() > 0, "init_scale", o.init_scale(), "a number > 0");
  fail_unless(o.growth_factor() > 1, "growth_factor", o.growth_factor(), "a number > 1");
  fail_unless(o.backoff_factor() > 0 && o.backoff_factor() < 1, "backoff_factor",
              o.backoff_factor(), "a number between 0 and 1");
  fail_unless(o.growth_interval() >= 1 && o.growth_interval() <= INT32_MAX, "growth_interval",
              o.growth_interval(), "1 to 2147483647");
}
void GradScaler::set_growth_factor(double factor) {
  check(GradScalerOptions(options_).growth_factor(factor));
  options_.growth_factor(factor);
}
void GradScaler::set_backoff_factor(double factor) {
  check(GradScalerOptions(options_).backoff_factor(factor));
  options_.backoff_factor(factor);
}
void GradScaler::set_growth_interval(int64_t interval) {
  check(GradScalerOptions(options_).growth_interval(interval));
  options_.growth_interval(interval);
}

void GradScaler::start(Device device) {
  if (scale_.defined()) return;
  scale_ = full({}, options_.init_scale(), TensorOptions(kFloat).device(device));
  tracker_ = full({}, first_tracker_, TensorOptions(kInt).device(device));
  if (!capture::active()) return;
  capture::once();
  capture::on_failure([this] { scale_ = tracker_ = Tensor(); });
}

Tensor GradScaler::scale(const Tensor& outputs) {
  if (!is_enabled()) return outputs;
  RAMET_CHECK(outputs.defined() && outputs.is_floating_point(), "GradScaler", "outputs: got ",
              describe(outputs), ", expected a floating dtype");
  guard();
  start(outputs.device());
  return outputs * scale_.to(outputs.device());
}
std::vector<Tensor> GradScaler::scale(const std::vector<Tensor>& outputs) {
  std::vector<Tensor> scaled;
  for (const Tensor& one : outputs) scaled.push_back(scale(one));
  return scaled;
}

void GradScaler::guard() const {
  if (RAMET_LIKELY(!capture::active())) return;
  const auto now = [this] {
    std::vector<std::pair<Optimizer*, Stage>> stages;
    for (const auto& [optimizer, entry] : entries_) stages.emplace_back(optimizer, entry.stage);
    std::sort(stages.begin(), stages.end());
    return std::tuple(stages, scale_.impl(), reductions_.size());
  };
  capture::guard(
      this, "scale and stages of a GradScaler",
      [life = life_.token(), now, then = now()] { return !life.expired() && now() == then; });
}

void GradScaler::set_entries(Entries entries) {
  const Entries before = std::exchange(entries_, std::move(entries));
  if (RAMET_UNLIKELY(capture::active()))
    capture::effect([this, now = entries_] { entries_ = now; },
                    [this, before] { entries_ = before; });
}

void GradScaler::ask(Entry& entry) const {
  if (entry.found_inf.defined()) return;
  RAMET_CHECK(!entry.found.empty(), "GradScaler",
              "an optimizer's gradients: got none, expected a backward pass of a scaled loss. No "
              "inf checks were recorded for this optimizer");
  const NoGradGuard off;
  Tensor all = entry.found[0].to(scale_.device());
  for (const Tensor& found : entry.found) all = maximum(all, found.to(scale_.device()));
  for (const auto& reduce : reductions_) reduce(all);
  entry.found_inf = all;
}

void GradScaler::unscale_(Optimizer& optimizer) {
  if (!is_enabled()) return;
  guard();
  const auto found = entries_.find(&optimizer);
  if (found != entries_.end())
    RAMET_CHECK(false, "GradScaler",
                found->second.stage == Stage::kUnscaled
                    ? "unscale_() has already been called on this optimizer since the last update()"
                    : "unscale_() is being called after step()");
  RAMET_CHECK(scale_.defined(), "GradScaler",
              "an optimizer's gradients: got no scaled loss before them, expected "
              "scale(loss).backward()");
  Entries entries = entries_;
  {
    const NoGradGuard off;
    std::vector<Tensor> all = unscale_gradients(optimizer, scale_);
    if (all.empty()) return;  // no gradients: step() is an Error
    entries[&optimizer].found = std::move(all);
  }
  set_entries(std::move(entries));
}

void GradScaler::step(Optimizer& optimizer) {
  if (!is_enabled()) {
    optimizer.step();
    return;
  }
  guard();
  const auto found = entries_.find(&optimizer);
  RAMET_CHECK(found == entries_.end() || found->second.stage == Stage::kUnscaled, "GradScaler",
              "step() has already been called since the last update()");
  // A step that fails can be repeated: the gradients are divided once.
  if (found == entries_.end()) unscale_(optimizer);
  Entries entries = entries_;
  Entry& entry = entries[&optimizer];
  ask(entry);
  optimizer.step_unless(entry.found_inf);
  entry.stage = Stage::kStepped;
  set_entries(std::move(entries));
}

void GradScaler::update() {
  if (!is_enabled()) return;
  guard();
  RAMET_CHECK(!entries_.empty(), "GradScaler",
              "No inf checks were recorded prior to update(): call step() or unscale_() first");
  const NoGradGuard off;
  Tensor found;
  for (auto& [optimizer, entry] : entries_) {
    ask(entry);
    found = found.defined() ? maximum(found, entry.found_inf) : entry.found_inf;
  }
  kernels::update_scale(scale_.stream(),
                        {static_cast<float*>(scale_.ptr()), static_cast<int32_t*>(tracker_.ptr()),
                         static_cast<const float*>(found.ptr()), options_.growth_factor(),
                         options_.backoff_factor(), options_.growth_interval()});
  if (RAMET_UNLIKELY(capture::active()))
    capture::patch_last<kernels::UpdateScaleArgs>([this](kernels::UpdateScaleArgs& a) {
      a.growth = options_.growth_factor(), a.backoff = options_.backoff_factor();
      a.interval = options_.growth_interval();
    });
  scale_.storage_impl()->wrote("GradScaler.update");
  set_entries({});
}
void GradScaler::update(double new_scale) {
  if (!is_enabled()) return;
  guard();
  RAMET_CHECK(new_scale > 0, "GradScaler", "new_scale: got ", new_scale, ", expected a number > 0");
  if (scale_.defined()) {
    const NoGradGuard off;
    scale_.fill_(new_scale);
  } else {
    capture::refuse("GradScaler", "the scale has no device before the first scale()");
    options_.init_scale(new_scale);
  }
  set_entries({});
}

double GradScaler::get_scale() const {
  return !is_enabled() ? 1 : scale_.defined() ? scale_.item<double>() : options_.init_scale();
}
int64_t GradScaler::get_growth_tracker() const {
  return tracker_.defined() ? tracker_.item<int64_t>() : first_tracker_;
}

void GradScaler::save(serialize::OutputArchive& archive) const {
  if (!is_enabled()) return;
  archive.write("scale", IValue(get_scale()));
  archive.write("growth_factor", IValue(get_growth_factor()));
  archive.write("backoff_factor", IValue(get_backoff_factor()));
  archive.write("growth_interval", IValue(get_growth_interval()));
  archive.write("_growth_tracker", IValue(get_growth_tracker()));
}
void GradScaler::load(serialize::InputArchive& archive) {
  if (!is_enabled()) return;
  RAMET_CHECK(!archive.keys().empty(), "GradScaler",
              "the source state dict is empty, possibly because it was saved from a disabled "
              "instance of GradScaler");
  IValue scale, growth, backoff, interval, tracker;
  archive.read("scale", scale), archive.read("_growth_tracker", tracker);
  archive.read("growth_factor", growth), archive.read("backoff_factor", backoff);
  archive.read("growth_interval", interval);
  auto options = GradScalerOptions()
                     .growth_factor(growth.toDouble())
                     .backoff_factor(backoff.toDouble())
                     .growth_interval(interval.toInt());
  check(options);
  // Many skipped steps make it 0.
  RAMET_CHECK(scale.toDouble() >= 0, "GradScaler", "scale in the archive: got ", scale.toDouble(),
              ", expected at least 0");
  options.init_scale(scale.toDouble());
  RAMET_CHECK(tracker.toInt() >= 0, "GradScaler", "_growth_tracker in the archive: got ",
              tracker.toInt(), ", expected at least 0");
  options_ = options, first_tracker_ = tracker.toInt();
  scale_ = tracker_ = Tensor();  // the next scale() makes them
  entries_.clear();
}

serialize::OutputArchive& operator<<(serialize::OutputArchive& archive, const GradScaler& scaler) {
  scaler.save(archive);
  return archive;
}
serialize::InputArchive& operator>>(serialize::InputArchive& archive, GradScaler& scaler) {
  scaler.load(archive);
  return archive;
}

}  // namespace ramet::optim
