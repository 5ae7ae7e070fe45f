// Optimizer: parameter groups with options, and a state per parameter. As LibTorch's.
#pragma once
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "autograd/tensor.h"

namespace ramet {
namespace serialize {
class OutputArchive;
class InputArchive;
}  // namespace serialize

namespace optim {

/// What an optimizer remembers of one parameter.
class RAMET_API OptimizerParamState {
 public:
  OptimizerParamState() = default;
  OptimizerParamState(const OptimizerParamState&) = default;
  OptimizerParamState& operator=(const OptimizerParamState&) = default;
  virtual ~OptimizerParamState();
  /// A copy; the base class throws.
  virtual std::unique_ptr<OptimizerParamState> clone() const;
  /// Reads from, writes to an archive. The base class has nothing to write and throws.
  virtual void serialize(serialize::InputArchive& archive);
  virtual void serialize(serialize::OutputArchive& archive) const;
};

/// Gives a state of the class Derived its clone().
template <class Derived, class Base = OptimizerParamState>
class OptimizerCloneableParamState : public Base {
  std::unique_ptr<OptimizerParamState> clone() const override {
    return std::make_unique<Derived>(static_cast<const Derived&>(*this));
  }
};

/// The options of an optimizer or of one of its groups.
class RAMET_API OptimizerOptions {
 public:
  OptimizerOptions() = default;
  OptimizerOptions(const OptimizerOptions&) = default;
  OptimizerOptions& operator=(const OptimizerOptions&) = default;
  virtual ~OptimizerOptions();
  /// A copy; the base class throws.
  virtual std::unique_ptr<OptimizerOptions> clone() const;
  /// Reads from, writes to an archive. The base class throws.
  virtual void serialize(serialize::InputArchive& archive);
  virtual void serialize(serialize::OutputArchive& archive) const;
  /// The learning rate, which schedules set. The base class throws.
  virtual double get_lr() const;
  /// Sets it. The base class throws.
  virtual void set_lr(const double lr);
  /// The momentum, or the first of two betas: what cycles of a schedule move. Null if there is
  /// none.
  virtual double* momentum_place();
  /// Takes from `defaults` each setting that still has its class's default value: the options of a
  /// parameter group say only what differs from the optimizer's.
  virtual void inherit(const OptimizerOptions& defaults);
  /// An Error where a setting is out of its range.
  virtual void check() const;
};

/// Gives options of the class Derived their clone().
template <class Derived> class OptimizerCloneableOptions : public OptimizerOptions {
  std::unique_ptr<OptimizerOptions> clone() const override {
    return std::make_unique<Derived>(static_cast<const Derived&>(*this));
  }
};

/// Parameters that share options.
class RAMET_API OptimizerParamGroup {
 public:
  OptimizerParamGroup(const OptimizerParamGroup& o)
      : params_(o.params_),
        options_(o.options_ ? o.options_->clone() : nullptr),
        initial_lr_(o.initial_lr_) {}
  OptimizerParamGroup(OptimizerParamGroup&&) = default;
  OptimizerParamGroup(std::vector<Tensor> params) : params_(std::move(params)) {}
  OptimizerParamGroup(std::vector<Tensor> params, std::unique_ptr<OptimizerOptions> options)
      : params_(std::move(params)), options_(std::move(options)) {}
  OptimizerParamGroup& operator=(const OptimizerParamGroup&) = delete;
  OptimizerParamGroup& operator=(OptimizerParamGroup&&) noexcept = default;

  /// Has it options of its own?
  bool has_options() const { return options_ != nullptr; }
  /// An Error if there are none.
  OptimizerOptions& options();
  const OptimizerOptions& options() const;
  /// Other options.
  void set_options(std::unique_ptr<OptimizerOptions> options) { options_ = std::move(options); }
  /// The parameters, in order.
  std::vector<Tensor>& params() { return params_; }
  const std::vector<Tensor>& params() const { return params_; }
  /// The rate from which schedules count: as it was when the first of them was made.
  std::optional<double>& initial_lr() { return initial_lr_; }
  const std::optional<double>& initial_lr() const { return initial_lr_; }

 protected:
  std::vector<Tensor> params_;
  std::unique_ptr<OptimizerOptions> options_;
  std::optional<double> initial_lr_;
};

/// What all optimizers have: groups of parameters with options, a state for each parameter, step().
class RAMET_API Optimizer {
 public:
  /// Computes the loss and its gradients, and returns the loss.
  using LossClosure = std::function<Tensor()>;

