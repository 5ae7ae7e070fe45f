// Steps of many tensors, norms and their limit on a GPU: the CPU's bits.
#include "tests/optimizers.h"

#include "autograd/autograd.h"
#include "kernels/optim/optimizer_step.h"
#include "nn/optim/grad_scaler.h"
#include "nn/optim/lbfgs.h"
#include "nn/utils/clip_grad.h"
#include "runtime/cuda/copies.h"
#include "tests/autograd/gpu/gpu_tensors.h"
#include "tests/share.h"

namespace ramet::kernels {
namespace {

// Many parameters of odd sizes, some of them too long for one block, with gradients of their own.
std::vector<Tensor> parameters(Device device, ScalarType dtype) {
  std::vector<Tensor> p;
  for (int64_t i = 0; i < 70; ++i)
    p.push_back(drawn({i % 7 == 3 ? 5000 + i : 1 + i * 3}, dtype, i).to(device).requires_grad_());
  return p;
}
void give_gradients(const std::vector<Tensor>& p, int64_t step) {
  for (size_t i = 0; i < p.size(); ++i)
    p[i].mutable_grad() =
        drawn(p[i].sizes(), p[i].scalar_type(), 1000 * step + static_cast<int64_t>(i))
            .to(p[i].device());
}

TEST(OptimizerOnGpu, StepsHaveTheBitsOfTheCpu) {
  for (ScalarType t : {kFloat, kDouble, kHalf, kBFloat16}) {
    // Their kernels are those of kFloat and kBFloat16.
    if ((t == kDouble || t == kHalf) && testing::one_repeat_in() > 1) continue;
    for (const testing::AnyOptimizer& any : testing::all_optimizers()) {
      const std::vector<Tensor> host = parameters(kHost, t), gpu = parameters(kGpu, t);
      const auto a = any(host), b = any(gpu);
      for (int64_t step = 1; step <= 3; ++step) {
        give_gradients(host, step), give_gradients(gpu, step);
        if (step == 2)
          host[5].mutable_grad() = gpu[5].mutable_grad() = Tensor();  // an age of its own
        a->step(), b->step();
      }
      for (size_t i = 0; i < host.size(); ++i)
        ASSERT_EQ(numbers(host[i]), numbers(gpu[i])) << any.name << ", " << i;
    }
  }
}

// 16-bit parameters without masters, and with gradients in float.
TEST(OptimizerOnGpu, MixedDtypesHaveTheBitsOfTheCpu) {
  for (const bool masters : {false, true}) {
    const std::vector<Tensor> host = parameters(kHost, kBFloat16),
                              gpu = parameters(kGpu, kBFloat16);
    std::vector<std::unique_ptr<optim::FusedOptimizer>> both;
    for (const auto& p : {host, gpu}) {
      both.push_back(std::make_unique<optim::AdamW>(p, optim::AdamWOptions(.1).amsgrad(true)));
      both.back()->use_masters(masters);
    }
    for (int64_t step = 1; step <= 3; ++step) {
      give_gradients(host, step), give_gradients(gpu, step);
      for (size_t i = 0; i < host.size(); i += 2)
        for (const Tensor& p : {host[i], gpu[i]}) p.mutable_grad() = p.grad().to(kFloat).mul(1.1);
      for (const auto& one : both) one->step();
    }
    for (size_t i = 0; i < host.size(); ++i) ASSERT_EQ(numbers(host[i]), numbers(gpu[i])) << i;
  }
}

// A step that the GPU skips is no step, and the host does not wait for the answer.
TEST(OptimizerOnGpu, SkippedSteps) {
  for (const testing::AnyOptimizer& any : testing::optimizers_of_matrices()) {
    std::vector<Tensor> host, gpu;
    for (std::vector<Tensor>* p : {&host, &gpu})
      for (const ScalarType t : {kFloat, kHalf})
        p->push_back(drawn({8, 6}, t, 5).to(p == &host ? kHost : kGpu).requires_grad_());
    const auto plain = any(host), scaled = any(gpu);
    optim::StepLR plain_schedule(*plain, 1, .5), schedule(*scaled, 1, .5);
    optim::GradScaler scaler(optim::GradScalerOptions().init_scale(4));
    for (int64_t step = 0; step < 6; ++step) {
      const bool skips = step == 0 || step == 3;
      give_gradients(host, step), give_gradients(gpu, step);
      for (const Tensor& p : gpu) p.grad().mul_(std::pow(.5, (step > 0) + (step > 3)) * 4);
      if (skips) gpu[1].grad()[2][1].fill_(NAN);
      scaler.scale(ones({}, TensorOptions(kGpu)));
      const uint64_t before = ::ramet::cuda::copy_counts().to_host;
      scaler.step(*scaled), scaler.update(), schedule.step();
      EXPECT_EQ(::ramet::cuda::copy_counts().to_host, before) << any.name << ": the host waited";
      if (!skips) plain->step(), plain_schedule.step();
    }
    EXPECT_EQ(schedule.step_count(), plain_schedule.step_count());
    for (size_t i = 0; i < host.size(); ++i) {
      if (any.matrices) continue;  // sums of products have other orders there
      ASSERT_EQ(numbers(host[i]), numbers(gpu[i])) << any.name << ", " << i;
    }
    EXPECT_EQ(scaler.get_scale(), 1);
  }
}

// Sums of products have other orders there.
TEST(OptimizerOnGpu, MatricesAndOneVector) {
  const auto fit = [](const auto& make) {
    std::vector<double> parameters[2];
    for (const Device where : {kHost, kGpu}) {
      const Tensor p = drawn({3, 4}, kDouble, 1).to(where).requires_grad_();
      const Tensor goal = drawn({3, 4}, kDouble, 2).to(where), w = goal.add(2).square();
      auto optimizer = make(p);
      for (int step = 0; step < 3; ++step)
        optimizer.step([&] {
          optimizer.zero_grad();
          Tensor loss = ((p - goal).square() * w).sum() + (p.sum() - 1).square();
          loss.backward();
          return loss;
        });
      parameters[where.is_cuda()] = numbers(p);
    }
    for (size_t i = 0; i < 12; ++i) EXPECT_NEAR(parameters[0][i], parameters[1][i], 1e-3) << i;
  };
  fit([](const Tensor& p) { return optim::Muon({p}, optim::MuonOptions(.02)); });
  fit([](const Tensor& p) {
    return optim::LBFGS({p}, optim::LBFGSOptions().max_iter(4).line_search_fn("strong_wolfe"));
  });
}

int64_t calls = 0;
void count_call(KernelCall& call) { calls += call.done && std::string(call.name) == "adam_step"; }

TEST(OptimizerOnGpu, OneCallForManyTensors) {
  const std::vector<Tensor> p = parameters(kGpu, kFloat);
  optim::AdamW optimizer(p, optim::AdamWOptions(0.01));
  give_gradients(p, 1);
  calls = 0;
  const KernelObserver before = ramet::detail::kernel_observer.exchange(count_call);
  optimizer.step();
  ramet::detail::kernel_observer.store(before);
  EXPECT_EQ(calls, 2);  // 64 and 6
}

TEST(ClipOnGpu, NormAndLimit) {
  for (ScalarType t : {kFloat, kDouble, kBFloat16})
    for (double type : {2.0, 1.0, std::numeric_limits<double>::infinity()}) {
      const std::vector<Tensor> host = parameters(kHost, t), gpu = parameters(kGpu, t);
      give_gradients(host, 1), give_gradients(gpu, 1);
      const double a = nn::utils::clip_grad_norm_(host, 0.5, type),
                   b = nn::utils::clip_grad_norm_(gpu, 0.5, type);
      if (type == 2) EXPECT_EQ(a, b);
      else EXPECT_NEAR(a, b, 1e-2 * a);
      if (type != 2) continue;
      for (size_t i = 0; i < host.size(); ++i)
        ASSERT_EQ(numbers(host[i].grad()), numbers(gpu[i].grad())) << i;
    }
}

// Among other tensors, one of so many blocks that a warp's lanes add up several each, and the last
// one is short. The squares are whole numbers, and no order of sums rounds.
TEST(ClipOnGpu, NormsOfManyBlocks) {
  for (ScalarType t : {kFloat, kDouble, kHalf, kBFloat16}) {
    const int64_t n = 33 * kSumSquaresBlock + 7;
    std::vector<Tensor> grads = {full({5}, 2, TensorOptions(t).device(kGpu)),
                                 full({n}, 4, TensorOptions(t).device(kGpu)),
                                 full({3 * kSumSquaresBlock}, 8, TensorOptions(t).device(kGpu))};
    const auto norm = [&] { return nn::utils::get_total_norm(grads).item<double>(); };
    const int64_t squares = 5 * 4 + n * 16 + 3 * kSumSquaresBlock * 64;
    EXPECT_EQ(norm(), std::sqrt(static_cast<double>(squares)));
    for (const int64_t at : {int64_t{0}, kSumSquaresBlock - 1, kSumSquaresBlock, n - 8, n - 1}) {
      grads[1].narrow(0, at, 1).fill_(32);  // each place counts once
      EXPECT_EQ(norm(), std::sqrt(static_cast<double>(squares + 1024 - 16))) << at;
      grads[1].narrow(0, at, 1).fill_(4);
    }
  }
}

TEST(ClipOnGpu, TheNormStaysThere) {
  const std::vector<Tensor> p = parameters(kGpu, kFloat);
  give_gradients(p, 1);
  std::vector<Tensor> grads;
  for (const Tensor& t : p) grads.push_back(t.grad());
  const uint64_t before = ::ramet::cuda::copy_counts().to_host;
  const Tensor norm = nn::utils::get_total_norm(grads);
  nn::utils::clip_grads_with_norm_(p, 1, norm);
  EXPECT_EQ(::ramet::cuda::copy_counts().to_host, before) << "the host looked";
  EXPECT_EQ(norm.device(), kGpu);
  EXPECT_NEAR(nn::utils::get_total_norm(grads).item<double>(), 1, 1e-5);
}

uint64_t looks = 0;
void note_looks(KernelCall& call) {
  if (!call.done && std::string(call.name) == "limit_norm")
    looks = ::ramet::cuda::copy_counts().to_host;
}

// A host that wants the number waits after all work is queued. Only for an Error about the norm it
// waits earlier.
TEST(ClipOnGpu, TheHostLooksWhenAllIsQueued) {
  for (const bool nonfinite : {false, true}) {
    const std::vector<Tensor> p = parameters(kGpu, kFloat);
    give_gradients(p, 1);
    const uint64_t before = ::ramet::cuda::copy_counts().to_host;
    looks = 0;
    const KernelObserver observer = ramet::detail::kernel_observer.exchange(note_looks);
    const double norm = nn::utils::clip_grad_norm_(p, 1, 2, nonfinite);
    ramet::detail::kernel_observer.store(observer);
    EXPECT_GT(norm, 1);
    EXPECT_EQ(looks, before + nonfinite);
    EXPECT_EQ(::ramet::cuda::copy_counts().to_host, before + 1 + nonfinite);
  }
}

}  // namespace
}  // namespace ramet::kernels
