#include "nn/optim/fused.h"

#include "autograd/grad_mode.h"
#include "autograd/graph/inplace.h"
#include "autograd/ops/make/copy.h"
#include "autograd/ops/make/factory.h"
#include "runtime/capture/capture.h"
#include "runtime/observe/observer.h"

namespace ramet::optim {

namespace {

TensorOptions plain_options(const Tensor& p, ScalarType dtype) {
  return TensorOptions(p.device()).dtype(dtype);
}

// The bits of a mask, low ones first.
template <class F> void each_bit(unsigned mask, const F& f) {
  for (size_t i = 0; mask >> i; ++i)
    if (mask >> i & 1) f(i);
}

}  // namespace

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

Tensor FusedOptimizer::new_state_tensor(const Tensor& p, size_t slot, ScalarType dtype) {
  const TensorOptions options = plain_options(p, dtype);
  const auto found = places_.find(p.impl());
  if (found == places_.end() || found->second.numel != p.numel()) return zeros(p.sizes(), options);
  const Place& place = found->second;
  std::vector<Tensor>& slots = stores_[place.store];
  if (slots.size() <= slot) slots.resize(slot + 1);
  Tensor& buffer = slots[slot];
  if (!buffer.defined()) buffer = zeros({place.total}, options);
  if (buffer.device() != p.device() || buffer.scalar_type() != dtype)  // p was moved or cast since
    return zeros(p.sizes(), options);
  const Tensor made(TensorBase::over(buffer.storage_impl(),
                                     place.offset * static_cast<int64_t>(item_size(dtype)),
                                     p.sizes(), contiguous_strides(p.sizes()), dtype));
  made.zero_();  // the place may have served an earlier state
  return made;
}

double FusedOptimizer::first_value(const OptimizerOptions&, size_t) const { return 0; }

void FusedOptimizer::copy(const Update& u, unsigned uses, bool back) {
  const Tensor* all[kOperands];
  const int n = operands(u, uses, all);
  for (int i = 0; i < n; ++i) {
    const Tensor& copy = (*u.copies)[static_cast<size_t>(i)];
    if (!copy.defined()) continue;
    if (!back) copy.copy_(*all[i]);
    else if (all[i] != u.gradient) all[i]->copy_(copy);
  }
}

ScalarType FusedOptimizer::dtype_of(const Update& u, size_t operand) {
  return operand == 0   ? u.parameter->scalar_type()
         : operand == 1 ? u.gradient_dtype
                        : u.state_dtype();
}
bool FusedOptimizer::fits(const Update& u, size_t operand, const Tensor& t) {
  return t.scalar_type() == dtype_of(u, operand) && t.device() == u.parameter->device() &&
         t.raw_contiguous();
}

// States that a step needs first. They get their places once nothing can fail.
struct FusedOptimizer::NewStates {
  std::unordered_map<void*, std::unique_ptr<OptimizerParamState>> states;
  std::vector<std::pair<Tensor*, Tensor>> tensors;  // where each belongs
};

namespace {

// The dtype in which a kernel gets the gradient. It takes any but kDouble with any but kDouble.
ScalarType kernel_dtype(const Tensor& p, const Tensor& grad) {
  const ScalarType own = p.scalar_type(), other = grad.scalar_type();
  if (own == kDouble || !grad.is_floating_point()) return own;
  return other == kDouble ? kFloat : other;
}

void check_parameter(const Tensor& p, const Tensor& grad) {
  RAMET_CHECK(same_sizes(p, grad) && p.device() == grad.device(), "optim", "the gradient of ",
              describe(p), ": got ", describe(grad), ", expected its size and device");
  RAMET_CHECK(p.is_floating_point(), "optim", "the dtype of a parameter: got ", describe(p),
              ", expected a floating-point one");
  autograd::check_normal("optim", p);
}

}  // namespace

FusedOptimizer::Fresh FusedOptimizer::prepare() {
  NewStates made;
  for (const OptimizerParamGroup& group : param_groups_) {
    for (const Tensor& p : group.params()) {
      const Tensor& grad = p.grad();
      if (!grad.defined()) {
        // Its gradients go to another tensor: left out, it would never change.
        RAMET_CHECK(!p->is(TensorImpl::kReplica), "optim", "parameter ", describe(p),
                    " has been sharded since this optimizer was made, or belongs to a replica: "
                    "expected an optimizer made after fully_shard(), of the module's parameters()");
        continue;
      }
      check_parameter(p, grad);
      skip_on(p.device());  // made now
      Update& u = updates_.emplace_back(Update{&p, &grad});
      u.gradient_dtype = kernel_dtype(p, grad);
      const unsigned misfits = (fits(u, 0, p) ? 0u : 1u) | (fits(u, 1, grad) ? 0u : 2u) |
                               prepare_state(u, group.options(), made);
      if (misfits) make_copies(u, misfits);
    }
    ends_.push_back(updates_.size());
  }
  Fresh fresh;
  if (RAMET_UNLIKELY(capture::active()) || !skips_.empty()) {
    for (const auto& [where, tensor] : made.tensors) fresh.tensors.push_back(where);
    for (const auto& [parameter, state] : made.states) fresh.parameters.push_back(parameter);
  }
  place(made, fresh);
  return fresh;
}

// Finds or makes the state of an update. Returns the operands that no kernel takes, a bit each.
unsigned FusedOptimizer::prepare_state(Update& u, const OptimizerOptions& options,
                                       NewStates& made) {
  const Tensor& p = *u.parameter;
  const unsigned wanted = uses(options);
  const bool with_master = has_master(p);
  const auto found = state_.find(p.impl());
  if (!wanted && !with_master) {
    if (found != state_.end()) static_cast<FusedParamState&>(*found->second).master_param(Tensor());
    return 0;
  }
  auto& state = found != state_.end() ? found->second : made.states[p.impl()];
  if (!state) state = new_state();
  u.state = static_cast<FusedParamState&>(*state).all_members();
  if (!with_master) *std::exchange(u.state.master, nullptr) = Tensor();  // p was cast since
  bool first = false;
  unsigned misfits = 0;
  size_t operand = 2;  // after parameter and gradient
  const auto prepare = [&](Tensor* at, size_t slot) {
    const bool there = at->defined();
    if (!there) made.tensors.emplace_back(at, new_state_tensor(p, slot, u.state_dtype()));
    if (!fits(u, operand, there ? *at : made.tensors.back().second)) misfits |= 1u << operand;
    ++operand;
    return there;
  };
  if (with_master) prepare(u.state.master, kMasterSlot);
  each_bit(wanted, [&](size_t slot) {
    if (prepare(u.state.tensors[slot].at, slot)) return;
    first = true;
    if (const double first_is = first_value(options, slot); first_is != 0)
      made.tensors.back().second.fill_(first_is);
  });
  u.number = u.state.step ? *u.state.step + 1 : first ? 1 : 2;
  return misfits;
}

// Gives an update memory for these operands. Updates run one after the other, so they may use the
// same.
void FusedOptimizer::make_copies(Update& u, unsigned operands) {
  const Tensor& p = *u.parameter;
  copies_.push_back(std::make_unique<Copies>());
  u.copies = copies_.back().get();
  each_bit(operands, [&](size_t i) {
    Tensor& copy = (*copies_.back())[i];
    for (const auto& other : copies_)
      if (const Tensor& t = (*other)[i]; t.defined() && same_sizes(t, p) && fits(u, i, t)) copy = t;
    if (!copy.defined()) copy = empty(p.sizes(), plain_options(p, dtype_of(u, i)));
  });
}

// Keeps the new states. If a capture fails, they go: the step only wrote them down.
void FusedOptimizer::place(NewStates& made, const Fresh& fresh) {
  if (RAMET_UNLIKELY(capture::active()) && (!made.states.empty() || !made.tensors.empty())) {
    capture::once();
    capture::on_failure([this, fresh] {
      drop(fresh);
      for (auto& buffers : stores_) buffers.clear();  // made again, with zeros, at need
    });
  }
  state_.reserve(state_.size() + made.states.size());
  for (auto& [where, tensor] : made.tensors) *where = std::move(tensor);
  state_.merge(made.states);
}

void FusedOptimizer::drop(const Fresh& fresh) {
  for (Tensor* state : fresh.tensors) *state = Tensor();
  for (void* parameter : fresh.parameters) state_.erase(parameter);
}

void FusedOptimizer::guard_states() {
  struct Seen {
    void* parameter;
    const OptimizerParamState* state;
    const int64_t* step;
    const double* number;
    std::array<const TensorImpl*, FusedParamState::kTensors + 1> tensors;  // the master is the last
    bool steps = false, joins = false;  // has a gradient; is as old as the one that steps before it
    bool as_old_as(const Seen& other) const {
      return state && other.state && (!step || *step == *other.step) &&
             (!number || *number == *other.number);
    }
  };
  const auto look = [this](void* parameter) {
    Seen seen{parameter, nullptr, nullptr, nullptr, {}};
    const auto found = state_.find(parameter);
    if (found == state_.end()) return seen;
    seen.state = found->second.get();
    const auto members = static_cast<FusedParamState&>(*found->second).all_members();
    seen.step = members.step, seen.number = members.numbers[0].at;
    for (size_t i = 0; i < members.tensors.size(); ++i)
      seen.tensors[i] = members.tensors[i].at ? members.tensors[i].at->impl() : nullptr;
    seen.tensors[kMasterSlot] = members.master->impl();
    return seen;
  };
  std::vector<Seen> states;
  std::vector<std::pair<size_t, unsigned>> groups;  // parameters, uses
  for (const OptimizerParamGroup& group : param_groups_) {
    groups.emplace_back(group.params().size(), uses(group.options()));
    Seen last{};
    for (const Tensor& p : group.params()) {
      Seen& seen = states.emplace_back(look(p.impl()));
      seen.steps = p.grad().defined();
      if (!seen.steps) continue;
      seen.joins = seen.as_old_as(last);
      last = seen;
    }
  }
  const std::weak_ptr<const void> life = life_.token();
  capture::guard(this, "states of an optimizer", [this, life, look, states, groups, on = masters_] {
    if (life.expired() || param_groups_.size() != groups.size() || masters_ != on) return false;
    auto seen = states.begin();
    for (size_t g = 0; g < groups.size(); ++g) {
      const OptimizerParamGroup& group = param_groups_[g];
      if (group.params().size() != groups[g].first || uses(group.options()) != groups[g].second)
        return false;
      Seen last{};
      for (const Tensor& p : group.params()) {
        const Seen now = look(p.impl());
        if (now.parameter != seen->parameter || now.state != seen->state ||
            now.tensors != seen->tensors)
          return false;
        if (seen->steps) {
          if (now.as_old_as(last) != seen->joins) return false;
          last = now;
        }
        ++seen;
      }
    }
    return true;
  });
}

void FusedOptimizer::advance(const OptimizerOptions&, int64_t, const StateMembers&) const {}

Tensor FusedOptimizer::step(LossClosure closure) {
  Tensor loss;
  if (closure) {
    const EnableGradGuard on;
    loss = closure();
  }
  const NoGradGuard off;
  const RecordScope scope(name());
  settle();
  arrange();
  if (RAMET_UNLIKELY(capture::active())) guard_states();
  const struct Forget {
    FusedOptimizer& self;
    ~Forget() {
      self.updates_.clear();
      self.ends_.clear();
      self.copies_.clear();
    }
  } at_end{*this};
  count_steps(prepare());
  size_t begin = 0;
  for (size_t g = 0; g < ends_.size(); begin = ends_[g++])
    group_ = g, step_group(param_groups_[g].options(), {updates_.data() + begin, ends_[g] - begin});
  return loss;
}

}  // namespace ramet::optim
