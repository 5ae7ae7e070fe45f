// A training step of GPT-2 (Radford et al. 2019) in bfloat16 with float32 masters: G1, what
// deterministic results cost (G10), and its memory (G11).
#include "autograd/checkpoint.h"
#include "autograd/ops.h"
#include "nn/optim/adam.h"
#include "tools/benchmarks/gpu/steps.h"

namespace ramet::gpu_bench {
namespace {

struct Gpt2 {
  int64_t layers, heads, c, symbols, length, batch;
};

struct Block {
  Tensor gain1, shift1, packed, packed_bias, joined, joined_bias;
  Tensor gain2, shift2, wide, wide_bias, narrow, narrow_bias;

  Block(Weights& w, int64_t c)
      : gain1(w({c}, 1)),
        shift1(w({c}, .1)),
        packed(w({3 * c, c}, .02)),
        packed_bias(w({3 * c}, .1)),
        joined(w({c, c}, .02)),
        joined_bias(w({c}, .1)),
        gain2(w({c}, 1)),
        shift2(w({c}, .1)),
        wide(w({4 * c, c}, .02)),
        wide_bias(w({4 * c}, .1)),
        narrow(w({c, 4 * c}, .02)),
        narrow_bias(w({c}, .1)) {}

  // `x` is the sum of the branches so far, and `normal` what is made of it. Returns the next
  // branch and the sum without it.
  std::tuple<Tensor, Tensor> operator()(const Gpt2& g, const Tensor& normal,
                                        const Tensor& x) const {
    const Tensor qkv =
        linear(normal, packed, packed_bias).view({g.batch, g.length, 3, g.heads, g.c / g.heads});
    const Tensor attended = packed_scaled_dot_product_attention(qkv, /*is_causal=*/true).flatten(2);
    const auto [between, sum] =
        residual_layer_norm(linear(attended, joined, joined_bias), x, {g.c}, gain2, shift2);
    return {linear_gelu_linear(between, wide, wide_bias, narrow, narrow_bias), sum};
  }
};

Work gpt2_step(const Gpt2& g, bool captured, bool recomputed) {
  Weights weights(kBFloat16);
  const Tensor symbols = weights({g.symbols, g.c}, .02), places = weights({g.length, g.c}, .02);
  std::vector<Block> blocks;
  for (int64_t i = 0; i < g.layers; ++i) blocks.emplace_back(weights, g.c);
  const Tensor gain = weights({g.c}, 1), shift = weights({g.c}, .1);
  const int64_t tokens = g.batch * g.length;
  const Tensor text = classes(tokens, g.symbols).view({g.batch, g.length}),
               target = classes(tokens + 1, g.symbols).slice(0, 1, tokens + 1).clone();
  // Its masters, and both moments, are float32.
  const auto adam =
      std::make_shared<optim::AdamW>(weights.all, optim::AdamWOptions(1e-3).weight_decay(.1));
  const auto loss = [=] {
    Tensor x = embedding(symbols, text) + places;
    Tensor normal = layer_norm(x, {g.c}, blocks[0].gain1, blocks[0].shift1);
    for (size_t i = 0; i < blocks.size(); ++i) {
      const auto block = [&g, &b = blocks[i]](const Tensor& n, const Tensor& sum) {
        return b(g, n, sum);
      };
      const auto [branch, sum] =
          recomputed ? autograd::checkpoint(block, normal, x) : block(normal, x);
      const bool last = i + 1 == blocks.size();
      std::tie(normal, x) =
          residual_layer_norm(branch, sum, {g.c}, last ? gain : blocks[i + 1].gain1,
                              last ? shift : blocks[i + 1].shift1);
    }
    return linear_cross_entropy(normal.view({tokens, g.c}), symbols, target);
  };
  return step_of(weights.all, adam, loss, captured);
}

}  // namespace

void add_gpt2_steps(std::vector<Row>& rows, bool tiny, int64_t batch) {
  const Gpt2 g = tiny ? Gpt2{2, 2, 16, 64, 8, 2} : Gpt2{12, 12, 768, 50304, 1024, batch};
  Row r;
  r.shape = {{"layers", g.layers},   {"heads", g.heads},   {"c", g.c},
             {"symbols", g.symbols}, {"length", g.length}, {"batch", g.batch}};
  r.limit = Limit::Tokens, r.work = static_cast<double>(g.batch * g.length), r.tolerance = .02;
  const auto add = [&](const char* name, const char* anchor, double goal, double ratio,
                       bool captured, bool recomputed) {
    r.name = name, r.anchor = anchor, r.goal = goal, r.goal_ratio = ratio;
    r.make = [=] { return gpt2_step(g, captured, recomputed); };
    rows.push_back(r);
  };
  add("gpt2.step", "G1", 540e3, 1.5, false, false);
  // Against what torch.compile makes of the same step.
  add("gpt2.step.captured", "G1", 540e3, 1.1, true, false);
  // The same work, whose results always have the same bits. PyTorch's is in its deterministic mode.
  add("gpt2.step.deterministic", "G10", 540e3, 1.2, true, false);
  add("gpt2.step.recomputed", "G11", 0, 0, true, true);
  // The same steps' memory, in bytes, at most 330 KB a token: PyTorch's is 1 / 0.45 of it.
  r.memory = true;
  add("gpt2.step.memory", "G11", 330e3, 1 / .45, false, false);
  add("gpt2.step.memory.recomputed", "G11", 330e3, 1 / .45, false, true);
}

}  // namespace ramet::gpu_bench
