// L-BFGS (Nocedal 1980; Liu and Nocedal 1989), as in LibTorch.
#pragma once
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "nn/module/arg.h"
#include "nn/optim/fields.h"

namespace ramet::optim {

struct RAMET_API LBFGSOptions : public detail::ListedOptions<LBFGSOptions> {
  LBFGSOptions(double lr = 1) : lr_(lr) {}
  RAMET_ARG(double, lr) = 1;
  /// Iterations of a step.
  RAMET_ARG(int64_t, max_iter) = 20;
  /// Calls of the closure in a step; none: max_iter * 5 / 4.
  RAMET_ARG(std::optional<int64_t>, max_eval);
  /// A step ends where no gradient is larger.
  RAMET_ARG(double, tolerance_grad) = 1e-7;
  /// And where neither parameters nor loss change by more.
  RAMET_ARG(double, tolerance_change) = 1e-9;
  /// Pairs of differences that it remembers, each as large as all parameters.
  RAMET_ARG(int64_t, history_size) = 100;
  /// "strong_wolfe", or none: an iteration goes on by lr.
  RAMET_ARG(std::optional<std::string>, line_search_fn);
  RAMET_ARG(bool, maximize) = false;

 public:
  void check() const override;

 private:
  detail::Fields fields() override;
};
extern template class detail::ListedOptions<LBFGSOptions>;

/// Of all parameters, kept as that of the first.
struct RAMET_API LBFGSParamState : public OptimizerCloneableParamState<LBFGSParamState> {
  /// Calls of the closure, and iterations, so far:
  RAMET_ARG(int64_t, func_evals) = 0;
  RAMET_ARG(int64_t, n_iter) = 0;
  /// Of the last iteration: the step's length, the loss before it, the direction, the factor of the
  /// initial H, and the gradient:
  RAMET_ARG(double, t) = 0;
  RAMET_ARG(double, prev_loss) = 0;
  RAMET_ARG(Tensor, d);
  RAMET_ARG(Tensor, H_diag);
  RAMET_ARG(Tensor, prev_flat_grad);
  /// Differences y of gradients and s of parameters, and 1 / (y s), newest last:
  RAMET_ARG(std::deque<Tensor>, old_dirs);
  RAMET_ARG(std::deque<Tensor>, old_stps);
  RAMET_ARG(std::deque<Tensor>, ro);
  /// If some parameters are 16-bit ones, all parameters as the last step left them, in float32 or
  /// float64; otherwise undefined.
  RAMET_ARG(Tensor, master_params);

 public:
  /// Reads from, writes to an archive.
  void serialize(serialize::InputArchive& archive) override;
  void serialize(serialize::OutputArchive& archive) const override;

 private:
  friend class LBFGS;
  template <class F> static void each_tensor(LBFGSParamState& state, const F& f);
};

/// Makes up to max_iter iterations p += t d a step, with d = -H g. H approximates the inverse of
/// the second derivatives. It is made from the last history_size differences of gradients (y) and
/// parameters (s); differences with y s <= 1e-10 are left out. t is lr, in the very first iteration
/// lr min(1, 1 / sum |g|). With "strong_wolfe" the line search begins at that t. It ends where the
/// conditions hold (Nocedal and Wright, algorithms 3.5 and 3.6, c1 = 1e-4, c2 = 0.9), or at the
/// best point when max_eval is used up.
///
/// It takes one parameter group, on one device. The whole group counts as one vector, so LBFGS
/// cannot be used for the shards of fully_shard(). A closure that throws leaves parameters and
/// state as they were before the step. A step cannot be captured: the number of iterations depends
/// on values. The vector is in float32 at least: 16-bit parameters are rounded from it.
class RAMET_API LBFGS : public Optimizer {
 public:
  /// An Error unless there is one group.
  explicit LBFGS(const std::vector<OptimizerParamGroup>& param_groups, LBFGSOptions defaults = {});
  explicit LBFGS(std::vector<Tensor> params, LBFGSOptions defaults = {});

  /// `closure` computes the loss and its gradients, from scratch. Returns the first loss.
  Tensor step(LossClosure closure) override;
  void load(serialize::InputArchive& archive) override;

 private:
  std::unique_ptr<OptimizerParamState> new_state() const override;
  void check_state(const Tensor& parameter, OptimizerParamState& state) const override;
  /// All gradients as one vector; zeros where there is none.
  Tensor flat_gradient(bool maximize) const;
  /// The parameters as one vector, and back. The vector has the masters of 16-bit parameters, as
  /// other optimizers have them (kernels/optim/step.h).
  Tensor flat_parameters(const LBFGSParamState& state) const;
  void set_parameters(const Tensor& flat, LBFGSParamState& state);
  void iterate(const LBFGSOptions& options, LBFGSParamState& state,
               const std::function<double()>& evaluate, double loss, Tensor gradient);
};

}  // namespace ramet::optim
