#include "autograd/ops/loss/linear_cross_entropy.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>

#include "autograd/ops/front/composed_internal.h"
#include "autograd/ops/front/index_internal.h"
#include "autograd/ops/front/matmul_internal.h"
#include "autograd/ops/index/gather_scatter.h"
#include "autograd/ops/index/mask.h"
#include "autograd/ops/make/copy.h"
#include "autograd/ops/matrix/matmul.h"
#include "autograd/ops/pointwise/arithmetic.h"
#include "autograd/ops/pointwise/comparison.h"
#include "autograd/ops/reduce/reduce.h"
#include "autograd/ops/shape/view.h"
#include "kernels/matrix/matmul.h"
#include "kernels/rows/cross_entropy.h"
#include "runtime/base/thread_pool.h"

// Note [Chunks of logits]
// The logits of GPT-2 are the largest tensor of its step: 50257 for each token, and as many
// gradients. Here a chunk of rows has logits, then their gradient in the same memory, then none.
//
// With Mean and Sum the forward pass also computes the gradients of all operands, for a gradient of
// 1 of the loss. So there are three products, as without chunks, and the backward pass multiplies
// by one number. Logits that are computed again in the backward pass cost a fourth product, which
// is a tenth of a step of GPT-2 124M. The peak of memory is the same either way. The backward pass
// begins with this function, so the weight's gradient exists while all activations do.
//
// The logits are computed again in three cases. With None, the gradient of a row is not yet known.
// float16 does not hold gradients before a GradScaler's factor. And the first backward pass gives
// the gradients away, so a second one has none.

