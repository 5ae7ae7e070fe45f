// Rows over all parameters of a model: optimizer steps, norms, sums and copies for replicas.
#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "kernels/pointwise/nary_sum.h"
#include "nn/optim/adam.h"
#include "nn/utils/clip_grad.h"
#include "parallel/move/comm.h"
#include "runtime/base/device.h"
#include "tools/benchmarks/gpu/rows.h"

namespace ramet::gpu_bench {
namespace {

std::vector<Tensor> parameters(bool tiny, bool with_gradients, ScalarType dtype = kFloat) {
  std::vector<Tensor> out;
  int seed = 100;
  for (const std::vector<int64_t>& sizes : gpt2_sizes(tiny)) {
    Tensor p = filled(sizes, dtype, .02, seed++);
    if (with_gradients) {
      p.requires_grad_(true);
      p.mutable_grad() = filled(sizes, dtype, .01, seed + 1000);
    }
    out.push_back(p);
  }
  return out;
}

int64_t count(bool tiny) {
  int64_t n = 0;
  for (const std::vector<int64_t>& sizes : gpt2_sizes(tiny)) {
    int64_t each = 1;
    for (int64_t s : sizes) each *= s;
    n += each;
  }
  return n;
}

}  // namespace

void add_optimizer_rows(std::vector<Row>& rows, bool tiny) {
  const int64_t n = count(tiny);
  Row r;
  r.limit = Limit::Copy, r.shape = {{"elements", n}, {"tiny", tiny}}, r.tolerance = 1e-4;
  r.name = "adamw.fused", r.anchor = "G6", r.goal_ratio = 1, r.work = 28. * static_cast<double>(n);
  const auto adamw = [=](ScalarType dtype) {
    const auto p = parameters(tiny, true, dtype);
    const auto adam = std::make_shared<optim::AdamW>(p, optim::AdamWOptions(1e-3).weight_decay(.1));
    return Work{[=] { adam->step(); },
                [=] {
                  adam->step();
                  return some_of(p[2]);
                }};
  };
  r.make = [=] { return adamw(kFloat); };
  rows.push_back(r);
  // bfloat16 parameters and gradients; masters and moments in float32. As many bytes.
  r.name = "adamw.masters", r.goal = .9, r.goal_ratio = 1.05, r.tolerance = 1e-2;
  r.make = [=] { return adamw(kBFloat16); };
  rows.push_back(r);
  r.goal = 0, r.tolerance = 1e-4;
  r.name = "clip_grads", r.goal_ratio = 0, r.work = 12. * static_cast<double>(n);
  r.make = [=] {
    const auto p = parameters(tiny, true);
    std::vector<Tensor> g;
    for (const Tensor& t : p) g.push_back(t.grad());
    // A limit that is below the norm every time.
    const auto run = [=] {
      nn::utils::clip_grads_with_norm_(p, 1e-3, nn::utils::get_total_norm(g));
    };
    return Work{run, [=] {
                  run();
                  return some_of(g[2]);
                }};
  };
  rows.push_back(r);
  r.name = "reduce_add.4", r.anchor = "G9", r.goal = .9, r.goal_ratio = 1.6;
  r.work = 20. * static_cast<double>(n);
  r.make = [=] {
    std::vector<Tensor> in;
    for (int k = 0; k < 4; ++k) in.push_back(filled({n}, kFloat, 1, k + 1));
    const Tensor out = empty({n}, TensorOptions().device(kGpu));
    const auto run = [=] {
      kernels::NarySumArgs k{};
      for (size_t i = 0; i < 4; ++i) k.in[i] = in[i].data_ptr();
      k.out = out.data_ptr(), k.n = n, k.leaves = 4, k.dtype = kFloat;
      kernels::nary_sum({kGpu, 0}, k);
    };
    return Work{run, [=] {
                  run();
                  return some_of(out);
                }};
  };
  rows.push_back(r);
  // To three more logical devices, where there are any: RAMET_CUDA_DEVICES=0,0,0,0.
  if (cuda::device_count() < 4) return;
  r.name = "broadcast_coalesced.4", r.goal = 0, r.work = 24. * static_cast<double>(n);
  r.make = [=] {
    const auto p = parameters(tiny, false);
    std::vector<Device> devices;
    for (int k = 0; k < 4; ++k) devices.emplace_back(kCUDA, static_cast<DeviceIndex>(k));
    const auto run = [=] {
      const NoGradGuard off;
      auto copies = parallel::comm::broadcast_coalesced(p, devices);
      // The other devices make the copies: cuda:0's events must come after them.
      for (int k = 1; k < 4; ++k) cuda::synchronize(k);
      return copies;
    };
    return Work{[=] { run(); }, [=] { return some_of(run()[3][2]); }};
  };
  rows.push_back(r);
}

}  // namespace ramet::gpu_bench
