#include "nn/optim/lbfgs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "autograd/grad_mode.h"
#include "autograd/graph/inplace.h"
#include "autograd/ops.h"
#include "nn/optim/fields_internal.h"
#include "nn/optim/masters_internal.h"
#include "nn/serialize/archive.h"
#include "runtime/capture/capture.h"
#include "runtime/observe/observer.h"

namespace ramet::optim {
namespace {

double value(const Tensor& t) { return t.item<double>(); }
using detail::is_narrow;
/// As a vector, in float32 at least.
Tensor wide(const Tensor& t, const Tensor& master = {}) {
  return detail::widened(t.detach().reshape({-1}), master);
}
double largest(const Tensor& t) { return t.numel() == 0 ? 0 : value(t.abs().max()); }

int64_t default_max_eval(int64_t max_iter) {
  const int64_t more = max_iter / 4, limit = std::numeric_limits<int64_t>::max();
  return max_iter > limit - more ? limit : max_iter + more;
}

/// A point of the line x + t d.
struct Point {
  double t, loss;
  Tensor gradient;
  double slope;  // gradient . d
};

/// Where the cubic through both points with their slopes has its minimum, within [low, high].
double cubic_minimum(const Point& a, const Point& b, double low, double high) {
  const double d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t);
  const double square = d1 * d1 - a.slope * b.slope;
  if (!(square >= 0)) return (low + high) / 2;
  const double d2 = std::sqrt(square);
  const Point &left = a.t <= b.t ? a : b, &right = a.t <= b.t ? b : a;
  const double at = right.t - (right.t - left.t) *
                                  ((right.slope + d2 - d1) / (right.slope - left.slope + 2 * d2));
  return std::min(std::max(at, low), high);
}

/// Returns a point where the strong Wolfe conditions hold. Steps first grow until they enclose such
/// a point, then the interval shrinks. along(t) evaluates a point; it is called at most `most`
/// times after the first one, and `evals` returns how often. `length` is the largest element of d.
/// As in PyTorch, except that a NaN loss counts as too high.
template <class F>
Point strong_wolfe(const F& along, const Point& start, double t, double length, double tolerance,
                   int64_t most, int64_t& evals) {
  constexpr double c1 = 1e-4, c2 = 0.9;
  const auto too_high = [&](const Point& p) {
    return !(p.loss <= start.loss + c1 * p.t * start.slope);
  };
  const auto flat = [&](const Point& p) { return std::abs(p.slope) <= -c2 * start.slope; };
  std::array<Point, 2> bracket;
  Point before = start, now = along(t);
  evals = 1;
  int64_t n = 0;
  for (; n < most; ++n) {
    if (too_high(now) || (n > 1 && now.loss >= before.loss)) break;
    if (flat(now)) return now;
    if (now.slope >= 0) break;
    t = cubic_minimum(before, now, now.t + 0.01 * (now.t - before.t), now.t * 10);
    before = std::exchange(now, along(t));
    ++evals;
  }
  bracket = {n < most ? before : start, now};
  const auto lower = [&] { return bracket[1].loss < bracket[0].loss ? size_t{1} : size_t{0}; };
  size_t low = lower();
  bool was_close = false;  // to an end of the interval: a second time is no progress
  for (; n < most; ++n) {
    const double left = std::min(bracket[0].t, bracket[1].t);
    const double right = std::max(bracket[0].t, bracket[1].t);
    if ((right - left) * length < tolerance) break;
    t = cubic_minimum(bracket[0], bracket[1], left, right);
    const double margin = 0.1 * (right - left);
    const bool close = std::min(right - t, t - left) < margin;
    const bool moved = close && (was_close || t >= right || t <= left);
    if (moved) t = std::abs(t - right) < std::abs(t - left) ? right - margin : left + margin;
    was_close = close && !moved;
    now = along(t);
    ++evals;
    if (too_high(now) || now.loss >= bracket[low].loss) {
      bracket[1 - low] = now;
      low = lower();
      continue;
    }
    const bool found = flat(now);
    if (!found && now.slope * (bracket[1 - low].t - bracket[low].t) >= 0)
      bracket[1 - low] = bracket[low];
    bracket[low] = now;
    if (found) break;
  }
  return bracket[low];
}

/// -H g, by the differences that are remembered: Nocedal and Wright, algorithm 7.4.
Tensor direction(const Tensor& gradient, const LBFGSParamState& s) {
  const size_t n = s.ro().size();
  std::vector<double> alpha(n);
  Tensor q = gradient.neg();
  for (size_t i = n; i-- > 0;) {
    alpha[i] = value(s.old_stps()[i].dot(q)) * value(s.ro()[i]);
    q.add_(s.old_dirs()[i], -alpha[i]);
  }
  q.mul_(s.H_diag());
  for (size_t i = 0; i < n; ++i) {
    const double beta = value(s.old_dirs()[i].dot(q)) * value(s.ro()[i]);
    q.add_(s.old_stps()[i], alpha[i] - beta);
  }
  return q;
}

}  // namespace

