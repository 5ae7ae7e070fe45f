// The common part of optimizers with a fused kernel: parameters in flat stores, state in buffers of
// the same layout, and steps over runs.
//
// Note [A step is whole]
// A step allocates all its memory (state, copies) for all groups before the first value changes.
// Where that fails, parameters and state are unchanged and the step can be repeated. The part that
// changes values allocates nothing.
#pragma once
#include <array>
#include <unordered_map>

#include "nn/module/arg.h"
#include "nn/module/flat_store.h"
#include "nn/optim/fields.h"
#include "runtime/capture/capture.h"

namespace ramet::kernels {
template <class Args> struct Kernel;
}

namespace ramet::optim {

/// The optimizer's state for one parameter: tensors of its sizes, undefined where they are not in
/// use, and the number of steps where it matters.
class RAMET_API FusedParamState : public OptimizerParamState {
 public:
  /// The float32 master of a 16-bit parameter; undefined where there is none.
  RAMET_ARG(Tensor, master_param);

 public:
  void serialize(serialize::InputArchive& archive) override;
  void serialize(serialize::OutputArchive& archive) const override;

 protected:
  static constexpr size_t kTensors = 3;
  struct Member {
    const char* name = nullptr;  // in files
    Tensor* at = nullptr;
  };
  struct Number {
    const char* name = nullptr;  // in files; none: it is not there
    double* at = nullptr;
  };
  struct Members {
    std::array<Member, kTensors> tensors;
    size_t always = 0;  // so many, from the first, files have even where they are undefined
    int64_t* step = nullptr;
    std::array<Number, 2> numbers = {};  // the first is what the step takes
    Tensor* master = nullptr;            // all_members() sets it
  };
  /// All members that the class adds, in a fixed order.
  virtual Members members() = 0;
  friend class FusedOptimizer;

 private:
  Members all_members() {
    Members m = members();
    m.master = &master_param_;
    return m;
  }
};

/// The constructor flattens the parameters (Note [Flat stores] in nn/module/flat_store.h). So a
/// step is one kernel call for each run of adjacent parameters with gradients in place. Operands
/// that no kernel takes in place (gaps, another layout or dtype than the parameter's) are copied
/// for the step.
///
/// A parameter in kHalf or kBFloat16 has a master: itself in float32. A step updates the master and
/// rounds it to the parameter, in the same kernel (Note [Masters] in kernels/optim/step.h). State
/// tensors are float32 too. The gradient may be float32, kHalf or kBFloat16. A program may write
/// parameters between steps, and convert a module with to() before or after it makes the optimizer.
class RAMET_API FusedOptimizer : public Optimizer {
 public:
  Tensor step(LossClosure closure = nullptr) override;
  void step_unless(const Tensor& found_inf) override;
  void load(serialize::InputArchive& archive) override;

  /// Should 16-bit parameters have masters? They have at first. Without masters the states of a
  /// 16-bit parameter have its dtype, as LibTorch's have. That takes 8 bytes less for each element
  /// in Adam. But updates below the rounding are lost, and moments stop to decay. States that exist
  /// keep their dtype, and a loaded one has that of this setting.
  void use_masters(bool on) { masters_ = on; }
  /// What use_masters() set.
  bool uses_masters() const noexcept { return masters_; }

 protected:
  static constexpr size_t kOperands = 3 + FusedParamState::kTensors;
  using Copies = std::array<Tensor, kOperands>;
  using StateMembers = FusedParamState::Members;
  FusedOptimizer(const std::vector<OptimizerParamGroup>& param_groups,
                 std::unique_ptr<OptimizerOptions> defaults);
  /// One parameter of a step: it has a gradient.
  struct Update {
    const Tensor *parameter, *gradient;
    StateMembers state = {};         // empty where no tensor is wanted
    int64_t number = 1;              // of the step: 1, 2, ...; without a count: 1, 2, 2, ...
    const Copies* copies = nullptr;  // of operands() that no kernel takes; others undefined
    const Tensor* master() const { return state.master; }
    ScalarType state_dtype() const { return state.master ? kFloat : parameter->scalar_type(); }
    /// Of the gradient as the kernel gets it.
    ScalarType gradient_dtype = kFloat;
  };
  /// Updates the parameters of a group: run(). Must not allocate tensors: Note [A step is whole].
  virtual void step_group(const OptimizerOptions& options, ArrayRef<Update> updates) = 0;
  /// Which of a state's tensors a step with these options uses: a bit each.
  virtual unsigned uses(const OptimizerOptions& options) const = 0;
  /// The first value of a state's tensor number `slot`.
  virtual double first_value(const OptimizerOptions& options, size_t slot) const;
  /// Sets the numbers of a state to their values in step `number`.
  virtual void advance(const OptimizerOptions& options, int64_t number,
                       const StateMembers& state) const;
  /// Name of the step in traces and version errors: "Adam.step".
  virtual const char* name() const = 0;
  void check_state(const Tensor& parameter, OptimizerParamState& state) const final;
  /// Makes the calls of `kernel` for a group. `numbers(args, options, n)` fills the numbers of the
  /// argument block for updates with step number n. (nn/optim/fused_internal.h)
  template <class Args, class Options>
  void run(const kernels::Kernel<Args>& kernel, const OptimizerOptions& options,
           ArrayRef<Update> updates, void (*numbers)(Args&, const Options&, int64_t));
  /// The same; `numbers` also gets the first number of the state.
  template <class Args, class Options>
  void run(const kernels::Kernel<Args>& kernel, const OptimizerOptions& options,
           ArrayRef<Update> updates, void (*numbers)(Args&, const Options&, int64_t, double));
  /// step_unless()'s argument on this device; undefined in a step that is made anyway.
  Tensor skip_on(Device device);
  /// The same for a kernel; null where it is undefined.
  const float* skip_pointer(Device device);
  void settle() const override;
  void when_settled(std::function<void()> action) const override;
  /// Does a step keep a master for this parameter?
  bool has_master(const Tensor& parameter) const {
    return masters_ && item_size(parameter.scalar_type()) == 2;
  }
  /// Copies the operands that have copies, before a call, or `back` after it.
  static void copy(const Update& u, unsigned uses, bool back);