  Optimizer(const std::vector<OptimizerParamGroup>& param_groups,
            std::unique_ptr<OptimizerOptions> defaults);
  Optimizer(std::vector<Tensor> parameters, std::unique_ptr<OptimizerOptions> defaults);
  Optimizer(const Optimizer&) = delete;
  Optimizer(Optimizer&&) = default;
  Optimizer& operator=(const Optimizer&) = delete;
  Optimizer& operator=(Optimizer&&) = default;
  virtual ~Optimizer();

  /// An Error if a parameter is no leaf or is in a group already.
  void add_param_group(const OptimizerParamGroup& param_group);

  /// One update from the gradients that the parameters have. A parameter without one is not
  /// touched. `closure`, if given, computes the loss and its gradients first, and its result is
  /// returned.
  virtual Tensor step(LossClosure closure = nullptr) = 0;

  /// Makes a step if `found_inf`, a float tensor of one element, is 0. Otherwise parameters and
  /// states stay as they are. GradScaler calls it. Optimizers of this library do not wait for a
  /// GPU's found_inf: Note [Skipped steps] in nn/optim/grad_scaler.h. Others do.
  virtual void step_unless(const Tensor& found_inf);

  /// Drops the gradients of all parameters, or fills them with zeros.
  void zero_grad(bool set_to_none = true);

  /// Appends to the first group.
  void add_parameters(const std::vector<Tensor>& parameters);
  /// Those of the first group.
  const std::vector<Tensor>& parameters() const noexcept;
  std::vector<Tensor>& parameters() noexcept;
  /// Number of parameters of all groups.
  size_t size() const noexcept;
  /// What groups take where they say nothing.
  OptimizerOptions& defaults() noexcept { return *defaults_; }
  const OptimizerOptions& defaults() const noexcept { return *defaults_; }
  /// The groups, in order.
  std::vector<OptimizerParamGroup>& param_groups() noexcept { return param_groups_; }
  const std::vector<OptimizerParamGroup>& param_groups() const noexcept { return param_groups_; }
  /// By Tensor::impl() of the parameter. A parameter that has not been updated yet has none.
  /// Waits for a GPU only after step_unless().
  std::unordered_map<void*, std::unique_ptr<OptimizerParamState>>& state() {
    settle();
    return state_;
  }
  const std::unordered_map<void*, std::unique_ptr<OptimizerParamState>>& state() const {
    settle();
    return state_;
  }

  /// Options of the groups, and the state of each parameter by its number in the order of the
  /// groups. Load is for an optimizer of the same class over as many parameters in as many groups;
  /// an Error otherwise.
  virtual void save(serialize::OutputArchive& archive) const;
  virtual void load(serialize::InputArchive& archive);
  /// load(), where new_state() is not overridden: `make` makes a state without values.
  void load(serialize::InputArchive& archive,
            const std::function<std::unique_ptr<OptimizerParamState>()>& make);

 protected:
  /// How many steps were made, and how many step_unless() skipped, as far as the host knows.
  struct Progress {
    int64_t made = 0, skipped = 0;
  };
  /// Waits until the host knows whether the last step was skipped.
  virtual void settle() const {}
  /// Calls `action` when the host knows that.
  virtual void when_settled(std::function<void()> action) const { action(); }
  friend class LRScheduler;

  /// A state without values, for load.
  virtual std::unique_ptr<OptimizerParamState> new_state() const;
  /// Load asks it of each state before anything is changed: an Error if it cannot be `parameter`'s.
  virtual void check_state(const Tensor& parameter, OptimizerParamState& state) const;

  std::vector<OptimizerParamGroup> param_groups_;
  std::unordered_map<void*, std::unique_ptr<OptimizerParamState>> state_;
  std::unique_ptr<OptimizerOptions> defaults_;
  mutable Progress progress_;
};

RAMET_API serialize::OutputArchive& operator<<(serialize::OutputArchive& archive,
                                               const Optimizer& optimizer);
RAMET_API serialize::InputArchive& operator>>(serialize::InputArchive& archive,
                                              Optimizer& optimizer);

/// What save() and load() of an optimizer of one's own call where it has a state class:
/// `optim::serialize<MyParamState, MyOptions>(archive, *this)`.
template <class ParamState, class Options>
void serialize(serialize::OutputArchive& archive, const Optimizer& optimizer) {
  optimizer.Optimizer::save(archive);
}
template <class ParamState, class Options>
void serialize(serialize::InputArchive& archive, Optimizer& optimizer) {
  optimizer.Optimizer::load(archive, [] { return std::make_unique<ParamState>(); });
}

}  // namespace optim
}  // namespace ramet
