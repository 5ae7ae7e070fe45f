// One digest of trainings for every schedule of the emulated GPUs: in which order threads, blocks
// and streams run, on how many workers and multiprocessors.
#pragma once
#include <gtest/gtest.h>

#include "nn/layers/norm/layer_norm.h"
#include "nn/layers/sequence/embedding.h"
#include "nn/optim/adam.h"
#include "nn/utils/clip_grad.h"
#include "tests/parallel/cuda/gpu_models.h"

namespace ramet::testing {

/// Tokens, attention, layer norm, dropout.
struct SmallAttentionImpl : nn::Cloneable<SmallAttentionImpl> {
  SmallAttentionImpl() { SmallAttentionImpl::reset(); }
  void reset() override {
    tokens = register_module("tokens", nn::Embedding(11, 8));
    qkv = register_module("qkv", nn::Linear(8, 24));
    norm = register_module("norm", nn::LayerNorm(nn::LayerNormOptions({8})));
    drop = register_module("drop", nn::Dropout(0.25));
    out = register_module("out", nn::Linear(8, 11));
  }
  Tensor forward(const Tensor& x) {
    const Tensor h = tokens(x), all = qkv(norm(h)).unsqueeze(1);
    const auto part = [&](int64_t i) { return all.narrow(-1, i * 8, 8); };
    const Tensor mixed =
        scaled_dot_product_attention(part(0), part(1), part(2), {}, 0, true).squeeze(1);
    return out(drop(h + mixed));
  }
  nn::Embedding tokens{nullptr};
  nn::Linear qkv{nullptr}, out{nullptr};
  nn::LayerNorm norm{nullptr};
  nn::Dropout drop{nullptr};
};
RAMET_MODULE(SmallAttention);

/// Parameters after some steps of AdamW on two GPUs, with clipped gradients.
inline Values trained_attention() {
  manual_seed(8);
  SmallAttention m;
  set_parameters(*m, 90);
  m->to(gpu(0));
  nn::parallel::DataParallelOptions options(gpus(2));
  options.bucket_bytes = 512;
  nn::parallel::DataParallel<SmallAttention> dp(m, options);
  optim::AdamW adam(m->parameters(), optim::AdamWOptions(0.01));
  for (int step = 0; step < 3; ++step) {
    const Tensor x = (varied({6, 5}, static_cast<uint64_t>(step) + 95) * 5.4 + 5.5).to(kLong);
    adam.zero_grad();
    cross_entropy_loss(dp(x.to(gpu(0))).flatten(0, 1), x.flatten().to(gpu(0))).backward();
    std::vector<Tensor> gradients;
    for (const Tensor& p : m->parameters()) gradients.push_back(p.grad());
    nn::utils::clip_grads_with_norm_(m->parameters(), 0.5, nn::utils::get_total_norm(gradients));
    adam.step();
  }
  return all_values(m->parameters());
}

inline Values digest_under(const emulated::Settings& settings) {
  const Gpus four(settings);
  Values all = flat(trained({gpus(4), 0, true, kFloat, 16, 3}));
  for (double v : trained_attention()) all.push_back(v);
  nn::parallel::clear_data_parallel_cache();
  return all;
}

/// Every stream mode with every order of threads, on several numbers of workers and
/// multiprocessors; the random ones with seeds 1 to `seeds`.
inline void expect_one_training(uint64_t seeds) {
  using emulated::StreamMode, emulated::ThreadOrder;
  const Values expected = digest_under(gpu_settings(4));
  for (double v : expected) ASSERT_TRUE(std::isfinite(v));
  for (const StreamMode streams :
       {StreamMode::Async, StreamMode::Eager, StreamMode::Lazy, StreamMode::Random})
    for (const ThreadOrder threads :
         {ThreadOrder::Forward, ThreadOrder::Reverse, ThreadOrder::Random}) {
      const bool random = streams == StreamMode::Random || threads == ThreadOrder::Random;
      for (uint64_t seed = 1; seed <= (random ? seeds : 1); ++seed) {
        emulated::Settings s = gpu_settings(4);
        s.streams = streams;
        s.threads = threads;
        s.stream_seed = s.thread_seed = seed;
        s.workers = 1 + static_cast<int>((seed + static_cast<uint64_t>(threads)) % 3);
        s.multiprocessors = seed % 2 ? 132 : 3;
        EXPECT_TRUE(digest_under(s) == expected)
            << "streams " << static_cast<int>(streams) << ", threads " << static_cast<int>(threads)
            << ", seed " << seed;
      }
    }
}

}  // namespace ramet::testing
