// Gradients as operators: ATen's core has them where torch.export decomposes a step of training;
// backward() of several tensors is a call in scripts.
#include "autograd/autocast.h"
#include "autograd/autograd.h"
#include "autograd/ops.h"
#include "autograd/schema/table_internal.h"
#include "autograd/schema/values_internal.h"

namespace ramet::script {
namespace {

// A leaf with the values of a tensor.
Tensor leaf(const Tensor& t) { return t.detach().requires_grad_(true); }

// The gradients of y for those leaves that `wanted` names; others are undefined.
IValue gradients(const Tensor& y, const Tensor& grad_output, const std::vector<Tensor>& leaves,
                 const std::vector<bool>& wanted) {
  std::vector<Tensor> asked;
  for (size_t i = 0; i < leaves.size(); ++i)
    if (wanted.at(i) && leaves[i].defined()) asked.push_back(leaves[i]);
  std::vector<Tensor> found;
  if (!asked.empty()) found = autograd::grad({y}, asked, {grad_output});
  std::vector<IValue> all;
  for (size_t i = 0, next = 0; i < leaves.size(); ++i)
    all.emplace_back(wanted.at(i) && leaves[i].defined() ? found[next++] : Tensor());
  return result(std::move(all));
}

// output_mask: which gradients are asked for.
std::vector<bool> wanted(const Call& a, size_t i) {
  std::vector<bool> mask = a[i].toBoolList().vec();
  RAMET_CHECK(mask.size() == 3, "output_mask", "got ", mask.size(), " values, expected 3");
  return mask;
}

// The gradient of f(x) for x alone. Autocast does not cast gradients.
template <class F> Tensor gradient_of(const Tensor& grad_output, const Tensor& self, const F& f) {
  const AutoGradMode on(true);
  const AutocastGuard no_casts(self.device().type(), std::nullopt, false);
  const Tensor x = leaf(self);
  return autograd::grad({f(x)}, {x}, {grad_output})[0];
}

IValue of_convolution(const Call& a) {
  const AutoGradMode on(true);
  const Tensor x = leaf(a.tensor(1)), weight = leaf(a.tensor(2));
  const AutocastGuard no_casts(x.device().type(), std::nullopt, false);
  std::vector<bool> mask = wanted(a, 10);
  // bias_sizes says nothing that the gradient does not say.
  Tensor bias;
  if (mask[2]) bias = zeros({a.tensor(0).size(1)}, weight.options().requires_grad(true));
  const Tensor y = convolution(
      x, weight, bias.defined() ? std::optional<Tensor>(bias) : std::nullopt, a.integers(4),
      a.integers(5), a.integers(6), a.truth(7), a.integers(8), a.integer(9));
  return gradients(y, a.tensor(0), {x, weight, bias}, mask);
}

// eps is in rstd alone. So the gradient is written out: differentiating layer_norm() needs eps.
IValue of_layer_norm(const Call& a) {
  const NoGradGuard off;
  const Tensor& x = a.tensor(1);
  const int64_t first = x.dim() - static_cast<int64_t>(a.integers(2).size());
  const std::vector<int64_t> dims = dims_from(first, x.dim()), others = dims_from(0, first);
  const ScalarType type = statistics_dtype(x);
  const Tensor grad = a.tensor(0).to(type), scale = a.tensor(4).to(type);
  const Tensor normal = mul(sub(x.to(type), a.tensor(3).to(type)), scale);
  const Tensor inner = a.none(5) ? grad : mul(grad, a.tensor(5).to(type));
  const std::vector<bool> mask = wanted(a, 7);
  std::vector<IValue> all(3, Tensor());
  if (mask[0])
    all[0] = mul(scale, sub(sub(inner, mean(inner, dims, true)),
                            mul(normal, mean(mul(inner, normal), dims, true))))
                 .to(x.scalar_type());
  const auto summed = [&](const Tensor& t, const Tensor& like) {
    return (others.empty() ? t : sum(t, others)).to(like.scalar_type());
  };
  if (mask[1] && !a.none(5)) all[1] = summed(mul(grad, normal), a.tensor(5));
  if (mask[2] && !a.none(6)) all[2] = summed(grad, a.tensor(6));
  return result(std::move(all));
}

IValue of_group_norm(const Call& a) {
  const NoGradGuard off;
  const Tensor& x = a.tensor(1);
  const ScalarType type = statistics_dtype(x);
  const Tensor grad = a.tensor(0).to(type);
  const int64_t batch = a.integer(5), channels = a.integer(6), groups = a.integer(8);
  RAMET_CHECK(groups > 0 && channels % groups == 0 && x.dim() >= 2 && x.size(0) == batch &&
                  x.size(1) == channels && grad.sizes() == x.sizes(),
              "native_group_norm_backward", "got an input of ", x.sizes(), ", N = ", batch,
              ", C = ", channels, " and ", groups,
              " groups, expected [N, C, ...] and a divisor of C");
  const auto grouped = [&](const Tensor& t) { return t.reshape({batch, groups, -1}); };
  const Tensor mean = a.tensor(2).reshape({batch, groups, 1}).to(type);
  const Tensor rstd = a.tensor(3).reshape({batch, groups, 1}).to(type);
  const Tensor normal = mul(sub(grouped(x.to(type)), mean), rstd);
  Tensor inner = grad;
  if (!a.none(4)) {
    std::vector<int64_t> shape(static_cast<size_t>(x.dim()), 1);
    shape[1] = channels;
    inner = mul(grad, a.tensor(4).to(type).view(shape));
  }
  inner = grouped(inner);
  const std::vector<bool> mask = wanted(a, 9);
  std::vector<IValue> all(3, Tensor());
  if (mask[0])
    all[0] = mul(rstd, sub(sub(inner, ramet::mean(inner, {2}, true)),
                           mul(normal, ramet::mean(mul(inner, normal), {2}, true))))
                 .reshape(x.sizes())
                 .to(x.scalar_type());
  const auto of_channels = [&](const Tensor& t) {
    return sum(t.reshape({batch, channels, -1}), {0, 2}).to(x.scalar_type());
  };
  if (mask[1]) all[1] = of_channels(mul(grouped(grad), normal));
  if (mask[2]) all[2] = of_channels(grad);
  return result(std::move(all));
}

Tensor of_embedding(const Call& a) {
  const AutoGradMode on(true);
  const Tensor& grad = a.tensor(0);
  const int64_t rows = a.integer(2);
  RAMET_CHECK(grad.dim() >= 1 && rows >= 0, "embedding_dense_backward", "got a gradient of ",
              grad.sizes(), " and ", rows, " weights, expected [..., size] and a number from 0 on");
  const Tensor weight = zeros({rows, grad.size(-1)}, grad.options().requires_grad(true));
  const Tensor y = embedding(weight, a.tensor(1), a.integer(3), a.truth(4), false);
  return autograd::grad({y}, {weight}, {grad})[0];
}

// The indices say where the maxima are: they need not be found again.
Tensor of_max_pool(const Call& a) {
  const Tensor &grad = a.tensor(0), &x = a.tensor(1), &indices = a.tensor(7);
  RAMET_CHECK(x.dim() >= 3 && indices.sizes() == grad.sizes() && grad.dim() == x.dim(),
              "max_pool2d_with_indices_backward", "got a gradient of ", grad.sizes(),
              ", indices of ", indices.sizes(), " and an input of ", x.sizes(),
              ", expected gradient and indices of one size, and an image");
  const auto flat = [](const Tensor& t) { return t.reshape({-1, t.size(-2) * t.size(-1)}); };
  const Tensor sum = zeros(flat(x).sizes(), x.options().requires_grad(false));
  return scatter_add(sum, 1, flat(indices), flat(grad)).reshape(x.sizes());
}

// grad_outputs: None, or a list with a tensor or None for each output.
std::vector<Tensor> given(const Call& a, size_t i) {
  std::vector<Tensor> tensors;
  if (a.none(i)) return tensors;
  if (a[i].isTensorList()) return a[i].toTensorVector();
  for (const IValue& item : a[i].toListRef())
    tensors.push_back(item.isNone() ? Tensor() : item.toTensor());
  return tensors;
}

const Line kBackward[] = {
    RAMET_LINE_DO("aten::backward.TensorList(Tensor[] tensors, Tensor?[]? grad_tensors=None, "
                  "bool? retain_graph=None, bool create_graph=False) -> ()",
                  autograd::backward(a.tensors(0).vec(), given(a, 1), a.may_truth(2), a.truth(3))),
    RAMET_LINE("aten::convolution_backward(Tensor grad_output, Tensor input, Tensor weight, "
               "int[]? bias_sizes, int[] stride, int[] padding, int[] dilation, bool transposed, "
               "int[] output_padding, int groups, bool[3] output_mask) -> "
               "(Tensor, Tensor, Tensor)",
               of_convolution(a)),
    RAMET_LINE("aten::native_layer_norm_backward(Tensor grad_out, Tensor input, "
               "int[] normalized_shape, Tensor mean, Tensor rstd, Tensor? weight, Tensor? bias, "
               "bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
               of_layer_norm(a)),
    RAMET_LINE("aten::native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, "
               "Tensor rstd, Tensor? weight, int N, int C, int HxW, int group, "
               "bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
               of_group_norm(a)),
    RAMET_LINE("aten::embedding_dense_backward(Tensor grad_output, Tensor indices, "
               "int num_weights, int padding_idx, bool scale_grad_by_freq) -> Tensor",
               of_embedding(a)),
    RAMET_LINE("aten::max_pool2d_with_indices_backward(Tensor grad_output, Tensor self, "
               "int[2] kernel_size, int[2] stride, int[2] padding, int[2] dilation, "
               "bool ceil_mode, Tensor indices) -> Tensor",
               of_max_pool(a)),
    RAMET_LINE("aten::avg_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, "
               "int[2] stride, int[2] padding, bool ceil_mode, bool count_include_pad, "
               "int? divisor_override) -> Tensor",
               gradient_of(a.tensor(0), a.tensor(1),
                           [&](const Tensor& x) {
                             return avg_pool2d(x, a.integers(2), a.integers(3), a.integers(4),
                                               a.truth(5), a.truth(6), a.may_integer(7));
                           })),
    RAMET_LINE("aten::_adaptive_avg_pool2d_backward(Tensor grad_output, Tensor self) -> Tensor",
               gradient_of(a.tensor(0), a.tensor(1),
                           [&](const Tensor& x) {
                             return adaptive_avg_pool2d(
                                 x, a.tensor(0).sizes().slice(a.tensor(0).sizes().size() - 2));
                           })),
};

}  // namespace

Lines lines_of_backward() { return kBackward; }

}  // namespace ramet::script
