#include "nn/batchnorm.h"

#include <algorithm>
#include <ostream>
#include <vector>

#include "autograd/grad_mode.h"
#include "autograd/ops/factory.h"
#include "autograd/ops/pool.h"
#include "autograd/ops/unary.h"
#include "nn/functional.h"
#include "nn/init.h"
#include "nn/replica_meeting.h"
#include "runtime/capture.h"

namespace ramet::nn::detail {

struct BatchDeposits {
  using One = BatchNormState::Deposit;
  std::vector<One> forwards;
};

void BatchNormState::reset(Module& module) {
  const int64_t features = options.num_features();
  if (options.affine()) {
    weight = module.register_parameter("weight", empty({features}));
    bias = module.register_parameter("bias", empty({features}));
  } else {
    weight = module.register_parameter("weight", Tensor(), /*requires_grad=*/false);
    bias = module.register_parameter("bias", Tensor(), /*requires_grad=*/false);
  }
  const bool track = options.track_running_stats();
  const auto buffer = [&](const char* name, const Tensor& t) {
    return module.register_buffer(name, t, BufferPolicy::merge_stats);
  };
  running_mean = buffer("running_mean", track ? zeros({features}) : Tensor());
  running_var = buffer("running_var", track ? ones({features}) : Tensor());
  num_batches_tracked = buffer("num_batches_tracked", track ? zeros({}, kLong) : Tensor());
  deposits = std::make_shared<BatchDeposits>();
  reset_parameters();
}

void BatchNormState::reset_running_stats() {
  if (!options.track_running_stats()) return;
  init::zeros_(running_mean);
  init::ones_(running_var);
  init::zeros_(num_batches_tracked);
}

void BatchNormState::reset_parameters() {
  reset_running_stats();
  if (!options.affine()) return;
  init::ones_(weight);
  init::zeros_(bias);
}

double BatchNormState::next_momentum() {
  const NoGradGuard off;
  num_batches_tracked.add_(1);
  return options.momentum() ? *options.momentum() : 1.0 / num_batches_tracked.item<double>();
}

Tensor BatchNormState::forward(const Tensor& input, bool training, BufferPolicy policy, bool pool) {
  const auto normalise =
      pool ? functional::detail::batch_norm_relu_max_pool2d : functional::detail::batch_norm;
  const bool track = training && options.track_running_stats();
  if (training && policy == BufferPolicy::sync && ReplicaMeeting::current())
    return pool ? max_pool2d(relu(synchronised(input)), 2) : synchronised(input);
  if (track && policy == BufferPolicy::merge_stats) {
    // With momentum 1 the "running" statistics that the operation writes are the batch's own.
    const Tensor mean = zeros_like(running_mean), var = zeros_like(running_var);
    Tensor y = normalise(input, mean, var, weight, bias, true, 1.0, options.eps());
    deposits->forwards.push_back({input.numel() / std::max<int64_t>(input.size(1), 1), mean, var});
    return y;
  }
  const double momentum = track ? next_momentum() : 0.0;
  return normalise(input, running_mean, running_var, weight, bias,
                   training || !options.track_running_stats(), momentum, options.eps());
}

// Mean and variance over all replicas' parts, in recorded operations: first the sums, then the
// squared deviations from the common mean. Every replica adds them up in the same order.
Tensor BatchNormState::synchronised(const Tensor& input) {
  ReplicaMeeting& meeting = *ReplicaMeeting::current();
  const Device here = input.device();
  auto over_all = [&](const Tensor& mine) {
    Tensor sum;
    for (const Tensor& t : meeting.exchange("BatchNorm", mine))
      sum = sum.defined() ? sum + t.to(here) : t.to(here);
    return sum;
  };
  std::vector<int64_t> dims, shape(static_cast<size_t>(input.dim()), 1);
  for (int64_t d = 0; d < input.dim(); ++d)
    if (d != 1) dims.push_back(d);
  shape[1] = input.size(1);
  const double count =
      over_all(tensor(static_cast<double>(input.numel() / std::max<int64_t>(input.size(1), 1))))
          .item<double>();
  RAMET_CHECK(count != 1, "BatchNorm",
              "Expected more than 1 value per channel when training, got input size ",
              input.sizes(), " in all replicas together");
  const Tensor mean = over_all(input.sum(dims)) / count;
  const Tensor deviation = input - mean.view(shape);
  const Tensor var = over_all((deviation * deviation).sum(dims)) / count;
  if (options.track_running_stats()) {
    const NoGradGuard off;
    const double momentum = next_momentum();
    if (count > 0) {  // empty batches teach nothing
      running_mean.mul_(1 - momentum).add_(mean, momentum);
      running_var.mul_(1 - momentum).add_(var, momentum * count / (count - 1));
    }
  }
  Tensor y = deviation * (var + options.eps()).rsqrt().view(shape);
  if (weight.defined()) y = y * weight.view(shape);
  return bias.defined() ? y + bias.view(shape) : y;
}

void BatchNormState::discard() { deposits->forwards.clear(); }

std::vector<BatchNormState::Deposit> BatchNormState::deposited() const {
  return deposits ? deposits->forwards : std::vector<Deposit>();
}
void BatchNormState::set_deposits(std::vector<Deposit> entries) {
  deposits = std::make_shared<BatchDeposits>();
  deposits->forwards = std::move(entries);
}

namespace {

std::vector<double> host_values(const Tensor& t) {
  const Tensor host = t.to(Device(kCPU, 0), kDouble);
  // Our own look, wherever this runs: in a replica of another one too.
  const auto* p = static_cast<const double*>(host.ptr());
  return std::vector<double>(p, p + host.numel());
}

// Count, mean and sum of squared deviations of values that were seen in parts.
struct Union {
  double count = 0;
  std::vector<double> mean, m2;

