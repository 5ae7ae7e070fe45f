// Linear layers and attention: rows that products limit.
#include <cmath>

#include "autograd/autograd.h"
#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "kernels/matrix/attention.h"
#include "runtime/cuda/gpu.h"
#include "tools/benchmarks/gpu/rows.h"

namespace ramet::gpu_bench {
namespace {

Row product_row(std::string name, std::string anchor, std::map<std::string, int64_t> shape,
                double operations, double ratio, std::function<Work()> make) {
  Row r;
  r.name = std::move(name), r.anchor = std::move(anchor), r.shape = std::move(shape);
  r.limit = Limit::Product, r.work = operations, r.goal_ratio = ratio, r.tolerance = 2e-2;
  r.make = std::move(make);
  return r;
}

// Inputs in turn, so that none is still in the cache when its turn comes again.
struct Turns {
  std::vector<Tensor> x, w, b, gy;
  size_t at = 0;
  size_t next() { return at++ % x.size(); }
};

std::shared_ptr<Turns> turns(int64_t m, int64_t k, int64_t n, bool tiny, bool grad) {
  constexpr int64_t kCache = 128 << 20;
  const int64_t sets = tiny ? 2 : 1 + kCache / (2 * (m * k + m * n));
  auto t = std::make_shared<Turns>();
  for (int i = 0; i < sets; ++i) {
    t->x.push_back(filled({m, k}, kBFloat16, 1, 10 * i + 1).requires_grad_(grad));
    t->w.push_back(filled({n, k}, kBFloat16, .05, 10 * i + 2).requires_grad_(grad));
    t->b.push_back(filled({n}, kBFloat16, .1, 10 * i + 3).requires_grad_(grad));
    if (grad) t->gy.push_back(filled({m, n}, kBFloat16, 1, 10 * i + 4));
  }
  return t;
}

Work linear_forward(int64_t m, int64_t k, int64_t n, bool tiny, bool with_gelu) {
  const auto t = turns(m, k, n, tiny, false);
  const auto compute = [=](size_t i) {
    const NoGradGuard off;
    const Tensor y = linear(t->x[i], t->w[i], t->b[i]);
    return with_gelu ? gelu(y, "tanh") : y;
  };
  return {[=] { compute(t->next()); }, [=] { return some_of(compute(0)); }};
}

Work linear_backward(int64_t m, int64_t k, int64_t n, bool tiny) {
  const auto t = turns(m, k, n, tiny, true);
  std::vector<Tensor> y;
  for (size_t i = 0; i < t->x.size(); ++i) y.push_back(linear(t->x[i], t->w[i], t->b[i]));
  const auto compute = [=](size_t i) {
    return autograd::grad({y[i]}, {t->x[i], t->w[i], t->b[i]}, {t->gy[i]}, /*retain_graph=*/true);
  };
  return {[=] { compute(t->next()); },
          [=] {
            std::vector<double> all;
            for (const Tensor& g : compute(0))
              for (double v : some_of(g)) all.push_back(v);
            return all;
          }};
}

// Both linear layers of a transformer's block with GELU between them, k -> n -> k.
Work mlp(int64_t m, int64_t k, int64_t n, bool backward) {
  std::vector<Tensor> in = {filled({m, k}, kBFloat16, 1, 1), filled({n, k}, kBFloat16, .05, 2),
                            filled({n}, kBFloat16, .1, 3), filled({k, n}, kBFloat16, .05, 4),
                            filled({k}, kBFloat16, .1, 5)};
  for (const Tensor& t : in) t.requires_grad_(backward);
  const auto forward = [=] { return linear_gelu_linear(in[0], in[1], in[2], in[3], in[4]); };
  if (!backward) {
    const auto quiet = [=] {
      const NoGradGuard off;
      return forward();
    };
    return {[=] { quiet(); }, [=] { return some_of(quiet()); }};
  }
  const Tensor y = forward(), gy = filled({m, k}, kBFloat16, 1, 6);
  const auto compute = [=] { return autograd::grad({y}, in, {gy}, /*retain_graph=*/true); };
  return {[=] { compute(); }, [=] { return some_of(compute()[1]); }};
}

// Packed [B, T, 3, H, D], as a transformer's first product leaves them.
Work attention(int64_t batch, int64_t heads, int64_t length, int64_t width, bool backward) {
  const Tensor packed = filled({batch, length, 3, heads, width}, kBFloat16, 1, 1);
  packed.requires_grad_(backward);
  const auto part = [&](int64_t i) { return packed.select(2, i).transpose(1, 2); };
  const Tensor q = part(0), k = part(1), v = part(2);
  const auto forward = [=] {
    return scaled_dot_product_attention(q, k, v, {}, /*dropout_p=*/0, /*is_causal=*/true);
  };
  if (!backward) {
    const auto quiet = [=] {
      const NoGradGuard off;
      return forward();
    };
    return {[=] { quiet(); }, [=] { return some_of(quiet()); }};
  }
  const Tensor y = forward(),
               gy = filled({batch, length, heads, width}, kBFloat16, 1, 5).transpose(1, 2);
  const auto compute = [=] { return autograd::grad({y}, {q, k, v}, {gy}, /*retain_graph=*/true); };
  return {[=] { compute(); }, [=] { return some_of(compute()[0].contiguous()); }};
}

// One of the bodies of the forward, whichever would be chosen.
Work attention_by(kernels::AttentionBody body, int64_t batch, int64_t heads, int64_t length,
                  int64_t width) {
  const Tensor packed = filled({batch, length, 3, heads, width}, kBFloat16, 1, 1),
               o(TensorBase::empty({batch, heads, length, width}, kBFloat16, kGpu)),
               log_sum(TensorBase::empty({batch, heads, length}, kFloat, kGpu));
  const auto part = [&](int64_t i) -> kernels::AttentionMatrix {
    return {static_cast<uint16_t*>(packed.data_ptr()) + i * heads * width,
            length * 3 * heads * width, width, 3 * heads * width};
  };
  const double scale = 1 / std::sqrt(static_cast<double>(width));
  const kernels::AttentionArgs args{part(0),
                                    part(1),
                                    part(2),
                                    {o.data_ptr(), heads * length * width, length * width, width},
                                    log_sum.data_ptr(),
                                    nullptr,
                                    batch,
                                    heads,
                                    length,
                                    length,
                                    width,
                                    scale,
                                    kBFloat16,
                                    /*causal=*/true,
                                    body};
  return {[=] { kernels::attention_forward(packed.stream(), args); },
          [=, kept = log_sum] {
            kernels::attention_forward(packed.stream(), args);
            return some_of(o);
          }};
}

// Whether it has wgmma.
bool is_hopper() {
  int major = 0, minor = 0;
  return cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0) == cudaSuccess &&
         cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0) == cudaSuccess &&
         major == 9 && minor == 0;
}

}  // namespace

