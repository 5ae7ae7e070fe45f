#include "tests/autograd/autocast/calls.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

#include "autograd/autocast.h"

namespace ramet {
namespace autocast_tests {

ScalarType Make::dtype_of_next() {
  const bool first = made_++ == 0;
  if (case_ == "float64") return kDouble;
  const bool lower = case_ == "lower" || (case_ == "mixed" && first);
  return lower ? autocast::get_autocast_dtype(device_.type()) : kFloat;
}
Tensor Make::operator()(IntArrayRef sizes) {
  if (sizes[0] < 0) return square(-sizes[0]);
  return full(sizes, 0.5, TensorOptions(dtype_of_next()).device(device_));
}
Tensor Make::float32(IntArrayRef sizes) const {
  return full(sizes, 0.5, TensorOptions(kFloat).device(device_));
}
// As in Python: one of float64, or promoted with autocast's dtype.
Tensor Make::square(int64_t n) {
  const Tensor halves = full({n, n}, 0.5, TensorOptions(dtype_of_next()).device(device_));
  return halves + eye(n, halves.options()) * 2;
}
Tensor Make::index(IntArrayRef sizes) const {
  return zeros(sizes, TensorOptions(kLong).device(device_));
}
std::vector<Tensor> Make::weights(int64_t gates) const {
  const int64_t rows = 3 * gates;
  return {float32({rows, 2}), float32({rows, 3}), float32(rows), float32(rows)};
}

namespace {

using Tensors = std::vector<Tensor>;

Tensors listed(const Tensor& t) { return {t}; }
template <class... T> Tensors listed(const std::tuple<T...>& t) {
  return std::apply([](const auto&... each) { return Tensors{each...}; }, t);
}
// The tensors are made in their order, whatever the compiler's order of arguments. A size of -n
// stands for an invertible matrix of n rows.
Tensors made(Make& t, const std::vector<std::vector<int64_t>>& shapes) {
  Tensors x;
  for (const auto& sizes : shapes) x.push_back(t(sizes));
  return x;
}

#define SPREAD(...) __VA_ARGS__
#define CALL(name, shapes, ...)                                   \
  {                                                               \
#name, [](Make& t) {                                            \
     Tensors x = made(t, std::vector<std::vector<int64_t>>{SPREAD shapes}); \
     return listed(__VA_ARGS__);                                   \
   } \
  }

}  // namespace

// A name with a dot has the form of the call after it.
const std::vector<Call>& calls() {
  static const std::vector<Call> all = {
      // Products.
      CALL(mm, ({2, 3}, {3, 2}), mm(x[0], x[1])),
      CALL(bmm, ({1, 2, 3}, {1, 3, 2}), bmm(x[0], x[1])),
      CALL(mv, ({2, 3}, {3}), mv(x[0], x[1])),
      CALL(dot, ({3}, {3}), dot(x[0], x[1])),
      CALL(vdot, ({3}, {3}), vdot(x[0], x[1])),
      CALL(matmul, ({2, 3}, {3, 2}), matmul(x[0], x[1])),
      CALL(matmul.vectors, ({3}, {3}), matmul(x[0], x[1])),
      CALL(matmul.matrix_vector, ({2, 3}, {3}), matmul(x[0], x[1])),
      CALL(linear, ({2, 3}, {4, 3}, {4}), linear(x[0], x[1], x[2])),
      CALL(addmm, ({2}, {2, 3}, {3, 2}), addmm(x[0], x[1], x[2])),
      CALL(addbmm, ({2, 2}, {1, 2, 3}, {1, 3, 2}), addbmm(x[0], x[1], x[2])),
      CALL(baddbmm, ({1, 2, 2}, {1, 2, 3}, {1, 3, 2}), baddbmm(x[0], x[1], x[2])),
      CALL(addmv, ({2}, {2, 3}, {3}), addmv(x[0], x[1], x[2])),
      CALL(addr, ({2, 3}, {2}, {3}), addr(x[0], x[1], x[2])),
      CALL(outer, ({2}, {3}), outer(x[0], x[1])),
      CALL(kron, ({2}, {3}), kron(x[0], x[1])),
      CALL(inner, ({2, 3}, {2, 3}), inner(x[0], x[1])),
      CALL(tensordot, ({2, 3}, {3, 2}), tensordot(x[0], x[1], 1, 0)),
      CALL(chain_matmul, ({2, 3}, {3, 3}), chain_matmul(TensorList{x[0], x[1]})),
      CALL(linalg_multi_dot, ({2, 3}, {3, 3}, {3, 2}),
           linalg_multi_dot(TensorList{x[0], x[1], x[2]})),
      CALL(einsum, ({2, 3}, {3, 2}), einsum("ij,jk->ik", TensorList{x[0], x[1]})),
      CALL(matrix_power, ({3, 3}), linalg_matrix_power(x[0], 3)),
      CALL(cross, ({3}, {3}), cross(x[0], x[1], 0)),
      CALL(bilinear, ({2, 3}, {2, 3}, {4, 3, 3}), bilinear(x[0], x[1], x[2])),
      CALL(prelu, ({2, 3}, {1}), prelu(x[0], x[1])),
      CALL(mm.out, ({2, 3}, {3, 2}, {2, 2}), mm_out(x[2], x[0], x[1])),
      CALL(addmm_, ({2, 2}, {2, 3}, {3, 2}), x[0].addmm_(x[1], x[2])),
      CALL(baddbmm_, ({1, 2, 2}, {1, 2, 3}, {1, 3, 2}), x[0].baddbmm_(x[1], x[2])),
      CALL(scaled_dot_product_attention, ({1, 1, 4, 8}, {1, 1, 4, 8}, {1, 1, 4, 8}),
           scaled_dot_product_attention(x[0], x[1], x[2])),
      // Convolutions.
      CALL(conv1d, ({1, 1, 4}, {1, 1, 2}, {1}), conv1d(x[0], x[1], x[2])),
      CALL(conv2d, ({1, 1, 4, 4}, {1, 1, 2, 2}, {1}), conv2d(x[0], x[1], x[2])),
      CALL(conv3d, ({1, 1, 4, 4, 4}, {1, 1, 2, 2, 2}, {1}), conv3d(x[0], x[1], x[2])),
      CALL(conv2d.same, ({1, 1, 4, 4}, {1, 1, 2, 2}, {1}), conv2d(x[0], x[1], x[2], 1, "same")),
      CALL(conv_transpose1d, ({1, 1, 4}, {1, 1, 2}, {1}), conv_transpose1d(x[0], x[1], x[2])),
      CALL(conv_transpose2d, ({1, 1, 4, 4}, {1, 1, 2, 2}, {1}), conv_transpose2d(x[0], x[1], x[2])),
      CALL(conv_transpose3d, ({1, 1, 4, 4, 4}, {1, 1, 2, 2, 2}, {1}),
           conv_transpose3d(x[0], x[1], x[2])),
      CALL(convolution, ({1, 1, 4, 4}, {1, 1, 2, 2}, {1}),
           convolution(x[0], x[1], x[2], 1, 0, 1, false, 0, 1)),
      CALL(conv_tbc, ({4, 1, 2}, {2, 2, 3}, {3}), conv_tbc(x[0], x[1], x[2])),
      // Recurrent networks. Their states and weights are float32.
      CALL(lstm, ({2, 1, 2}),
           lstm(x[0], TensorList{t.float32({1, 1, 3}), t.float32({1, 1, 3})}, t.weights(4), true, 1,
                0.0, true, false, false)),
      CALL(gru, ({2, 1, 2}),
           gru(x[0], t.float32({1, 1, 3}), t.weights(3), true, 1, 0.0, true, false, false)),
      CALL(rnn_tanh, ({2, 1, 2}),
           rnn_tanh(x[0], t.float32({1, 1, 3}), t.weights(1), true, 1, 0.0, true, false, false)),
      CALL(rnn_relu, ({2, 1, 2}),
           rnn_relu(x[0], t.float32({1, 1, 3}), t.weights(1), true, 1, 0.0, true, false, false)),
      CALL(lstm_cell, ({1, 2}),
           lstm_cell(x[0], TensorList{t.float32({1, 3}), t.float32({1, 3})}, t.weights(4)[0],
                     t.weights(4)[1], t.weights(4)[2], t.weights(4)[3])),
      CALL(gru_cell, ({1, 2}),
           gru_cell(x[0], t.float32({1, 3}), t.weights(3)[0], t.weights(3)[1], t.weights(3)[2],
                    t.weights(3)[3])),
      CALL(rnn_tanh_cell, ({1, 2}),
           rnn_tanh_cell(x[0], t.float32({1, 3}), t.weights(1)[0], t.weights(1)[1], t.weights(1)[2],
                         t.weights(1)[3])),
      CALL(rnn_relu_cell, ({1, 2}),
           rnn_relu_cell(x[0], t.float32({1, 3}), t.weights(1)[0], t.weights(1)[1], t.weights(1)[2],
                         t.weights(1)[3])),
      // Functions of elements.
      CALL(acos, ({3}), acos(x[0])),
      CALL(asin, ({3}), asin(x[0])),
      CALL(atan, ({3}), atan(x[0])),
      CALL(cos, ({3}), cos(x[0])),
      CALL(sin, ({3}), sin(x[0])),
      CALL(tan, ({3}), tan(x[0])),
      CALL(cosh, ({3}), cosh(x[0])),
      CALL(sinh, ({3}), sinh(x[0])),
      CALL(tanh, ({3}), tanh(x[0])),
      CALL(acosh, ({3}), acosh(x[0])),
      CALL(asinh, ({3}), asinh(x[0])),
      CALL(atanh, ({3}), atanh(x[0])),
      CALL(erf, ({3}), erf(x[0])),
      CALL(erfc, ({3}), erfc(x[0])),
      CALL(erfinv, ({3}), erfinv(x[0])),
      CALL(exp, ({3}), exp(x[0])),
      CALL(exp2, ({3}), exp2(x[0])),
      CALL(expm1, ({3}), expm1(x[0])),
      CALL(log, ({3}), log(x[0])),
      CALL(log10, ({3}), log10(x[0])),
      CALL(log1p, ({3}), log1p(x[0])),
      CALL(log2, ({3}), log2(x[0])),
      CALL(reciprocal, ({3}), reciprocal(x[0])),
      CALL(rsqrt, ({3}), rsqrt(x[0])),
      CALL(sqrt, ({3}), sqrt(x[0])),
      CALL(square, ({3}), square(x[0])),
      CALL(neg, ({3}), neg(x[0])),
      CALL(abs, ({3}), abs(x[0])),
      CALL(sigmoid, ({3}), sigmoid(x[0])),
      CALL(relu, ({3}), relu(x[0])),
      CALL(floor, ({3}), floor(x[0])),
      CALL(ceil, ({3}), ceil(x[0])),
      CALL(round, ({3}), round(x[0])),
      CALL(trunc, ({3}), trunc(x[0])),
      CALL(frac, ({3}), frac(x[0])),
      CALL(sign, ({3}), sign(x[0])),
      CALL(lgamma, ({3}), lgamma(x[0])),
      CALL(digamma, ({3}), digamma(x[0])),
      CALL(logit, ({3}), logit(x[0])),
      CALL(nan_to_num, ({3}), nan_to_num(x[0])),
      CALL(pow, ({3}, {3}), pow(x[0], x[1])),
      CALL(pow.number, ({3}), pow(x[0], 2)),
      CALL(pow.of_number, ({3}), pow(2, x[0])),
      CALL(exp_, ({3}), x[0].exp_()),
      CALL(pow_, ({3}), x[0].pow_(2)),
      CALL(softplus, ({3}), softplus(x[0])),
      CALL(gelu, ({3}), gelu(x[0])),
      CALL(silu, ({3}), silu(x[0])),
      CALL(leaky_relu, ({3}), leaky_relu(x[0])),
      CALL(elu, ({3}), elu(x[0])),
      CALL(mish, ({3}), mish(x[0])),
      CALL(logsigmoid, ({3}), log_sigmoid(x[0])),
      CALL(hardswish, ({3}), hardswish(x[0])),
      CALL(glu, ({4}), glu(x[0])),
      CALL(add, ({3}, {3}), add(x[0], x[1])),
      CALL(mul, ({3}, {3}), mul(x[0], x[1])),
      CALL(div, ({3}, {3}), div(x[0], x[1])),
      CALL(atan2, ({3}, {3}), atan2(x[0], x[1])),
      CALL(hypot, ({3}, {3}), hypot(x[0], x[1])),
      CALL(addcmul, ({3}, {3}, {3}), addcmul(x[0], x[1], x[2])),
      CALL(addcdiv, ({3}, {3}, {3}), addcdiv(x[0], x[1], x[2])),
      CALL(lerp, ({3}, {3}), lerp(x[0], x[1], 0.5)),
      CALL(maximum, ({3}, {3}), maximum(x[0], x[1])),
      CALL(eq, ({3}, {3}), eq(x[0], x[1])),
      // Reductions.
      CALL(sum, ({2, 3}), sum(x[0])),
      CALL(sum.dim, ({2, 3}), sum(x[0], IntArrayRef(1))),
      CALL(sum.dtype, ({2, 3}), sum(x[0], kDouble)),
      CALL(mean, ({2, 3}), mean(x[0])),
      CALL(prod, ({2, 3}), prod(x[0])),
      CALL(prod.dim, ({2, 3}), prod(x[0], 1)),
      CALL(cumsum, ({2, 3}), cumsum(x[0], 1)),
      CALL(cumprod, ({2, 3}), cumprod(x[0], 1)),
      CALL(var, ({2, 3}), var(x[0])),
      CALL(amax, ({2, 3}), amax(x[0], 1)),
      CALL(norm, ({2, 3}), norm(x[0], 2)),
      CALL(norm.dim, ({2, 3}), norm(x[0], 2, IntArrayRef(1), false)),
      CALL(logsumexp, ({2, 3}), logsumexp(x[0], 1)),
      CALL(softmax, ({2, 3}), softmax(x[0], 1)),
      CALL(softmax.dtype, ({2, 3}), softmax(x[0], 1, kDouble)),
      CALL(log_softmax, ({2, 3}), log_softmax(x[0], 1)),
      CALL(quantile, ({4}), quantile(x[0], 0.5)),
      CALL(nanquantile, ({4}), nanquantile(x[0], 0.5)),
      CALL(trace, ({3, 3}), trace(x[0])),
      CALL(linalg_vector_norm, ({3}), linalg_vector_norm(x[0])),
      CALL(linalg_matrix_norm, ({3, 3}), linalg_matrix_norm(x[0])),
      CALL(frobenius_norm, ({3, 3}), frobenius_norm(x[0], {0, 1})),
      CALL(nuclear_norm, ({3, 3}), nuclear_norm(x[0])),
      CALL(dist, ({3}, {3}), dist(x[0], x[1])),
      CALL(renorm, ({2, 3}), renorm(x[0], 2, 0, 1)),
      CALL(cdist, ({2, 3}, {2, 3}), cdist(x[0], x[1])),
      CALL(pdist, ({2, 3}), pdist(x[0])),
      CALL(cosine_similarity, ({2, 3}, {2, 3}), cosine_similarity(x[0], x[1])),
      CALL(pairwise_distance, ({2, 3}, {2, 3}), pairwise_distance(x[0], x[1])),
      // Norms with parameters of float32.
      CALL(layer_norm, ({2, 3}), layer_norm(x[0], 3, t.float32({3}), t.float32({3}))),
      CALL(rms_norm, ({2, 3}), rms_norm(x[0], 3)),
      CALL(group_norm, ({2, 4}), group_norm(x[0], 2, t.float32({4}), t.float32({4}))),
      CALL(batch_norm, ({2, 3}),
           batch_norm(x[0], t.float32({3}), t.float32({3}), t.float32({3}), t.float32({3}), true,
                      0.1, 1e-5, false)),
      // Losses.
      CALL(mse_loss, ({2, 3}, {2, 3}), mse_loss(x[0], x[1])),
      CALL(l1_loss, ({2, 3}, {2, 3}), l1_loss(x[0], x[1])),
      CALL(smooth_l1_loss, ({2, 3}, {2, 3}), smooth_l1_loss(x[0], x[1])),
      CALL(huber_loss, ({2, 3}, {2, 3}), huber_loss(x[0], x[1])),
      CALL(binary_cross_entropy, ({2, 3}, {2, 3}), binary_cross_entropy(x[0], x[1])),
      CALL(binary_cross_entropy_with_logits, ({2, 3}, {2, 3}),
           binary_cross_entropy_with_logits(x[0], x[1])),
      CALL(kl_div, ({2, 3}, {2, 3}), kl_div(x[0], x[1], Reduction::Sum)),
      CALL(poisson_nll_loss, ({2, 3}, {2, 3}),
           poisson_nll_loss(x[0], x[1], true, false, 1e-8, Reduction::Mean)),
      CALL(hinge_embedding_loss, ({2, 3}, {2, 3}), hinge_embedding_loss(x[0], x[1])),
      CALL(soft_margin_loss, ({2, 3}, {2, 3}), soft_margin_loss(x[0], x[1])),
      CALL(margin_ranking_loss, ({3}, {3}, {3}), margin_ranking_loss(x[0], x[1], x[2])),
      CALL(cosine_embedding_loss, ({2, 3}, {2, 3}),
           cosine_embedding_loss(x[0], x[1], t.float32({2}))),
      CALL(triplet_margin_loss, ({2, 3}, {2, 3}, {2, 3}), triplet_margin_loss(x[0], x[1], x[2])),
      CALL(multi_margin_loss, ({2, 3}), multi_margin_loss(x[0], t.index({2}))),
      CALL(multilabel_margin_loss, ({2, 3}), multilabel_margin_loss(x[0], t.index({2, 3}))),
      CALL(nll_loss, ({2, 3}), nll_loss(x[0], t.index({2}))),
      CALL(nll_loss2d, ({2, 3, 1, 1}), nll_loss2d(x[0], t.index({2, 1, 1}))),
      CALL(cross_entropy_loss, ({2, 3}), cross_entropy_loss(x[0], t.index({2}))),
      CALL(ctc_loss, ({4, 1, 3}),
           ctc_loss(x[0], t.index({1, 2}) + 1, IntArrayRef(4), IntArrayRef(2))),
      // Linear algebra.
      CALL(inverse, ({-2}), inverse(x[0])),
      CALL(linalg_inv, ({-2}), linalg_inv(x[0])),
      CALL(linalg_solve, ({-2}, {2, 1}), linalg_solve(x[0], x[1])),
      CALL(linalg_cholesky, ({-2}), linalg_cholesky(x[0])),
      CALL(cholesky_solve, ({2, 1}, {-2}), cholesky_solve(x[0], x[1])),
      CALL(cholesky_inverse, ({-2}), cholesky_inverse(x[0])),
      CALL(linalg_qr, ({2, 2}), linalg_qr(x[0])),
      CALL(linalg_svd, ({2, 2}), linalg_svd(x[0])),
      CALL(svd, ({2, 2}), svd(x[0])),
      CALL(linalg_svdvals, ({2, 2}), linalg_svdvals(x[0])),
      CALL(linalg_eigh, ({2, 2}), linalg_eigh(x[0])),
      CALL(linalg_eigvalsh, ({2, 2}), linalg_eigvalsh(x[0])),
      CALL(linalg_matrix_rank, ({2, 2}), linalg_matrix_rank(x[0])),
      CALL(pinverse, ({2, 2}), pinverse(x[0])),
      // Parts of tensors.
      CALL(cat, ({2}, {2}), cat(TensorList{x[0], x[1]})),
      CALL(stack, ({2}, {2}), stack(TensorList{x[0], x[1]})),
      CALL(hstack, ({2}, {2}), hstack(TensorList{x[0], x[1]})),
      CALL(index_copy, ({2, 3}, {1, 3}), index_copy(x[0], 0, t.index({1}), x[1])),
      CALL(index_put, ({2, 3}, {1, 3}), index_put(x[0], {t.index({1})}, x[1])),
      CALL(scatter_add, ({2, 3}, {1, 3}), scatter_add(x[0], 0, t.index({1, 3}), x[1])),
      CALL(index_add, ({2, 3}, {1, 3}), index_add(x[0], 0, t.index({1}), x[1])),
      CALL(gather, ({2, 3}), gather(x[0], 0, t.index({1, 3}))),
      CALL(embedding, ({2, 3}), embedding(x[0], t.index({2}))),
      CALL(reshape, ({2, 3}), reshape(x[0], 6)),
      // Images.
      CALL(reflection_pad1d, ({1, 2, 4}), reflection_pad1d(x[0], {1, 1})),
      CALL(reflection_pad2d, ({1, 2, 4, 4}), reflection_pad2d(x[0], {1, 1, 1, 1})),
      CALL(reflection_pad3d, ({1, 1, 4, 4, 4}), reflection_pad3d(x[0], {1, 1, 1, 1, 1, 1})),
      CALL(replication_pad1d, ({1, 2, 4}), replication_pad1d(x[0], {1, 1})),
      CALL(replication_pad2d, ({1, 2, 4, 4}), replication_pad2d(x[0], {1, 1, 1, 1})),
      CALL(replication_pad3d, ({1, 1, 4, 4, 4}), replication_pad3d(x[0], {1, 1, 1, 1, 1, 1})),
      CALL(max_pool2d, ({1, 1, 4, 4}), max_pool2d(x[0], 2)),
      CALL(avg_pool2d, ({1, 1, 4, 4}), avg_pool2d(x[0], 2)),
      CALL(max_pool3d, ({1, 1, 4, 4, 4}), max_pool3d(x[0], 2)),
      CALL(avg_pool3d, ({1, 1, 4, 4, 4}), avg_pool3d(x[0], 2)),
      CALL(adaptive_avg_pool2d, ({1, 1, 4, 4}), adaptive_avg_pool2d(x[0], 2)),
      CALL(adaptive_avg_pool3d, ({1, 1, 4, 4, 4}), adaptive_avg_pool3d(x[0], 2)),
      CALL(adaptive_max_pool3d, ({1, 1, 4, 4, 4}), adaptive_max_pool3d(x[0], 2)),
      CALL(upsample_nearest1d, ({1, 1, 4}), upsample_nearest1d(x[0], IntArrayRef{8})),
      CALL(upsample_nearest2d, ({1, 1, 4, 4}), upsample_nearest2d(x[0], IntArrayRef{8, 8})),
      CALL(upsample_nearest3d, ({1, 1, 4, 4, 4}), upsample_nearest3d(x[0], IntArrayRef{8, 8, 8})),
      CALL(_upsample_nearest_exact1d, ({1, 1, 4}), _upsample_nearest_exact1d(x[0], IntArrayRef{8})),
      CALL(_upsample_nearest_exact2d, ({1, 1, 4, 4}),
           _upsample_nearest_exact2d(x[0], IntArrayRef{8, 8})),
      CALL(_upsample_nearest_exact3d, ({1, 1, 4, 4, 4}),
           _upsample_nearest_exact3d(x[0], IntArrayRef{8, 8, 8})),
      CALL(upsample_linear1d, ({1, 1, 4}), upsample_linear1d(x[0], IntArrayRef{8}, false)),
      CALL(upsample_bilinear2d, ({1, 1, 4, 4}),
           upsample_bilinear2d(x[0], IntArrayRef{8, 8}, false)),
      CALL(upsample_trilinear3d, ({1, 1, 4, 4, 4}),
           upsample_trilinear3d(x[0], IntArrayRef{8, 8, 8}, false)),
      CALL(upsample_bicubic2d, ({1, 1, 4, 4}), upsample_bicubic2d(x[0], IntArrayRef{8, 8}, false)),
      CALL(_upsample_bilinear2d_aa, ({1, 1, 4, 4}),
           _upsample_bilinear2d_aa(x[0], IntArrayRef{8, 8}, false)),
      CALL(_upsample_bicubic2d_aa, ({1, 1, 4, 4}),
           _upsample_bicubic2d_aa(x[0], IntArrayRef{8, 8}, false)),
  };
  return all;
}

namespace {

std::string dtypes_of(const Call& call, Device device, const std::string& test_case) {
  Make make(device, test_case);
  std::string text;
  const AutocastGuard guard(device.type());
  for (const Tensor& t : call.run(make)) {
    const std::string name = name_of(t.scalar_type());
    text += (text.empty() ? "" : ",") + name;
  }
  return text;
}

// PyTorch's words in ours.
std::string translated(std::string names) {
  static const std::pair<const char*, const char*> words[] = {
      {"bfloat16", "BFloat16"}, {"float16", "Half"}, {"float32", "Float"},
      {"float64", "Double"},    {"int64", "Long"},   {"bool", "Bool"}};
  for (const auto& [theirs, ours] : words)
    for (size_t at = 0; (at = names.find(theirs, at)) != std::string::npos; at += 1)
      if (at == 0 || names[at - 1] == ',') names.replace(at, std::string(theirs).size(), ours);
  return names;
}

}  // namespace

void expect_dtypes(Device device) {
  std::ifstream golden("tests/autograd/goldens/autocast_dtypes.txt");
  std::map<std::string, std::string> wanted;
  std::string name, on, test_case, dtypes;
  while (golden >> name >> on >> test_case >> dtypes)
    wanted[name + " " + on + " " + test_case] = dtypes;
  ASSERT_GT(wanted.size(), 1000u);
  int compared = 0;
  for (const Call& call : calls())
    for (const char* each : {"float32", "lower", "mixed", "float64"}) {
      const std::string key = call.name + (device.is_cpu() ? " cpu " : " cuda ") + each;
      ASSERT_TRUE(wanted.count(key)) << key;
      const std::string& want = wanted[key];
      // What PyTorch refuses may be computed here.
      if (want == "refused" || want == "unknown") continue;
      // A fake GPU computes these; a real one refuses them.
      static const std::string fake =
          " addmm_ mixed, index_copy mixed, index_add mixed, lstm_cell float64, gru_cell float64,"
          " rnn_tanh_cell float64, rnn_relu_cell float64, linalg_solve lower,"
          " linalg_cholesky lower, linalg_cholesky mixed, cholesky_solve lower,"
          " cholesky_inverse lower, cholesky_inverse mixed, linalg_qr lower, linalg_qr mixed,"
          " linalg_svd lower, linalg_svd mixed, svd lower, svd mixed, linalg_svdvals lower,"
          " linalg_svdvals mixed, linalg_eigh lower, linalg_eigh mixed, linalg_eigvalsh lower,"
          " linalg_eigvalsh mixed,";
      // LibTorch's ends with a product in 16 bits; this one factors matrices in float64.
      if (key == "pinverse cuda float32") continue;
      if (!device.is_cpu() && fake.find(" " + call.name + " " + each + ",") != std::string::npos) {
        EXPECT_THROW(dtypes_of(call, device, each), Error) << key;
        continue;
      }
      ++compared;
      try {
        EXPECT_EQ(dtypes_of(call, device, each), translated(want)) << key;
      } catch (const std::exception& e) { ADD_FAILURE() << key << ": " << e.what(); }
    }
  EXPECT_GT(compared, 700);
}

}  // namespace autocast_tests
}  // namespace ramet