namespace ramet {

using namespace autograd;
using kernels::LossReduction;

namespace {

const char* const kOp = "linear_cross_entropy";
enum { kInput, kWeight, kBias };

struct Setting {
  int64_t rows, features, classes, chunk, ignore_index;
  double smoothing;
  LossReduction reduction;
  ScalarType loss;  // the loss's dtype
};
// No history. x is [rows, features].
struct Operands {
  Tensor x, weight, bias, target, class_weight, total;
};
// Those that are defined are computed.
using Gradients = std::array<Tensor, 3>;

Tensor fresh(IntArrayRef sizes, ScalarType t, Device device) {
  return Tensor(TensorBase::empty(sizes, t, device));
}
// The data of a matrix, with adjacent elements in rows or columns.
Tensor matrix_data(const Tensor& t) {
  const Tensor data = t.shallow();
  return data->strides()[0] == 1 || data->strides()[1] == 1 ? data : data.contiguous();
}
Tensor dense_data(const Tensor& t) { return t.defined() ? t.shallow().contiguous() : t; }

// The sum of the weights of the targets that count, in double.
Tensor total_weight(const Tensor& target, const Tensor& weight, int64_t ignore_index) {
  const Tensor ignored = target.eq(ignore_index);
  if (!weight.defined()) return ignored.logical_not().sum().to(kDouble);
  return weight.to(kDouble)
      .index_select(0, target.masked_fill(ignored, 0))
      .masked_fill(ignored, 0)
      .sum();
}

// One pass over the chunks. losses: gets the rows' losses, if defined. grad: that of the loss, 1 if
// undefined. wanted: null for the losses alone.
void pass(const Operands& o, const Setting& s, const Tensor& losses, const Tensor& grad,
          const Gradients* wanted) {
  const NoGradGuard off;
  const ScalarType t = o.x.scalar_type();
  const Device device = o.x.device();
  const int64_t chunks = std::max<int64_t>(1, (s.rows + s.chunk - 1) / s.chunk);
  const Tensor all = fresh({std::min(s.chunk, s.rows), s.classes}, t, device),
               workspace = scratch(kernels::cross_entropy_workspace(t, all.size(0), s.classes,
                                                                    max_parallel_slots()),
                                   device);
  // Sums over chunks are rounded once.
  const ScalarType sum_type = chunks > 1 && is_narrow(t) ? kFloat : t;
  const auto sum_of = [&](int i) {
    const Tensor to = wanted ? (*wanted)[static_cast<size_t>(i)] : Tensor();
    return to.defined() && to.scalar_type() != sum_type ? fresh(to.sizes(), sum_type, device) : to;
  };
  const Tensor dw = sum_of(kWeight), db = sum_of(kBias),
               bias_part = chunks > 1 && db.defined() ? fresh({s.classes}, sum_type, device) : db;
  for (int64_t k = 0; k < chunks; ++k) {
    const int64_t first = k * s.chunk, n = std::min(s.chunk, s.rows - first);
    const Tensor x = o.x.narrow(0, first, n), logits = all.narrow(0, 0, n);
    product_into(logits, matrix_of(x), matrix_of(o.weight, true),
                 {1, 0, o.bias.defined() ? &o.bias : nullptr});
    if (n > 0) {
      const bool each = s.reduction == LossReduction::kNone;
      const auto row_of = [&](const Tensor& of, int64_t row) {
        return of.defined() ? static_cast<char*>(of.ptr()) + row * of.element_size() : nullptr;
      };
      kernels::cross_entropy_rows(
          logits.stream(),
          {logits.ptr(), reinterpret_cast<const int64_t*>(row_of(o.target, first)),
           pointer(o.class_weight), reinterpret_cast<double*>(row_of(losses, first)),
           row_of(grad, each ? first : 0), static_cast<const double*>(pointer(o.total)),
           pointer(workspace), n, s.classes, s.ignore_index, s.smoothing, t,
           o.class_weight.defined() ? o.class_weight.scalar_type() : t, s.loss, s.reduction,
           wanted != nullptr});
    }
    if (!wanted) continue;
    if (const Tensor& dx = (*wanted)[kInput]; dx.defined())
      product_into(dx.narrow(0, first, n), matrix_of(logits), matrix_of(o.weight));
    if (dw.defined())
      product_into(dw, matrix_of(logits, true), matrix_of(x), {1, k == 0 ? 0 : 1, nullptr});
    if (db.defined()) {
      const Tensor& part = k == 0 ? db : bias_part;
      kernels::sum_rows(logits.stream(),
                        {logits.ptr(), part.ptr(), n, s.classes, s.classes, t, sum_type});
      if (k > 0) Tensor(db).add_(part);
    }
  }
  if (sum_type == t) return;
  if (dw.defined()) copy_values((*wanted)[kWeight], dw);
  if (db.defined()) copy_values((*wanted)[kBias], db);
}

// The same with operations, of x [rows, features].
Tensor composed(const std::vector<Tensor>& in, const Tensor& target, const Tensor& class_weight,
                const Setting& s) {
  const NoAutocast uncast;
  const Tensor logits =
      linear(in[kInput], in[kWeight],
             in[kBias].defined() ? std::optional<Tensor>(in[kBias]) : std::nullopt);
  return cross_entropy_loss(
      logits.to(s.loss), target,
      class_weight.defined() ? std::optional<Tensor>(class_weight.to(s.loss)) : std::nullopt,
      static_cast<int64_t>(s.reduction), s.ignore_index, s.smoothing);
}

// The gradients of a forward pass, for the first backward pass.
struct Ready {
  explicit Ready(Gradients g) : gradients(std::move(g)) {}
  Gradients gradients;
  std::atomic<bool> taken{false};
};

Gradients take(const Node& self, Ready& ready, const Tensor& g) {
  Gradients found = std::move(ready.gradients);
  const Tensor factor = g.contiguous();
  for (int i : {kInput, kWeight, kBias}) {
    Tensor& x = found[static_cast<size_t>(i)];
    if (!x.defined()) continue;
    if (!self.needs(i)) x = Tensor();
    else
      kernels::scale_by(x.stream(),
                        {x.ptr(), factor.ptr(), x.numel(), x.scalar_type(), factor.scalar_type()});
  }
  return found;
}

// x: [rows, features]. The result is [rows] or 0-dim.
Tensor fused(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& target,
             const Tensor& class_weight, const Setting& s) {
  const ScalarType t = x.scalar_type();
  const Device device = x.device();
  Operands o{matrix_data(x), matrix_data(weight), dense_data(bias), target, class_weight, Tensor()};
  const bool records = recording(x, weight, bias);
  const Tensor losses = fresh({s.rows}, kDouble, device);
  std::unique_ptr<Ready> ready;
  Tensor loss;
  {
    const NoGradGuard off;
    if (s.reduction == LossReduction::kMean)
      o.total = total_weight(target, class_weight, s.ignore_index);
    if (records && s.reduction != LossReduction::kNone && t != kHalf) {
      Gradients wanted;
      if (wants_grad(x)) wanted[kInput] = fresh(x.sizes(), t, device);
      if (wants_grad(weight)) wanted[kWeight] = fresh(weight.sizes(), t, device);
      if (wants_grad(bias)) wanted[kBias] = fresh({s.classes}, t, device);
      pass(o, s, losses, {}, &wanted);
      ready = std::make_unique<Ready>(std::move(wanted));
    } else {
      pass(o, s, losses, {}, nullptr);
    }
    loss = s.reduction == LossReduction::kNone  ? losses
           : s.reduction == LossReduction::kSum ? losses.sum()
                                                : losses.sum().div(o.total);
    loss = loss.to(s.loss);
  }
  if (!records) return loss;
  return record(
      "LinearCrossEntropyBackward0", {x, weight, bias}, std::move(loss),
      [s, total = o.total, ready = std::move(ready), sx = save(x), sw = save(weight),
       sb = save_if(bias.defined(), bias), st = save(target),
       sc = save_if(class_weight.defined(), class_weight)](const Node& self, const Tensor& g) {
        const Tensor &target = st.get(self), &class_weight = sc.get(self);
        if (GradMode::is_enabled()) {
          std::vector<Tensor> found = composed_gradients(
              self,
              [&](const std::vector<Tensor>& in) { return composed(in, target, class_weight, s); },
              {sx.get(self), sw.get(self), sb.get(self)}, g);
          return Gradients{found[kInput], found[kWeight], found[kBias]};
        }
        if (ready && !ready->taken.exchange(true)) return take(self, *ready, g);
        const Tensor &x = sx.get(self), &weight = sw.get(self), &bias = sb.get(self);
        Gradients wanted;
        const Tensor* of[] = {&x, &weight, &bias};
        for (int i : {kInput, kWeight, kBias})
          if (const Tensor& like = *of[i]; like.defined() && self.needs(i))
            wanted[static_cast<size_t>(i)] =
                self.output_for(i, like.sizes(), like.scalar_type(), like.device());
        pass({matrix_data(x), matrix_data(weight), dense_data(bias), target, class_weight, total},
             s, {}, g.contiguous(), &wanted);
        return wanted;
      },
      [&](Arguments& to) {
        to("reduction", static_cast<int64_t>(s.reduction)), to("ignore_index", s.ignore_index),
            to("label_smoothing", s.smoothing);
      });
}

Tensor checked(const Tensor& input, const Tensor& linear_weight, const Tensor& target,
               const std::optional<Tensor>& bias, const std::optional<Tensor>& weight,
               int64_t reduction, int64_t ignore_index, double smoothing,
               std::optional<int64_t> chunk, bool autocasts) {
  const Tensor linear_bias = bias.value_or(Tensor()), class_weight = weight.value_or(Tensor());
  check_factors(kOp, input, linear_weight);
  check_defined(kOp, target);
  // cast_call() switches autocast off where it casts. Then the loss is float32, as
  // cross_entropy_loss's.
  const bool cast = autocasts && ramet::detail::tls.autocast == 0;
  const ScalarType loss_type =
      cast && is_narrow(input.scalar_type()) ? kFloat : input.scalar_type();
  RAMET_CHECK(reduction >= Reduction::None && reduction < Reduction::END, kOp, "reduction: got ",
              reduction, ", expected Reduction::None, Mean or Sum");
  RAMET_CHECK(smoothing >= 0 && smoothing <= 1, kOp,
              "label_smoothing must be between 0.0 and 1.0. Got: ", smoothing);
  RAMET_CHECK(!chunk || *chunk > 0, kOp, "batch_chunk_size: got ", chunk.value_or(0),
              ", expected at least 1");
  RAMET_CHECK(is_floating(input.scalar_type()), kOp, "not implemented for '",
              name_of(input.scalar_type()), "': got input ", describe(input));
  RAMET_CHECK(
      input.dim() >= 1 && linear_weight.dim() == 2 && input.size(-1) == linear_weight.size(1), kOp,
      "shapes: got input ", describe(input), " and linear_weight ", describe(linear_weight),
      ", expected [..., in] and [classes, in]");
  const int64_t classes = linear_weight.size(0);
  if (linear_bias.defined()) {
    check_factors(kOp, input, linear_bias);
    RAMET_CHECK(linear_bias.dim() == 1 && linear_bias.size(0) == classes, kOp, "linear_bias: got ",
                describe(linear_bias), ", expected [", classes, "]");
  }
  RAMET_CHECK(target.scalar_type() == kLong, kOp, "target: got ", describe(target),
              ", expected class indices of dtype Long");
  check_same_device(kOp, input, target, "target");
  const IntArrayRef lead = input.sizes().slice(0, static_cast<size_t>(input.dim() - 1));
  RAMET_CHECK(target.sizes() == lead, kOp,
              "Expected target of input's shape without the last dimension: got input ",
              input.sizes(), " and target ", target.sizes());
  if (class_weight.defined()) {
    RAMET_CHECK(class_weight.dim() == 1 && class_weight.numel() == classes, kOp,
                "weight tensor should be defined either for all ", classes,
                " classes or no classes but got weight tensor of shape: ", class_weight.sizes());
    check_same_device(kOp, input, class_weight, "weight");
    RAMET_CHECK(class_weight.scalar_type() == loss_type, kOp, "weight: got ",
                describe(class_weight), ", expected the dtype of the loss, ", name_of(loss_type));
    check_constant(kOp, "weight", class_weight);
  }
  RAMET_CHECK(classes > 0 || target.numel() == 0, kOp, "linear_weight: got ",
              describe(linear_weight), ", expected at least one class");
  const Tensor indices = target.detach().contiguous().view(-1);
  check_indices(kOp, indices, 0, classes, "number of classes", ignore_index);
  const int64_t rows = indices.numel(), features = input.size(-1);
  // As many logits as the weight has elements, in whole groups of 64 rows.
  const int64_t most = std::max(features, (int64_t{1} << 20) / std::max<int64_t>(classes, 1)),
                size = chunk.value_or((most + 63) / 64 * 64);
  const Setting s{rows,
                  features,
                  classes,
                  std::max<int64_t>(1, std::min(size, rows)),
                  ignore_index,
                  smoothing,
                  static_cast<LossReduction>(reduction),
                  loss_type};
  const Tensor x = input.dim() == 2 ? input : input.reshape({rows, features});
  const Tensor loss = fused(x, linear_weight, linear_bias, indices, dense_data(class_weight), s);
  return s.reduction == LossReduction::kNone && target.dim() != 1 ? loss.reshape(lead) : loss;
}

}  // namespace

Tensor linear_cross_entropy(const Tensor& input, const Tensor& linear_weight, const Tensor& target,
                            const std::optional<Tensor>& linear_bias,
                            const std::optional<Tensor>& weight, int64_t reduction,
                            int64_t ignore_index, double label_smoothing,
                            std::optional<int64_t> batch_chunk_size) {
  if (RAMET_UNLIKELY(ramet::detail::tls.autocast != 0))
    return cast_call<Tensor>(
        kOp, CastPolicy::kLower, CastPolicy::kLower,
        [](const Tensor& x, const Tensor& w, const Tensor& y, const std::optional<Tensor>& b,
           const std::optional<Tensor>* of_classes,
           const auto&... rest) { return checked(x, w, y, b, *of_classes, rest...); },
        input, linear_weight, target, linear_bias, &weight, reduction, ignore_index,
        label_smoothing, batch_chunk_size, true);
  return checked(input, linear_weight, target, linear_bias, weight, reduction, ignore_index,
                 label_smoothing, batch_chunk_size, false);
}

#include "autograd/forms/definitions.inc"
#include "autograd/ops/loss/linear_cross_entropy.inc"

}  // namespace ramet
