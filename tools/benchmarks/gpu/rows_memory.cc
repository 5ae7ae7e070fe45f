// The limits, one call's host time, and rows that memory limits.
#include "autograd/autograd.h"
#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "kernels/rows/cross_entropy.h"
#include "runtime/base/thread_pool.h"
#include "tools/benchmarks/gpu/rows.h"

namespace ramet::gpu_bench {
namespace {

Work quiet(std::function<Tensor()> compute) {
  return {[=] {
            const NoGradGuard off;
            compute();
          },
          [=] {
            const NoGradGuard off;
            return some_of(compute());
          }};
}

// The gradient of `y` with respect to `inputs`, again and again.
Work backward_of(std::vector<Tensor> y, std::vector<Tensor> inputs, std::vector<Tensor> grads) {
  const auto compute = [=] { return autograd::grad(y, inputs, grads, /*retain_graph=*/true); };
  return {[=] { compute(); }, [=] { return some_of(compute()[0]); }};
}

Row memory_row(std::string name, std::string anchor, std::map<std::string, int64_t> shape,
               double bytes, double goal, std::function<Work()> make) {
  Row r;
  r.name = std::move(name), r.anchor = std::move(anchor), r.shape = std::move(shape);
  r.limit = Limit::Copy, r.work = bytes, r.goal = goal, r.tolerance = 2e-2;
  r.make = std::move(make);
  return r;
}

Work consuming_loss(int64_t rows, int64_t columns) {
  const Tensor x = filled({rows, columns}, kBFloat16, 4, 1), target = classes(rows, columns),
               loss = empty({}, TensorOptions().device(kGpu).dtype(kBFloat16)),
               weight = empty({1}, TensorOptions().device(kGpu).dtype(kDouble));
  const Tensor workspace = empty(
      {kernels::cross_entropy_consume_workspace(kBFloat16, rows, columns, max_parallel_slots())},
      TensorOptions().device(kGpu).dtype(kByte));
  const auto run = [=] {
    kernels::CrossEntropyConsumeArgs k{};
    k.x = x.data_ptr(), k.target = target.data_ptr<int64_t>(), k.loss = loss.data_ptr();
    k.total_weight = weight.data_ptr<double>(), k.workspace = workspace.data_ptr();
    k.rows = rows, k.cols = columns, k.ignore_index = -100, k.dtype = kBFloat16;
    k.reduction = kernels::LossReduction::kMean;
    kernels::cross_entropy_consume({kGpu, 0}, k);
  };
  // A second pass would take the gradient for logits, so the outputs are read first.
  return {run, [=] {
            run();
            return some_of(x);
          }};
}

}  // namespace

void add_limits(std::vector<Row>& rows, bool tiny) {
  const int64_t bytes = int64_t{1} << (tiny ? 16 : 29), n = tiny ? 64 : 8192;
  Row copy = memory_row("limit.copy", "limit", {{"bytes", bytes}}, 2. * static_cast<double>(bytes),
                        0, [=] {
                          const Tensor from = filled({bytes / 4}, kFloat, 1, 1),
                                       to = empty({bytes / 4}, TensorOptions().device(kGpu));
                          return Work{[=] { bare_copy(to.data_ptr(), from.data_ptr(), bytes); },
                                      [=] { return some_of(from); }};
                        });
  rows.push_back(copy);
  Row product;
  product.name = "limit.product", product.anchor = "limit", product.shape = {{"n", n}};
  product.limit = Limit::Product, product.work = 2. * static_cast<double>(n * n * n);
  product.tolerance = 2e-2;
  product.make = [=] {
    const Tensor a = filled({n, n}, kBFloat16, 1, 1), b = filled({n, n}, kBFloat16, 1, 2);
    return quiet([=] { return a.mm(b); });
  };
  rows.push_back(product);
  Row bare;
  bare.name = "limit.launch", bare.anchor = "limit", bare.limit = Limit::Launch, bare.host = true;
  bare.make = [] { return Work{bare_launch, [] { return std::vector<double>(); }}; };
  rows.push_back(bare);
  Row add = bare;
  add.name = "op.host.add", add.anchor = "G3", add.shape = {{"n", 16}}, add.goal = 300;
  add.goal_ratio = 1.3, add.tolerance = 1e-6;
  add.make = [] {
    const Tensor a = filled({16}, kFloat, 1, 1), b = filled({16}, kFloat, 1, 2);
    return quiet([=] { return a + b; });
  };
  rows.push_back(add);
}

void add_memory_rows(std::vector<Row>& all, bool tiny) {
  const int64_t rows = tiny ? 24 : 65536, c = tiny ? 40 : 768, wide = tiny ? 48 : 1024;
  const double plane = static_cast<double>(rows * c) * 2;
  const std::map<std::string, int64_t> norm_shape{{"rows", rows}, {"columns", c}};
  struct Norm {
    Tensor x, r, w, b;
  };
  const auto norm = [=](bool grad) {
    Norm d{filled({rows, c}, kBFloat16, 1, 1), filled({rows, c}, kBFloat16, 1, 2),
           filled({c}, kBFloat16, 1, 3), filled({c}, kBFloat16, 1, 4)};
    for (Tensor* t : {&d.x, &d.r, &d.w, &d.b}) t->requires_grad_(grad);
    return d;
  };
  all.push_back(memory_row("layer_norm.forward", "G4", norm_shape, 2 * plane, .85, [=] {
    const Norm d = norm(false);
    return quiet([=] { return layer_norm(d.x, {c}, d.w, d.b); });
  }));
  all.push_back(memory_row("residual_layer_norm.forward", "G4", norm_shape, 4 * plane, .85, [=] {
    const Norm d = norm(false);
    return quiet([=] { return std::get<0>(residual_layer_norm(d.x, d.r, {c}, d.w, d.b)); });
  }));
  all.push_back(memory_row("layer_norm.backward", "G4", norm_shape, 3 * plane, .85, [=] {
    const Norm d = norm(true);
    return backward_of({layer_norm(d.x, {c}, d.w, d.b)}, {d.x, d.w, d.b},
                       {filled({rows, c}, kBFloat16, 1, 5)});
  }));
  all.push_back(memory_row("residual_layer_norm.backward", "G4", norm_shape, 4 * plane, .85, [=] {
    const Norm d = norm(true);
    const auto [y, sum] = residual_layer_norm(d.x, d.r, {c}, d.w, d.b);
    return backward_of({y, sum}, {d.x, d.r, d.w, d.b},
                       {filled({rows, c}, kBFloat16, 1, 5), filled({rows, c}, kBFloat16, 1, 6)});
  }));
  const std::vector<int64_t> images =
      tiny ? std::vector<int64_t>{2, 32, 3, 5} : std::vector<int64_t>{64, 256, 64, 64};
  const double image_plane = static_cast<double>(images[0] * images[1] * images[2] * images[3]) * 2;
  const std::map<std::string, int64_t> image_shape{
      {"n", images[0]}, {"c", images[1]}, {"h", images[2]}, {"w", images[3]}};
  const auto image_norm = [=](bool grad) {
    Norm d{filled(images, kBFloat16, 1, 1), Tensor(), filled({images[1]}, kBFloat16, 1, 2),
           filled({images[1]}, kBFloat16, 1, 3)};
    for (Tensor* t : {&d.x, &d.w, &d.b}) t->requires_grad_(grad);
    return d;
  };
  all.push_back(memory_row("group_norm.forward", "rows", image_shape, 3 * image_plane, 0, [=] {
    const Norm d = image_norm(false);
    return quiet([=] { return group_norm(d.x, 32, d.w, d.b); });
  }));
  all.push_back(memory_row("group_norm.backward", "rows", image_shape, 5 * image_plane, 0, [=] {
    const Norm d = image_norm(true);
    return backward_of({group_norm(d.x, 32, d.w, d.b)}, {d.x, d.w, d.b},
                       {filled(images, kBFloat16, 1, 4)});
  }));
  const double row_plane = static_cast<double>(rows * wide) * 2;
  const std::map<std::string, int64_t> row_shape{{"rows", rows}, {"columns", wide}};
  all.push_back(memory_row("softmax.forward", "rows", row_shape, 2 * row_plane, .85, [=] {
    const Tensor x = filled({rows, wide}, kBFloat16, 4, 1);
    return quiet([=] { return softmax(x, -1); });
  }));
  all.push_back(memory_row("softmax.backward", "rows", row_shape, 3 * row_plane, .85, [=] {
    const Tensor x = filled({rows, wide}, kBFloat16, 4, 1);
    x.requires_grad_(true);
    return backward_of({softmax(x, -1)}, {x}, {filled({rows, wide}, kBFloat16, 1, 5)});
  }));
  all.push_back(memory_row("sum.rows", "rows", row_shape, 2 * row_plane, .85, [=] {
    const Tensor x = filled({rows, wide}, kFloat, 1, 1);
    return quiet([=] { return x.sum({-1}); });
  }));
  const int64_t tokens = tiny ? 12 : 8192, vocabulary = tiny ? 104 : 50304;
  Row loss =
      memory_row("cross_entropy.consuming", "G5", {{"rows", tokens}, {"columns", vocabulary}},
                 4. * static_cast<double>(tokens * vocabulary), .85,
                 [=] { return consuming_loss(tokens, vocabulary); });
  loss.goal_ratio = 2;
  all.push_back(loss);
  all.push_back(
      memory_row("gelu.forward", "pointwise", {{"n", rows * wide}}, 2 * row_plane, .85, [=] {
        const Tensor x = filled({rows * wide}, kBFloat16, 2, 1);
        return quiet([=] { return gelu(x); });
      }));
  all.push_back(memory_row("add", "pointwise", {{"n", rows * wide}}, 6 * row_plane, .85, [=] {
    const Tensor a = filled({rows * wide}, kFloat, 1, 1), b = filled({rows * wide}, kFloat, 1, 2);
    return quiet([=] { return a + b; });
  }));
}

}  // namespace ramet::gpu_bench