detail::Fields LBFGSOptions::fields() {
  return {"LBFGS",
          {{"lr", &lr_, "learning rate"},
           {"max_iter", &max_iter_},
           {"max_eval", &max_eval_},
           {"tolerance_grad", &tolerance_grad_},
           {"tolerance_change", &tolerance_change_},
           {"history_size", &history_size_},
           {"line_search_fn", &line_search_fn_},
           {"maximize", &maximize_}}};
}
void LBFGSOptions::check() const {
  ListedOptions::check();
  RAMET_CHECK(history_size() >= 1, "LBFGS", "history_size: got ", history_size(),
              ", expected at least 1");
  RAMET_CHECK(!line_search_fn() || *line_search_fn() == "strong_wolfe", "LBFGS",
              "only 'strong_wolfe' is supported: got line_search_fn '", *line_search_fn(), "'");
}

template <class F> void LBFGSParamState::each_tensor(LBFGSParamState& s, const F& f) {
  f(s.d_), f(s.H_diag_), f(s.prev_flat_grad_), f(s.master_params_);
  for (std::deque<Tensor>* list : {&s.old_dirs_, &s.old_stps_, &s.ro_})
    for (Tensor& t : *list) f(t);
}
void LBFGSParamState::serialize(serialize::OutputArchive& archive) const {
  const auto list = [](const std::deque<Tensor>& d) {
    return IValue(std::vector<Tensor>(d.begin(), d.end()));
  };
  archive.write("func_evals", IValue(func_evals_));
  archive.write("n_iter", IValue(n_iter_));
  archive.write("t", IValue(t_));
  archive.write("prev_loss", IValue(prev_loss_));
  archive.write("d", d_, /*is_buffer=*/true);
  archive.write("H_diag", H_diag_, /*is_buffer=*/true);
  archive.write("prev_flat_grad", prev_flat_grad_, /*is_buffer=*/true);
  archive.write("old_dirs", list(old_dirs_));
  archive.write("old_stps", list(old_stps_));
  archive.write("ro", list(ro_));
  if (master_params_.defined()) archive.write("master_params", master_params_, /*is_buffer=*/true);
}
void LBFGSParamState::serialize(serialize::InputArchive& archive) {
  const auto read = [&](const char* name) {
    IValue v;
    archive.read(name, v);
    return v;
  };
  const auto list = [&](const char* name) {
    const IValue v = read(name);
    return std::deque<Tensor>(v.toTensorVector().begin(), v.toTensorVector().end());
  };
  func_evals_ = read("func_evals").toInt(), n_iter_ = read("n_iter").toInt();
  t_ = read("t").toDouble(), prev_loss_ = read("prev_loss").toDouble();
  archive.read("d", d_, /*is_buffer=*/true);
  archive.read("H_diag", H_diag_, /*is_buffer=*/true);
  archive.read("prev_flat_grad", prev_flat_grad_, /*is_buffer=*/true);
  old_dirs_ = list("old_dirs"), old_stps_ = list("old_stps"), ro_ = list("ro");
  archive.try_read("master_params", master_params_, /*is_buffer=*/true);
}

LBFGS::LBFGS(const std::vector<OptimizerParamGroup>& param_groups, LBFGSOptions defaults)
    : Optimizer(param_groups, std::make_unique<LBFGSOptions>(std::move(defaults))) {
  RAMET_CHECK(param_groups_.size() == 1, "LBFGS",
              "LBFGS doesn't support per-parameter options (parameter groups): got ",
              param_groups_.size(), " groups, expected 1");
  for (OptimizerOptions* options : {&*defaults_, &param_groups_[0].options()}) {
    auto& o = static_cast<LBFGSOptions&>(*options);
    if (!o.max_eval()) o.max_eval(default_max_eval(o.max_iter()));
  }
}

