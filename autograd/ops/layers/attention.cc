#include "autograd/ops/layers/attention.h"

#include <array>
#include <cmath>
#include <limits>

#include "autograd/ops/front/common_internal.h"
#include "autograd/ops/front/composed_internal.h"
#include "autograd/ops/index/gather_scatter.h"
#include "autograd/ops/layers/attention_internal.h"
#include "autograd/ops/layers/softmax.h"
#include "autograd/ops/make/copy.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/matrix/matmul.h"
#include "autograd/ops/pointwise/comparison.h"
#include "autograd/ops/random/random.h"
#include "autograd/ops/reduce/reduce.h"
#include "autograd/ops/shape/view.h"
#include "kernels/matrix/attention.h"
#include "runtime/base/thread_pool.h"

namespace ramet {

using namespace autograd;

namespace {

const char* const kOp = "scaled_dot_product_attention";
constexpr double kNone = -std::numeric_limits<double>::infinity();

struct Setting {
  double scale;
  bool causal;
};

// ---- with the matrix of scores ------------------------------------------------------------------

// True where row i must not attend to key j.
Tensor later_keys(int64_t rows, int64_t keys, Device device) {
  const NoGradGuard constants;
  const TensorOptions options = TensorOptions().dtype(kLong).device(device);
  return arange(keys, options).gt(arange(rows, options).unsqueeze(1));
}
Tensor scores_of(const Tensor& q, const Tensor& k, const Setting& s) {
  const Tensor scores = matmul(q, k.transpose(-2, -1)).mul(s.scale);
  return s.causal ? scores.masked_fill(later_keys(q.size(-2), k.size(-2), q.device()), kNone)
                  : scores;
}
// Rows that contain only -inf become zeros.
Tensor probabilities_of(const Tensor& scores) {
  Tensor empty;
  {
    const NoGradGuard constants;
    empty = scores.detach().eq(kNone).all(-1, true);
  }
  return softmax(scores.masked_fill(empty, 0), -1).masked_fill(empty, 0);
}
// The result and the probabilities.
std::pair<Tensor, Tensor> composed(const Tensor& q, const Tensor& k, const Tensor& v,
                                   const Tensor& mask, double dropout_p, const Setting& s) {
  Tensor scores = scores_of(q, k, s);
  if (mask.defined() && mask.scalar_type() == kBool)
    scores = scores.masked_fill(mask.logical_not(), kNone);
  else if (mask.defined()) scores = scores.add(mask.to(q.scalar_type()));
  Tensor p = probabilities_of(scores);
  if (dropout_p > 0) p = dropout(p, dropout_p, true);
  Tensor y = matmul(p, v);
  return {std::move(y), std::move(p)};
}

// The fused backward, written with operations.
enum { kQuery, kKey, kValue };
Tensor composed_gradient(int which, const Tensor& g, const Tensor& q, const Tensor& k,
                         const Tensor& v, const Setting& s) {
  const Tensor p = probabilities_of(scores_of(q, k, s));
  if (which == kValue) return matmul(p.transpose(-2, -1), g);
  const Tensor dp = matmul(g, v.transpose(-2, -1)),
               slopes = p.mul(dp.sub(dp.mul(p).sum(-1, true))).mul(s.scale);
  return which == kQuery ? matmul(slopes, k) : matmul(slopes.transpose(-2, -1), q);
}

// ---- without it ---------------------------------------------------------------------------------

Tensor fresh(IntArrayRef sizes, ScalarType t, Device device) {
  return Tensor(TensorBase::empty(sizes, t, device));
}
// Rows may have any strides; the columns of a row must be adjacent.
Tensor by_rows(const Tensor& t) {
  const Tensor look = settled(kOp, t).shallow();
  return look.raw_strides()[static_cast<size_t>(look.dim() - 1)] == 1 || look.size(-1) == 1
             ? look
             : look.contiguous();
}
kernels::AttentionMatrix matrix(const Tensor& t) {
  if (!t.defined()) return {};
  const IntArrayRef strides = t.raw_strides();
  const int64_t d = t.dim();
  const auto stride = [&](int64_t i) { return d >= i ? strides[static_cast<size_t>(d - i)] : 0; };
  return {t.ptr(), stride(4), stride(3), stride(2)};
}
struct Extents {
  int64_t batch, heads, q_rows, k_rows, columns;
  Extents(const Tensor& q, const Tensor& k)
      : batch(q.dim() > 3 ? q.size(-4) : 1),
        heads(q.dim() > 2 ? q.size(-3) : 1),
        q_rows(q.size(-2)),
        k_rows(k.size(-2)),
        columns(q.size(-1)) {}
};
Tensor workspace_of(const Tensor& q, const Extents& e, bool backward) {
  const int64_t bytes =
      kernels::attention_workspace(q.scalar_type(), e.batch * e.heads * e.q_rows, e.columns,
                                   backward, q.device().is_cpu(), max_parallel_slots());
  return scratch(bytes, q.device());
}

// Computes the gradients that self needs; each is a recorded operation of its own.
std::array<Tensor, 3> backward(const Node& self, const Tensor& g, const Tensor& q, const Tensor& k,
                               const Tensor& v, const Tensor& o, const Tensor& log_sum,
                               const Setting& s) {
  const Extents e(q, k);
  const ScalarType t = q.scalar_type();
  const Tensor gr = by_rows(g), qr = by_rows(q), kr = by_rows(k), vr = by_rows(v),
               orows = by_rows(o);
  std::array<Tensor, 3> r;
  if (self.needs(kQuery)) r[kQuery] = fresh(q.sizes(), t, q.device());
  const bool of_keys = self.needs(kKey) || self.needs(kValue);  // one pass computes both
  if (of_keys) {
    r[kKey] = fresh(k.sizes(), t, q.device());
    r[kValue] = fresh(v.sizes(), t, q.device());
  }
  const Tensor workspace = workspace_of(q, e, true);
  kernels::attention_backward(
      q.stream(),
      {matrix(qr), matrix(kr), matrix(vr), matrix(orows), matrix(gr), matrix(r[kQuery]),
       matrix(r[kKey]), matrix(r[kValue]), log_sum.ptr(), pointer(workspace), e.batch, e.heads,
       e.q_rows, e.k_rows, e.columns, s.scale, t, s.causal, kernels::AttentionBody::kAuto});
  for (int i : {kQuery, kKey, kValue})
    if (!self.needs(i)) r[static_cast<size_t>(i)] = Tensor();
  if (!recording(g, q, k, v)) return r;
  constexpr const char* kNames[] = {"ScaledDotProductAttentionBackwardQueryBackward0",
                                    "ScaledDotProductAttentionBackwardKeyBackward0",
                                    "ScaledDotProductAttentionBackwardValueBackward0"};
  for (int i : {kQuery, kKey, kValue}) {
    Tensor& out = r[static_cast<size_t>(i)];
    if (!out.defined()) continue;
    out = record_composed(
        kNames[i], std::move(out),
        [i, s](const std::vector<Tensor>& in) {
          return composed_gradient(i, in[0], in[1], in[2], in[3], s);
        },
        g, q, k, v);
  }
  return r;
}

Tensor fused(const Tensor& q, const Tensor& k, const Tensor& v, const Setting& s) {
  const Extents e(q, k);
  const ScalarType t = q.scalar_type();
  const Tensor qr = by_rows(q), kr = by_rows(k), vr = by_rows(v);
  Tensor o = fresh(q.sizes(), t, q.device());
  const Tensor log_sum =
      fresh(e.batch * e.heads * e.q_rows, t == kDouble ? kDouble : kFloat, q.device());
  const Tensor workspace = workspace_of(q, e, false);
  kernels::attention_forward(
      q.stream(), {matrix(qr), matrix(kr), matrix(vr), matrix(o), log_sum.ptr(), pointer(workspace),
                   e.batch, e.heads, e.q_rows, e.k_rows, e.columns, s.scale, t, s.causal,
                   kernels::AttentionBody::kAuto});
  if (!recording(q, k, v)) return o;
  SavedOutput saved = save_output(o);
  return record("ScaledDotProductAttentionBackward0", {q, k, v}, std::move(o),
                [s, log_sum, sq = save(q), sk = save(k), sv = save(v), so = std::move(saved)](
                    const Node& self, const Tensor& g) {
                  return backward(self, g, sq.get(self), sk.get(self), sv.get(self),
                                  so.get(self).detach(), log_sum, s);
                },
                [&](Arguments& to) { to("is_causal", s.causal), to("scale", s.scale); });
}

// ---- checks -------------------------------------------------------------------------------------

bool same_leading(const Tensor& a, const Tensor& b) {
  if (a.dim() != b.dim()) return false;
  for (int64_t d = 0; d < a.dim() - 2; ++d)
    if (a.size(d) != b.size(d)) return false;
  return true;
}
void check(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask, double dropout_p,
           bool causal) {
  for (const Tensor* t : {&q, &k, &v}) check_defined(kOp, *t);
  RAMET_CHECK(q.scalar_type() == k.scalar_type() && q.scalar_type() == v.scalar_type(), kOp,
              "Expected query, key, and value to have the same dtype, but got query.dtype: ",
              name_of(q.scalar_type()), " key.dtype: ", name_of(k.scalar_type()),
              " and value.dtype: ", name_of(v.scalar_type()), " instead.");
  RAMET_CHECK(is_floating(q.scalar_type()), kOp, "not implemented for '", name_of(q.scalar_type()),
              "': got query ", describe(q));
  RAMET_CHECK(q->device == k->device && q->device == v->device, kOp,
              "Expected query, key, and value to have the same device type, but got query.device: ",
              q.device(), " key.device: ", k.device(), " and value.device: ", v.device(),
              " instead.");
  RAMET_CHECK(q.dim() >= 2 && k.dim() >= 2 && v.dim() >= 2, kOp,
              "Expected query, key, and value to all be  at least 2 dimensional, but got "
              "query.dim: ",
              q.dim(), " key.dim: ", k.dim(), " and value.dim: ", v.dim(), " instead.");
  RAMET_CHECK(q.size(-1) == k.size(-1), kOp, "key: got ", describe(k),
              ", expected the last extent of query ", describe(q));
  RAMET_CHECK(k.size(-2) == v.size(-2), kOp, "value: got ", describe(v),
              ", expected as many rows as key ", describe(k));
  RAMET_CHECK(dropout_p >= 0 && dropout_p <= 1, kOp,
              "dropout probability has to be between 0 and 1, but got ", dropout_p);
  if (!mask.defined()) return;
  RAMET_CHECK(!causal, kOp, "Explicit attn_mask should not be set when is_causal=True");
  RAMET_CHECK(mask.scalar_type() == kBool || mask.scalar_type() == kFloat ||
                  mask.scalar_type() == q.scalar_type(),
              kOp,
              "Expected attn_mask dtype to be bool or float or to match query dtype, but got "
              "attn_mask.dtype: ",
              name_of(mask.scalar_type()), " and  query.dtype: ", name_of(q.scalar_type()),
              " instead.");
  RAMET_CHECK(mask->device == q->device, kOp, "attn_mask: got ", describe(mask),
              ", expected the device of query ", describe(q));
}

// Repeats each head as often as query's heads need it.
Tensor repeated_heads(const char* name, const Tensor& t, const Tensor& q) {
  RAMET_CHECK(q.dim() >= 3 && t.dim() >= 3 && t.size(-3) > 0 && q.size(-3) % t.size(-3) == 0, kOp,
              "enable_gqa: got ", name, " ", describe(t),
              ", expected a number of heads (dimension -3) that divides query's ", describe(q));
  const int64_t times = q.size(-3) / t.size(-3);
  if (times == 1) return t;
  std::vector<int64_t> wide = t.sizes().vec();
  const size_t at = wide.size() - 2;
  wide.insert(wide.begin() + static_cast<std::ptrdiff_t>(at), times);
  std::vector<int64_t> merged = t.sizes().vec();
  merged[at - 1] *= times;
  return t.unsqueeze(-3).expand(wide).reshape(merged);
}

}  // namespace

static Tensor scaled_dot_product_attention_body(const Tensor& query, const Tensor& key,
                                                const Tensor& value,
                                                const std::optional<Tensor>& attn_mask,
                                                double dropout_p, bool is_causal,
                                                std::optional<double> scale, bool enable_gqa) {
  const Tensor mask = attn_mask.value_or(Tensor());
  check(query, key, value, mask, dropout_p, is_causal);
  const Tensor k = enable_gqa ? repeated_heads("key", key, query) : key,
               v = enable_gqa ? repeated_heads("value", value, query) : value;
  const int64_t columns = query.size(-1);
  const Setting s{scale.value_or(1 / std::sqrt(static_cast<double>(columns))), is_causal};
  if (!mask.defined() && dropout_p == 0 && query.dim() <= 4 && same_leading(query, k) &&
      same_leading(query, v) && v.size(-1) == columns && columns > 0 &&
      columns <= kernels::kAttentionColumns)
    return fused(query, k, v, s);
  return composed(query, k, v, mask, dropout_p, s).first;
}

std::pair<Tensor, Tensor> autograd::attention_with_weights(const Tensor& query, const Tensor& key,
                                                           const Tensor& value, const Tensor& mask,
                                                           double dropout_p, bool is_causal) {
  const auto body = [](const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& m, double p,
                       bool causal) {
    check(q, k, v, m, p, causal);
    const double scale = 1 / std::sqrt(static_cast<double>(q.size(-1)));
    return composed(q, k, v, m, p, {scale, causal});
  };
  if (RAMET_UNLIKELY(ramet::detail::tls.autocast != 0))
    return cast_call<std::pair<Tensor, Tensor>>(kOp, CastPolicy::kLower, CastPolicy::kLower, body,
                                                query, key, value, mask, dropout_p, is_causal);
  return body(query, key, value, mask, dropout_p, is_causal);
}

#include "autograd/forms/definitions.inc"
#include "autograd/ops/layers/attention.inc"

}  // namespace ramet
