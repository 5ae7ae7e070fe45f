#include "nn/optim/muon.h"

#include <algorithm>
#include <cmath>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "kernels/optim/optimizer_step.h"
#include "nn/optim/fields_internal.h"
#include "runtime/observe/observer.h"

namespace ramet::optim {
namespace {

double rate_factor(const MuonOptions& o, int64_t rows, int64_t columns) {
  const double a = static_cast<double>(rows), b = static_cast<double>(columns);
  if (!o.adjust_lr_fn() || *o.adjust_lr_fn() == "original") return std::sqrt(std::max(1.0, a / b));
  if (*o.adjust_lr_fn() == "match_rms_adamw") return 0.2 * std::sqrt(std::max(a, b));
  return std::sqrt(a / b);
}

Tensor orthogonal(const Tensor& matrix, const MuonOptions& o) {
  const bool tall = matrix.size(0) > matrix.size(1);
  Tensor x = matrix.to(kBFloat16);
  if (tall) x = x.t();
  const Tensor wide = x.to(kFloat);
  x = x / (wide * wide).sum().sqrt().to(kBFloat16).clamp_min(o.eps());
  const auto [a, b, c] = o.ns_coefficients();
  for (int64_t i = 0; i < o.ns_steps(); ++i) {
    const Tensor gram = matmul(x, x.t());
    x = addmm(x, addmm(gram, gram, gram, b, c), x, a);
  }
  return tall ? x.t() : x;
}

}  // namespace

detail::Fields MuonOptions::fields() {
  auto& [a, b, c] = ns_coefficients_;
  return {"Muon",
          {{"lr", &lr_, "learning rate"},
           {"weight_decay", &weight_decay_, "weight_decay value"},
           {"momentum", &momentum_, "momentum value"},
           {"nesterov", &nesterov_},
           {"ns_a", &a, nullptr, false, "ns_coefficients"},
           {"ns_b", &b, nullptr, false, "ns_coefficients"},
           {"ns_c", &c, nullptr, false, "ns_coefficients"},
           {"eps", &eps_},
           {"ns_steps", &ns_steps_},
           {"adjust_lr_fn", &adjust_lr_fn_}}};
}
void MuonOptions::check() const {
  ListedOptions::check();
  RAMET_CHECK(ns_steps() >= 0 && ns_steps() < 100, "Muon", "Number of steps: got ", ns_steps(),
              ", expected 0 to 99");
  const auto& name = adjust_lr_fn();
  RAMET_CHECK(
      !name || *name == "original" || *name == "match_rms_adamw" || *name == "spectral_unclamped",
      "Muon", "Adjust learning rate function is not supported: got ", *name,
      ", expected original, match_rms_adamw or spectral_unclamped");
}

Muon::Muon(const std::vector<OptimizerParamGroup>& param_groups, MuonOptions defaults)
    : FusedOptimizer(param_groups, std::make_unique<MuonOptions>(std::move(defaults))) {
  check_parameters();
}
void Muon::check_parameters() const {
  for (const OptimizerParamGroup& group : param_groups_)
    for (const Tensor& p : group.params())
      RAMET_CHECK(
          p.dim() == 2, "Muon",
          "Muon only supports 2D parameters whereas we found a parameter with size: ", p.sizes());
}

// A replay uses the options of the capture, except lr and weight_decay, which it reads anew.
void Muon::guard_options() {
  std::vector<MuonOptions> then;
  for (const OptimizerParamGroup& group : param_groups_)
    then.push_back(static_cast<const MuonOptions&>(group.options()));
  const std::weak_ptr<const void> life = life_.token();
  capture::guard(&directions_, "options of Muon", [this, life, then] {
    if (life.expired() || param_groups_.size() != then.size()) return false;
    for (size_t g = 0; g < then.size(); ++g) {
      MuonOptions now = static_cast<const MuonOptions&>(param_groups_[g].options());
      now.lr(then[g].lr()).weight_decay(then[g].weight_decay());
      if (!(now == then[g])) return false;
    }
    return true;
  });
}

Tensor Muon::step(LossClosure closure) {
  check_parameters();
  Tensor loss;
  if (closure) {
    const EnableGradGuard on;
    loss = closure();
  }
  const NoGradGuard off;
  const RecordScope scope("Muon.orthogonal");
  if (RAMET_UNLIKELY(capture::active())) guard_options();
  const struct Forget {
    Muon& self;
    ~Forget() { self.directions_.clear(); }
  } at_end{*this};
  for (size_t group = 0; group < param_groups_.size(); ++group) {
    const auto& o = static_cast<const MuonOptions&>(param_groups_[group].options());
    for (const Tensor& p : param_groups_[group].params()) {
      const Tensor& grad = p.grad();
      // FusedOptimizer::step() refuses parameters that do not fit, before it changes anything.
      if (!grad.defined() || !same_sizes(p, grad) || p.device() != grad.device()) continue;
      const ScalarType dtype = has_master(p) ? kFloat : p.scalar_type();  // of the state
      const Tensor g = grad.to(dtype);
      const auto found = state_.find(p.impl());
      const Tensor* before =
          found == state_.end()
              ? nullptr
              : &static_cast<const MuonParamState&>(*found->second).momentum_buffer();
      Direction d{{}, {}, group};
      d.momentum = before && before->defined() ? before->to(dtype).lerp(g, 1 - o.momentum())
                                               : g * (1 - o.momentum());
      d.update = o.nesterov() ? g.lerp(d.momentum, o.momentum()) : d.momentum;
      if (p.numel() > 0) d.update = orthogonal(d.update, o);
      if (const Tensor skip = skip_on(p.device()); skip.defined())
        d.momentum =
            where(skip.ne(0), before && before->defined() ? *before : zeros_like(g), d.momentum);
      d.update = d.update.to(dtype).contiguous();
      directions_[p.impl()] = std::move(d);
    }
  }
  FusedOptimizer::step();
  return loss;
}

void Muon::step_group(const OptimizerOptions&, ArrayRef<Update> updates) {
  for (const Update& u : updates) {
    const Direction& d = directions_.at(u.parameter->impl());
    const auto operand = [&](size_t i, const Tensor* own) {
      return u.copies && (*u.copies)[i].defined() ? &(*u.copies)[i] : own;
    };
    if (u.copies) copy(u, uses(*defaults_), /*back=*/false);
    const Tensor &p = *operand(0, u.parameter), *master = operand(2, u.master());
    kernels::SgdArgs args{};
    args.dtype = p.scalar_type(), args.count = 1;
    args.gradient_dtype = args.state_dtype = u.state_dtype();
    args.tensors[0] = {p.ptr(), d.update.ptr(), {nullptr}, p.numel(), nullptr};
    if (u.master()) args.tensors[0].master = master->ptr();
    args.skip = skip_pointer(p.device());
    // lr (u + weight_decay p) with the rate and the decay of this matrix
    const auto fill = [this, g = d.group, rows = p.size(0), columns = p.size(1)](auto& a) {
      const auto& o = static_cast<const MuonOptions&>(param_groups_[g].options());
      const double factor = rate_factor(o, rows, columns);
      a.lr = o.lr() * factor, a.weight_decay = o.weight_decay() / factor;
    };
    if (p.numel() > 0) {
      fill(args);
      kernels::sgd_step(p.stream(), args);
      if (RAMET_UNLIKELY(capture::active())) capture::patch_last<kernels::SgdArgs>(fill);
    }
    if (u.copies) copy(u, uses(*defaults_), /*back=*/true);
    u.state.tensors[0].at->copy_(d.momentum);
    u.parameter->storage_impl()->wrote(name());
  }
}

RAMET_OPTIMIZER(Muon, MuonParamState)

}  // namespace ramet::optim
