// Every optimizer, with options that cover each way it can compute. Tests of what all optimizers
// have in common go through this list.
#pragma once
#include <functional>
#include <memory>
#include <ostream>
#include <vector>

#include "nn/optim/adadelta.h"
#include "nn/optim/adagrad.h"
#include "nn/optim/adam.h"
#include "nn/optim/adamax.h"
#include "nn/optim/asgd.h"
#include "nn/optim/lbfgs.h"
#include "nn/optim/lion.h"
#include "nn/optim/muon.h"
#include "nn/optim/nadam.h"
#include "nn/optim/radam.h"
#include "nn/optim/rmsprop.h"
#include "nn/optim/rprop.h"
#include "nn/optim/sgd.h"

namespace ramet::testing {

struct AnyOptimizer {
  const char* name;
  std::function<std::unique_ptr<optim::Optimizer>(std::vector<optim::OptimizerParamGroup>)> make;
  bool matrices = false;            ///< it takes only matrices
  const char* no_shards = nullptr;  ///< why it is not for shards of parameters
  std::unique_ptr<optim::Optimizer> operator()(std::vector<Tensor> parameters) const {
    return make({optim::OptimizerParamGroup(std::move(parameters))});
  }
};
inline void PrintTo(const AnyOptimizer& o, std::ostream* out) { *out << o.name; }

template <class O, class Options> AnyOptimizer optimizer_with(const char* name, Options options) {
  return {name, [options](std::vector<optim::OptimizerParamGroup> groups) {
            return std::make_unique<O>(std::move(groups), options);
          }};
}

inline std::vector<AnyOptimizer> all_optimizers() {
  using namespace optim;
  return {
      optimizer_with<SGD>("SGD", SGDOptions(.1).weight_decay(.01)),
      optimizer_with<SGD>("Momentum", SGDOptions(.1).momentum(.9).dampening(.3)),
      optimizer_with<SGD>("Nesterov", SGDOptions(.1).momentum(.9).nesterov(true).weight_decay(.1)),
      optimizer_with<Adam>("Adam", AdamOptions(.1).weight_decay(.1)),
      optimizer_with<Adam>("AMSGrad", AdamOptions(.01).weight_decay(.01).amsgrad(true)),
      optimizer_with<AdamW>("AdamW", AdamWOptions(.01).weight_decay(.1)),
      optimizer_with<AdamW>("AdamWAmsgrad", AdamWOptions(.1).amsgrad(true)),
      optimizer_with<RMSprop>("RMSprop", RMSpropOptions(.01).weight_decay(.1)),
      optimizer_with<RMSprop>("RMSpropMomentum", RMSpropOptions(.01).momentum(.9)),
      optimizer_with<RMSprop>("RMSpropCentered", RMSpropOptions(.01).alpha(.9).centered(true)),
      optimizer_with<RMSprop>("RMSpropAll", RMSpropOptions(.01).momentum(.5).centered(true)),
      optimizer_with<Adagrad>("Adagrad", AdagradOptions(.1).lr_decay(.1).weight_decay(.1)),
      optimizer_with<Adagrad>("AdagradFilled", AdagradOptions(.1).initial_accumulator_value(.5)),
      optimizer_with<Adamax>("Adamax", AdamaxOptions(.1).weight_decay(.1)),
      optimizer_with<RAdam>("RAdam", RAdamOptions(.1).betas({.9, .8}).weight_decay(.1)),
      optimizer_with<RAdam>("RAdamDecoupled",
                            RAdamOptions(.1).weight_decay(.1).decoupled_weight_decay(true)),
      optimizer_with<Adadelta>("Adadelta", AdadeltaOptions(.5).rho(.8).eps(1e-3).weight_decay(.1)),
      optimizer_with<Rprop>("Rprop", RpropOptions(.1)),
      optimizer_with<Lion>("Lion", LionOptions(.01).weight_decay(.1)),
      optimizer_with<NAdam>("NAdam", NAdamOptions(.1).weight_decay(.1)),
      optimizer_with<NAdam>(
          "NAdamDecoupled",
          NAdamOptions(.1).momentum_decay(.1).weight_decay(.1).decoupled_weight_decay(true)),
      optimizer_with<ASGD>("ASGD", ASGDOptions(.1).lambd(.1).t0(1).weight_decay(.1)),
  };
}
/// Those that take only matrices.
inline std::vector<AnyOptimizer> matrix_optimizers() {
  using namespace optim;
  std::vector<AnyOptimizer> all = {
      optimizer_with<Muon>("Muon", MuonOptions(.1)),
      optimizer_with<Muon>("MuonPlain",
                           MuonOptions(.05).nesterov(false).momentum(.5).ns_steps(2).adjust_lr_fn(
                               "match_rms_adamw"))};
  for (AnyOptimizer& one : all)
    one.matrices = true, one.no_shards = "a matrix is made orthogonal as a whole";
  return all;
}
inline std::vector<AnyOptimizer> optimizers_of_matrices() {
  std::vector<AnyOptimizer> all = all_optimizers();
  for (AnyOptimizer& one : matrix_optimizers()) all.push_back(std::move(one));
  return all;
}

/// And those with steps that take a closure.
inline std::vector<AnyOptimizer> every_optimizer() {
  std::vector<AnyOptimizer> all = optimizers_of_matrices();
  all.push_back(optimizer_with<optim::LBFGS>("LBFGS", optim::LBFGSOptions(.1).max_iter(4)));
  all.back().no_shards = "all parameters count as one vector";
  return all;
}

/// Steps of all parameters. If the optimizer takes only matrices, SGD takes the others.
class Steps {
 public:
  Steps(const AnyOptimizer& optimizer, const std::vector<Tensor>& parameters) {
    std::vector<Tensor> taken, rest;
    for (const Tensor& p : parameters)
      (optimizer.matrices && p.dim() != 2 ? rest : taken).push_back(p);
    all_.push_back(optimizer(std::move(taken)));
    if (!rest.empty()) all_.push_back(std::make_unique<optim::SGD>(rest, optim::SGDOptions(.1)));
  }
  /// `closure`: the loss, and its gradients from scratch.
  void operator()(const std::function<Tensor()>& closure) {
    if (all_.size() == 1) {
      all_[0]->step(closure);
      return;
    }
    closure();
    for (const auto& one : all_) one->step();
  }

 private:
  std::vector<std::unique_ptr<optim::Optimizer>> all_;
};

}  // namespace ramet::testing
