// Averages of a model's weights over its training: stochastic weight averaging (Izmailov et al.
// 2018) and exponential moving averages, as torch.optim.swa_utils has them in Python.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "autograd/grad_mode.h"
#include "nn/module/arg.h"
#include "nn/module/module_holder.h"

namespace ramet::optim {

/// The new average of one tensor, of which `num_averaged` values have been averaged so far.
using AvgFn =
    std::function<Tensor(const Tensor& averaged, const Tensor& current, int64_t num_averaged)>;
/// Changes the averages of many, which have one device and dtype.
using MultiAvgFn = std::function<void(const std::vector<Tensor>& averaged,
                                      const std::vector<Tensor>& current, int64_t num_averaged)>;

/// decay averaged + (1 - decay) current. An Error unless decay is in [0, 1].
RAMET_API AvgFn get_ema_avg_fn(double decay = 0.999);
/// The same for many tensors in one call.
RAMET_API MultiAvgFn get_ema_multi_avg_fn(double decay = 0.999);
/// The mean of all: averaged + (current - averaged) / (num_averaged + 1).
RAMET_API AvgFn get_swa_avg_fn();
/// The same for many tensors in one call.
RAMET_API MultiAvgFn get_swa_multi_avg_fn();

struct RAMET_API AveragedModelOptions {
  /// Where the averages are; none: where the model is.
  RAMET_ARG(std::optional<Device>, device);
  /// One of the two, or none for the mean.
  RAMET_ARG(AvgFn, avg_fn);
  /// An Error together with avg_fn.
  RAMET_ARG(MultiAvgFn, multi_avg_fn);
  /// Averages the buffers as well. Else they are the model's at the last update.
  RAMET_ARG(bool, use_buffers) = false;
};

namespace detail {

/// What does not depend on the model's class.
class RAMET_API AveragedModelBase : public nn::Module {
 public:
  /// The first time, the averages become the model's values. An Error where the model has other
  /// parameters or buffers than the one it was made of. Not in a capture.
  void update_parameters(const nn::Module& model);
  template <class M> void update_parameters(const nn::ModuleHolder<M>& model) {
    update_parameters(static_cast<const nn::Module&>(*model));
  }
  void pretty_print(std::ostream& stream) const override;
  const AveragedModelOptions& options() const noexcept { return options_; }
  /// Files of a module, and the averages in float32 of 16-bit tensors.
  void save(serialize::OutputArchive& archive) const override;
  void load(serialize::InputArchive& archive) override;
  /// How many values have been averaged: a buffer, on the host unless it is moved.
  Tensor n_averaged;

 protected:
  explicit AveragedModelBase(AveragedModelOptions options);
  std::shared_ptr<nn::Module> copy_of(const nn::Module& model) const;
  /// The averages in float32 of 16-bit parameters and buffers, in their order. Others are
  /// undefined. Elements begin anew where the rounded average was written, as those of an
  /// optimizer's masters (kernels/optim/step.h).
  std::vector<Tensor> masters_;

 private:
  virtual const nn::Module& averaged() const = 0;
  AveragedModelOptions options_;
};

/// While it lives, the batch norms of `module` train, and their running statistics become the
/// plain average of what they see.
class RAMET_API BatchNormAverages {
 public:
  explicit BatchNormAverages(nn::Module& module);
  ~BatchNormAverages();
  BatchNormAverages(const BatchNormAverages&) = delete;
  /// Are there any?
  explicit operator bool() const noexcept { return !momenta_.empty(); }

 private:
  std::vector<std::pair<std::shared_ptr<nn::Module>, bool>> modes_;
  std::vector<std::pair<std::optional<double>*, std::optional<double>>> momenta_;
};

// The input of a batch: the batch itself, or its first part.
inline const Tensor& input_of(const Tensor& batch) { return batch; }
template <class Batch> auto input_of(const Batch& batch) -> decltype((batch.data)) {
  return batch.data;
}
template <class First, class... Rest> const First& input_of(const std::tuple<First, Rest...>& b) {
  return std::get<0>(b);
}
template <class First, class Second> const First& input_of(const std::pair<First, Second>& b) {
  return b.first;
}
inline const Tensor& input_of(const std::vector<Tensor>& batch) {
  RAMET_CHECK(!batch.empty(), "update_bn", "a batch: got no tensor, expected the input first");
  return batch[0];
}

}  // namespace detail

/// A copy of `model`, which must be Cloneable. The copy's parameters are averages of the model's.
/// 16-bit ones are averaged in float32 and rounded.
/// Its `module` is called as the model is. It saves "module.*" and "n_averaged".
template <class Contained> class AveragedModelImpl : public detail::AveragedModelBase {
 public:
  explicit AveragedModelImpl(const Contained& model, AveragedModelOptions options = {})
      : AveragedModelBase(std::move(options)),
        module(register_module("module", std::dynamic_pointer_cast<Contained>(copy_of(model)))) {}

  template <class... Args>
  auto forward(Args&&... args)
      -> decltype(nn::call(std::declval<Contained&>(), std::forward<Args>(args)...)) {
    return nn::call(*module, std::forward<Args>(args)...);
  }
  std::shared_ptr<nn::Module> clone(
      const std::optional<Device>& device = std::nullopt) const override {
    AveragedModelOptions options = this->options();
    auto copy = std::make_shared<AveragedModelImpl>(
        *module, std::move(device ? options.device(device) : options));
    copy->copy_flags_from(*this);
    for (const Tensor& t : masters_)
      copy->masters_.push_back(t.defined() ? t.to(device.value_or(t.device()), kFloat, false,
                                                  /*copy=*/true)
                                           : t);
    copy->n_averaged.set_data(
        n_averaged.detach().to(device.value_or(n_averaged.device()), kLong, false, /*copy=*/true));
    return copy;
  }
  const std::shared_ptr<Contained> module;

 private:
  const nn::Module& averaged() const override { return *module; }
};

/// `Net` is a holder:
///   optim::AveragedModel<Net> ema(net, options);   ema->update_parameters(net);   ema(x)
template <class Net>
class AveragedModel : public nn::ModuleHolder<AveragedModelImpl<typename Net::ContainedType>> {
 public:
  using Impl = AveragedModelImpl<typename Net::ContainedType>;
  AveragedModel(std::nullptr_t) : nn::ModuleHolder<Impl>(nullptr) {}
  AveragedModel(std::shared_ptr<Impl> module) : nn::ModuleHolder<Impl>(std::move(module)) {}
  explicit AveragedModel(const Net& model, AveragedModelOptions options = {})
      : nn::ModuleHolder<Impl>(std::make_shared<Impl>(*model, std::move(options))) {}
};

/// Runs `model`, a module's holder, once over the batches of `loader`, without gradients. The
/// running statistics of its batch norms become the plain averages over all batches. A batch is a
/// tensor, or begins with one (an Example's data). If `device` is given, that tensor moves to it.
template <class Loader, class ModuleType>
void update_bn(Loader&& loader, ModuleType& model,
               const std::optional<Device>& device = std::nullopt) {
  const NoGradGuard off;
  const detail::BatchNormAverages averages(*model);
  if (!averages) return;
  for (const auto& batch : loader) {
    const Tensor& input = detail::input_of(batch);
    model(device ? input.to(*device) : input);
  }
}

}  // namespace ramet::optim
