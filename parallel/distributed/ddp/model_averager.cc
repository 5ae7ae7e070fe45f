#include "parallel/distributed/ddp/model_averager.h"

#include <map>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "nn/serialize/archive.h"

namespace ramet::distributed {

PeriodicModelAverager::PeriodicModelAverager(std::shared_ptr<ProcessGroup> group, int64_t period,
                                             int64_t warmup_steps)
    : group_(std::move(group)), period_(period), warmup_steps_(warmup_steps) {
  constexpr const char* op = "PeriodicModelAverager";
  RAMET_CHECK(group_, op, "group: got none");
  RAMET_CHECK(period > 0, op, "period: got ", period, ", expected at least 1 step");
  RAMET_CHECK(warmup_steps >= 0, op, "warmup_steps: got ", warmup_steps, ", expected 0 or more");
}

bool PeriodicModelAverager::average_parameters(const std::vector<Tensor>& parameters) {
  const int64_t now = step_;
  const bool due = now >= warmup_steps_ && (now - warmup_steps_) % period_ == 0;
  if (due) {
    const NoGradGuard off;
    // Waits for all means before any parameter changes.
    std::vector<Tensor> means;
    std::vector<Work> works;
    for (const Tensor& p : parameters) {
      RAMET_CHECK(p.defined() && is_floating(p.scalar_type()), "average_parameters", "parameter ",
                  means.size(), ": got ", p.defined() ? describe(p) : "an undefined tensor",
                  ", expected a floating-point tensor");
      means.push_back(p.detach().clone());
    }
    CollectiveOptions o("average parameters, step " + std::to_string(now));
    o.op = ReduceOp::average;
    for (const Tensor& mean : means)
      if (mean.numel() > 0) works.push_back(group_->all_reduce(mean, o));
    for (const Work& w : works) w.wait();
    for (size_t i = 0; i < parameters.size(); ++i) parameters[i].detach().copy_(means[i]);
  }
  ++step_;
  return due;
}

void PeriodicModelAverager::save(serialize::OutputArchive& archive) const {
  archive.write("step", IValue(step_));
}
void PeriodicModelAverager::load(serialize::InputArchive& archive) {
  IValue step;
  archive.read("step", step);
  step_ = step.toInt();
}

}  // namespace ramet::distributed
