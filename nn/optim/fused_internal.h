// The kernel calls of an optimizer's step.
#pragma once
#include "nn/optim/call_batch_internal.h"
#include "nn/optim/fused.h"

namespace ramet::optim {

template <class Args, class Options>
void FusedOptimizer::run(const kernels::Kernel<Args>& kernel, const OptimizerOptions& options,
                         ArrayRef<Update> updates,
                         void (*numbers)(Args&, const Options&, int64_t)) {
  const unsigned in_use = uses(options);
  // Those of one call have one number of the step.
  auto batch = nn::detail::call_batch<Args, Update>(
      [](const Update& a, const Update& b) { return a.number == b.number; },
      [&](const nn::FlatRun& run, int64_t n) {
        kernels::StepTensor<Args::kStates> t{run.at(0), run.at(1), {}, n};
        for (int slot = 0, operand = 2; slot < Args::kStates; ++slot)
          if (in_use >> slot & 1) t.states[slot] = run.at(operand++);
        return t;
      },
      [&](const Update& head, Args& args) {
        args.maximize = false;
        numbers(args, static_cast<const Options&>(options), head.number);
        kernel(head.parameter->stream(), args);
        if (RAMET_UNLIKELY(capture::active()))
          capture::patch_last<Args>(
              [this, numbers, g = group_, step = head.state.step, number = head.number](Args& a) {
                numbers(a, static_cast<const Options&>(param_groups_[g].options()),
                        step ? *step : number);
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
