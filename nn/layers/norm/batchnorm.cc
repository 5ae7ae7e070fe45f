#include "nn/layers/norm/batchnorm.h"

#include <algorithm>
#include <vector>

#include "autograd/grad_mode.h"
#include "autograd/ops/layers/pool.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/pointwise/unary.h"
#include "kernels/reduce/merge_moments.h"
#include "nn/functional/functional.h"
#include "nn/init.h"
#include "nn/module/field_internal.h"
#include "nn/module/replica_meeting.h"

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

// Moves `running` towards `values` * times / over, of a batch that has been counted. Without a
// momentum it is the mean of all batches, in double. Their number is a tensor that the host does
// not read: no forward waits for a GPU, and replays of a capture go on counting.
void BatchNormState::follow(const Tensor& running, const Tensor& values, double times,
                            double over) const {
  if (const auto momentum = options.momentum()) {
    running.mul_(1 - *momentum).add_(values.to(running.scalar_type()), *momentum * times / over);
    return;
  }
  const Tensor before = running.to(kDouble), mean = values.to(kDouble).mul(times / over);
  running.copy_(mean.sub(before).div(num_batches_tracked).add(before));
}
// Called when the batch was accepted: a refused batch changes nothing.
void BatchNormState::count_batch() {
  const NoGradGuard off;
  num_batches_tracked.add_(1);
}

Tensor BatchNormState::forward(const Tensor& input, bool training, BufferPolicy policy, bool pool) {
  const auto normalise =
      pool ? functional::detail::batch_norm_relu_max_pool2d : functional::detail::batch_norm;
  const bool track = training && options.track_running_stats() && !autograd::is_recomputing();
  if (training && policy == BufferPolicy::sync && ReplicaMeeting::current())
    return pool ? max_pool2d(relu(synchronised(input)), 2) : synchronised(input);
  const bool merged = policy == BufferPolicy::merge_stats;
  if (track && (merged || !options.momentum())) {
    // With momentum 1 the "running" statistics that the operation writes are the batch's own.
    const Tensor mean = zeros_like(running_mean), var = zeros_like(running_var);
    Tensor y = normalise(input, mean, var, weight, bias, true, 1.0, options.eps());
    if (merged) {
      const int64_t count = input.numel() / std::max<int64_t>(input.size(1), 1);
      deposits->forwards.push_back({count, mean, var});
      return y;
    }
    const NoGradGuard off;
    count_batch();
    if (input.numel() > 0) follow(running_mean, mean), follow(running_var, var);
    return y;
  }
  const double momentum = track ? *options.momentum() : 0.0;
  Tensor y = normalise(input, running_mean, running_var, weight, bias,
                       training || !options.track_running_stats(), momentum, options.eps());
  if (track) count_batch();
  return y;
}

