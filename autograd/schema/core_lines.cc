// Operators of ATen's core, into which torch.export decomposes others: layers with their
// statistics, copies, and checks of sizes.
#include <cmath>
#include <limits>

#include "autograd/autograd.h"
#include "autograd/ops.h"
#include "autograd/schema/table_internal.h"
#include "autograd/schema/values_internal.h"

namespace ramet::script {
namespace {

using Tensors = std::vector<IValue>;

// Mean and 1 / standard deviation along dimensions, without history.
std::pair<Tensor, Tensor> statistics(const Tensor& x, const std::vector<int64_t>& dims, double eps,
                                     bool keepdim) {
  const NoGradGuard no_grad;
  const Tensor values = x.detach().to(statistics_dtype(x));
  const auto [variance, mean] = var_mean(values, dims, Scalar(0), keepdim);
  return {mean, rsqrt(add(variance, eps))};
}

IValue norm_of_layer(const Call& a) {
  const Tensor& x = a.tensor(0);
  const IntArrayRef shape = a.integers(1);
  const Tensor y = layer_norm(x, shape, a.may_tensor(2), a.may_tensor(3), a.real(4));
  const auto [mean, rstd] = statistics(
      x, dims_from(x.dim() - static_cast<int64_t>(shape.size()), x.dim()), a.real(4), true);
  return result(Tensors{y, mean, rstd});
}

IValue norm_of_groups(const Call& a) {
  const Tensor& x = a.tensor(0);
  const int64_t batch = a.integer(3), groups = a.integer(6);
  RAMET_CHECK(x.dim() >= 2 && x.size(0) == batch && x.size(1) == a.integer(4) && groups > 0,
              "native_group_norm", "got an input of ", x.sizes(), ", N = ", batch,
              ", C = ", a.integer(4), " and ", groups,
              " groups, expected [N, C, ...] and a positive number");
  const Tensor y = group_norm(x, groups, a.may_tensor(1), a.may_tensor(2), a.real(7));
  const auto [mean, rstd] =
      statistics(x.detach().reshape({batch, groups, -1}), {2}, a.real(7), false);
  return result(Tensors{y, mean, rstd});
}

// The result of a batch norm, and the batch's statistics; in evaluation mode those are empty.
Tensors norm_of_batch(const Tensor& x, const std::optional<Tensor>& weight,
                      const std::optional<Tensor>& bias, const std::optional<Tensor>& mean,
                      const std::optional<Tensor>& variance, bool training, double momentum,
                      double eps) {
  const Tensor y = batch_norm(x, weight, bias, mean, variance, training, momentum, eps, false);
  if (!training) return {y, empty({0}, x.options()), empty({0}, x.options())};
  std::vector<int64_t> dims = dims_from(2, x.dim());
  dims.insert(dims.begin(), 0);
  const auto [batch_mean, rstd] = statistics(x, dims, eps, false);
  return {y, batch_mean, rstd};
}

IValue functional_norm_of_batch(const Call& a) {
  const auto copy = [](const Tensor& t) {
    const NoGradGuard no_grad;
    return t.detach().clone();
  };
  const Tensor mean = copy(a.tensor(3)), variance = copy(a.tensor(4));
  Tensors made = norm_of_batch(a.tensor(0), a.may_tensor(1), a.may_tensor(2), mean, variance,
                               a.truth(5), a.real(6), a.real(7));
  made.emplace_back(mean);
  made.emplace_back(variance);
  return result(std::move(made));
}

IValue drop(const Call& a) {
  const Tensor& x = a.tensor(0);
  const double p = a.real(1);
  RAMET_CHECK(p >= 0 && p <= 1, "native_dropout", "p: got ", p, ", expected from 0 to 1");
  const TensorOptions bools = TensorOptions(kBool).device(x.device());
  const bool train = a.may_truth(2).value_or(true);
  if (!train) return result(Tensors{x.clone(), ones(x.sizes(), bools)});
  Tensor mask;
  {
    const NoGradGuard no_grad;
    mask = bernoulli(full(x.sizes(), 1 - p, TensorOptions(kFloat).device(x.device()))).to(kBool);
  }
  const double scale = p == 1 ? 0 : 1 / (1 - p);
  return result(Tensors{mul(mul(x, mask), scale), mask});
}

// Attention, and the logarithm of each query's sum of exponentials.
IValue attend(const Call& a) {
  const Tensor &query = a.tensor(0), &key = a.tensor(1);
  const std::optional<Tensor> mask = a.may_tensor(5);
  const Tensor y = scaled_dot_product_attention(query, key, a.tensor(2), mask, a.real(3),
                                                a.truth(4), a.may_real(6));
  const NoGradGuard no_grad;
  const double scale = a.may_real(6).value_or(1 / std::sqrt(static_cast<double>(query.size(-1))));
  Tensor scores = mul(matmul(query.detach(), key.detach().transpose(-2, -1)), scale);
  const auto hide = [&](const Tensor& where) {
    scores = masked_fill(scores, where, -std::numeric_limits<double>::infinity());
  };
  if (a.truth(4)) {
    const Tensor all =
        ones({query.size(-2), key.size(-2)}, TensorOptions(kBool).device(query.device()));
    hide(logical_not(tril(all)));
  }
  if (mask && mask->scalar_type() == kBool) hide(logical_not(*mask));
  else if (mask) scores = add(scores, mask->detach());
  return result(Tensors{y, logsumexp(scores, {-1})});
}

IValue likelihood(const Call& a, bool image) {
  const Tensor &x = a.tensor(0), &target = a.tensor(1);
  const std::optional<Tensor> weight = a.may_tensor(2);
  const int64_t reduction = a.integer(3), ignored = a.integer(4);
  const Tensor y = image ? nll_loss2d(x, target, weight, reduction, ignored)
                         : nll_loss(x, target, weight, reduction, ignored);
  const NoGradGuard no_grad;
  Tensor total = zeros({}, x.options().requires_grad(false));
  if (reduction != 0) {
    const Tensor used = ne(target, ignored);
    const Tensor classes = masked_fill(target, logical_not(used), 0).reshape({-1});
    const Tensor each = weight ? weight->detach().index_select(0, classes).reshape(target.sizes())
                               : ones(target.sizes(), x.options().requires_grad(false));
    total = sum(mul(each, used));
  }
  return result(Tensors{y, total.to(x.scalar_type())});
}

Tensor permuted(const Call& a) {
  const IntArrayRef sizes = a.integers(0), order = a.integers(1);
  RAMET_CHECK(sizes.size() == order.size(), "empty_permuted", "physical_layout: got ", order,
              ", expected an order of the ", sizes.size(), " dimensions");
  std::vector<int64_t> inner, back(order.size(), -1);
  for (size_t i = 0; i < order.size(); ++i) {
    const int64_t d = order[i];
    RAMET_CHECK(
        d >= 0 && d < static_cast<int64_t>(order.size()) && back[static_cast<size_t>(d)] < 0,
        "empty_permuted", "physical_layout: got ", order, ", expected each of 0 to ", order.size(),
        ", without the last, once");
    inner.push_back(sizes[static_cast<size_t>(d)]);
    back[static_cast<size_t>(d)] = static_cast<int64_t>(i);
  }
  return empty(inner, a.options(2)).permute(back);
}

void check_range(const Call& a) {
  const IValue& size = a[0];
  const int64_t value = size.isInt() ? size.toInt() : size.toScalar().toLong();
  const int64_t least = a.may_integer(1).value_or(std::numeric_limits<int64_t>::min());
  const int64_t most = a.may_integer(2).value_or(std::numeric_limits<int64_t>::max());
  RAMET_CHECK(value >= least && value <= most, "sym_constrain_range", "got ", value,
              ", expected from ", least, " to ", most);
}

void check_metadata(const Call& a) {
  constexpr const char* kOp = "_assert_tensor_metadata";
  const Tensor& t = a.tensor(0);
  if (const auto sizes = a.may_integers(1))
    RAMET_CHECK(t.sizes() == *sizes, kOp, "got the size ", t.sizes(), ", expected ", *sizes);
  if (const auto strides = a.may_integers(2))
    RAMET_CHECK(t.strides() == *strides, kOp, "got the strides ", t.strides(), ", expected ",
                *strides);
  if (const auto dtype = a.may_dtype(3))
    RAMET_CHECK(t.scalar_type() == *dtype, kOp, "got the dtype ", t.scalar_type(), ", expected ",
                *dtype);
  if (const auto device = a.may_device(4))
    RAMET_CHECK(t.device().type() == device->type(), kOp, "got a tensor on ", t.device(),
                ", expected one on ", *device);
}

#define RAMET_NORM_OF_BATCH(name, mean, variance)                                          \
  RAMET_LINE("aten::" name "(Tensor input, Tensor? weight, Tensor? bias, " mean            \
             " running_mean, " variance                                                    \
             " running_var, bool training, float momentum, float "                         \
             "eps) -> (Tensor, Tensor, Tensor)",                                           \
             norm_of_batch(a.tensor(0), a.may_tensor(1), a.may_tensor(2), a.may_tensor(3), \
                           a.may_tensor(4), a.truth(5), a.real(6), a.real(7)))

const Line kCore[] = {
    RAMET_LINE("aten::native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, "
               "Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)",
               norm_of_layer(a)),
    RAMET_LINE("aten::native_group_norm(Tensor input, Tensor? weight, Tensor? bias, int N, int C, "
               "int HxW, int group, float eps) -> (Tensor, Tensor, Tensor)",
               norm_of_groups(a)),
    RAMET_NORM_OF_BATCH("native_batch_norm", "Tensor?", "Tensor?"),
    RAMET_NORM_OF_BATCH("_native_batch_norm_legit", "Tensor(a!)", "Tensor(b!)"),
    RAMET_LINE("aten::_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, "
               "Tensor? bias, bool training, float momentum, float eps) -> "
               "(Tensor, Tensor, Tensor)",
               norm_of_batch(a.tensor(0), a.may_tensor(1), a.may_tensor(2), std::nullopt,
                             std::nullopt, a.truth(3), a.real(4), a.real(5))),
    RAMET_LINE("aten::_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, "
               "Tensor? bias, Tensor running_mean, Tensor running_var, float momentum, float eps)"
               " -> (Tensor, Tensor, Tensor)",
               norm_of_batch(a.tensor(0), a.may_tensor(1), a.may_tensor(2), a.tensor(3),
                             a.tensor(4), false, a.real(5), a.real(6))),
    RAMET_LINE("aten::_native_batch_norm_legit_functional(Tensor input, Tensor? weight, "
               "Tensor? bias, Tensor running_mean, Tensor running_var, bool training, "
               "float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
               functional_norm_of_batch(a)),
    RAMET_LINE("aten::native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)",
               drop(a)),
    RAMET_LINE("aten::_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, "
               "Tensor value, float dropout_p=0., bool is_causal=False, *, "
               "Tensor? attn_mask=None, float? scale=None) -> (Tensor, Tensor)",
               attend(a)),
    RAMET_LINE("aten::nll_loss_forward(Tensor self, Tensor target, Tensor? weight, "
               "int reduction, int ignore_index) -> (Tensor, Tensor)",
               likelihood(a, false)),
    RAMET_LINE("aten::nll_loss2d_forward(Tensor self, Tensor target, Tensor? weight, "
               "int reduction, int ignore_index) -> (Tensor, Tensor)",
               likelihood(a, true)),
    RAMET_LINE("aten::_adaptive_avg_pool2d(Tensor self, int[2] output_size) -> Tensor",
               adaptive_avg_pool2d(a.tensor(0), a.integers(1))),
    RAMET_LINE("aten::_adaptive_avg_pool3d(Tensor self, int[3] output_size) -> Tensor",
               adaptive_avg_pool3d(a.tensor(0), a.integers(1))),
    RAMET_LINE("aten::_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor",
               cdist(a.tensor(0), a.tensor(1), a.real(2), a.may_integer(3))),
    RAMET_LINE("aten::_pdist_forward(Tensor self, float p=2.) -> Tensor",
               pdist(a.tensor(0), a.real(1))),
    RAMET_LINE("aten::_prelu_kernel(Tensor self, Tensor weight) -> Tensor",
               where(gt(a.tensor(0), 0), a.tensor(0), mul(a.tensor(1), a.tensor(0)))),
    RAMET_LINE("aten::_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
               index(a.tensor(0), a.optional_tensors(1))),
    RAMET_LINE("aten::_unsafe_index_put(Tensor self, Tensor?[] indices, Tensor values, "
               "bool accumulate=False) -> Tensor",
               index_put(a.tensor(0), a.optional_tensors(1), a.tensor(2), a.truth(3))),
    RAMET_LINE("aten::empty_permuted(int[] size, int[] physical_layout, *, " RAMET_OPTIONS
               ") -> Tensor",
               permuted(a)),
    RAMET_LINE_DO("aten::sym_constrain_range(Scalar size, *, int? min=None, int? max=None) -> ()",
                  check_range(a)),
    RAMET_LINE_DO(
        "aten::sym_constrain_range_for_size(Scalar size, *, int? min=None, int? max=None) -> ()",
        check_range(a)),
    RAMET_LINE_DO("aten::_assert_tensor_metadata(Tensor a, int[]? size=None, int[]? stride=None, "
                  "ScalarType? dtype=None, *, Device? device=None, Layout? layout=None) -> ()",
                  check_metadata(a)),
};

}  // namespace

Lines lines_of_core() { return kCore; }

}  // namespace ramet::script
