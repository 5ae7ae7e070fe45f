#include "nn/optim/sgd.h"

#include "kernels/optimizer_step.h"
#include "nn/serialize/archive.h"

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
std::vector<Tensor*> SGD::state_tensors(OptimizerParamState& state) const {
  return {&static_cast<SGDParamState&>(state).momentum_buffer()};
}

namespace {

// For types and layouts without a kernel.
void step_composed(const SGDOptions& o, const Tensor& p, Tensor grad, const Tensor& buffer,
                   bool first) {
  if (o.weight_decay() != 0) grad = grad.add(p, o.weight_decay());
  if (buffer.defined()) {
    if (first) buffer.copy_(grad);
    else buffer.mul_(o.momentum()).add_(grad, 1 - o.dampening());
    grad = o.nesterov() ? grad.add(buffer, o.momentum()) : buffer;
  }
  p.add_(grad, -o.lr());
}

}  // namespace

void SGD::step_group(size_t g) {
  const SGDOptions& o = static_cast<SGDOptions&>(param_groups_[g].options());
  const std::vector<Tensor>& params = param_groups_[g].params();
  const bool momentum = o.momentum() != 0;
  nn::FlatRun run;
  bool run_first = false;
  Tensor run_like;
  const auto flush = [&] {
    if (run.empty()) return;
    kernels::SgdArgs args{};
    args.parameter = run.at(0);
    args.gradient = run.at(1);
    args.momentum_buffer = momentum ? run.at(2) : nullptr;
    args.n = run.bytes() / static_cast<int64_t>(run_like.element_size());
    args.lr = o.lr(), args.momentum = o.momentum(), args.dampening = o.dampening(),
    args.weight_decay = o.weight_decay();
    args.dtype = run_like.scalar_type();
    args.nesterov = o.nesterov(), args.first = run_first;
    kernels::sgd_step(run_like.stream(), args);
    run.clear();
  };
  for (size_t i = 0; i < params.size(); ++i) {
    const Tensor& p = params[i];
    const Tensor& grad = p.grad();
    if (!grad.defined()) continue;
    bool first = false;
    const TensorBase* operands[3] = {&p, &grad, nullptr};
    if (momentum) {
      auto& state = state_[p.impl()];
      if (!state) state = std::make_unique<SGDParamState>();
      Tensor& buffer = static_cast<SGDParamState&>(*state).momentum_buffer();
      first = !buffer.defined();
      if (first) buffer = new_state_tensor(p, 0);
      operands[2] = &buffer;
    }
    const int count = momentum ? 3 : 2;
    if (!fusable(operands, count)) {
      flush();
      step_composed(
          o, p, grad,
          momentum ? static_cast<SGDParamState&>(*state_[p.impl()]).momentum_buffer() : Tensor(),
          first);
      continue;
    }
    if (!run.empty() && (first != run_first || !run.extend(operands, count))) flush();
    if (run.empty()) {
      run.extend(operands, count);
      run_first = first;
      run_like = p;
    }
    p.storage_impl()->wrote(name());
  }
  flush();
}

}  // namespace ramet::optim
