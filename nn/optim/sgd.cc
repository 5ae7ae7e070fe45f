#include "nn/optim/sgd.h"

#include "nn/optim/call_batch_internal.h"
#include "nn/serialize/archive.h"
#include "runtime/capture.h"

namespace ramet::optim {

void SGDOptions::serialize(serialize::OutputArchive& archive) const {
  archive.write("lr", IValue(lr()));
  archive.write("momentum", IValue(momentum()));
  archive.write("dampening", IValue(dampening()));
  archive.write("weight_decay", IValue(weight_decay()));
  archive.write("nesterov", IValue(nesterov()));
}
void SGDOptions::serialize(serialize::InputArchive& archive) {
  IValue v;
  archive.read("lr", v), lr(v.toDouble());
  archive.read("momentum", v), momentum(v.toDouble());
  archive.read("dampening", v), dampening(v.toDouble());
  archive.read("weight_decay", v), weight_decay(v.toDouble());
  archive.read("nesterov", v), nesterov(v.toBool());
}
bool operator==(const SGDOptions& a, const SGDOptions& b) {
  return a.lr() == b.lr() && a.momentum() == b.momentum() && a.dampening() == b.dampening() &&
         a.weight_decay() == b.weight_decay() && a.nesterov() == b.nesterov();
}
void SGDOptions::inherit(const OptimizerOptions& defaults) {
  const auto* d = dynamic_cast<const SGDOptions*>(&defaults);
  if (!d) return;
  if (momentum() == 0) momentum(d->momentum());  // the rate has no default: it was given
  if (dampening() == 0) dampening(d->dampening());
  if (weight_decay() == 0) weight_decay(d->weight_decay());
  if (!nesterov()) nesterov(d->nesterov());
}
void SGDOptions::check() const {
  RAMET_CHECK(lr() >= 0, "SGD", "Invalid learning rate: ", lr());
  RAMET_CHECK(momentum() >= 0, "SGD", "Invalid momentum value: ", momentum());
  RAMET_CHECK(weight_decay() >= 0, "SGD", "Invalid weight_decay value: ", weight_decay());
  RAMET_CHECK(!nesterov() || (momentum() > 0 && dampening() == 0), "SGD",
              "Nesterov momentum requires a momentum and zero dampening: got momentum ", momentum(),
              ", dampening ", dampening());
}

void SGDParamState::serialize(serialize::OutputArchive& archive) const {
  if (momentum_buffer().defined())
    archive.write("momentum_buffer", momentum_buffer(), /*is_buffer=*/true);
}
void SGDParamState::serialize(serialize::InputArchive& archive) {
  Tensor buffer;
  if (archive.try_read("momentum_buffer", buffer, /*is_buffer=*/true)) momentum_buffer(buffer);
}
SGD::Slots SGD::state_tensors(OptimizerParamState& state) const {
  return {&static_cast<SGDParamState&>(state).momentum_buffer()};
}

size_t SGD::slots(const OptimizerOptions& options) const {
  return static_cast<const SGDOptions&>(options).momentum() != 0 ? 1 : 0;
}

void SGD::step_group(const OptimizerOptions& options, ArrayRef<Update> updates) {
  const SGDOptions& o = static_cast<const SGDOptions&>(options);
  const bool momentum = o.momentum() != 0;
  const auto buffer_of = [&](const Update& u) {
    return momentum ? &static_cast<SGDParamState&>(*u.state).momentum_buffer() : nullptr;
  };
  const auto numbers = [](kernels::SgdArgs& a, const SGDOptions& now) {
    a.lr = now.lr(), a.momentum = now.momentum(), a.dampening = now.dampening();
    a.weight_decay = now.weight_decay(), a.nesterov = now.nesterov();
  };
  auto batch = nn::detail::call_batch<kernels::SgdArgs, Update>(
      [](const Update& a, const Update& b) { return a.first == b.first; },
      [&](const nn::FlatRun& run, int64_t n) {
        return kernels::SgdTensor{run.at(0), run.at(1), momentum ? run.at(2) : nullptr, n};
      },
      [&](const Update& head, kernels::SgdArgs& args) {
        numbers(args, o);
        args.maximize = false, args.first = head.first;
        kernels::sgd_step(head.parameter->stream(), args);
        if (RAMET_UNLIKELY(capture::active()))
          capture::patch_last<kernels::SgdArgs>([this, numbers, g = group()](kernels::SgdArgs& a) {
            numbers(a, static_cast<const SGDOptions&>(param_groups_[g].options()));
          });
      });
  // For types and layouts without a kernel.
  const auto step_composed = [&](const Update& u) {
    Tensor grad = *u.gradient;
    if (o.weight_decay() != 0) grad = u.scratch[0].copy_(grad).add_(*u.parameter, o.weight_decay());
    if (const Tensor* buffer = buffer_of(u)) {
      if (u.first) buffer->copy_(grad);
      else buffer->mul_(o.momentum()).add_(grad, 1 - o.dampening());
      grad = o.nesterov() ? u.scratch[1].copy_(grad).add_(*buffer, o.momentum()) : *buffer;
    }
    u.parameter->add_(grad, -o.lr());
  };
  for (const Update& u : updates) {
    if (u.scratch[0].defined()) {
      batch.flush();
      step_composed(u);
      continue;
    }
    const TensorBase* operands[3] = {u.parameter, u.gradient, buffer_of(u)};
    batch.add(u, operands, momentum ? 3 : 2);
    u.parameter->storage_impl()->wrote(name());
  }
  batch.flush();
}

}  // namespace ramet::optim
