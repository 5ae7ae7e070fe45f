// Loss scaling for float16 (Micikevicius et al. 2018), as torch.amp.GradScaler in Python:
//
//   optim::GradScaler scaler;
//   for (auto& batch : loader) {
//     optimizer.zero_grad();
//     Tensor loss;
//     {
//       const AutocastGuard on(kCUDA, kHalf);
//       loss = loss_of(net(batch.data), batch.target);
//     }
//     scaler.scale(loss).backward();
//     scaler.unscale_(optimizer);  // only where something reads the gradients, like clipping
//     nn::utils::clip_grad_norm_(net->parameters(), 1);
//     scaler.step(optimizer);
//     scaler.update();
//     schedule.step();
//   }
//
// float16 has no numbers below 6e-8, and gradients may be smaller. A backward pass of scaled losses
// makes gradients that fit. Where the scale is too large some of them are infinite or NaN. Then
// step() changes nothing, and update() makes the scale smaller. After growth_interval steps without
// such a gradient, update() makes it larger.
//
// Note [Skipped steps]
// On a GPU the host does not wait for the answer whether gradients are finite. The kernels of the
// step read it there. The host counts the step, and takes the count back when it learns that the
// step was skipped. It learns that at the next step, or where a program asks for the optimizer's
// state. Then schedules count the calls of their step() that followed. A schedule does not count a
// call if all the optimizer's steps since the last call were skipped. Until then the options of a
// GPU's optimizer have the rate of before. On CPUs the host knows at once.
#pragma once
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "nn/module/arg.h"
#include "nn/optim/optimizer.h"
#include "runtime/capture/capture.h"

namespace ramet::optim {

struct RAMET_API GradScalerOptions {
  /// The first scale: more than 0.
  RAMET_ARG(double, init_scale) = 65536;
  /// By which update() multiplies a scale that served for growth_interval steps: more than 1.
  RAMET_ARG(double, growth_factor) = 2;
  /// By which update() multiplies a scale that was too large: between 0 and 1.
  RAMET_ARG(double, backoff_factor) = 0.5;
  /// Steps in a row with finite gradients before the scale grows: 1 to 2^31 - 1.
  RAMET_ARG(int64_t, growth_interval) = 2000;
  /// Off: scale() returns its argument, step() is the optimizer's step, and the others do nothing.
  RAMET_ARG(bool, enabled) = true;
};

/// Several losses, several optimizers and accumulated gradients may share a scaler. Each loss is
/// scaled, each optimizer steps by step(), and update() follows all of them. May be captured.
class RAMET_API GradScaler {
 public:
  /// An Error where an option is out of its range.
  explicit GradScaler(GradScalerOptions options = {});

  /// outputs * scale. The first call puts the scale on the outputs' device.
  Tensor scale(const Tensor& outputs);
  std::vector<Tensor> scale(const std::vector<Tensor>& outputs);

  /// Divides the gradients of the optimizer's parameters by the scale. Replaces float16 gradients
  /// by float32 ones, in which small numbers remain. At most once for each optimizer between two
  /// calls of update(), before step(). After an exception gradients may be divided already.
  void unscale_(Optimizer& optimizer);
  /// unscale_(), unless it was called. Then the optimizer's step, if all gradients are finite.
  /// Once for each optimizer between two calls of update(). An Error if no parameter has a
  /// gradient.
  void step(Optimizer& optimizer);
  /// Makes the scale smaller if a step since the last call was skipped. Otherwise makes it larger,
  /// if growth_interval calls in a row found only finite gradients.
  void update();
  /// The same, but to this scale.
  void update(double new_scale);

  /// The scale; init_scale before the first scale(). Waits for a GPU.
  double get_scale() const;
  /// Calls of update() in a row that found only finite gradients. Waits for a GPU.
  int64_t get_growth_tracker() const;
  /// Option of the constructor, or as it was set.
  double get_growth_factor() const noexcept { return options_.growth_factor(); }
  /// Option of the constructor, or as it was set.
  double get_backoff_factor() const noexcept { return options_.backoff_factor(); }
  /// Option of the constructor, or as it was set.
  int64_t get_growth_interval() const noexcept { return options_.growth_interval(); }
  /// GradScalerOptions::enabled.
  bool is_enabled() const noexcept { return options_.enabled(); }
  /// Changes the option from the next update() on. Errors as the constructor's.
  void set_growth_factor(double factor);
  /// Changes the option from the next update() on. Errors as the constructor's.
  void set_backoff_factor(double factor);
  /// Changes the option from the next update() on. Errors as the constructor's.
  void set_growth_interval(int64_t interval);

  /// `reduce` is called before each step, on all processes. It changes a float tensor of one
  /// element to the maximum over the processes. That is needed where each process has only a part
  /// of the gradients: distributed::share_found_inf() does it for fully_shard().
  /// Reductions that were added before are called too, in order.
  void add_found_inf_reduction(std::function<void(const Tensor& found_inf)> reduce) {
    reductions_.push_back(std::move(reduce));
  }

  /// Writes PyTorch's state_dict(), by its names; nothing if the scaler is off.
  void save(serialize::OutputArchive& archive) const;
  /// Reads it. An Error if it is empty or has options out of their range.
  void load(serialize::InputArchive& archive);

 private:
  enum class Stage { kUnscaled, kStepped };
  struct Entry {
    Stage stage = Stage::kUnscaled;
    std::vector<Tensor> found;  // for each device of the gradients: 1 if one is not finite
    Tensor found_inf;           // their maximum over all devices and processes, once it is known
  };
  using Entries = std::unordered_map<Optimizer*, Entry>;
  static void check(const GradScalerOptions& options);
  /// Makes the scale's tensors on `device` if they are not there yet.
  void start(Device device);
  /// Makes a running capture depend on the present scale, stages and reductions.
  void guard() const;
  /// Replaces the entries, in each replay too.
  void set_entries(Entries entries);
  /// Sets found_inf of an entry.
  void ask(Entry& entry) const;

  GradScalerOptions options_;
  Tensor scale_, tracker_;  // float and int, one element; undefined before the first scale()
  int64_t first_tracker_ = 0;
  Entries entries_;
  std::vector<std::function<void(const Tensor&)>> reductions_;
  capture::Life life_;
};

RAMET_API serialize::OutputArchive& operator<<(serialize::OutputArchive& archive,
                                               const GradScaler& scaler);
RAMET_API serialize::InputArchive& operator>>(serialize::InputArchive& archive, GradScaler& scaler);

}  // namespace ramet::optim
