// What the optimizers with a fused kernel share: parameters in flat stores, state beside them, and
// steps over runs.
#pragma once
#include <unordered_map>

#include "nn/flat_store.h"
#include "nn/optim/optimizer.h"

namespace ramet::optim {

/// Its parameters are flattened at construction (Note [Flat stores] in nn/flat_store.h), so that a
/// step is one kernel call for each run of neighbours that have gradients in place.
class RAMET_API FusedOptimizer : public Optimizer {
 public:
  Tensor step(LossClosure closure = nullptr) override;
  void load(serialize::InputArchive& archive) override;

 protected:
  FusedOptimizer(const std::vector<OptimizerParamGroup>& param_groups,
                 std::unique_ptr<OptimizerOptions> defaults);
  /// Updates the parameters of group `g`, by calling run() for each, then flush().
  virtual void step_group(size_t g) = 0;
  /// Name of the step in traces and version errors: "Adam.step".
  virtual const char* name() const = 0;
  /// The tensors of a parameter's state, in a fixed order (undefined where not in use).
  virtual std::vector<Tensor*> state_tensors(OptimizerParamState& state) const = 0;

  /// State tensor number `slot` of a parameter: zeros of its sizes and dtype, beside those of its
  /// neighbours.
  Tensor new_state_tensor(const Tensor& parameter, size_t slot);
  /// May these be given to a kernel: contiguous, of one device, size and type, float or double?
  static bool fusable(const TensorBase* const* operands, int count);

 private:
  struct Place {
    size_t store;  // in stores_
    // elements: where in the buffer, its whole length, the parameter's
    int64_t offset, total, numel;
  };
  void arrange();
  std::unordered_map<const void*, Place> places_;  // by Tensor::impl(); none for a loose parameter
  size_t arranged_ = 0;                            // how many parameters there were
  // buffers of the state: by store and slot, made at need
  std::vector<std::vector<Tensor>> stores_;
};

}  // namespace ramet::optim
