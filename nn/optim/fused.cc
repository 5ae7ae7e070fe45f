#include "nn/optim/fused.h"

#include "autograd/grad_mode.h"
#include "autograd/ops/factory.h"
#include "runtime/observer.h"

namespace ramet::optim {

FusedOptimizer::FusedOptimizer(const std::vector<OptimizerParamGroup>& param_groups,
                               std::unique_ptr<OptimizerOptions> defaults)
    : Optimizer(param_groups, std::move(defaults)) {
  arrange();
}

// Places for the parameters of each group that have none: all of them at first, later those that
// were added.
void FusedOptimizer::arrange() {
  if (arranged_ == size()) return;
  for (const OptimizerParamGroup& group : param_groups_) {
    std::vector<Tensor> fresh;
    for (const Tensor& p : group.params())
      if (!places_.count(p.impl())) fresh.push_back(p);
    for (const nn::FlatStore& store : nn::flatten_parameters(fresh).stores) {
      for (const nn::FlatStore::Segment& s : store.segments)
        places_[fresh[s.index].impl()] = {stores_.size(), s.offset, store.parameters.numel(),
                                          s.numel};
      stores_.emplace_back();
    }
  }
  arranged_ = size();
}

Tensor FusedOptimizer::new_state_tensor(const Tensor& p, size_t slot) {
  const auto found = places_.find(p.impl());
  if (found == places_.end() || found->second.numel != p.numel()) return zeros_like(p);
  const Place& place = found->second;
  std::vector<Tensor>& slots = stores_[place.store];
  if (slots.size() <= slot) slots.resize(slot + 1);
  Tensor& buffer = slots[slot];
  if (!buffer.defined())
    buffer = zeros({place.total}, TensorOptions(p.device()).dtype(p.scalar_type()));
  if (buffer->key() != p->key()) return zeros_like(p);  // the parameter was moved or cast since
  const Tensor made(TensorBase::over(buffer.storage_impl(),
                                     place.offset * static_cast<int64_t>(p.element_size()),
                                     p.sizes(), contiguous_strides(p.sizes()), p.scalar_type()));
  made.zero_();  // the place may have served an earlier state
  return made;
}

bool FusedOptimizer::fusable(const TensorBase* const* operands, int count) {
  const TensorBase& p = *operands[0];
  if (p.scalar_type() != kFloat && p.scalar_type() != kDouble) return false;
  for (int i = 0; i < count; ++i)
    if (!operands[i]->raw_contiguous() || (*operands[i])->key() != p->key() ||
        operands[i]->numel() != p.numel())
      return false;
  return true;
}

Tensor FusedOptimizer::step(LossClosure closure) {
  Tensor loss;
  if (closure) {
    const EnableGradGuard on;
    loss = closure();
  }
  const NoGradGuard off;
  const RecordScope scope(name());
  arrange();
  for (size_t g = 0; g < param_groups_.size(); ++g) step_group(g);
  return loss;
}

// The loaded tensors are copied to the places where a step finds neighbours together.
void FusedOptimizer::load(serialize::InputArchive& archive) {
  Optimizer::load(archive);
  const NoGradGuard off;
  arrange();
  for (size_t g = 0; g < param_groups_.size(); ++g) {
    const std::vector<Tensor>& params = param_groups_[g].params();
    for (size_t i = 0; i < params.size(); ++i) {
      const auto found = state_.find(params[i].impl());
      if (found == state_.end()) continue;
      const std::vector<Tensor*> tensors = state_tensors(*found->second);
      for (size_t slot = 0; slot < tensors.size(); ++slot) {
        if (!tensors[slot]->defined()) continue;
        RAMET_CHECK(tensors[slot]->sizes() == params[i].sizes(), "optim",
                    "loaded state of parameter ", i, " of group ", g, ": got ",
                    describe(*tensors[slot]), ", expected the sizes of ", describe(params[i]));
        const Tensor made = new_state_tensor(params[i], slot);
        made.copy_(*tensors[slot]);
        *tensors[slot] = made;
      }
    }
  }
}

}  // namespace ramet::optim
