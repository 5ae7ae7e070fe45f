#include "nn/optim/fused.h"

#include <algorithm>

#include "autograd/grad_mode.h"
#include "autograd/graph/inplace.h"
#include "autograd/ops/factory.h"
#include "runtime/capture.h"
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

namespace {

// May these be given to a kernel: contiguous, of one device, size and type, float or double?
bool fusable(const Tensor& p, const Tensor& other) {
  return p.raw_contiguous() && other.raw_contiguous() && p->key() == other->key() &&
         p.numel() == other.numel() && (p.scalar_type() == kFloat || p.scalar_type() == kDouble);
}

}  // namespace

void FusedOptimizer::prepare() {
  std::unordered_map<void*, std::unique_ptr<OptimizerParamState>> made;
  std::vector<std::pair<Tensor*, Tensor>> fresh;  // where it belongs, once nothing can fail
  for (const OptimizerParamGroup& group : param_groups_) {
    const size_t wanted = slots(group.options());
    for (const Tensor& p : group.params()) {
      const Tensor& grad = p.grad();
      if (!grad.defined()) {
        // Its gradients go elsewhere: left out, it would never change.
        RAMET_CHECK(!p->is(TensorImpl::kReplica), "optim", "parameter ", describe(p),
                    " has been sharded since this optimizer was made, or belongs to a replica: "
                    "expected an optimizer made after fully_shard(), of the module's parameters()");
        continue;
      }
      RAMET_CHECK(same_sizes(p, grad) && p.device() == grad.device(), "optim", "the gradient of ",
                  describe(p), ": got ", describe(grad), ", expected its size and device");
      autograd::check_normal("optim", p);
      Update u{&p, &grad, nullptr, false, {}};
      bool fused = fusable(p, grad);
      if (wanted) {
        const auto found = state_.find(p.impl());
        auto& state = found != state_.end() ? found->second : made[p.impl()];
        if (!state) state = new_state();
        u.state = state.get();
        const Slots tensors = state_tensors(*u.state);
        for (size_t slot = 0; slot < wanted; ++slot) {
          const bool there = tensors[slot]->defined();
          if (!there) fresh.emplace_back(tensors[slot], new_state_tensor(p, slot));
          u.first = u.first || !there;
          fused = fused && fusable(p, there ? *tensors[slot] : fresh.back().second);
        }
      }
      if (!fused) {
        for (const Update& other : updates_)  // one after the other they can use the same
          if (other.scratch[0].defined() && (*other.parameter)->key() == p->key() &&
              same_sizes(*other.parameter, p) && same_strides(*other.parameter, p))
            std::copy(other.scratch, other.scratch + 2, u.scratch);
        for (Tensor& t : u.scratch)
          if (!t.defined()) t = empty_like(p);
      }
      updates_.push_back(std::move(u));
    }
    ends_.push_back(updates_.size());
  }
  if (RAMET_UNLIKELY(capture::active()) && (!made.empty() || !fresh.empty())) {
    capture::once();
    std::vector<void*> keys;
    for (const auto& [key, state] : made) keys.push_back(key);
    std::vector<Tensor*> places;
    for (const auto& [where, tensor] : fresh) places.push_back(where);
    capture::on_failure([this, keys, places] {
      for (Tensor* place : places) *place = Tensor();
      for (void* key : keys) state_.erase(key);
      for (auto& buffers : stores_) buffers.clear();  // made again, with zeros, at need
    });
  }
  state_.reserve(state_.size() + made.size());
  for (auto& [where, tensor] : fresh) *where = std::move(tensor);
  state_.merge(made);
}

void FusedOptimizer::guard_states() {
  struct Seen {
    void* parameter;
    const OptimizerParamState* state;
    std::array<const TensorImpl*, 3> tensors;
    bool steps = false, joins = false;  // has a gradient; is as old as the one that steps before it
  };
  const auto look = [this](void* parameter) {
    Seen seen{parameter, nullptr, {}};
    const auto found = state_.find(parameter);
    if (found == state_.end()) return seen;
    seen.state = found->second.get();
    const Slots tensors = state_tensors(*found->second);
    for (size_t i = 0; i < tensors.size(); ++i)
      seen.tensors[i] = tensors[i] ? tensors[i]->impl() : nullptr;
    return seen;
  };
  const auto as_old = [this](const OptimizerParamState* a, const OptimizerParamState* b) {
    return a && b && age(*a) == age(*b);
  };
  std::vector<Seen> states;
  std::vector<std::pair<size_t, size_t>> groups;  // parameters, slots
  for (const OptimizerParamGroup& group : param_groups_) {
    groups.emplace_back(group.params().size(), slots(group.options()));
    const OptimizerParamState* last = nullptr;
    for (const Tensor& p : group.params()) {
      Seen& seen = states.emplace_back(look(p.impl()));
      seen.steps = p.grad().defined();
      if (!seen.steps) continue;
      seen.joins = as_old(last, seen.state);
      last = seen.state;
    }
  }
  const std::weak_ptr<const void> life = life_.token();
  capture::guard(this, "states of an optimizer", [this, life, look, as_old, states, groups] {
    if (life.expired() || param_groups_.size() != groups.size()) return false;
    auto seen = states.begin();
    for (size_t g = 0; g < groups.size(); ++g) {
      const OptimizerParamGroup& group = param_groups_[g];
      if (group.params().size() != groups[g].first || slots(group.options()) != groups[g].second)
        return false;
      const OptimizerParamState* last = nullptr;
      for (const Tensor& p : group.params()) {
        const Seen now = look(p.impl());
        if (now.parameter != seen->parameter || now.state != seen->state ||
            now.tensors != seen->tensors)
          return false;
        if (seen->steps) {
          if (as_old(last, now.state) != seen->joins) return false;
          last = now.state;
        }
        ++seen;
      }
    }
    return true;
  });
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
  if (RAMET_UNLIKELY(capture::active())) guard_states();
  const struct Forget {
    FusedOptimizer& self;
    ~Forget() {
      self.updates_.clear();
      self.ends_.clear();
    }
  } at_end{*this};
  prepare();
  size_t begin = 0;
  if (RAMET_UNLIKELY(capture::active()))
    for (const Update& u : updates_)
      if (u.scratch[0].defined())
        capture::refused(name(), "parameters of this dtype or layout have no kernel");
  for (size_t g = 0; g < ends_.size(); begin = ends_[g++])
    group_ = g, step_group(param_groups_[g].options(), {updates_.data() + begin, ends_[g] - begin});
  return loss;
}

void FusedOptimizer::check_state(const Tensor& parameter, OptimizerParamState& state) const {
  for (const Tensor* t : state_tensors(state))
    RAMET_CHECK(!t || !t->defined() || t->sizes() == parameter.sizes(), "optim",
                "loaded state of a parameter: got ", describe(*t), ", expected the sizes of ",
                describe(parameter));
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
      const Slots tensors = state_tensors(*found->second);
      for (size_t slot = 0; slot < tensors.size(); ++slot) {
        if (!tensors[slot] || !tensors[slot]->defined()) continue;
        const Tensor made = new_state_tensor(params[i], slot);
        made.copy_(*tensors[slot]);
        *tensors[slot] = made;
      }
    }
  }
}

}  // namespace ramet::optim
