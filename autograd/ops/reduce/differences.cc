#include "autograd/ops/reduce/differences.h"

#include "autograd/ops/front/common_internal.h"
#include "autograd/ops/pointwise/arithmetic.h"
#include "autograd/ops/shape/cat.h"
#include "autograd/ops/shape/view_parts.h"

namespace ramet {

using namespace autograd;

namespace {

constexpr const char* kOp = "gradient";
using Dims = std::vector<int64_t>;

Dims all_dims(const Tensor& self) {
  check_defined(kOp, self);
  Dims dims;
  for (int64_t d = 0; d < self.dim(); ++d) dims.push_back(d);
  return dims;
}
Dims given(const Tensor& self, std::optional<int64_t> dim) {
  return dim ? Dims{*dim} : all_dims(self);
}

// The dimensions, checked and wrapped. `spacings`: the length of a list of spacings.
Dims checked(const Tensor& self, const Dims& dims, std::optional<size_t> spacings,
             int64_t edge_order) {
  check_defined(kOp, self);
  RAMET_CHECK(!is_unsigned(self.scalar_type()) || self.scalar_type() == kBool, kOp,
              "does not support ", short_name_of(self.scalar_type()), ": got ", describe(self));
  RAMET_CHECK(edge_order == 1 || edge_order == 2, kOp,
              "only supports edge_order=1 and edge_order=2: got ", edge_order);
  RAMET_CHECK(!spacings || *spacings == dims.size(), kOp,
              "expected spacing to be unspecified, a scalar or a list as long as that of the "
              "dimensions: got a spacing argument of length ",
              spacings.value_or(0), " and ", dims.size(), " dimensions");
  Dims out;
  std::vector<bool> seen(static_cast<size_t>(self.dim()) + 1);
  for (const int64_t dim : dims) {
    const int64_t d = wrap_dim(kOp, dim, self.dim());
    RAMET_CHECK(!seen[static_cast<size_t>(d)], kOp, "dim ", d,
                " appears multiple times in the list of dims");
    seen[static_cast<size_t>(d)] = true;
    RAMET_CHECK(self.dim() > 0 && self.size(d) >= edge_order + 1, kOp,
                "expected each dimension size to be at least edge_order+1: got ", describe(self),
                ", dimension ", d, " and edge_order ", edge_order);
    out.push_back(d);
  }
  return out;
}

// The samples of dimension d from position `at` on (negative: from the end), all but `fewer` of
// them.
Tensor part(const Tensor& x, int64_t d, int64_t at, int64_t fewer) {
  return x.narrow(d, at, x.size(d) - fewer);
}
Tensor one(const Tensor& x, int64_t d, int64_t at) { return x.narrow(d, at, 1); }

// The derivative of samples with distance h.
Tensor even(const Tensor& x, int64_t d, const Scalar& h, int64_t edge_order) {
  const double step = h.toDouble();
  const auto edge = [&](int64_t a, int64_t b, int64_t c, double sign) {
    if (edge_order == 1) return one(x, d, sign > 0 ? b : a).sub(one(x, d, sign > 0 ? a : b)).div(h);
    return one(x, d, a)
        .mul(-1.5 * sign / step)
        .add(one(x, d, b).mul(2 * sign / step))
        .add(one(x, d, c).mul(-0.5 * sign / step));
  };
  const Tensor inner = part(x, d, 2, 2).sub(part(x, d, 0, 2)).div(2 * step);
  return cat({edge(0, 1, 2, 1), inner, edge(-1, -2, -3, -1)}, d);
}

// The derivative of samples at these coordinates.
Tensor uneven(const Tensor& x, int64_t d, const Tensor& at, int64_t edge_order) {
  std::vector<int64_t> along(static_cast<size_t>(x.dim()), 1);
  along[static_cast<size_t>(d)] = -1;
  const Tensor steps = part(at, 0, 1, 1).sub(part(at, 0, 0, 1)).reshape(along);
  const Tensor before = part(steps, d, 0, 1), behind = part(steps, d, 1, 1),
               both = before.add(behind);
  const Tensor inner = part(x, d, 0, 2)
                           .mul(behind.neg().div(before.mul(both)))
                           .add(part(x, d, 1, 2).mul(behind.sub(before).div(before.mul(behind))))
                           .add(part(x, d, 2, 2).mul(before.div(behind.mul(both))));
  // The derivative at sample a. Sample b lies `near` from it, and c lies `next` from b.
  const auto edge = [&](int64_t a, int64_t b, int64_t c, const Tensor& near, const Tensor& next) {
    const Tensor far = near.add(next);
    return one(x, d, a)
        .mul(near.add(far).neg().div(near.mul(far)))
        .add(one(x, d, b).mul(far.div(near.mul(next))))
        .add(one(x, d, c).mul(near.neg().div(next.mul(far))));
  };
  if (edge_order == 1)
    return cat({one(x, d, 1).sub(one(x, d, 0)).div(one(steps, d, 0)), inner,
                one(x, d, -1).sub(one(x, d, -2)).div(one(steps, d, -1))},
               d);
  return cat({edge(0, 1, 2, one(steps, d, 0), one(steps, d, 1)), inner,
              edge(-1, -2, -3, one(steps, d, -1).neg(), one(steps, d, -2).neg())},
             d);
}

std::vector<Tensor> by_numbers(const Tensor& self, const std::vector<Scalar>& spacing,
                               const Dims& dims, int64_t edge_order) {
  std::vector<Tensor> out;
  for (size_t i = 0; i < dims.size(); ++i)
    out.push_back(even(self, dims[i], spacing[i], edge_order));
  return out;
}
std::vector<Tensor> by_number(const Tensor& self, const Scalar& spacing, const Dims& dims,
                              int64_t edge_order) {
  const Dims d = checked(self, dims, std::nullopt, edge_order);
  return by_numbers(self, std::vector<Scalar>(d.size(), spacing), d, edge_order);
}

std::vector<Tensor> gradient_of(const Tensor& self, ArrayRef<Scalar> spacing, const Dims& dims,
                                int64_t edge_order) {
  return by_numbers(self, spacing.vec(), checked(self, dims, spacing.size(), edge_order),
                    edge_order);
}
std::vector<Tensor> gradient_of(const Tensor& self, TensorList spacing, const Dims& dims,
                                int64_t edge_order) {
  const Dims d = checked(self, dims, spacing.size(), edge_order);
  for (size_t i = 0; i < d.size(); ++i) {
    check_defined(kOp, spacing[i]);
    RAMET_CHECK(spacing[i].dim() == 1 && spacing[i].size(0) == self.size(d[i]), kOp,
                "expected each element of spacing to be a vector of as many coordinates as there "
                "are samples: got ",
                describe(spacing[i]), " for dimension ", d[i], " of ", describe(self));
    check_same_device(kOp, self, spacing[i]);
  }
  std::vector<Tensor> out;
  for (size_t i = 0; i < d.size(); ++i) out.push_back(uneven(self, d[i], spacing[i], edge_order));
  return out;
}

}  // namespace

std::vector<Tensor> gradient(const Tensor& self, const std::optional<Scalar>& spacing,
                             std::optional<int64_t> dim, int64_t edge_order) {
  return by_number(self, spacing.value_or(Scalar(1)), given(self, dim), edge_order);
}
std::vector<Tensor> gradient(const Tensor& self, const Scalar& spacing, IntArrayRef dim,
                             int64_t edge_order) {
  return by_number(self, spacing, dim.vec(), edge_order);
}
std::vector<Tensor> gradient(const Tensor& self, IntArrayRef dim, int64_t edge_order) {
  return by_number(self, 1, dim.vec(), edge_order);
}
std::vector<Tensor> gradient(const Tensor& self, ArrayRef<Scalar> spacing,
                             std::optional<int64_t> dim, int64_t edge_order) {
  return gradient_of(self, spacing, given(self, dim), edge_order);
}
std::vector<Tensor> gradient(const Tensor& self, ArrayRef<Scalar> spacing, IntArrayRef dim,
                             int64_t edge_order) {
  return gradient_of(self, spacing, dim.vec(), edge_order);
}
std::vector<Tensor> gradient(const Tensor& self, TensorList spacing, std::optional<int64_t> dim,
                             int64_t edge_order) {
  return gradient_of(self, spacing, given(self, dim), edge_order);
}
std::vector<Tensor> gradient(const Tensor& self, TensorList spacing, IntArrayRef dim,
                             int64_t edge_order) {
  return gradient_of(self, spacing, dim.vec(), edge_order);
}

}  // namespace ramet
