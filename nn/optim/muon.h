// Muon (Jordan et al. 2024): momentum that makes its matrices orthogonal, as Python's torch.optim
// has it.
#pragma once
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "nn/module/arg.h"
#include "nn/optim/fused.h"

namespace ramet::optim {

struct RAMET_API MuonOptions : public detail::ListedOptions<MuonOptions> {
  MuonOptions(double lr = 1e-3) : lr_(lr) {}
  /// a, b and c of the formula.
  using coefficients_t = std::tuple<double, double, double>;
  RAMET_ARG(double, lr) = 1e-3;
  RAMET_ARG(double, weight_decay) = 0.1;
  RAMET_ARG(double, momentum) = 0.95;
  RAMET_ARG(bool, nesterov) = true;
  /// Of a Newton-Schulz step, a X + (b X X^T + c (X X^T)^2) X.
  RAMET_ARG(coefficients_t, ns_coefficients) = std::make_tuple(3.4445, -4.7750, 2.0315);
  RAMET_ARG(double, eps) = 1e-7;
  RAMET_ARG(int64_t, ns_steps) = 5;
  /// How the rate follows the sizes (rows, columns). "original", also the default: sqrt(max(1, rows
  /// / columns)). "match_rms_adamw": 0.2 sqrt(max(rows, columns)). "spectral_unclamped": sqrt(rows
  /// / columns).
  RAMET_ARG(std::optional<std::string>, adjust_lr_fn);

 public:
  void check() const override;

 private:
  detail::Fields fields() override;
};
extern template class detail::ListedOptions<MuonOptions>;

struct RAMET_API MuonParamState
    : public OptimizerCloneableParamState<MuonParamState, FusedParamState> {
  RAMET_ARG(Tensor, momentum_buffer);

 private:
  Members members() override { return {{{{"momentum_buffer", &momentum_buffer_}}}, /*always=*/1}; }
};

/// m += (1 - momentum) (grad - m);  u = nesterov ? grad + momentum (m - grad) : m.
/// x = u / max(|u|, eps), and ns_steps times x = a x + (b x x' + c (x x')^2) x, in bfloat16.
/// The singular values become about 1 (Newton and Schulz's iteration).
/// p = (1 - lr weight_decay) p - lr adjusted x.
///
/// It takes matrices only: an Error for other parameters. Another optimizer must update biases,
/// embeddings and kernels of convolutions. Each matrix is made orthogonal as a whole, so Muon
/// cannot be used for the shards of fully_shard().
class RAMET_API Muon : public FusedOptimizer {
 public:
  explicit Muon(const std::vector<OptimizerParamGroup>& param_groups, MuonOptions defaults = {});
  explicit Muon(std::vector<Tensor> params, MuonOptions defaults = {});
  Tensor step(LossClosure closure = nullptr) override;

 private:
  void step_group(const OptimizerOptions& options, ArrayRef<Update> updates) override;
  unsigned uses(const OptimizerOptions&) const override { return 1; }
  const char* name() const override { return "Muon.step"; }
  std::unique_ptr<OptimizerParamState> new_state() const override;
  void check_parameters() const;
  void guard_options();
  /// A step's tensors in addition to its state: made for all groups before anything changes.
  struct Direction {
    Tensor momentum, update;
    size_t group;
  };
  std::unordered_map<const void*, Direction> directions_;  // by Tensor::impl() of the parameter
  capture::Life life_;
};

}  // namespace ramet::optim
