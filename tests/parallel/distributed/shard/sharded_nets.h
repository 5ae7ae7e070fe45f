// Modules that tests shard, and a rank's part of their data.
#pragma once
#include <vector>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "nn/functional/functional.h"
#include "nn/layers/basic/linear.h"
#include "nn/layers/norm/layer_norm.h"
#include "nn/layers/sequence/embedding.h"
#include "nn/module/cloneable.h"
#include "parallel/distributed/shard/fully_shard.h"
#include "runtime/devices/generator.h"

namespace ramet::distributed {

struct TextNetImpl : nn::Cloneable<TextNetImpl> {
  explicit TextNetImpl(int64_t width = 24) : width(width) { TextNetImpl::reset(); }
  void reset() override {
    words = register_module("words", nn::Embedding(20, 8));
    fc1 = register_module("fc1", nn::Linear(4 * 8, width));
    norm = register_module("norm", nn::LayerNorm(nn::LayerNormOptions({width})));
    fc2 = register_module("fc2", nn::Linear(width, width));
    fc3 = register_module("fc3", nn::Linear(width, 5));
  }
  Tensor forward(const Tensor& ids) {
    return fc3(fc2(norm(fc1(words(ids).flatten(1))).relu()).tanh());
  }
  int64_t width;
  nn::Embedding words{nullptr};
  nn::Linear fc1{nullptr}, fc2{nullptr}, fc3{nullptr};
  nn::LayerNorm norm{nullptr};
};
RAMET_MODULE(TextNet);

// The layers, then the rest.
inline void shard_all(const TextNet& net, const DeviceMesh& mesh,
                      const FullyShardOptions& options = {}) {
  fully_shard(net->fc1, mesh, options);
  fully_shard(net->fc2, mesh, options);
  fully_shard(net, mesh, options);
}

// The same net on every rank that calls it.
inline TextNet text_net(int64_t width = 24, uint64_t seed = 7) {
  TextNet net(width);
  uint64_t n = seed;
  const NoGradGuard off;
  const auto host = TensorOptions(kFloat).device(Device(kCPU, 0));
  for (const Tensor& p : net->parameters()) {
    const Generator g(Device(kCPU, 0), n++);
    p.copy_(randn(p.sizes(), g, host).mul_(0.3));
  }
  return net;
}

struct TextBatch {
  Tensor ids, labels;
};
inline TextBatch text_batch(int rank, int step, int64_t rows = 6, Device device = Device(kCPU, 0)) {
  const Generator g(Device(kCPU, 0), static_cast<uint64_t>(1000 * step + rank));
  const auto host = TensorOptions(kLong).device(Device(kCPU, 0));
  const Tensor ids = randint(0, 20, {rows, 4}, g, host), labels = randint(0, 5, {rows}, g, host);
  return {ids.to(device), labels.to(device)};
}
inline Tensor text_loss(const Tensor& scores, const TextBatch& batch) {
  return cross_entropy_loss(scores, batch.labels);
}

// y = sum of the chosen w_i x.
struct FactorImpl : nn::Cloneable<FactorImpl> {
  explicit FactorImpl(double value, int64_t n = 2) : value(value), n(n) { FactorImpl::reset(); }
  void reset() override { w = register_parameter("w", full({n}, value)); }
  Tensor forward(const Tensor& x) { return w * x; }
  double value;
  int64_t n;
  Tensor w;
};
RAMET_MODULE(Factor);

struct FactorsOfImpl : nn::Cloneable<FactorsOfImpl> {
  explicit FactorsOfImpl(int n) : n(n) { FactorsOfImpl::reset(); }
  void reset() override {
    factors.clear();
    for (int i = 0; i < n; ++i)
      factors.push_back(register_module("f" + std::to_string(i), Factor(i + 1.0)));
  }
  // All run, as they have to on every rank; only the chosen ones count.
  Tensor forward(const Tensor& x, const std::vector<int>& used) {
    std::vector<Tensor> all;
    for (const Factor& f : factors) all.push_back(f(x));
    Tensor sum = zeros({});
    for (int i : used) sum = sum + all[static_cast<size_t>(i)].sum();
    return sum;
  }
  int n;
  std::vector<Factor> factors;
};
RAMET_MODULE(FactorsOf);

}  // namespace ramet::distributed
