#include "nn/optim/adam.h"

#include <cmath>

#include "autograd/ops/where.h"
#include "nn/optim/call_batch_internal.h"
#include "nn/serialize/archive.h"
#include "runtime/capture.h"

namespace ramet::optim {
namespace {

template <class Options> void write_options(const Options& o, serialize::OutputArchive& archive) {
  archive.write("lr", IValue(o.lr()));
  archive.write("beta1", IValue(std::get<0>(o.betas())));
  archive.write("beta2", IValue(std::get<1>(o.betas())));
  archive.write("eps", IValue(o.eps()));
  archive.write("weight_decay", IValue(o.weight_decay()));
  archive.write("amsgrad", IValue(o.amsgrad()));
}
template <class Options> void read_options(Options& o, serialize::InputArchive& archive) {
  IValue v, w;
  archive.read("lr", v), o.lr(v.toDouble());
  archive.read("beta1", v), archive.read("beta2", w),
      o.betas(std::make_tuple(v.toDouble(), w.toDouble()));
  archive.read("eps", v), o.eps(v.toDouble());
  archive.read("weight_decay", v), o.weight_decay(v.toDouble());
  archive.read("amsgrad", v), o.amsgrad(v.toBool());
}
template <class Options> bool equal_options(const Options& a, const Options& b) {
  return a.lr() == b.lr() && a.betas() == b.betas() && a.eps() == b.eps() &&
         a.weight_decay() == b.weight_decay() && a.amsgrad() == b.amsgrad();
}
template <class Options> void inherit_options(Options& o, const OptimizerOptions& defaults) {
  const auto* d = dynamic_cast<const Options*>(&defaults);
  if (!d) return;
  const Options fresh;
  if (o.lr() == fresh.lr()) o.lr(d->lr());
  if (o.betas() == fresh.betas()) o.betas(d->betas());
  if (o.eps() == fresh.eps()) o.eps(d->eps());
  if (o.weight_decay() == fresh.weight_decay()) o.weight_decay(d->weight_decay());
  if (o.amsgrad() == fresh.amsgrad()) o.amsgrad(d->amsgrad());
}
template <class Options> void check_options(const char* op, const Options& o) {
  const auto [beta1, beta2] = o.betas();
  RAMET_CHECK(o.lr() >= 0, op, "Invalid learning rate: ", o.lr());
  RAMET_CHECK(o.eps() >= 0, op, "Invalid epsilon value: ", o.eps());
  RAMET_CHECK(0 <= beta1 && beta1 < 1, op, "Invalid beta parameter at index 0: ", beta1);
  RAMET_CHECK(0 <= beta2 && beta2 < 1, op, "Invalid beta parameter at index 1: ", beta2);
  RAMET_CHECK(o.weight_decay() >= 0, op, "Invalid weight_decay value: ", o.weight_decay());
}

}  // namespace

void AdamOptions::serialize(serialize::OutputArchive& archive) const {
  write_options(*this, archive);
}
void AdamOptions::serialize(serialize::InputArchive& archive) { read_options(*this, archive); }
bool operator==(const AdamOptions& a, const AdamOptions& b) { return equal_options(a, b); }
void AdamOptions::inherit(const OptimizerOptions& defaults) { inherit_options(*this, defaults); }
void AdamOptions::check() const { check_options("Adam", *this); }

void AdamWOptions::serialize(serialize::OutputArchive& archive) const {
  write_options(*this, archive);
}
void AdamWOptions::serialize(serialize::InputArchive& archive) { read_options(*this, archive); }
bool operator==(const AdamWOptions& a, const AdamWOptions& b) { return equal_options(a, b); }
void AdamWOptions::inherit(const OptimizerOptions& defaults) { inherit_options(*this, defaults); }
void AdamWOptions::check() const { check_options("AdamW", *this); }

void AdamParamState::serialize(serialize::OutputArchive& archive) const {
  archive.write("step", IValue(step()));
  archive.write("exp_avg", exp_avg(), /*is_buffer=*/true);
  archive.write("exp_avg_sq", exp_avg_sq(), /*is_buffer=*/true);
  if (max_exp_avg_sq().defined())
    archive.write("max_exp_avg_sq", max_exp_avg_sq(), /*is_buffer=*/true);
}
void AdamParamState::serialize(serialize::InputArchive& archive) {
  IValue count;
  archive.read("step", count), step(count.toInt());
  Tensor t;
  archive.read("exp_avg", t, /*is_buffer=*/true), exp_avg(t);
  t = Tensor();
  archive.read("exp_avg_sq", t, /*is_buffer=*/true), exp_avg_sq(t);
  t = Tensor();
  if (archive.try_read("max_exp_avg_sq", t, /*is_buffer=*/true)) max_exp_avg_sq(t);
}

Adam::Settings Adam::settings(const OptimizerOptions& options) const {
  const auto& o = static_cast<const AdamOptions&>(options);
  return {o.lr(),  std::get<0>(o.betas()), std::get<1>(o.betas()),
          o.eps(), o.weight_decay(),       o.amsgrad(),
          false};
}
AdamW::Settings AdamW::settings(const OptimizerOptions& options) const {
  const auto& o = static_cast<const AdamWOptions&>(options);
  return {o.lr(),  std::get<0>(o.betas()), std::get<1>(o.betas()),
          o.eps(), o.weight_decay(),       o.amsgrad(),
          true};
}

namespace detail {

AdamBase::Slots AdamBase::state_tensors(OptimizerParamState& state) const {
  auto& s = static_cast<AdamParamState&>(state);
  return {&s.exp_avg(), &s.exp_avg_sq(), &s.max_exp_avg_sq()};
}

size_t AdamBase::slots(const OptimizerOptions& options) const {
  return settings(options).amsgrad ? 3 : 2;
}

void AdamBase::step_group(const OptimizerOptions& options, ArrayRef<Update> updates) {
  const Settings o = settings(options);
  const auto bias = [](double beta, int64_t t) {
    return 1 - std::pow(beta, static_cast<double>(t));
  };
  const auto state_of = [](const Update& u) -> AdamParamState& {
    return static_cast<AdamParamState&>(*u.state);
  };
  const auto numbers = [bias](kernels::AdamArgs& a, const Settings& now, int64_t step) {
    a.lr = now.lr, a.beta1 = now.beta1, a.beta2 = now.beta2, a.eps = now.eps;
    a.weight_decay = now.weight_decay;
    a.bias1 = bias(now.beta1, step), a.bias2 = bias(now.beta2, step);
  };
  // Those of one call have one age.
  auto batch = nn::detail::call_batch<kernels::AdamArgs, Update>(
      [&](const Update& a, const Update& b) { return state_of(a).step() == state_of(b).step(); },
      [&](const nn::FlatRun& run, int64_t n) {
        return kernels::AdamTensor{
            run.at(0), run.at(1), run.at(2), run.at(3), o.amsgrad ? run.at(4) : nullptr, n};
      },
      [&](const Update& head, kernels::AdamArgs& args) {
        numbers(args, o, state_of(head).step());
        args.decoupled = o.decoupled, args.maximize = false;
        kernels::adam_step(head.parameter->stream(), args);
        if (RAMET_UNLIKELY(capture::active()))
          capture::patch_last<kernels::AdamArgs>(
              [this, numbers, g = group(), state = &state_of(head)](kernels::AdamArgs& a) {
                numbers(a, settings(param_groups_[g].options()), state->step());
              });
      });
  // For types and layouts without a kernel.
  const auto step_composed = [&](const Update& u) {
    const Tensor& p = *u.parameter;
    AdamParamState& s = state_of(u);
    Tensor grad = *u.gradient;
    if (o.weight_decay != 0) {
      if (o.decoupled) p.mul_(1 - o.lr * o.weight_decay);
      else grad = u.scratch[0].copy_(grad).add_(p, o.weight_decay);
    }
    s.exp_avg().mul_(o.beta1).add_(grad, 1 - o.beta1);
    s.exp_avg_sq().mul_(o.beta2).addcmul_(grad, grad, 1 - o.beta2);
    if (o.amsgrad) maximum_out(s.max_exp_avg_sq(), s.max_exp_avg_sq(), s.exp_avg_sq());
    const Tensor& v = o.amsgrad ? s.max_exp_avg_sq() : s.exp_avg_sq();
    const Tensor& denominator = u.scratch[1];
    denominator.copy_(v).sqrt_().div_(std::sqrt(bias(o.beta2, s.step()))).add_(o.eps);
    p.addcdiv_(s.exp_avg(), denominator, -o.lr / bias(o.beta1, s.step()));
  };

  if (RAMET_UNLIKELY(capture::active())) {
    std::vector<AdamParamState*> states;
    for (const Update& u : updates) states.push_back(&state_of(u));
    const auto count = [states = std::move(states)](int64_t by) {
      for (AdamParamState* s : states) s->step(s->step() + by);
    };
    capture::effect([count] { count(1); }, [count] { count(-1); });
  }
  for (const Update& u : updates) {
    AdamParamState& s = state_of(u);
    s.step(s.step() + 1);
    if (u.scratch[0].defined()) {
      batch.flush();
      step_composed(u);
      continue;
    }
    const TensorBase* operands[5] = {u.parameter, u.gradient, &s.exp_avg(), &s.exp_avg_sq(),
                                     &s.max_exp_avg_sq()};
    batch.add(u, operands, o.amsgrad ? 5 : 4);
    u.parameter->storage_impl()->wrote(name());
  }
  batch.flush();
}

}  // namespace detail
}  // namespace ramet::optim
