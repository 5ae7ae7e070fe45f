// States of fused optimizers in files.
#include "autograd/grad_mode.h"
#include "autograd/ops/make/copy.h"
#include "nn/optim/fused.h"
#include "nn/serialize/archive.h"

namespace ramet::optim {

void FusedOptimizer::check_state(const Tensor& parameter, OptimizerParamState& state) const {
  const auto members = static_cast<FusedParamState&>(state).all_members();
  const auto check = [&](const char* what, const Tensor* at) {
    RAMET_CHECK(
        !at || !at->defined() || (at->sizes() == parameter.sizes() && at->is_floating_point()),
        "optim", "loaded ", what, " of a parameter: got ", describe(*at),
        ", expected the sizes of ", describe(parameter), " and a floating dtype");
  };
  for (const auto& [name, at] : members.tensors) check("state", at);
  check("master_param", members.master);
  RAMET_CHECK(!members.master->defined() || item_size(parameter.scalar_type()) == 2, "optim",
              "loaded master_param: got one for ", describe(parameter),
              ", expected a 16-bit parameter. Convert the module with to() before the load");
}

// Copies the loaded tensors to the buffers, where a step finds adjacent members together.
void FusedOptimizer::load(serialize::InputArchive& archive) {
  Optimizer::load(archive);
  const NoGradGuard off;
  arrange();
  for (const OptimizerParamGroup& group : param_groups_)
    for (const Tensor& p : group.params()) {
      const auto found = state_.find(p.impl());
      if (found == state_.end()) continue;
      const auto members = static_cast<FusedParamState&>(*found->second).all_members();
      const auto take = [&](Tensor* at, size_t slot) {
        if (!at || !at->defined()) return;
        const Tensor made = new_state_tensor(p, slot, has_master(p) ? kFloat : p.scalar_type());
        made.copy_(*at);
        *at = made;
      };
      for (size_t slot = 0; slot < members.tensors.size(); ++slot)
        take(members.tensors[slot].at, slot);
      if (has_master(p)) take(members.master, kMasterSlot);
      else *members.master = Tensor();
    }
}

void FusedParamState::serialize(serialize::OutputArchive& archive) const {
  const auto copy = clone();
  const Members m = static_cast<FusedParamState&>(*copy).all_members();
  if (m.step) archive.write("step", IValue(*m.step));
  for (const Number& n : m.numbers)
    if (n.name) archive.write(n.name, IValue(*n.at));
  for (size_t i = 0; i < kTensors && m.tensors[i].at; ++i)
    if (i < m.always || m.tensors[i].at->defined())
      archive.write(m.tensors[i].name, *m.tensors[i].at, /*is_buffer=*/true);
  if (m.master->defined()) archive.write("master_param", *m.master, /*is_buffer=*/true);
}
void FusedParamState::serialize(serialize::InputArchive& archive) {
  const Members m = all_members();
  if (m.step) {
    IValue step;
    archive.read("step", step);
    *m.step = step.toInt();
  }
  for (const Number& n : m.numbers) {
    if (!n.name) continue;
    IValue value;
    archive.read(n.name, value);
    *n.at = value.toDouble();
  }
  const auto read = [&](const char* name, Tensor& to, bool needed) {
    Tensor t;
    if (needed) archive.read(name, t, /*is_buffer=*/true);
    else if (!archive.try_read(name, t, /*is_buffer=*/true)) return;
    to = t;
  };
  for (size_t i = 0; i < kTensors && m.tensors[i].at; ++i)
    read(m.tensors[i].name, *m.tensors[i].at, i < m.always);
  read("master_param", *m.master, /*needed=*/false);
}

}  // namespace ramet::optim
