#include "autograd/ops/layers/packed_attention.h"

#include <cmath>

#include "autograd/ops/front/composed_internal.h"
#include "autograd/ops/layers/attention.h"
#include "autograd/ops/shape/view.h"
#include "kernels/matrix/attention.h"
#include "runtime/base/thread_pool.h"

namespace ramet {

using namespace autograd;

namespace {

const char* const kOp = "packed_scaled_dot_product_attention";
enum { kQuery, kKey, kValue };

struct Setting {
  double scale;
  bool causal;
};
// The dimensions of qkv.
struct Extents {
  int64_t batch, rows, heads, columns;
  explicit Extents(const Tensor& qkv)
      : batch(qkv.size(0)), rows(qkv.size(1)), heads(qkv.size(3)), columns(qkv.size(4)) {}
};

// The same with slices.
Tensor composed(const Tensor& qkv, double dropout_p, const Setting& s) {
  const auto part = [&](int64_t i) { return qkv.select(2, i).transpose(1, 2); };
  return scaled_dot_product_attention(part(kQuery), part(kKey), part(kValue), {}, dropout_p,
                                      s.causal, s.scale)
      .transpose(1, 2);
}

// Data with adjacent columns.
Tensor by_rows(const Tensor& t) {
  const Tensor data = settled(kOp, t).shallow();
  return data.raw_strides()[static_cast<size_t>(data.dim() - 1)] == 1 || data.size(-1) == 1
             ? data
             : data.contiguous();
}
// Part i of [batch, rows, 3, heads, columns], and [batch, rows, heads, columns].
kernels::AttentionMatrix part_of(const Tensor& packed, int64_t i) {
  const IntArrayRef s = packed.raw_strides();
  return {static_cast<char*>(packed.ptr()) + i * s[2] * static_cast<int64_t>(packed.element_size()),
          s[0], s[3], s[1]};
}
kernels::AttentionMatrix heads_of(const Tensor& t) {
  const IntArrayRef s = t.raw_strides();
  return {t.ptr(), s[0], s[2], s[1]};
}
Tensor fresh(IntArrayRef sizes, ScalarType t, Device device) {
  return Tensor(TensorBase::empty(sizes, t, device));
}
Tensor workspace_of(const Tensor& qkv, const Extents& e, bool backward) {
  return scratch(
      kernels::attention_workspace(qkv.scalar_type(), e.batch * e.heads * e.rows, e.columns,
                                   backward, qkv.device().is_cpu(), max_parallel_slots()),
      qkv.device());
}

Tensor gradient(const Tensor& g, const Tensor& qkv, const Tensor& o, const Tensor& log_sum,
                const Setting& s) {
  const Tensor result = fresh(qkv.sizes(), qkv.scalar_type(), qkv.device());
  if (result.numel() == 0) return result;
  const Extents e(qkv);
  const Tensor packed = by_rows(qkv), grad = by_rows(g), workspace = workspace_of(qkv, e, true);
  kernels::attention_backward(
      qkv.stream(),
      {part_of(packed, kQuery), part_of(packed, kKey), part_of(packed, kValue), heads_of(o),
       heads_of(grad), part_of(result, kQuery), part_of(result, kKey), part_of(result, kValue),
       log_sum.ptr(), pointer(workspace), e.batch, e.heads, e.rows, e.rows, e.columns, s.scale,
       qkv.scalar_type(), s.causal, kernels::AttentionBody::kAuto});
  return result;
}

Tensor fused(const Tensor& qkv, const Setting& s) {
  const Extents e(qkv);
  const ScalarType t = qkv.scalar_type();
  Tensor o = fresh({e.batch, e.rows, e.heads, e.columns}, t, qkv.device());
  const Tensor log_sum =
      fresh({e.batch, e.heads, e.rows}, t == kDouble ? kDouble : kFloat, qkv.device());
  if (o.numel()) {
    const Tensor packed = by_rows(qkv), workspace = workspace_of(qkv, e, false);
    kernels::attention_forward(
        qkv.stream(), {part_of(packed, kQuery), part_of(packed, kKey), part_of(packed, kValue),
                       heads_of(o), log_sum.ptr(), pointer(workspace), e.batch, e.heads, e.rows,
                       e.rows, e.columns, s.scale, t, s.causal, kernels::AttentionBody::kAuto});
  }
  if (!recording(qkv)) return o;
  SavedOutput saved = save_output(o);
  return record(
      "PackedScaledDotProductAttentionBackward0", {qkv}, std::move(o),
      [s, log_sum, packed = save(qkv), result = std::move(saved)](const Node& self,
                                                                  const Tensor& g) {
        const Tensor& qkv = packed.get(self);
        if (!GradMode::is_enabled()) return gradient(g, qkv, result.get(self), log_sum, s);
        return composed_gradients(
            self, [&](const std::vector<Tensor>& in) { return composed(in[0], 0, s); }, {qkv},
            g)[0];
      },
      [&](Arguments& to) { to("is_causal", s.causal), to("scale", s.scale); });
}

}  // namespace

static Tensor packed_scaled_dot_product_attention_body(const Tensor& qkv, bool is_causal,
                                                       double dropout_p,
                                                       std::optional<double> scale) {
  check_defined(kOp, qkv);
  RAMET_CHECK(is_floating(qkv.scalar_type()), kOp, "not implemented for '",
              name_of(qkv.scalar_type()), "': got qkv ", describe(qkv));
  RAMET_CHECK(qkv.dim() == 5 && qkv.size(2) == 3, kOp, "qkv: got ", describe(qkv),
              ", expected [batch, rows, 3, heads, columns]");
  RAMET_CHECK(dropout_p >= 0 && dropout_p <= 1, kOp,
              "dropout probability has to be between 0 and 1, but got ", dropout_p);
  const int64_t columns = qkv.size(4);
  const Setting s{scale.value_or(1 / std::sqrt(static_cast<double>(columns))), is_causal};
  if (dropout_p == 0 && columns > 0 && columns <= kernels::kAttentionColumns) return fused(qkv, s);
  return composed(qkv, dropout_p, s).contiguous();
}

#include "autograd/forms/definitions.inc"
#include "autograd/ops/layers/packed_attention.inc"

}  // namespace ramet