Tensor LBFGS::flat_gradient(bool maximize) const {
  std::vector<Tensor> parts;
  for (const Tensor& p : parameters())
    parts.push_back(wide(p.grad().defined() ? p.grad() : zeros_like(p.detach())));
  Tensor flat = cat(parts);
  return maximize ? flat.neg_() : flat;
}
Tensor LBFGS::flat_parameters(const LBFGSParamState& s) const {
  std::vector<Tensor> parts;
  int64_t at = 0;
  for (const Tensor& p : parameters()) {
    const Tensor& all = s.master_params();
    parts.push_back(wide(p, all.defined() ? all.slice(0, at, at + p.numel()) : all));
    at += p.numel();
  }
  return cat(parts);
}
void LBFGS::set_parameters(const Tensor& flat, LBFGSParamState& s) {
  int64_t at = 0;
  s.master_params() = Tensor();
  for (Tensor& p : parameters()) {
    p.copy_(flat.slice(0, at, at + p.numel()).view(p.sizes()));
    at += p.numel();
    if (is_narrow(p.scalar_type())) s.master_params() = flat;
  }
}

Tensor LBFGS::step(LossClosure closure) {
  RAMET_CHECK(closure, "LBFGS", "LBFGS requires a closure function: got none");
  RAMET_CHECK(param_groups_.size() == 1, "LBFGS",
              "LBFGS doesn't support per-parameter options (parameter groups): got ",
              param_groups_.size(), " groups, expected 1");
  capture::refuse("LBFGS", "how often it calls the closure depends on values");
  const auto& o = static_cast<const LBFGSOptions&>(param_groups_[0].options());
  o.check();
  for (const Tensor& p : parameters()) {
    RAMET_CHECK(p.is_floating_point(), "LBFGS", "the dtype of a parameter: got ", describe(p),
                ", expected a floating-point one");
    RAMET_CHECK(p.device() == parameters()[0].device(), "LBFGS",
                "all parameters have to be on a single device: got ", describe(p), ", expected ",
                parameters()[0].device());
    autograd::check_normal("LBFGS", p);
  }
  const auto call = [&] {
    const EnableGradGuard on;
    return closure();
  };
  if (parameters().empty()) return call();
  const NoGradGuard off;
  const RecordScope scope("LBFGS.step");
  const Tensor loss = call();
  const auto loss_of = [&](const Tensor& l) { return o.maximize() ? -value(l) : value(l); };
  for (const Tensor& p : parameters()) {
    const Tensor& grad = p.grad();
    // Its gradients go to another tensor: it would never change.
    RAMET_CHECK(grad.defined() || !p->is(TensorImpl::kReplica), "LBFGS", "parameter ", describe(p),
                " has been sharded since this optimizer was made, or belongs to a replica: got no "
                "gradient, expected a module of its own");
    RAMET_CHECK(!grad.defined() || (same_sizes(p, grad) && p.device() == grad.device()), "LBFGS",
                "the gradient of ", describe(p), ": got ", describe(grad),
                ", expected its size and device");
  }
  const auto found = state_.find(parameters()[0].impl());
  auto state =
      found != state_.end()
          ? std::make_unique<LBFGSParamState>(static_cast<const LBFGSParamState&>(*found->second))
          : std::make_unique<LBFGSParamState>();
  ++state->func_evals();
  const Tensor gradient = flat_gradient(o.maximize());
  if (!(largest(gradient) <= o.tolerance_grad())) {
    const Tensor before = flat_parameters(*state);
    try {
      iterate(
          o, *state, [&] { return loss_of(call()); }, loss_of(loss), gradient);
    } catch (...) {
      set_parameters(before, *state);
      throw;
    }
  }
  state_[parameters()[0].impl()] = std::move(state);
  return loss;
}

