// Whole training steps that launches limit.
#include "autograd/ops.h"
#include "nn/functional/functional.h"
#include "nn/optim/adam.h"
#include "nn/optim/sgd.h"
#include "tools/benchmarks/gpu/steps.h"

namespace ramet::gpu_bench {
namespace {

// 784-512-512-10 with SGD, what ./tools/train calls mlp.
Work mnist_step(int64_t batch, int64_t hidden, bool captured) {
  Weights weights;
  const Tensor w1 = weights({hidden, 784}, .05), b1 = weights({hidden}, .1),
               w2 = weights({hidden, hidden}, .05), b2 = weights({hidden}, .1),
               w3 = weights({10, hidden}, .05), b3 = weights({10}, .1);
  const Tensor x = filled({batch, 784}, kFloat, 1, 1), y = classes(batch, 10);
  const auto sgd = std::make_shared<optim::SGD>(weights.all, optim::SGDOptions(1e-3));
  const auto loss = [=] {
    const Tensor h = relu(linear(relu(linear(x, w1, b1)), w2, b2));
    return cross_entropy_loss(linear(h, w3, b3), y);
  };
  return step_of(weights.all, sgd, loss, captured);
}

struct Layer {
  Tensor gain1, packed, joined, gain2, wide, narrow;
};

// nanoGPT's small configuration without biases: embeddings, pre-norm blocks, a tied last product.
Work tiny_gpt_step(int64_t layers, int64_t heads, int64_t c, int64_t length, int64_t batch) {
  constexpr int64_t kSymbols = 65;
  Weights weights;
  const Tensor symbols = weights({kSymbols, c}, .02), places = weights({length, c}, .02);
  std::vector<Layer> blocks;
  for (int64_t i = 0; i < layers; ++i) {
    Layer l;
    l.gain1 = weights({c}, 1), l.packed = weights({3 * c, c}, .02);
    l.joined = weights({c, c}, .02), l.gain2 = weights({c}, 1);
    l.wide = weights({4 * c, c}, .02), l.narrow = weights({c, 4 * c}, .02);
    blocks.push_back(l);
  }
  const Tensor gain = weights({c}, 1);
  const Tensor text = classes(batch * length, kSymbols).view({batch, length}),
               target =
                   classes(batch * length + 1, kSymbols).slice(0, 1, batch * length + 1).clone();
  const auto adam = std::make_shared<optim::AdamW>(weights.all, optim::AdamWOptions(1e-3));
  return step_of(weights.all, adam, [=] {
    Tensor x = embedding(symbols, text) + places;
    Tensor normal = layer_norm(x, {c}, blocks[0].gain1);
    for (size_t i = 0; i < blocks.size(); ++i) {
      const Layer& l = blocks[i];
      const Tensor qkv = linear(normal, l.packed).view({batch, length, 3, heads, c / heads});
      const auto part = [&](int64_t k) { return qkv.select(2, k).transpose(1, 2); };
      const Tensor seen =
          scaled_dot_product_attention(part(0), part(1), part(2), {}, 0, /*is_causal=*/true);
      const auto [between, sum] = residual_layer_norm(
          linear(seen.transpose(1, 2).reshape({batch, length, c}), l.joined), x, {c}, l.gain2);
      const auto [after, next] =
          residual_layer_norm(linear(gelu(linear(between, l.wide)), l.narrow), sum, {c},
                              i + 1 < blocks.size() ? blocks[i + 1].gain1 : gain);
      normal = after, x = next;
    }
    return cross_entropy_loss_consuming(linear(normal, symbols).view({batch * length, kSymbols}),
                                        target);
  });
}

}  // namespace

void add_steps(std::vector<Row>& rows, bool tiny) {
  Row r;
  r.tolerance = 1e-3;
  const int64_t hidden = tiny ? 16 : 512, batch = tiny ? 4 : 64;
  r.name = "mnist.step", r.anchor = "step", r.shape = {{"batch", batch}, {"hidden", hidden}};
  r.make = [=] { return mnist_step(batch, hidden, false); };
  rows.push_back(r);
  // Replayed; compared with PyTorch's eager step.
  r.name = "mnist.step.captured", r.goal_ratio = 5;
  r.make = [=] { return mnist_step(batch, hidden, true); };
  rows.push_back(r);
  r.goal_ratio = 0;

  const int64_t layers = tiny ? 2 : 4, heads = tiny ? 2 : 4, c = tiny ? 16 : 128,
                length = tiny ? 8 : 64, sequences = tiny ? 2 : 12;
  r.name = "tinygpt.step", r.anchor = "G2";
  r.shape = {
      {"layers", layers}, {"heads", heads}, {"c", c}, {"length", length}, {"batch", sequences}};
  r.make = [=] { return tiny_gpt_step(layers, heads, c, length, sequences); };
  rows.push_back(r);
}

}  // namespace ramet::gpu_bench
