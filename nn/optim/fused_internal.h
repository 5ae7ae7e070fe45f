// The kernel calls of an optimizer's step.
#pragma once
#include <bit>

#include "nn/optim/call_batch_internal.h"
#include "nn/optim/fields_internal.h"
#include "nn/optim/fused.h"

namespace ramet::optim {

template <class Args, class Options>
void FusedOptimizer::run(const kernels::Kernel<Args>& kernel, const OptimizerOptions& options,
                         ArrayRef<Update> updates,
                         void (*numbers)(Args&, const Options&, int64_t)) {
  run_calls(kernel, options, updates,
            [numbers](Args& a, const OptimizerOptions& o, int64_t number, double) {
              numbers(a, static_cast<const Options&>(o), number);
            });
}
template <class Args, class Options>
void FusedOptimizer::run(const kernels::Kernel<Args>& kernel, const OptimizerOptions& options,
                         ArrayRef<Update> updates,
                         void (*numbers)(Args&, const Options&, int64_t, double)) {
  run_calls(kernel, options, updates,
            [numbers](Args& a, const OptimizerOptions& o, int64_t number, double own) {
              numbers(a, static_cast<const Options&>(o), number, own);
            });
}

template <class Args, class Fill>
void FusedOptimizer::run_calls(const kernels::Kernel<Args>& kernel, const OptimizerOptions& options,
                               ArrayRef<Update> updates, const Fill& fill) {
  const unsigned in_use = uses(options);
  // Those of one call have one number of the step, and one number of the state.
  auto batch = nn::detail::call_batch<Args, Update>(
      [](const Update& a, const Update& b) {
        return a.number == b.number && first_number(a.state) == first_number(b.state) &&
               a.gradient_dtype == b.gradient_dtype && a.state_dtype() == b.state_dtype();
      },
      [&](const nn::FlatRun& run, int64_t n) {
        kernels::StepTensor<Args::kStates> t{run.at(0), run.at(1), {}, n, nullptr};
        int operand = 2;
        if (run.operands() > 2 + std::popcount(in_use)) t.master = run.at(operand++);
        for (int slot = 0; slot < Args::kStates; ++slot)
          if (in_use >> slot & 1) t.states[slot] = run.at(operand++);
        return t;
      },
      [&](const Update& head, Args& args) {
        args.maximize = false, args.skip = skip_pointer(head.parameter->device());
        args.gradient_dtype = head.gradient_dtype, args.state_dtype = head.state_dtype();
        fill(args, options, head.number, first_number(head.state));
        kernel(head.parameter->stream(), args);
        if (RAMET_UNLIKELY(capture::active()))
          capture::patch_last<Args>(
              [this, fill, g = group_, state = head.state, number = head.number](Args& a) {
                fill(a, param_groups_[g].options(), state.step ? *state.step : number,
                     first_number(state));
              });
      });
  const TensorBase* given[kOperands];
  for (const Update& u : updates) {
    const int n = operands(u, in_use, given);
    if (RAMET_UNLIKELY(u.copies != nullptr)) {
      batch.flush();
      copy(u, in_use, /*back=*/false);
      for (int i = 0; i < n; ++i)
        if (const Tensor& copy = (*u.copies)[static_cast<size_t>(i)]; copy.defined())
          given[i] = &copy;
      batch.add(u, given, n);
      batch.flush();
      copy(u, in_use, /*back=*/true);
    } else {
      batch.add(u, given, n);
    }
    u.parameter->storage_impl()->wrote(name());
  }
  batch.flush();
}

}  // namespace ramet::optim

/// RAMET_OPTIMIZER and the constructor from groups, which does nothing else.
#define RAMET_FUSED_OPTIMIZER(Name, State)                                                    \
  Name::Name(const std::vector<OptimizerParamGroup>& param_groups, Name##Options defaults)    \
      : FusedOptimizer(param_groups, std::make_unique<Name##Options>(std::move(defaults))) {} \
  RAMET_OPTIMIZER(Name, State)