// With the mean and variance over all replicas' parts: Note [Moments of all shards].
Tensor BatchNormState::synchronised(const Tensor& given) {
  // 16-bit values are worked on in 32.
  const auto wide = [](const Tensor& t) {
    return t.defined() && item_size(t.scalar_type()) < 4 ? t.to(kFloat) : t;
  };
  const Tensor input = wide(given), scale = wide(weight), shift = wide(bias);
  std::vector<int64_t> dims, shape(static_cast<size_t>(input.dim()), 1);
  for (int64_t d = 0; d < input.dim(); ++d)
    if (d != 1) dims.push_back(d);
  shape[1] = input.size(1);
  const int64_t mine = input.numel() / std::max<int64_t>(input.size(1), 1);
  const Tensor own = input.sum(dims) / static_cast<double>(std::max<int64_t>(mine, 1));
  const Tensor away = input - own.view(shape);
  using Share = ReplicaMeeting::Share;
  const auto merge = [&](const ReplicaMeeting::Elsewhere& elsewhere, uint64_t round,
                         const std::vector<Share>& brought) {
    std::vector<ShardMoments> shards;
    for (const Share& s : brought) shards.push_back({s.tensors[0], s.tensors[1], s.number});
    const MergedMoments m =
        merge_moments_of_shards(elsewhere, "BatchNorm " + std::to_string(round), shards);
    RAMET_CHECK(m.total != 1, "BatchNorm",
                "Expected more than 1 value per channel when training, got input size ",
                input.sizes(), " in all replicas together");
    std::vector<Share> out;
    for (size_t i = 0; i < shards.size(); ++i) out.push_back({{m.mean[i], m.var[i]}, m.total});
    return out;
  };
  const Share all = ReplicaMeeting::current()->meet(
      "BatchNorm", {{own, (away * away).sum(dims)}, static_cast<double>(mine)}, merge);
  const Tensor &mean = all.tensors[0], &var = all.tensors[1];
  const double count = all.number;
  Tensor y = (input - mean.view(shape)) * (var + options.eps()).rsqrt().view(shape);
  if (scale.defined()) y = y * scale.view(shape);
  if (shift.defined()) y = y + shift.view(shape);
  if (options.track_running_stats() && !ReplicaMeeting::current()->computes_again() &&
      !autograd::is_recomputing()) {
    const NoGradGuard off;
    count_batch();
    if (count > 0) {  // empty batches teach nothing
      follow(running_mean, mean);
      follow(running_var, var, count, count - 1);
    }
  }
  return y.to(given.scalar_type());
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

// A forward's statistics as of all parts, on `device`.
struct Union {
  double count = 0;
  Tensor mean, m2;  // double; the sums of squared deviations

  Union(ArrayRef<const BatchDeposits::One*> parts, Device device) {
    kernels::MergeMomentsArgs args{};
    std::vector<Tensor> kept;
    const auto merge = [&] {
      if (args.parts == 0) return;
      args.count = count;
      kernels::merge_moments(mean.stream(), args);
      for (int32_t i = 0; i < args.parts; ++i) count += args.part[i].count;
      args.parts = 0;
    };
    for (const BatchDeposits::One* part : parts) {
      if (part->count == 0) continue;
      if (!mean.defined()) {
        mean = Tensor(TensorBase::empty(part->mean.sizes(), kDouble, device));
        m2 = Tensor(TensorBase::empty(part->mean.sizes(), kDouble, device));
        args.mean = static_cast<double*>(mean.ptr());
        args.m2 = static_cast<double*>(m2.ptr());
        args.n = mean.numel();
      }
      const auto values = [&](const Tensor& t) {
        kept.push_back(t.to(device, kDouble).contiguous());
        return static_cast<const double*>(kept.back().ptr());
      };
      args.part[args.parts++] = {values(part->mean), values(part->var),
                                 static_cast<double>(part->count)};
      if (args.parts == kernels::kMaxMomentParts) merge();
    }
    merge();
  }
};

}  // namespace

// On the buffers' device, where no value is read.
void BatchNormState::merge(ArrayRef<const BatchNormState*> replicas) {
  const NoGradGuard off;
  size_t forwards = 0;
  for (const BatchNormState* r : replicas)
    if (r) forwards = std::max(forwards, r->deposits->forwards.size());
  std::vector<const BatchDeposits::One*> parts;
  for (size_t i = 0; i < forwards; ++i) {
    parts.clear();
    for (const BatchNormState* r : replicas)
      if (r && i < r->deposits->forwards.size()) parts.push_back(&r->deposits->forwards[i]);
    const Union seen(parts, running_mean.device());
    count_batch();
    if (seen.count == 0) continue;  // empty batches teach nothing
    follow(running_mean, seen.mean);
    follow(running_var, seen.m2.div(seen.count - 1));
  }
  for (const BatchNormState* r : replicas)
    if (r) r->deposits->forwards.clear();
}

std::vector<Field> BatchNormState::fields(BatchNormOptions& o) {
  return {{"num_features", &o.num_features(), kBare | kCount},
          {"eps", &o.eps()},
          {"momentum", &o.momentum()},
          {"affine", &o.affine()},
          {"track_running_stats", &o.track_running_stats()}};
}
void BatchNormState::print(std::ostream& stream, const std::type_info& type) const {
  BatchNormOptions now = options;
  print_module(stream, type, fields(now), {});
}

void check_batch_norm_input(int rank, const Tensor& input) {
  RAMET_CHECK(input.defined(), "BatchNorm", "expected a tensor: got an undefined one");
  if (rank == 1)
    RAMET_CHECK(input.dim() == 2 || input.dim() == 3, "BatchNorm1d",
                "expected 2D or 3D input (got ", input.dim(), "D input)");
  else
    RAMET_CHECK(input.dim() == rank + 2, "BatchNorm", "expected ", rank + 2, "D input (got ",
                input.dim(), "D input)");
}

}  // namespace ramet::nn::detail

namespace ramet::nn {

void convert_sync_batchnorm(Module& module) {
  module.apply([](Module& m) {
    if (dynamic_cast<const detail::BatchNormState*>(&m))
      for (const char* buffer : {"running_mean", "running_var", "num_batches_tracked"})
        m.set_buffer_policy(buffer, BufferPolicy::sync);
  });
}

template class Cloneable<BatchNorm1dImpl>;
template class Cloneable<BatchNorm2dImpl>;
template class Cloneable<BatchNorm3dImpl>;
template class Cloneable<BatchNormReLUMaxPool2dImpl>;
}  // namespace ramet::nn