 private:
  template <class Args, class Fill>
  void run_calls(const kernels::Kernel<Args>& kernel, const OptimizerOptions& options,
                 ArrayRef<Update> updates, const Fill& fill);
  static double first_number(const StateMembers& state) {
    return state.numbers[0].at ? *state.numbers[0].at : 0;
  }
  /// Collects the kernel's operands: the parameter, its gradient, its master if it has one, the
  /// tensors in use. Returns their number.
  template <class T>
  static int operands(const Update& u, unsigned uses, const T* (&out)[kOperands]) {
    int n = 0;
    out[n++] = u.parameter, out[n++] = u.gradient;
    if (u.master()) out[n++] = u.master();
    for (size_t slot = 0; uses >> slot; ++slot)
      if (uses >> slot & 1) out[n++] = u.state.tensors[slot].at;
    return n;
  }
  /// State tensor number `slot` of a parameter: zeros of its sizes, stored next to those of the
  /// adjacent parameters. The slot after the last one is the master's.
  Tensor new_state_tensor(const Tensor& parameter, size_t slot, ScalarType dtype);
  static constexpr size_t kMasterSlot = FusedParamState::kTensors;
  /// States that did not exist before a step that may be taken back.
  struct Fresh {
    std::vector<Tensor*> tensors;
    std::vector<void*> parameters;  // parameters without any state before
  };
  /// Makes updates_ and ends_, with all memory that they need.
  Fresh prepare();
  struct NewStates;
  /// The dtype in which a kernel takes operands()[operand].
  static ScalarType dtype_of(const Update& u, size_t operand);
  /// Can a kernel take the tensor as this operand?
  static bool fits(const Update& u, size_t operand, const Tensor& t);
  unsigned prepare_state(Update& u, const OptimizerOptions& options, NewStates& made);
  void make_copies(Update& u, unsigned operands);
  void place(NewStates& made, const Fresh& fresh);
  /// Makes these states undefined again.
  void drop(const Fresh& fresh);
  /// Makes a running capture depend on the present groups and states.
  void guard_states();
  /// Counts one more step in the states.
  void count_steps(Fresh fresh);
  struct Counted {
    size_t group;
    StateMembers state;
    std::array<double, 2> before = {};  // its numbers
  };
  void count_up(std::vector<Counted>& all) const;
  static void count_down(const std::vector<Counted>& all);
  /// Steps that the host counted before it knows whether they were skipped.
  struct Unsettled {
    std::vector<Counted> counted;
    Fresh fresh = {};
    Tensor skipped = {};  // the answer, in the host's memory
    std::vector<std::function<void()>> then = {};
  };
  struct Place {
    size_t store;  // in stores_
    // elements: where in the buffer, its whole length, the parameter's
    int64_t offset, total, numel;
  };
  void arrange();
  capture::Life life_;
  std::unordered_map<const void*, Place> places_;  // by Tensor::impl(); none for a loose parameter.
  size_t group_ = 0;                               // the group of the present step_group().
  size_t arranged_ = 0;                            // the number of parameters at that time.
  bool masters_ = true;
  std::vector<Tensor> skips_;  // step_unless()'s argument, on each device of the parameters
  mutable std::unique_ptr<Unsettled> unsettled_;
  // updates of the present step, group after group, and the end of each group; kept between steps
  // to reuse their memory
  std::vector<Update> updates_;
  std::vector<size_t> ends_;
  std::vector<std::unique_ptr<Copies>> copies_;
  // buffers of the state: by store and slot, made at need
  std::vector<std::vector<Tensor>> stores_;
};

}  // namespace ramet::optim