void LBFGS::iterate(const LBFGSOptions& o, LBFGSParamState& s,
                    const std::function<double()>& evaluate, double loss, Tensor gradient) {
  const int64_t max_eval = o.max_eval().value_or(default_max_eval(o.max_iter()));
  const auto add = [&](const Tensor& direction, double t) {
    set_parameters(flat_parameters(s).add_(direction, t), s);
  };
  int64_t evals = 1;
  for (int64_t n = 1; n <= o.max_iter(); ++n) {
    if (++s.n_iter() == 1) {
      s.d() = gradient.neg();
      s.H_diag() = ones({}, gradient.options());
    } else {
      const Tensor y = gradient - s.prev_flat_grad(), step = s.d() * s.t(), ys = y.dot(step);
      if (value(ys) > 1e-10) {
        if (static_cast<int64_t>(s.ro().size()) >= o.history_size())
          s.old_dirs().pop_front(), s.old_stps().pop_front(), s.ro().pop_front();
        s.old_dirs().push_back(y), s.old_stps().push_back(step);
        s.ro().push_back(ys.reciprocal());
        s.H_diag() = ys / y.dot(y);
      }
      s.d() = direction(gradient, s);
    }
    s.prev_flat_grad() = gradient, s.prev_loss() = loss;
    s.t() = o.lr();
    if (s.n_iter() == 1) s.t() *= std::min(1.0, 1 / value(gradient.abs().sum()));
    const double slope = value(gradient.dot(s.d()));
    if (slope > -o.tolerance_change()) return;
    int64_t calls = 0;
    if (o.line_search_fn()) {
      const Tensor x = flat_parameters(s);
      const auto along = [&](double t) {
        add(s.d(), t);
        Point p{t, evaluate(), flat_gradient(o.maximize()), 0};
        p.slope = value(p.gradient.dot(s.d()));
        set_parameters(x, s);
        return p;
      };
      const Point to = strong_wolfe(along, {0, loss, gradient, slope}, s.t(), largest(s.d()), 1e-9,
                                    max_eval - evals, calls);
      s.t() = to.t, loss = to.loss, gradient = to.gradient;
      add(s.d(), to.t);
    } else {
      add(s.d(), s.t());
      if (n == o.max_iter()) return;
      loss = evaluate(), gradient = flat_gradient(o.maximize());
      calls = 1;
    }
    evals += calls, s.func_evals() += calls;
    if (evals >= max_eval || largest(gradient) <= o.tolerance_grad()) return;
    if (largest(s.d() * s.t()) <= o.tolerance_change()) return;
    if (std::abs(loss - s.prev_loss()) < o.tolerance_change()) return;
  }
}

void LBFGS::check_state(const Tensor&, OptimizerParamState& state) const {
  auto& s = static_cast<LBFGSParamState&>(state);
  int64_t total = 0;
  for (const Tensor& p : parameters()) total += p.numel();
  const auto check = [](const Tensor& t, bool fits) {
    RAMET_CHECK(fits, "LBFGS", "loaded state: got ", describe(t),
                ", expected tensors that fit these parameters");
  };
  RAMET_CHECK(s.old_dirs().size() == s.ro().size() && s.old_stps().size() == s.ro().size(), "LBFGS",
              "loaded state: got ", s.old_dirs().size(), ", ", s.old_stps().size(), " and ",
              s.ro().size(), " differences, expected equal numbers");
  check(s.master_params(), !s.master_params().defined() || (s.master_params().dim() == 1 &&
                                                            s.master_params().numel() == total));
  if (s.n_iter() == 0) return;
  for (const Tensor* t : {&s.d(), &s.prev_flat_grad()})
    check(*t, t->defined() && t->dim() == 1 && t->numel() == total);
  check(s.H_diag(), s.H_diag().defined() && s.H_diag().numel() == 1);
  for (const auto* list : {&s.old_dirs(), &s.old_stps()})
    for (const Tensor& t : *list) check(t, t.defined() && t.dim() == 1 && t.numel() == total);
  for (const Tensor& t : s.ro()) check(t, t.defined() && t.numel() == 1);
}

void LBFGS::load(serialize::InputArchive& archive) {
  Optimizer::load(archive);
  for (const auto& [key, state] : state_)
    LBFGSParamState::each_tensor(static_cast<LBFGSParamState&>(*state), [&](Tensor& t) {
      if (t.defined()) t = detail::widened(t.detach()).to(parameters()[0].device());
    });
}

RAMET_OPTIMIZER(LBFGS, LBFGSParamState)

}  // namespace ramet::optim
