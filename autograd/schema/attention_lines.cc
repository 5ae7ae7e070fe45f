// The fast paths of attention that nn.MultiheadAttention and nn.TransformerEncoderLayer take in
// evaluation, and what these modules ask about nested tensors, which do not exist here.
#include <cmath>
#include <limits>

#include "autograd/autograd.h"
#include "autograd/ops.h"
#include "autograd/schema/table_internal.h"
#include "autograd/schema/values_internal.h"

namespace ramet::script {
namespace {

// What attention may not see, broadcast to [batch, heads, queries, keys]. PyTorch's kinds of masks:
// 0 is [queries, keys], 1 is [batch, keys], 2 has four dimensions. True, or any number but 0, hides.
std::optional<Tensor> hidden(const std::optional<Tensor>& mask, std::optional<int64_t> kind) {
  if (!mask) return std::nullopt;
  const Tensor hides = mask->scalar_type() == kBool ? *mask : ne(*mask, 0);
  if (kind.value_or(mask->dim() == 4 ? 2 : 0) == 1) return hides.unsqueeze(1).unsqueeze(1);
  return hides;
}

Tensor split_heads(const Tensor& x, int64_t heads) {
  return x.view({x.size(0), x.size(1), heads, x.size(2) / heads}).transpose(1, 2);
}

struct Attended {
  Tensor output, weights;  // weights of each head: [batch, heads, queries, keys]
};
struct Projection {
  const Tensor &qkv_weight, &qkv_bias, &weight, &bias;
};
Attended attend(const Tensor& query, const Tensor& key, const Tensor& value, int64_t width,
                int64_t heads, const Projection& by, const std::optional<Tensor>& mask,
                bool need_weights) {
  constexpr const char* kOp = "_native_multi_head_attention";
  RAMET_CHECK(query.dim() == 3 && query.size(2) == width && heads > 0 && width % heads == 0, kOp,
              "got a query of ", query.sizes(), " for ", heads, " heads, expected [batch, queries, ",
              width, "] and heads that divide the last");
  const std::vector<Tensor> weights = by.qkv_weight.chunk(3), biases = by.qkv_bias.chunk(3);
  const Tensor q = split_heads(linear(query, weights.at(0), biases.at(0)), heads);
  const Tensor k = split_heads(linear(key, weights.at(1), biases.at(1)), heads);
  const Tensor v = split_heads(linear(value, weights.at(2), biases.at(2)), heads);
  Attended made;
  Tensor mixed;
  if (need_weights) {
    Tensor scores = matmul(mul(q, 1.0 / std::sqrt(static_cast<double>(width / heads))),
                           k.transpose(-2, -1));
    if (mask) scores = masked_fill(scores, *mask, -std::numeric_limits<double>::infinity());
    made.weights = softmax(scores, -1);
    mixed = matmul(made.weights, v);
  } else {
    mixed = scaled_dot_product_attention(
        q, k, v, mask ? std::optional<Tensor>(logical_not(*mask)) : std::nullopt);
  }
  mixed = mixed.transpose(1, 2).reshape({query.size(0), query.size(1), width});
  made.output = linear(mixed, by.weight, by.bias);
  return made;
}

IValue attention(const Call& a) {
  const Attended made = attend(a.tensor(0), a.tensor(1), a.tensor(2), a.integer(3), a.integer(4),
                               {a.tensor(5), a.tensor(6), a.tensor(7), a.tensor(8)},
                               hidden(a.may_tensor(9), a.may_integer(12)), a.truth(10));
  const bool average = a.truth(10) && a.truth(11);
  return result(std::vector<IValue>{made.output, average ? mean(made.weights, 1) : made.weights});
}

Tensor encoder_layer(const Call& a) {
  const Tensor& source = a.tensor(0);
  const int64_t width = a.integer(1);
  const bool norm_first = a.truth(8);
  const double eps = a.real(9);
  const auto norm = [&](const Tensor& x, size_t i) {
    return layer_norm(x, width, a.tensor(i), a.tensor(i + 1), eps);
  };
  const Projection by{a.tensor(3), a.tensor(4), a.tensor(5), a.tensor(6)};
  const std::optional<Tensor> mask = hidden(a.may_tensor(18), a.may_integer(19));
  const Tensor first = norm_first ? norm(source, 10) : source;
  Tensor x = add(source, attend(first, first, first, width, a.integer(2), by, mask, false).output);
  if (!norm_first) x = norm(x, 10);
  const Tensor inner = linear(norm_first ? norm(x, 12) : x, a.tensor(14), a.tensor(15));
  const Tensor active = a.truth(7) ? gelu(inner) : relu(inner);
  x = add(x, linear(active, a.tensor(16), a.tensor(17)));
  return norm_first ? x : norm(x, 12);
}

[[noreturn]] IValue refuse(const char* op, const char* what) {
  throw NotImplementedError(std::string("[") + op + "] got a call, expected none: there are no " +
                            what + " here");
}

const Line kAttention[] = {
    RAMET_LINE("aten::_native_multi_head_attention(Tensor query, Tensor key, Tensor value, "
               "int embed_dim, int num_head, Tensor qkv_weight, Tensor qkv_bias, "
               "Tensor proj_weight, Tensor proj_bias, Tensor? mask=None, bool need_weights=True, "
               "bool average_attn_weights=True, int? mask_type=None) -> (Tensor, Tensor)",
               attention(a)),
    RAMET_LINE("aten::_transformer_encoder_layer_fwd(Tensor src, int embed_dim, int num_heads, "
               "Tensor qkv_weight, Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, "
               "bool use_gelu, bool norm_first, float eps, Tensor norm_weight_1, "
               "Tensor norm_bias_1, Tensor norm_weight_2, Tensor norm_bias_2, "
               "Tensor ffn_weight_1, Tensor ffn_bias_1, Tensor ffn_weight_2, Tensor ffn_bias_2, "
               "Tensor? mask=None, int? mask_type=None) -> Tensor", encoder_layer(a)),
    // A mask that could make a nested tensor: it never does, so that modules take the dense path.
    RAMET_LINE("aten::_nested_tensor_from_mask_left_aligned(Tensor t, Tensor mask) -> bool", false),
    RAMET_LINE("aten::_nested_tensor_from_mask(Tensor t, Tensor mask, bool mask_check=True) -> "
               "Tensor", refuse("_nested_tensor_from_mask", "nested tensors")),
    // Of a tensor that is not nested, the same tensor.
    RAMET_LINE("aten::to_padded_tensor(Tensor self, float padding, int[]? output_size=None) -> "
               "Tensor", a.tensor(0)),
    RAMET_LINE("aten::_upsample_lanczos2d_aa(Tensor self, int[2] output_size, bool align_corners, "
               "float? scales_h=None, float? scales_w=None) -> Tensor",
               refuse("_upsample_lanczos2d_aa", "Lanczos filters")),
    RAMET_LINE("aten::_upsample_lanczos2d_aa.vec(Tensor input, int[]? output_size, "
               "bool align_corners, float[]? scale_factors) -> Tensor",
               refuse("_upsample_lanczos2d_aa", "Lanczos filters")),
};

}  // namespace

Lines lines_of_attention() { return kAttention; }

}  // namespace ramet::script
