#include "nn/layers/sequence/multihead_attention.h"

#include <limits>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "autograd/ops/layers/attention_internal.h"
#include "nn/functional/functional.h"
#include "nn/init.h"
#include "nn/module/listed_module_internal.h"
#include "runtime/base/checked_size.h"

namespace ramet::nn {

MultiheadAttentionImpl::MultiheadAttentionImpl(const MultiheadAttentionOptions& options_)
    : ListedModule(options_) {
  MultiheadAttentionImpl::reset();
}

void MultiheadAttentionImpl::reset() {
  const char* const op = "MultiheadAttention";
  const int64_t e = options.embed_dim();
  RAMET_CHECK(options.num_heads() > 0, op, "num_heads must be greater than 0: got ",
              options.num_heads());
  RAMET_CHECK(e % options.num_heads() == 0, op,
              "embed_dim must be divisible by num_heads: got embed_dim ", e, " and num_heads ",
              options.num_heads());
  RAMET_CHECK(e > 0 && options.kdim() > 0 && options.vdim() > 0, op, "sizes: got embed_dim ", e,
              ", kdim ", options.kdim(), ", vdim ", options.vdim(), ", expected positive ones");
  RAMET_CHECK(options.dropout() >= 0 && options.dropout() <= 1, op,
              "dropout probability has to be between 0 and 1, but got ", options.dropout());
  const int64_t all = checked_mul(op, "embed_dim", 3, e);
  _qkv_same_embed_dim = options.kdim() == e && options.vdim() == e;
  head_dim = e / options.num_heads();
  const auto parameter = [&](const char* name, bool there, IntArrayRef sizes) {
    return there ? register_parameter(name, ramet::empty(sizes))
                 : register_parameter(name, Tensor(), /*requires_grad=*/false);
  };
  in_proj_weight = parameter("in_proj_weight", _qkv_same_embed_dim, {all, e});
  q_proj_weight = parameter("q_proj_weight", !_qkv_same_embed_dim, {e, e});
  k_proj_weight = parameter("k_proj_weight", !_qkv_same_embed_dim, {e, options.kdim()});
  v_proj_weight = parameter("v_proj_weight", !_qkv_same_embed_dim, {e, options.vdim()});
  in_proj_bias = parameter("in_proj_bias", options.bias(), {all});
  out_proj = register_module("out_proj", Linear(LinearOptions(e, e).bias(options.bias())));
  bias_k = parameter("bias_k", options.add_bias_kv(), {1, 1, e});
  bias_v = parameter("bias_v", options.add_bias_kv(), {1, 1, e});
  _reset_parameters();
}

void MultiheadAttentionImpl::_reset_parameters() {
  for (const Tensor& w : {in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight})
    if (w.defined()) init::xavier_uniform_(w);
  if (in_proj_bias.defined()) {
    init::zeros_(in_proj_bias);
    init::zeros_(out_proj->bias);
  }
  for (const Tensor& b : {bias_k, bias_v})
    if (b.defined()) init::xavier_normal_(b);
}

std::tuple<Tensor, Tensor> MultiheadAttentionImpl::forward(
    const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& key_padding_mask,
    bool need_weights, const Tensor& attn_mask, bool average_attn_weights, bool is_causal) {
  return functional::detail::multi_head_attention_forward(
      query, key, value, options.embed_dim(), options.num_heads(), in_proj_weight, in_proj_bias,
      bias_k, bias_v, options.add_zero_attn(), options.dropout(), out_proj->merged_weight(),
      out_proj->bias, is_training(), key_padding_mask, need_weights, attn_mask,
      !_qkv_same_embed_dim, q_proj_weight, k_proj_weight, v_proj_weight, {}, {},
      average_attn_weights, is_causal, options.batch_first());
}

RAMET_DEFINE_FORWARD_DEFAULT_ARGS(MultiheadAttentionImpl, {3, AnyValue(Tensor())},
                                  {4, AnyValue(true)}, {5, AnyValue(Tensor())}, {6, AnyValue(true)},
                                  {7, AnyValue(false)})

RAMET_FIELDS(MultiheadAttention, {"embed_dim", &o.embed_dim(), kCount | kNameAlone},
             {"num_heads", &o.num_heads(), kCount}, {"dropout", &o.dropout()}, {"bias", &o.bias()},
             {"add_bias_kv", &o.add_bias_kv()}, {"add_zero_attn", &o.add_zero_attn()},
             {"kdim", &o.kdim(), kPositive}, {"vdim", &o.vdim(), kPositive},
             {"batch_first", &o.batch_first()})

namespace functional {

MultiheadAttentionForwardFuncOptions::MultiheadAttentionForwardFuncOptions(
    int64_t embed_dim_to_check, int64_t num_heads, Tensor in_proj_weight, Tensor in_proj_bias,
    Tensor bias_k, Tensor bias_v, bool add_zero_attn, double dropout_p, Tensor out_proj_weight,
    Tensor out_proj_bias)
    : embed_dim_to_check_(embed_dim_to_check),
      num_heads_(num_heads),
      in_proj_weight_(std::move(in_proj_weight)),
      in_proj_bias_(std::move(in_proj_bias)),
      bias_k_(std::move(bias_k)),
      bias_v_(std::move(bias_v)),
      add_zero_attn_(add_zero_attn),
      dropout_p_(dropout_p),
      out_proj_weight_(std::move(out_proj_weight)),
      out_proj_bias_(std::move(out_proj_bias)) {}

namespace {

const char* const kOp = "multi_head_attention_forward";
constexpr double kNone = -std::numeric_limits<double>::infinity();

// The arguments of functional::detail::multi_head_attention_forward, in its order.
struct Arguments {
  const Tensor &query, &key, &value;
  int64_t embed_dim_to_check, num_heads;
  const Tensor &in_proj_weight, &in_proj_bias, &bias_k, &bias_v;
  bool add_zero_attn;
  double dropout_p;
  const Tensor &out_proj_weight, &out_proj_bias;
  bool training;
  const Tensor& key_padding_mask;
  bool need_weights;
  const Tensor& attn_mask;
  bool use_separate_proj_weight;
  const Tensor &q_proj_weight, &k_proj_weight, &v_proj_weight, &static_k, &static_v;
  bool average_attn_weights, is_causal, batch_first;

