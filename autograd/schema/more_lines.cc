// Operators that few programs use: second names, statistics, parts of normalisations.
#include "autograd/autograd.h"
#include "autograd/ops.h"
#include "autograd/schema/table_internal.h"
#include "autograd/schema/values_internal.h"

namespace ramet::script {
namespace {

// Of any number of shapes, two of which are the arguments.
IValue broadcast(const Call& a) {
  return broadcast_sizes("broadcast_shapes", a.integers(0), a.integers(1));
}
// PyTorch's older scatter with an operation: "add" or "multiply".
Tensor scatter_by(const Tensor& self, const Call& a, const Tensor& source) {
  const std::string& name = a.text(4);
  RAMET_CHECK(name == "add" || name == "multiply", "scatter", "reduce: got '", name,
              "', expected add or multiply");
  return scatter_reduce(self, a.integer(1), a.tensor(2), source, name == "add" ? "sum" : "prod");
}
Tensor filled_as(const Tensor& index, const Tensor& self, const Scalar& value) {
  return full(index.sizes(), value, self.options());
}
// The norm of each slice along `dim`, kept with extents of 1; -1 means one norm of all.
Tensor norm_except(const Tensor& v, int64_t power, int64_t dim) {
  if (dim == -1) return norm(v, power);
  std::vector<int64_t> others;
  for (int64_t d = 0; d < v.dim(); ++d)
    if (d != dim) others.push_back(d);
  return norm(v, power, others, true);
}

// x << n and x >> n.
Tensor shifted(const Tensor& x, const Call& a, bool left) {
  if (a[1].isScalar())
    return left ? bitwise_left_shift(x, a.number(1)) : bitwise_right_shift(x, a.number(1));
  return left ? bitwise_left_shift(x, a.tensor(1)) : bitwise_right_shift(x, a.tensor(1));
}

IValue bags(const Call& a) {
  const int64_t padding = a.integer(8);
  return result(embedding_bag(a.tensor(0), a.tensor(1), a.tensor(2), a.truth(3), a.integer(4),
                              a.truth(5), a.may_tensor(6), a.truth(7),
                              padding < 0 ? std::nullopt : std::optional<int64_t>(padding)));
}

// The factors of rrelu in training: 1 where x > 0, else uniform numbers.
Tensor factors(const Tensor& x, const Call& a) {
  const NoGradGuard off;
  const Tensor drawn = empty(x.sizes(), x.options().requires_grad(false));
  drawn.uniform_(a.number(2).toDouble(), a.number(3).toDouble(), a.may_generator(5));
  return masked_fill(drawn, gt(x, 0), 1);
}
Tensor leaky(const Tensor& x, const Call& a) {
  return leaky_relu(x, (a.number(2).toDouble() + a.number(3).toDouble()) / 2);
}
Tensor rrelu_with(const Call& a) {
  if (!a.truth(4)) return leaky(a.tensor(0), a);
  const Tensor noise = factors(a.tensor(0), a);
  a.tensor(1).copy_(noise);
  return mul(a.tensor(0), noise);
}

IValue rrelu_and_noise(const Call& a) {
  if (!a.truth(4)) return result(std::vector<IValue>{leaky(a.tensor(0), a), a.tensor(1).clone()});
  const Tensor noise = factors(a.tensor(0), a);
  return result(std::vector<IValue>{mul(a.tensor(0), noise), noise});
}

// The sum along `sumdim` of the product of three tensors, with dimensions of 1 put in.
Tensor trilinear(const Call& a) {
  const auto expanded = [&](size_t i) {
    Tensor t = a.tensor(i);
    std::vector<int64_t> dims = a.integers(i + 3).vec();
    std::sort(dims.begin(), dims.end());
    for (const int64_t d : dims) t = t.unsqueeze(d);
    return t;
  };
  const Tensor product = mul(mul(expanded(0), expanded(1)), expanded(2));
  const IntArrayRef dims = a.integers(6);
  return dims.empty() ? product : sum(product, dims);
}

#define RAMET_SHIFT(name, in_place, left)                                                  \
  RAMET_LINE("aten::" name ".Tensor(Tensor self, Tensor other) -> Tensor",                 \
             shifted(a.tensor(0), a, left)),                                               \
      RAMET_LINE("aten::" name ".Scalar(Tensor self, Scalar other) -> Tensor",             \
                 shifted(a.tensor(0), a, left)),                                           \
      RAMET_LINE("aten::" in_place ".Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)", \
                 a.tensor(0).copy_(shifted(a.tensor(0), a, left))),                        \
      RAMET_LINE("aten::" in_place ".Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)", \
                 a.tensor(0).copy_(shifted(a.tensor(0), a, left)))

#define RAMET_SPECIAL(name, function) \
  RAMET_LINE("aten::special_" name "(Tensor self) -> Tensor", function(a.tensor(0)))

const Line kMore[] = {
    RAMET_SHIFT("__lshift__", "__ilshift__", true),
    RAMET_SHIFT("__rshift__", "__irshift__", false),
    RAMET_LINE("aten::_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, "
               "bool scale_grad_by_freq=False, int mode=0, bool sparse=False, "
               "Tensor? per_sample_weights=None, bool include_last_offset=False, "
               "int padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)",
               bags(a)),
    RAMET_LINE("aten::_embedding_bag_forward_only(Tensor weight, Tensor indices, Tensor offsets, "
               "bool scale_grad_by_freq=False, int mode=0, bool sparse=False, "
               "Tensor? per_sample_weights=None, bool include_last_offset=False, "
               "int padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)",
               bags(a)),
    RAMET_LINE("aten::rrelu_with_noise(Tensor self, Tensor(b!) noise, Scalar lower=0.125, "
               "Scalar upper=0.33333333333333331, bool training=False, "
               "Generator? generator=None) -> Tensor",
               rrelu_with(a)),
    RAMET_LINE("aten::rrelu_with_noise_functional(Tensor self, Tensor noise, Scalar lower=0.125, "
               "Scalar upper=0.33333333333333331, bool training=False, "
               "Generator? generator=None) -> (Tensor, Tensor noise_out)",
               rrelu_and_noise(a)),
    RAMET_LINE("aten::_trilinear(Tensor i1, Tensor i2, Tensor i3, int[] expand1, int[] expand2, "
               "int[] expand3, int[] sumdim, int unroll_dim=1) -> Tensor",
               trilinear(a)),
    RAMET_LINE("aten::select_copy.int(Tensor self, int dim, int index) -> Tensor",
               select(a.tensor(0), a.integer(1), a.integer(2)).clone()),
    RAMET_LINE("aten::broadcast_shapes(int[] a, int[] b) -> int[]", broadcast(a)),
    RAMET_LINE("aten::_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
               softmax(a.tensor(0), a.integer(1),
                       a.truth(2) ? std::optional<ScalarType>(kFloat) : std::nullopt)),
    RAMET_LINE("aten::_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
               log_softmax(a.tensor(0), a.integer(1),
                           a.truth(2) ? std::optional<ScalarType>(kFloat) : std::nullopt)),
    RAMET_LINE("aten::special_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
               softmax(a.tensor(0), a.integer(1), a.may_dtype(2))),
    RAMET_LINE("aten::special_log_softmax(Tensor self, int dim, *, ScalarType? dtype=None) -> "
               "Tensor",
               log_softmax(a.tensor(0), a.integer(1), a.may_dtype(2))),
    RAMET_LINE("aten::special_logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
               logsumexp(a.tensor(0), a.integers(1), a.truth(2))),
    RAMET_SPECIAL("expit", sigmoid),
    RAMET_SPECIAL("erf", erf),
    RAMET_SPECIAL("erfc", erfc),
    RAMET_SPECIAL("erfinv", erfinv),
    RAMET_SPECIAL("exp2", exp2),
    RAMET_SPECIAL("expm1", expm1),
    RAMET_SPECIAL("log1p", log1p),
    RAMET_SPECIAL("gammaln", lgamma),
    RAMET_SPECIAL("digamma", digamma),
    RAMET_SPECIAL("psi", digamma),
    RAMET_SPECIAL("sinc", sinc),
    RAMET_LINE("aten::special_xlogy(Tensor self, Tensor other) -> Tensor",
               xlogy(a.tensor(0), a.tensor(1))),
    RAMET_LINE("aten::fill.Scalar(Tensor self, Scalar value) -> Tensor",
               full_like(a.tensor(0), a.number(1))),
    RAMET_LINE("aten::fill.Tensor(Tensor self, Tensor value) -> Tensor",
               a.tensor(1).to(a.tensor(0)).expand(a.tensor(0).sizes()).clone()),
    RAMET_LINE("aten::copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor",
               a.tensor(1).to(a.tensor(0)).expand(a.tensor(0).sizes()).clone()),
    RAMET_LINE("aten::scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
               scatter(a.tensor(0), a.integer(1), a.tensor(2), a.tensor(3))),
    RAMET_LINE("aten::scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
               scatter(a.tensor(0), a.integer(1), a.tensor(2), a.number(3))),
    RAMET_LINE("aten::scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, "
               "str reduce) -> Tensor",
               scatter_by(a.tensor(0), a, a.tensor(3))),
    RAMET_LINE("aten::scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, "
               "str reduce) -> Tensor",
               scatter_by(a.tensor(0), a, filled_as(a.tensor(2), a.tensor(0), a.number(3)))),
    RAMET_LINE("aten::scatter_.src(Tensor(a!) self, int dim, Tensor index, Tensor src) -> "
               "Tensor(a!)",
               a.tensor(0).scatter_(a.integer(1), a.tensor(2), a.tensor(3))),
    RAMET_LINE("aten::scatter_.value(Tensor(a!) self, int dim, Tensor index, Scalar value) -> "
               "Tensor(a!)",
               a.tensor(0).scatter_(a.integer(1), a.tensor(2), a.number(3))),
    RAMET_LINE("aten::scatter_.reduce(Tensor(a!) self, int dim, Tensor index, Tensor src, *, "
               "str reduce) -> Tensor(a!)",
               a.tensor(0).copy_(scatter_by(a.tensor(0), a, a.tensor(3)))),
    RAMET_LINE("aten::scatter_.value_reduce(Tensor(a!) self, int dim, Tensor index, Scalar value, "
               "*, str reduce) -> Tensor(a!)",
               a.tensor(0).copy_(
                   scatter_by(a.tensor(0), a, filled_as(a.tensor(2), a.tensor(0), a.number(3))))),
    RAMET_FUNCTION_LINE("aten::norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor",
                        script::norm_except),
    RAMET_LINE("aten::_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor",
               mul(a.tensor(0), div(a.tensor(1), norm_except(a.tensor(0), 2, a.integer(2))))),
    RAMET_LINE("aten::pin_memory(Tensor(a) self, Device? device=None) -> Tensor(a)",
               a.tensor(0).pin_memory()),
    RAMET_FUNCTION_LINE(
        "aten::unique_dim_consecutive(Tensor self, int dim, bool return_inverse=False, "
        "bool return_counts=False) -> (Tensor, Tensor, Tensor)",
        unique_dim_consecutive),
    RAMET_FUNCTION_LINE("aten::native_channel_shuffle(Tensor self, int groups) -> Tensor",
                        native_channel_shuffle),
    RAMET_LINE("aten::trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
               trapezoid(a.tensor(0), a.tensor(1), a.integer(2))),
    RAMET_LINE("aten::trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor",
               trapezoid(a.tensor(0), a.number(1), a.integer(2))),
    RAMET_LINE("aten::cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
               cumulative_trapezoid(a.tensor(0), a.tensor(1), a.integer(2))),
    RAMET_LINE("aten::cumulative_trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor",
               cumulative_trapezoid(a.tensor(0), a.number(1), a.integer(2))),
    RAMET_LINE("aten::gradient.scalarint(Tensor self, *, Scalar? spacing=None, int? dim=None, "
               "int edge_order=1) -> Tensor[]",
               gradient(a.tensor(0), a.may_number(1), a.may_integer(2), a.integer(3))),
    RAMET_LINE("aten::histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, "
               "bool density=False) -> (Tensor hist, Tensor bin_edges)",
               histogram(a.tensor(0), a.tensor(1), a.may_tensor(2), a.truth(3))),
    RAMET_LINE("aten::histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, "
               "Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)",
               histogram(a.tensor(0), a.integer(1), a.may_reals(2), a.may_tensor(3), a.truth(4))),
    RAMET_LINE("aten::segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, "
               "Tensor? indices=None, Tensor? offsets=None, int axis=0, bool unsafe=False, "
               "Scalar? initial=None) -> Tensor",
               segment_reduce(a.tensor(0), a.text(1), a.may_tensor(2), a.may_tensor(3),
                              a.may_tensor(4), a.integer(5), a.truth(6), a.may_number(7))),
    RAMET_LINE("aten::is_neg(Tensor self) -> bool", a.tensor(0).is_neg()),
    RAMET_LINE("aten::is_conj(Tensor self) -> bool", a.tensor(0).is_conj()),
    RAMET_LINE("aten::is_set_to(Tensor self, Tensor tensor) -> bool",
               a.tensor(0).is_set_to(a.tensor(1))),
    RAMET_LINE("aten::_shape_as_tensor(Tensor self) -> Tensor",
               tensor(a.tensor(0).sizes(), TensorOptions(kLong))),
};

}  // namespace

Lines lines_of_more() { return kMore; }

}  // namespace ramet::script