void add_product_rows(std::vector<Row>& rows, bool tiny) {
  const int64_t m = tiny ? 16 : 8192, c = tiny ? 16 : 768;
  for (const auto& [k, n] :
       {std::pair(c, 3 * c), std::pair(c, c), std::pair(c, 4 * c), std::pair(4 * c, c)}) {
    const int64_t in = k, out = n;  // structured bindings and lambdas
    const std::string which = "." + std::to_string(in) + "x" + std::to_string(out);
    const std::map<std::string, int64_t> shape{{"m", m}, {"k", in}, {"n", out}, {"gelu", 0}};
    const double operations = 2. * static_cast<double>(m * in * out);
    rows.push_back(product_row("linear.forward" + which, "G7", shape, operations, .97,
                               [=] { return linear_forward(m, in, out, tiny, false); }));
    rows.push_back(product_row("linear.backward" + which, "G7", shape, 2 * operations, .97,
                               [=] { return linear_backward(m, in, out, tiny); }));
    if (out != 4 * in) continue;
    auto activated = shape;
    activated["gelu"] = 1;
    rows.push_back(product_row("linear.gelu.forward" + which, "G7", activated, operations, 1.0,
                               [=] { return linear_forward(m, in, out, tiny, true); }));
    rows.push_back(product_row("mlp.forward" + which, "G7", shape, 2 * operations, 1.2,
                               [=] { return mlp(m, in, out, false); }));
    rows.push_back(product_row("mlp.backward" + which, "G7", shape, 4 * operations, 1.2,
                               [=] { return mlp(m, in, out, true); }));
  }
  const int64_t batch = tiny ? 1 : 16, heads = tiny ? 2 : 12, width = tiny ? 16 : 64;
  for (const int64_t length : {tiny ? 40 : 1024, tiny ? 72 : 4096}) {
    const std::map<std::string, int64_t> shape{
        {"batch", batch}, {"heads", heads}, {"length", length}, {"width", width}};
    // Two products, of which causality leaves half.
    const double operations =
        2. * static_cast<double>(batch * heads * length * width) * static_cast<double>(length);
    const std::string which = "." + std::to_string(length);
    rows.push_back(product_row("attention.forward" + which, "G8", shape, operations, .7,
                               [=] { return attention(batch, heads, length, width, false); }));
    rows.push_back(product_row("attention.backward" + which, "G8", shape, 2.5 * operations, 0,
                               [=] { return attention(batch, heads, length, width, true); }));
    // Both bodies, of as many operations by heads of 64 columns and by half as many of 128.
    for (const int64_t columns : {64, 128}) {
      const int64_t count = tiny ? heads : heads * 64 / columns;
      const std::map<std::string, int64_t> of_body{
          {"batch", batch}, {"heads", count}, {"length", length}, {"width", columns}};
      const double all =
          2. * static_cast<double>(batch * count * length * columns) * static_cast<double>(length);
      const auto add = [&](const std::string& name, kernels::AttentionBody body) {
        rows.push_back(product_row(
            "attention." + name + which + "x" + std::to_string(columns), "issue 33, 4", of_body,
            all, 0, [=] { return attention_by(body, batch, count, length, columns); }));
      };
      add("mma", kernels::AttentionBody::kTensorCores);
      if (is_hopper()) add("wgmma", kernels::AttentionBody::kWgmma);
    }
  }
}

}  // namespace ramet::gpu_bench
