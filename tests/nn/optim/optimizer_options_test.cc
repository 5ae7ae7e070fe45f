// Options of optimizers: ranges, equality, and what they and the states are called in files.
#include "tests/nn/optim/prescribed_steps.h"
#include "tests/optimizers.h"

namespace ramet::optim {
namespace {

using testing::names_in_files;

template <class O, class Options> std::string refusal(Options options) {
  return error_of([&] { O({ones({1}).requires_grad_()}, options); });
}

TEST(Options, Ranges) {
#define REFUSED(O, options, text) \
  { refusal<O>(O##Options options), "[" #O "] " text }
  const std::pair<std::string, const char*> rows[] = {
      REFUSED(Adam, (NAN), "Invalid learning rate: nan"),
      REFUSED(Adam, ().betas(std::tuple(-.5, .5)), "Invalid beta parameter at index 0: -0.5"),
      REFUSED(Adam, ().betas(std::tuple(.5, NAN)), "Invalid beta parameter at index 1: nan"),
      REFUSED(Adam, ().betas(std::tuple(.5, 1.0)), "Invalid beta parameter at index 1: 1"),
      REFUSED(AdamW, ().weight_decay(-2), "Invalid weight_decay value: -2"),
      REFUSED(AdamW, ().eps(-1), "Invalid epsilon value: -1"),
      REFUSED(SGD, (1).momentum(-1), "Invalid momentum value: -1"),
      REFUSED(SGD, (1).weight_decay(-1), "Invalid weight_decay value: -1"),
      REFUSED(SGD, (-1), "Invalid learning rate: -1"),
      REFUSED(SGD, (1).nesterov(true), "Nesterov momentum requires a momentum and zero dampening"),
      REFUSED(RMSprop, (-.5), "Invalid learning rate: -0.5"),
      REFUSED(RMSprop, ().alpha(-1), "Invalid alpha value: -1"),
      REFUSED(RMSprop, ().alpha(NAN), "Invalid alpha value: nan"),
      REFUSED(RMSprop, ().eps(-1), "Invalid epsilon value: -1"),
      REFUSED(RMSprop, ().momentum(-1), "Invalid momentum value: -1"),
      REFUSED(RMSprop, ().weight_decay(-1), "Invalid weight_decay value: -1"),
      REFUSED(Rprop, (-.5), "Invalid learning rate: -0.5"),
      REFUSED(Rprop, ().etas(std::tuple(.0, 2.0)), "Invalid eta values: 0, 2"),
      REFUSED(Rprop, ().etas(std::tuple(.5, 1.0)), "Invalid eta values: 0.5, 1"),
      REFUSED(Rprop, ().etas(std::tuple(NAN, 2.0)), "Invalid eta values: nan, 2"),
      REFUSED(Lion, (-.5), "Invalid learning rate: -0.5"),
      REFUSED(Lion, ().betas(std::tuple(1.0, .5)), "Invalid beta parameter at index 0: 1"),
      REFUSED(Lion, ().weight_decay(-1), "Invalid weight_decay value: -1"),
      REFUSED(ASGD, (-.5), "Invalid learning rate: -0.5"),
      REFUSED(ASGD, ().lambd(-1), "Invalid lambd value: -1"),
      REFUSED(ASGD, ().alpha(NAN), "Invalid alpha value: nan"),
      REFUSED(ASGD, ().weight_decay(-1), "Invalid weight_decay value: -1"),
      REFUSED(Adagrad, (-.5), "Invalid learning rate: -0.5"),
      REFUSED(Adagrad, ().lr_decay(-1), "Invalid lr_decay value: -1"),
      REFUSED(Adagrad, ().weight_decay(NAN), "Invalid weight_decay value: nan"),
      REFUSED(Adagrad, ().initial_accumulator_value(-1),
              "Invalid initial_accumulator_value value: -1"),
      REFUSED(Adagrad, ().eps(-1), "Invalid epsilon value: -1"),
      REFUSED(Adamax, (-.5), "Invalid learning rate: -0.5"),
      REFUSED(Adamax, ().betas(std::tuple(1.0, .5)), "Invalid beta parameter at index 0: 1"),
      REFUSED(Adamax, ().betas(std::tuple(.5, NAN)), "Invalid beta parameter at index 1: nan"),
      REFUSED(Adamax, ().eps(-1), "Invalid epsilon value: -1"),
      REFUSED(Adamax, ().weight_decay(-1), "Invalid weight_decay value: -1"),
      REFUSED(RAdam, (-.5), "Invalid learning rate: -0.5"),
      REFUSED(RAdam, ().betas(std::tuple(1.0, .5)), "Invalid beta parameter at index 0: 1"),
      REFUSED(RAdam, ().betas(std::tuple(.5, NAN)), "Invalid beta parameter at index 1: nan"),
      REFUSED(RAdam, ().eps(-1), "Invalid epsilon value: -1"),
      REFUSED(RAdam, ().weight_decay(-1), "Invalid weight_decay value: -1"),
      REFUSED(Adadelta, (-.5), "Invalid learning rate: -0.5"),
      REFUSED(Adadelta, ().rho(1.5), "Invalid rho value: 1.5"),
      REFUSED(Adadelta, ().rho(NAN), "Invalid rho value: nan"),
      REFUSED(Adadelta, ().eps(-1), "Invalid epsilon value: -1"),
      REFUSED(Adadelta, ().weight_decay(-1), "Invalid weight_decay value: -1"),
      REFUSED(NAdam, (-.5), "Invalid learning rate: -0.5"),
      REFUSED(NAdam, ().betas(std::tuple(1.0, .5)), "Invalid beta parameter at index 0: 1"),
      REFUSED(NAdam, ().betas(std::tuple(.5, NAN)), "Invalid beta parameter at index 1: nan"),
      REFUSED(NAdam, ().eps(-1), "Invalid epsilon value: -1"),
      REFUSED(NAdam, ().weight_decay(-1), "Invalid weight_decay value: -1"),
      REFUSED(NAdam, ().momentum_decay(-1), "Invalid momentum_decay value: -1"),
  };
#undef REFUSED
  for (const auto& [got, want] : rows) expect_part(got, want);
  EXPECT_EQ(refusal<Adam>(AdamOptions().betas({0, 0}).eps(0)), "no error");
  EXPECT_EQ(refusal<RMSprop>(RMSpropOptions(0).alpha(2).eps(0)), "no error");
  EXPECT_EQ(refusal<SGD>(SGDOptions(INFINITY).dampening(-1)), "no error");
  EXPECT_EQ(refusal<Adadelta>(AdadeltaOptions().rho(1)), "no error");
}

TEST(Options, Equality) {
  EXPECT_TRUE(AdamOptions() == AdamOptions(1e-3));
  EXPECT_FALSE(AdamOptions() == AdamOptions().betas(std::make_tuple(0.9, 0.99)));
  EXPECT_FALSE(AdamOptions() == AdamOptions().amsgrad(true));
  EXPECT_FALSE(AdamWOptions() == AdamWOptions().eps(1e-7));
  EXPECT_TRUE(SGDOptions(1).momentum(0.5) == SGDOptions(1).momentum(0.5));
  EXPECT_FALSE(SGDOptions(1).dampening(0.5) == SGDOptions(1));
  EXPECT_FALSE(AdagradOptions() == AdagradOptions().maximize(true));
  EXPECT_TRUE(AdagradOptions() == AdagradOptions(1e-2).eps(1e-10));
  EXPECT_TRUE(LBFGSOptions() == LBFGSOptions());
  EXPECT_FALSE(LBFGSOptions().line_search_fn("strong_wolfe") == LBFGSOptions());
  EXPECT_FALSE(LBFGSOptions().max_eval(3) == LBFGSOptions().max_eval(4));
}

TEST(Options, AGroupTakesWhatHasItsDefault) {
  const Tensor a = ones({1}).requires_grad_();
  std::vector<OptimizerParamGroup> groups;
  groups.emplace_back(std::vector<Tensor>{a},
                      std::make_unique<AdamWOptions>(AdamWOptions().eps(1)));
  AdamW adam(
      groups,
      AdamWOptions(0.5).betas(std::make_tuple(0.25, 0.75)).eps(2).weight_decay(3).amsgrad(true));
  EXPECT_TRUE(
      static_cast<AdamWOptions&>(adam.param_groups()[0].options()) ==
      AdamWOptions(0.5).betas(std::make_tuple(0.25, 0.75)).eps(1).weight_decay(3).amsgrad(true));
}

// Those that exist must be read.
TEST(Options, NamesInFiles) {
  const std::pair<std::string, const char*> rows[] = {
      {names_in_files(SGDOptions(1)), "dampening lr momentum nesterov weight_decay"},
      {names_in_files(AdamOptions()), "amsgrad beta1 beta2 eps lr weight_decay"},
      {names_in_files(AdamWOptions()), "amsgrad beta1 beta2 eps lr weight_decay"},
      {names_in_files(RMSpropOptions()), "alpha centered eps lr momentum weight_decay"},
      {names_in_files(RMSpropParamState()), "square_avg step"},
      {names_in_files(RMSpropParamState().grad_avg(ones(1)).momentum_buffer(ones(1))),
       "grad_avg momentum_buffer square_avg step"},
      {names_in_files(SGDParamState()), ""},
      {names_in_files(SGDParamState().momentum_buffer(ones(1))), "momentum_buffer"},
      {names_in_files(AdamParamState()), "exp_avg exp_avg_sq step"},
      {names_in_files(AdamParamState().max_exp_avg_sq(ones(1))),
       "exp_avg exp_avg_sq max_exp_avg_sq step"},
      {names_in_files(RpropOptions()), "etaminus etaplus lr maximize step_size_max step_size_min"},
      {names_in_files(RpropParamState()), "prev step step_size"},
      {names_in_files(LionOptions()), "beta1 beta2 lr maximize weight_decay"},
      {names_in_files(LionParamState()), "exp_avg"},
      {names_in_files(ASGDOptions()), "alpha lambd lr maximize t0 weight_decay"},
      {names_in_files(ASGDParamState()), "ax eta step"},
      {names_in_files(AdagradParamState()), "step sum"},
      {names_in_files(AdagradOptions()),
       "eps initial_accumulator_value lr lr_decay maximize weight_decay"},
      {names_in_files(AdamaxOptions()), "beta1 beta2 eps lr maximize weight_decay"},
      {names_in_files(AdamaxParamState()), "exp_avg exp_inf step"},
      {names_in_files(RAdamOptions()),
       "beta1 beta2 decoupled_weight_decay eps lr maximize weight_decay"},
      {names_in_files(RAdamParamState()), "exp_avg exp_avg_sq step"},
      {names_in_files(AdadeltaOptions()), "eps lr maximize rho weight_decay"},
      {names_in_files(AdadeltaParamState()), "acc_delta square_avg step"},
      {names_in_files(NAdamOptions()),
       "beta1 beta2 decoupled_weight_decay eps lr maximize momentum_decay weight_decay"},
      {names_in_files(NAdamParamState()), "exp_avg exp_avg_sq mu_product step"},
      {names_in_files(LBFGSOptions()),
       "history_size line_search_fn lr max_eval max_iter maximize tolerance_change tolerance_grad"},
      {names_in_files(LBFGSParamState()),
       "H_diag d func_evals n_iter old_dirs old_stps prev_flat_grad prev_loss ro t"},
      {names_in_files(MuonOptions()),
       "adjust_lr_fn eps lr momentum nesterov ns_a ns_b ns_c ns_steps weight_decay"},
      {names_in_files(MuonParamState()), "momentum_buffer"},
  };
  for (const auto& [got, want] : rows) EXPECT_EQ(got, want);
}

}  // namespace
}  // namespace ramet::optim