  int64_t batch_dim() const { return batch_first ? 0 : 1; }
  int64_t row_dim() const { return batch_first ? 1 : 0; }
  int64_t embed_dim() const { return query.size(2); }
  // Keys that are appended: those of the biases, and one of zeros.
  int64_t added_keys() const { return (bias_k.defined() ? 1 : 0) + (add_zero_attn ? 1 : 0); }
};

struct Extents {
  int64_t batch, rows, keys, heads, columns;
};

void check_sizes(const char* what, const Tensor& t, IntArrayRef sizes) {
  RAMET_CHECK(t.defined() && t.sizes() == sizes, kOp, what, ": got ", describe(t), ", expected ",
              sizes);
}

// `parts` projections of x by one product, each [.., .., heads, columns].
std::vector<Tensor> projected(const Tensor& x, const Tensor& weight, const Tensor& bias,
                              int64_t parts, const Extents& e) {
  const Tensor y = linear(x, weight, bias).view({x.size(0), x.size(1), parts, e.heads, e.columns});
  std::vector<Tensor> out;
  for (int64_t i = 0; i < parts; ++i) out.push_back(y.select(2, i));
  return out;
}

// True where the row may not see the key; floats stay what they are.
Tensor excluded(const Tensor& mask) {
  if (mask.scalar_type() == kBool || is_floating(mask.scalar_type())) return mask;
  RAMET_CHECK(mask.scalar_type() == kByte, kOp,
              "only bool, uint8 and floating types of masks are supported: got ", describe(mask));
  return mask.ne(0);
}

// All masks as one that scaled_dot_product_attention takes, over `added` more keys; undefined where
// there are none.
Tensor joined_mask(const Tensor& attn_mask, const Tensor& key_padding_mask, bool causal,
                   const Extents& e, int64_t added, const Tensor& query) {
  std::vector<Tensor> masks;
  if (attn_mask.defined()) {
    const Tensor m = excluded(attn_mask);
    masks.push_back(m.dim() == 2 ? m : m.reshape({e.batch, e.heads, e.rows, e.keys}));
  }
  if (key_padding_mask.defined())
    masks.push_back(excluded(key_padding_mask).unsqueeze(1).unsqueeze(1));
  if (causal)
    masks.push_back(ones({e.rows, e.keys}, TensorOptions(kBool).device(query.device())).triu(1));
  Tensor none, sum;
  for (Tensor& m : masks) {
    if (added > 0) {
      std::vector<int64_t> more = m.sizes().vec();
      more.back() = added;
      m = cat({m, zeros(more, m.detach().options())}, -1);
    }
    if (m.scalar_type() == kBool) none = none.defined() ? none.logical_or(m) : m;
    else sum = sum.defined() ? sum.add(m) : m.to(query.scalar_type());
  }
  if (!sum.defined()) return none.defined() ? none.logical_not() : none;
  if (!none.defined()) return sum;
  return sum.add(zeros(none.sizes(), query.options()).masked_fill(none, kNone));
}

void check_inputs(const Arguments& a) {
  const int64_t embed_dim = a.embed_dim();
  RAMET_CHECK(embed_dim == a.embed_dim_to_check, kOp, "was expecting embedding dimension of ",
              a.embed_dim_to_check, ", but got query ", describe(a.query));
  RAMET_CHECK(a.num_heads > 0, kOp, "num_heads must be greater than 0: got ", a.num_heads);
  RAMET_CHECK(embed_dim > 0 && embed_dim % a.num_heads == 0, kOp,
              "embed_dim must be divisible by num_heads: got ", embed_dim, " and ", a.num_heads);
  RAMET_CHECK(a.dropout_p >= 0 && a.dropout_p <= 1, kOp,
              "dropout probability has to be between 0 and 1, but got ", a.dropout_p);
  RAMET_CHECK(a.key.size(a.batch_dim()) == a.query.size(a.batch_dim()), kOp, "key: got ",
              describe(a.key), ", expected the batch of query ", describe(a.query));
  RAMET_CHECK(a.key.size(0) == a.value.size(0) && a.key.size(1) == a.value.size(1), kOp,
              "key's sequence and batch dims do not match value's: got ", describe(a.key), " and ",
              describe(a.value));
  RAMET_CHECK(a.bias_k.defined() == a.bias_v.defined(), kOp,
              "bias_k and bias_v: got one of them, expected both or none");
  RAMET_CHECK(!a.bias_k.defined() || !a.static_k.defined(), kOp,
              "bias cannot be added to static key.");
  RAMET_CHECK(!a.bias_v.defined() || !a.static_v.defined(), kOp,
              "bias cannot be added to static value.");
}

void check_weights(const Arguments& a) {
  const int64_t embed_dim = a.embed_dim();
  if (a.use_separate_proj_weight) {
    check_sizes("q_proj_weight", a.q_proj_weight, {embed_dim, embed_dim});
    check_sizes("k_proj_weight", a.k_proj_weight, {embed_dim, a.key.size(2)});
    check_sizes("v_proj_weight", a.v_proj_weight, {embed_dim, a.value.size(2)});
  } else {
    RAMET_CHECK(a.key.size(2) == embed_dim && a.value.size(2) == embed_dim, kOp,
                "key and value: got ", describe(a.key), " and ", describe(a.value), ", expected ",
                embed_dim, " features");
    check_sizes("in_proj_weight", a.in_proj_weight, {3 * embed_dim, embed_dim});
  }
  if (a.in_proj_bias.defined()) check_sizes("in_proj_bias", a.in_proj_bias, {3 * embed_dim});
  check_sizes("out_proj_weight", a.out_proj_weight, {embed_dim, embed_dim});
  for (const auto& [what, t] : {std::pair{"bias_k", &a.bias_k}, {"bias_v", &a.bias_v}})
    if (t->defined()) check_sizes(what, *t, {1, 1, embed_dim});
}

void check_keys_and_masks(const Arguments& a, const Extents& e) {
  for (const auto& [what, t] : {std::pair{"static_k", &a.static_k}, {"static_v", &a.static_v}})
    if (t->defined()) check_sizes(what, *t, {e.batch * e.heads, e.keys, e.columns});
  RAMET_CHECK(a.static_v.defined() || e.keys == a.key.size(a.row_dim()), kOp, "static_k: got ",
              describe(a.static_k), ", expected as many keys as value ", describe(a.value));
  if (a.key_padding_mask.defined())
    check_sizes("key_padding_mask", a.key_padding_mask, {e.batch, e.keys});
  if (!a.attn_mask.defined()) return;
  RAMET_CHECK(a.attn_mask.dim() == 2 || a.attn_mask.dim() == 3, kOp, "attn_mask's dimension ",
              a.attn_mask.dim(), " is not supported: expected 2 or 3");
  if (a.attn_mask.dim() == 2) check_sizes("attn_mask", a.attn_mask, {e.rows, e.keys});
  else check_sizes("attn_mask", a.attn_mask, {e.batch * e.heads, e.rows, e.keys});
}

Extents extents_of(const Arguments& a) {
  const bool given = a.static_k.defined() && a.static_k.dim() == 3;
  return {a.query.size(a.batch_dim()), a.query.size(a.row_dim()),
          given ? a.static_k.size(1) : a.key.size(a.row_dim()), a.num_heads,
          a.embed_dim() / a.num_heads};
}

// The projections of query, key and value, each [.., .., heads, columns]; one tensor is projected
// by one product. Undefined where the caller gives the keys or values.
std::vector<Tensor> all_projected(const Arguments& a, const Extents& e) {
  const auto part = [&a](const Tensor& t, int64_t from, int64_t to) {
    return t.defined() ? t.slice(0, from * a.embed_dim(), to * a.embed_dim()) : t;
  };
  const auto one = [&](const Tensor& x, const Tensor& separate, int64_t i) {
    return projected(x, a.use_separate_proj_weight ? separate : part(a.in_proj_weight, i, i + 1),
                     part(a.in_proj_bias, i, i + 1), 1, e)[0];
  };
  const bool value_is_key = !a.use_separate_proj_weight && a.value.is_same(a.key) &&
                            !a.static_k.defined() && !a.static_v.defined();
  if (value_is_key && a.key.is_same(a.query))
    return projected(a.query, a.in_proj_weight, a.in_proj_bias, 3, e);
  if (value_is_key) {
    std::vector<Tensor> qkv =
        projected(a.key, part(a.in_proj_weight, 1, 3), part(a.in_proj_bias, 1, 3), 2, e);
    qkv.insert(qkv.begin(), one(a.query, {}, 0));
    return qkv;
  }
  return {one(a.query, a.q_proj_weight, 0),
          a.static_k.defined() ? Tensor() : one(a.key, a.k_proj_weight, 1),
          a.static_v.defined() ? Tensor() : one(a.value, a.v_proj_weight, 2)};
}

// A projection, or what the caller gives instead, as [batch, heads, rows, columns] without a copy;
// with the bias as one more row.
Tensor as_heads(const Arguments& a, const Extents& e, const Tensor& projection, const Tensor& given,
                const Tensor& bias) {
  if (given.defined()) return given.reshape({e.batch, e.heads, e.keys, e.columns});
  const Tensor t =
      a.batch_first ? projection.permute({0, 2, 1, 3}) : projection.permute({1, 2, 0, 3});
  if (!bias.defined()) return t;
  const Tensor last = bias.view({1, e.heads, 1, e.columns});
  return cat({t, last.expand({e.batch, e.heads, 1, e.columns})}, 2);
}

// Of three-dimensional inputs.
std::tuple<Tensor, Tensor> attend(const Arguments& a) {
  check_inputs(a);
  check_weights(a);
  const Extents e = extents_of(a);
  check_keys_and_masks(a, e);

  const std::vector<Tensor> qkv = all_projected(a, e);
  const Tensor q = as_heads(a, e, qkv[0], {}, {});
  Tensor k = as_heads(a, e, qkv[1], a.static_k, a.bias_k),
         v = as_heads(a, e, qkv[2], a.static_v, a.bias_v);
  if (a.add_zero_attn) {
    const Tensor zero = zeros({e.batch, e.heads, 1, e.columns}, q.detach().options());
    k = cat({k, zero}, 2);
    v = cat({v, zero}, 2);
  }
  const int64_t added = a.added_keys();
  const bool causal_alone = a.is_causal && !a.key_padding_mask.defined() && added == 0;
  const Tensor mask = joined_mask(a.is_causal ? Tensor() : a.attn_mask, a.key_padding_mask,
                                  a.is_causal && !causal_alone, e, added, a.query);
  const double p = a.training ? a.dropout_p : 0;
  Tensor y, weights;
  if (a.need_weights) {
    std::tie(y, weights) = autograd::attention_with_weights(q, k, v, mask, p, causal_alone);
    if (a.average_attn_weights) weights = weights.mean(1);
  } else {
    y = scaled_dot_product_attention(
        q, k, v, mask.defined() ? std::optional<Tensor>(mask) : std::nullopt, p, causal_alone);
  }
  y = a.batch_first ? y.permute({0, 2, 1, 3}) : y.permute({2, 0, 1, 3});
  return {linear(y.reshape(a.query.sizes()), a.out_proj_weight, a.out_proj_bias), weights};
}

}  // namespace

std::tuple<Tensor, Tensor> detail::multi_head_attention_forward(
    const Tensor& query, const Tensor& key, const Tensor& value, int64_t embed_dim_to_check,
    int64_t num_heads, const Tensor& in_proj_weight, const Tensor& in_proj_bias,
    const Tensor& bias_k, const Tensor& bias_v, bool add_zero_attn, double dropout_p,
    const Tensor& out_proj_weight, const Tensor& out_proj_bias, bool training,
    const Tensor& key_padding_mask, bool need_weights, const Tensor& attn_mask,
    bool use_separate_proj_weight, const Tensor& q_proj_weight, const Tensor& k_proj_weight,
    const Tensor& v_proj_weight, const Tensor& static_k, const Tensor& static_v,
    bool average_attn_weights, bool is_causal, bool batch_first) {
  RAMET_CHECK(query.defined() && (query.dim() == 2 || query.dim() == 3), kOp,
              "query should be unbatched 2D or batched 3D tensor: got ", describe(query));
  for (const auto& [what, t] : {std::pair{"key", &key}, {"value", &value}})
    RAMET_CHECK(t->defined() && t->dim() == query.dim(), kOp, what, ": got ", describe(*t),
                ", expected ", query.dim(), " dimensions as query has");
  const auto of = [&](const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& padding) {
    return attend({q,
                   k,
                   v,
                   embed_dim_to_check,
                   num_heads,
                   in_proj_weight,
                   in_proj_bias,
                   bias_k,
                   bias_v,
                   add_zero_attn,
                   dropout_p,
                   out_proj_weight,
                   out_proj_bias,
                   training,
                   padding,
                   need_weights,
                   attn_mask,
                   use_separate_proj_weight,
                   q_proj_weight,
                   k_proj_weight,
                   v_proj_weight,
                   static_k,
                   static_v,
                   average_attn_weights,
                   is_causal,
                   batch_first});
  };
  if (query.dim() == 3) return of(query, key, value, key_padding_mask);
  const int64_t at = batch_first ? 0 : 1;
  const Tensor q = query.unsqueeze(at), k = key.is_same(query) ? q : key.unsqueeze(at),
               v = value.is_same(key) ? k : value.unsqueeze(at);
  const auto [y, weights] =
      of(q, k, v, key_padding_mask.defined() ? key_padding_mask.unsqueeze(0) : key_padding_mask);
  return {y.squeeze(at), weights.defined() ? weights.squeeze(0) : weights};
}

std::tuple<Tensor, Tensor> multi_head_attention_forward(
    const Tensor& query, const Tensor& key, const Tensor& value,
    const MultiheadAttentionForwardFuncOptions& o) {
  return detail::multi_head_attention_forward(
      query, key, value, o.embed_dim_to_check(), o.num_heads(), o.in_proj_weight(),
      o.in_proj_bias(), o.bias_k(), o.bias_v(), o.add_zero_attn(), o.dropout_p(),
      o.out_proj_weight(), o.out_proj_bias(), o.training(), o.key_padding_mask(), o.need_weights(),
      o.attn_mask(), o.use_separate_proj_weight(), o.q_proj_weight(), o.k_proj_weight(),
      o.v_proj_weight(), o.static_k(), o.static_v(), o.average_attn_weights(), o.is_causal(),
      o.batch_first());
}

}  // namespace functional
}  // namespace ramet::nn
