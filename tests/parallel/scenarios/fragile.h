// A module that fails where a test says, on the replicas that it names, and a data-parallel job of
// it.
#pragma once
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>

#include "autograd/autograd.h"
#include "autograd/graph/function.h"
#include "tests/parallel/models.h"

namespace ramet {
namespace testing {

/// The user's own type: thrown as it is.
struct Boom : std::runtime_error {
  explicit Boom(int replica) : std::runtime_error("Boom!"), replica(replica) {}
  int replica;
};

enum class Where {
  kNowhere,
  kKernelCheck,      // index out of range, found when the operation reads its data
  kForward,          // the module's own code
  kForwardHook,      // a module hook
  kFunctionForward,  // of a user-defined Function
  kFunctionBackward,
  kTensorHook,     // on an activation
  kParameterHook,  // on the replica's parameter, before its contribution is summed
};

/// What the replicas shall do: shared by all of them, through a pointer.
struct Plan {
  Where where = Where::kNowhere;
  unsigned replicas = 0;  // a bit for each that fails
  std::atomic<int> forwards{0};
  bool here(Where w, int replica) const { return w == where && (replicas >> replica & 1); }
};

struct Passes : autograd::Function<Passes> {
  static Tensor forward(autograd::AutogradContext* ctx, const Tensor& x, Plan* plan, int replica) {
    ctx->saved_data["replica"] = static_cast<int64_t>(replica);
    ctx->saved_data["fails"] = static_cast<int64_t>(plan->here(Where::kFunctionBackward, replica));
    if (plan->here(Where::kFunctionForward, replica)) throw Boom(replica);
    return x.clone();
  }
  static autograd::variable_list backward(autograd::AutogradContext* ctx,
                                          autograd::variable_list grads) {
    if (ctx->saved_data["fails"].toInt())
      throw Boom(static_cast<int>(ctx->saved_data["replica"].toInt()));
    return {grads[0], Tensor(), Tensor()};
  }
};

/// Random pauses, so that the failures come in another order at every run.
inline void pause() {
  static std::atomic<uint32_t> state{
      static_cast<uint32_t>(std::chrono::steady_clock::now().time_since_epoch().count())};
  const uint32_t r = state.fetch_add(0x9E3779B9u) * 2654435761u >> 20;
  std::this_thread::sleep_for(std::chrono::microseconds(r % 300));
}

struct FragileImpl : nn::Cloneable<FragileImpl> {
  explicit FragileImpl(std::shared_ptr<Plan> plan) : plan(std::move(plan)) { FragileImpl::reset(); }
  void reset() override {
    first = register_module("first", nn::Linear(6, 5));
    norm = register_module("norm", nn::BatchNorm1d(5));
    last = register_module("last", nn::Linear(5, 3));
  }
  Tensor forward(const Tensor& x) {
    const int r = nn::parallel::replica_index();
    pause();
    if (plan->here(Where::kForward, r)) throw Boom(r);
    Tensor h = norm(first(x));
    if (plan->here(Where::kKernelCheck, r)) h = h.index_select(0, make({0, 99}, kLong, h.device()));
    h = Passes::apply(h.tanh(), plan.get(), r);
    h.register_hook([p = plan, r](const Tensor& g) {
      pause();
      if (p->here(Where::kTensorHook, r)) throw Boom(r);
      return g;
    });
    if (plan->here(Where::kParameterHook, r))
      last->weight.register_hook([r](const Tensor& g) -> Tensor {
        pause();
        if (g.defined()) throw Boom(r);
        return g;
      });
    const Tensor y = last(h);
    ++plan->forwards;
    return y;
  }
  std::shared_ptr<Plan> plan;
  nn::Linear first{nullptr}, last{nullptr};
  nn::BatchNorm1d norm{nullptr};
};
RAMET_MODULE(Fragile);

struct Job {
  explicit Job(const std::vector<Device>& on, int64_t bucket_bytes = int64_t{1} << 20)
      : plan(std::make_shared<Plan>()), m(plan) {
    set_parameters(*m, 3);
    nn::parallel::DataParallelOptions options(on);
    options.bucket_bytes = bucket_bytes;
    options.output_device = kHost;
    dp.emplace(m, options);
  }
  void step(uint64_t seed) { (*dp)(varied({8, 6}, seed)).pow(2).sum().backward(); }
  // Two steps of training, into gradients that start undefined.
  Values trained() {
    for (uint64_t s = 0; s < 2; ++s) {
      m->zero_grad();
      step(50 + s);
      sgd(*m, 0.05);
    }
    Values all = all_state(*m);
    for (double v : all_gradients(*m)) all.push_back(v);
    return all;
  }
  std::shared_ptr<Plan> plan;
  Fragile m;
  std::optional<nn::parallel::DataParallel<Fragile>> dp;
};

inline const std::vector<Device> kFour = {kHost, d(0), d(1), d(2)};

/// Those of all parameters; empty where there is none.
inline std::vector<Values> gradients_of(nn::Module& m) {
  std::vector<Values> out;
  for (const Tensor& p : m.parameters())
    out.push_back(p.grad().defined() ? values(p.grad()) : Values());
  return out;
}

}  // namespace testing
}  // namespace ramet
