// What the optimizers with a fused kernel share: parameters in flat stores, state beside them, and
// steps over runs.
//
// Note [A step is whole]
// All memory of a step (state, temporaries) is taken for all groups before the first value changes.
// Where that fails, parameters and state are as they were and the step can be made again. What then
// changes values allocates nothing.
#pragma once
#include <array>
#include <unordered_map>

#include "nn/module/flat_store.h"
#include "nn/optim/optimizer.h"
#include "runtime/capture.h"

namespace ramet::optim {

/// Its parameters are flattened at construction (Note [Flat stores] in nn/module/flat_store.h), so
/// that a step is one kernel call for each run of neighbours that have gradients in place.
class RAMET_API FusedOptimizer : public Optimizer {
 public:
  Tensor step(LossClosure closure = nullptr) override;
  void load(serialize::InputArchive& archive) override;

 protected:
  FusedOptimizer(const std::vector<OptimizerParamGroup>& param_groups,
                 std::unique_ptr<OptimizerOptions> defaults);
  /// One parameter of a step: it has a gradient.
  struct Update {
    const Tensor *parameter, *gradient;
    OptimizerParamState* state = nullptr;  // null where no slot is wanted
    bool first = false;                    // a slot was made for this step
    // Two temporaries of the parameter's geometry where no kernel takes the operands: dtypes but
    // float32 and float64, gaps, several dtypes. Undefined where one does.
    Tensor scratch[2];
  };
  /// Updates the parameters of a group. Must not allocate tensors: Note [A step is whole].
  virtual void step_group(const OptimizerOptions& options, ArrayRef<Update> updates) = 0;
  /// How many of state_tensors(), from the first, a step with these options uses.
  virtual size_t slots(const OptimizerOptions& options) const = 0;
  /// Name of the step in traces and version errors: "Adam.step".
  virtual const char* name() const = 0;
  /// The tensors of a parameter's state, in a fixed order: undefined where not in use, null where
  /// there are fewer.
  using Slots = std::array<Tensor*, 3>;
  virtual Slots state_tensors(OptimizerParamState& state) const = 0;
  /// How many steps a state has seen, where a step depends on that: parameters of another age are
  /// another call.
  virtual int64_t age(const OptimizerParamState&) const { return 0; }
  void check_state(const Tensor& parameter, OptimizerParamState& state) const final;
  /// Which group step_group() is working on.
  size_t group() const { return group_; }

 private:
  /// State tensor number `slot` of a parameter: zeros of its sizes and dtype, beside those of its
  /// neighbours.
  Tensor new_state_tensor(const Tensor& parameter, size_t slot);
  /// Makes updates_ and ends_, with all memory that they need.
  void prepare();
  /// A capture depends on groups and states being what they are now.
  void guard_states();
  struct Place {
    size_t store;  // in stores_
    // elements: where in the buffer, its whole length, the parameter's
    int64_t offset, total, numel;
  };
  void arrange();
  capture::Life life_;
  std::unordered_map<const void*, Place> places_;  // by Tensor::impl(); none for a loose parameter
  size_t group_ = 0;
  size_t arranged_ = 0;  // how many parameters there were
  // of the step that is being made, group after group, and where each group ends; kept between
  // steps for their memory
  std::vector<Update> updates_;
  std::vector<size_t> ends_;
  // buffers of the state: by store and slot, made at need
  std::vector<std::vector<Tensor>> stores_;
};

}  // namespace ramet::optim
