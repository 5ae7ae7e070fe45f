// Backwards in which ranks communicate several times, while devices of their own decide when each
// time comes: synchronised batch norms in branches, several modules.
#pragma once
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <random>
#include <thread>

#include "autograd/grad_mode.h"
#include "nn/layers/basic/linear.h"
#include "nn/layers/norm/batchnorm.h"
#include "nn/module/cloneable.h"
#include "parallel/distributed/ddp/data_parallel.h"
#include "tests/parallel/distributed/groups.h"

namespace ramet::distributed::meeting {

inline const TensorOptions kNumbers(kDouble);
inline constexpr int64_t kWidth = 6, kRows = 8;

// The identity, with a backward that takes time: a different time in each run.
inline Tensor delayed(const Tensor& x) {
  const Tensor y = x * 1;
  if (y.requires_grad())
    y.register_hook([](const Tensor&) {
      thread_local std::mt19937 random(std::random_device{}());
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 1000));
    });
  return y;
}

struct Layer {
  nn::Linear fc;
  nn::BatchNorm1d norm;
  Tensor operator()(const Tensor& x) { return norm(fc(x)).tanh(); }
};

// One branch with one norm and one with two; `deep`: the second one, too.
struct BranchesImpl : nn::Cloneable<BranchesImpl> {
  BranchesImpl() { BranchesImpl::reset(); }
  void reset() override {
    layers.clear();
    for (int i = 0; i < 3; ++i) {
      const std::string n = std::to_string(i);
      layers.push_back({register_module("fc" + n, nn::Linear(kWidth, kWidth)),
                        register_module("norm" + n, nn::BatchNorm1d(kWidth))});
    }
  }
  Tensor forward(const Tensor& x, bool deep) {
    const Tensor one = delayed(layers[0](x));
    return deep ? one + layers[2](delayed(layers[1](x))) : one;
  }
  std::vector<Layer> layers;
};
RAMET_MODULE(Branches);

using Deep = nn::parallel::NoScatter<bool>;

// A loss of `modules`, to each of which f gives (module number, rows of the batch).
using Forward = std::function<Tensor(size_t module, const Tensor& x, bool deep)>;
using Loss = std::function<Tensor(const Forward& f, const std::function<Tensor(int)>& rows)>;

/// Calls it on each of two ranks with the rank's devices; none: the modules' own.
using Ranks =
    std::function<void(const std::function<void(const Group&, const std::vector<Device>&)>& body)>;

/// The gradients of two ranks are those of one process with all rows, in each of `steps` steps.
inline void expect_as_alone(const Ranks& ranks, size_t modules, int steps, const Loss& loss) {
  std::vector<Branches> alone(modules);
  for (Branches& net : alone) net->to(kDouble);
  const Tensor batches = randn({2, 2 * kRows, kWidth}, kNumbers);
  const auto batch = [&](int i) { return batches[i]; };
  loss([&](size_t i, const Tensor& x, bool deep) { return alone[i]->forward(x, deep); }, batch)
      .backward();
  ranks([&](const Group& g, const std::vector<Device>& devices) {
    std::vector<Branches> nets;
    std::vector<std::unique_ptr<DistributedDataParallel<Branches>>> all;
    DdpOptions options;
    options.devices = devices;
    const Device home = devices.empty() ? Device(kCPU, 0) : devices[0];
    for (size_t i = 0; i < modules; ++i) {
      nets.emplace_back();
      nets[i]->to(kDouble);
      {
        const NoGradGuard off;
        for (const auto& item : alone[i]->named_parameters())
          nets[i]->named_parameters()[item.key()].copy_(item.value());
      }
      nets[i]->to(home);
      nn::convert_sync_batchnorm(*nets[i]);
      all.push_back(std::make_unique<DistributedDataParallel<Branches>>(nets[i], g, options));
    }
    const auto rows = [&](int i) {
      return batches[i].slice(0, g->rank() * kRows, (g->rank() + 1) * kRows).to(home);
    };
    const auto forward = [&](size_t i, const Tensor& x, bool deep) {
      return (*all[i])(x, Deep(deep));
    };
    for (int step = 0; step < steps; ++step) {
      for (Branches& net : nets) net->zero_grad();
      loss(forward, rows).backward();
      for (size_t i = 0; i < modules; ++i) {
        const auto expected = alone[i]->named_parameters();
        for (const auto& item : nets[i]->named_parameters()) {
          const Tensor &e = expected[item.key()].grad(), &got = item.value().grad();
          ASSERT_EQ(got.defined(), e.defined()) << item.key();
          ASSERT_TRUE(!e.defined() || got.to(Device(kCPU, 0)).allclose(e, 1e-9, 1e-9))
              << "step " << step << ", module " << i << ", " << item.key();
        }
      }
    }
  });
}

/// A module of two branches, two forwards of one module, two modules.
inline void expect_every_order(const Ranks& ranks, int steps) {
  expect_as_alone(ranks, 1, steps, [](const Forward& f, const auto& rows) {
    return f(0, rows(0), true).square().mean();
  });
  // Those of one forward must not be taken for those of the other.
  for (const bool deep : {true, false})
    expect_as_alone(ranks, 1, steps, [deep](const Forward& f, const auto& rows) {
      const Tensor a = f(0, rows(0), false), b = f(0, rows(1), deep);
      return a.square().mean() + (3 * b).square().mean();
    });
  // Two reducers, two sets of norms, one group.
  expect_as_alone(ranks, 2, steps, [](const Forward& f, const auto& rows) {
    return f(0, rows(0), true).square().mean() + (f(1, rows(1), true) * 2).square().mean();
  });
}

}  // namespace ramet::distributed::meeting