  void add(const BatchDeposits::One& part) {
    const std::vector<double> part_mean = host_values(part.mean), part_var = host_values(part.var);
    if (part.count == 0) return;
    const double n = static_cast<double>(part.count), total = count + n;
    mean.resize(part_mean.size());
    m2.resize(part_mean.size());
    for (size_t c = 0; c < mean.size(); ++c) {
      const double delta = part_mean[c] - mean[c];
      mean[c] += delta * n / total;
      m2[c] += part_var[c] * (n - 1) + delta * delta * count * n / total;
    }
    count = total;
  }
};

void move_towards(const Tensor& running, const std::vector<double>& values, double momentum) {
  const Tensor host(TensorBase::empty(running.sizes(), kDouble, Device(kCPU, 0)));
  std::copy(values.begin(), values.end(), static_cast<double*>(host.ptr()));
  running.mul_(1 - momentum).add_(host.to(running), momentum);
}

}  // namespace

void BatchNormState::merge(ArrayRef<const BatchNormState*> replicas) {
  std::vector<std::vector<BatchDeposits::One>> of_forward;
  for (const BatchNormState* r : replicas) {
    if (!r) continue;
    const auto& forwards = r->deposits->forwards;
    of_forward.resize(std::max(of_forward.size(), forwards.size()));
    for (size_t i = 0; i < forwards.size(); ++i) of_forward[i].push_back(forwards[i]);
  }
  const auto update = [this, of_forward = std::move(of_forward)] {
    const NoGradGuard off;
    for (const auto& parts : of_forward) {
      Union seen;
      for (const BatchDeposits::One& part : parts) seen.add(part);
      const double momentum = next_momentum();
      if (seen.count == 0) continue;  // empty batches teach nothing
      for (double& m2 : seen.m2) m2 /= seen.count - 1;
      move_towards(running_mean, seen.mean, momentum);
      move_towards(running_var, seen.m2, momentum);
    }
  };
  if (RAMET_UNLIKELY(capture::active())) capture::host_work(update);
  else update();
  for (const BatchNormState* r : replicas)
    if (r) r->deposits->forwards.clear();
}

void BatchNormState::print(std::ostream& stream, const char* name) const {
  stream << std::boolalpha << "ramet::nn::" << name << "(" << options.num_features()
         << ", eps=" << options.eps() << ", momentum=";
  if (options.momentum()) stream << *options.momentum();
  else stream << "None";
  stream << ", affine=" << options.affine()
         << ", track_running_stats=" << options.track_running_stats() << ")";
}

void check_batch_norm_input(int rank, const Tensor& input) {
  if (rank == 1)
    RAMET_CHECK(input.dim() == 2 || input.dim() == 3, "BatchNorm1d",
                "expected 2D or 3D input (got ", input.dim(), "D input)");
  else
    RAMET_CHECK(input.dim() == rank + 2, "BatchNorm", "expected ", rank + 2, "D input (got ",
                input.dim(), "D input)");
}

}  // namespace ramet::nn::detail

namespace ramet::nn {
template class Cloneable<BatchNorm1dImpl>;
template class Cloneable<BatchNorm2dImpl>;
template class Cloneable<BatchNormReLUMaxPool2dImpl>;
}  // namespace ramet::nn
