// Reductions: LibTorch's functions of the same names. `dim` lists the dimensions to reduce
// (negative ones count from the end; no list or an empty one: all), `keepdim` leaves them with
// extent 1. How sums are cut and rounded: Note [How a reduction is cut] in kernels/reduce/reduce.h.
// Unless stated otherwise differentiable to any order. Out forms stand at the end.
#pragma once
#include <optional>
#include <tuple>

#include "autograd/tensor.h"

namespace ramet {

/// Sum; integers and bool give int64. With `dtype` the elements are cast first. Of nothing: 0.
RAMET_API Tensor sum(const Tensor& self, std::optional<ScalarType> dtype = std::nullopt);
RAMET_API Tensor sum(const Tensor& self, OptionalIntArrayRef dim, bool keepdim = false,
                     std::optional<ScalarType> dtype = std::nullopt);
/// Mean of floating-point elements (or with a floating-point `dtype`). Of nothing: NaN.
RAMET_API Tensor mean(const Tensor& self, std::optional<ScalarType> dtype = std::nullopt);
RAMET_API Tensor mean(const Tensor& self, OptionalIntArrayRef dim, bool keepdim = false,
                      std::optional<ScalarType> dtype = std::nullopt);
/// Product; integers and bool give int64. Of nothing: 1.
RAMET_API Tensor prod(const Tensor& self, std::optional<ScalarType> dtype = std::nullopt);
RAMET_API Tensor prod(const Tensor& self, int64_t dim, bool keepdim = false,
                      std::optional<ScalarType> dtype = std::nullopt);

/// Squared deviations from the mean / max(0, count - correction); correction 1 unless given, 0 with
/// unbiased = false.
RAMET_API Tensor var(const Tensor& self, bool unbiased);
RAMET_API Tensor var(const Tensor& self, int64_t dim);
RAMET_API Tensor var(const Tensor& self, int dim);
RAMET_API Tensor var(const Tensor& self, OptionalIntArrayRef dim, bool unbiased,
                     bool keepdim = false);
RAMET_API Tensor var(const Tensor& self, OptionalIntArrayRef dim = std::nullopt,
                     const std::optional<Scalar>& correction = std::nullopt, bool keepdim = false);
/// The square root of var; its derivative where it is 0 is 0.
RAMET_API Tensor std(const Tensor& self, bool unbiased);
RAMET_API Tensor std(const Tensor& self, int64_t dim);
RAMET_API Tensor std(const Tensor& self, int dim);
RAMET_API Tensor std(const Tensor& self, OptionalIntArrayRef dim, bool unbiased,
                     bool keepdim = false);
RAMET_API Tensor std(const Tensor& self, OptionalIntArrayRef dim = std::nullopt,
                     const std::optional<Scalar>& correction = std::nullopt, bool keepdim = false);
/// (var, mean) and (std, mean) from one pass over the elements.
RAMET_API std::tuple<Tensor, Tensor> var_mean(const Tensor& self, bool unbiased);
RAMET_API std::tuple<Tensor, Tensor> var_mean(const Tensor& self, int64_t dim);
RAMET_API std::tuple<Tensor, Tensor> var_mean(const Tensor& self, int dim);
RAMET_API std::tuple<Tensor, Tensor> var_mean(const Tensor& self, OptionalIntArrayRef dim,
                                              bool unbiased, bool keepdim = false);
RAMET_API std::tuple<Tensor, Tensor> var_mean(
    const Tensor& self, OptionalIntArrayRef dim = std::nullopt,
    const std::optional<Scalar>& correction = std::nullopt, bool keepdim = false);
RAMET_API std::tuple<Tensor, Tensor> std_mean(const Tensor& self, bool unbiased);
RAMET_API std::tuple<Tensor, Tensor> std_mean(const Tensor& self, int64_t dim);
RAMET_API std::tuple<Tensor, Tensor> std_mean(const Tensor& self, int dim);
RAMET_API std::tuple<Tensor, Tensor> std_mean(const Tensor& self, OptionalIntArrayRef dim,
                                              bool unbiased, bool keepdim = false);
RAMET_API std::tuple<Tensor, Tensor> std_mean(
    const Tensor& self, OptionalIntArrayRef dim = std::nullopt,
    const std::optional<Scalar>& correction = std::nullopt, bool keepdim = false);

/// The largest (smallest) element; a NaN wins. An Error for an empty tensor. Equal extrema share
/// the gradient.
RAMET_API Tensor max(const Tensor& self);
RAMET_API Tensor min(const Tensor& self);
/// Values and their positions (int64): the first of equals. The gradient goes to that position.
RAMET_API std::tuple<Tensor, Tensor> max(const Tensor& self, int64_t dim, bool keepdim = false);
RAMET_API std::tuple<Tensor, Tensor> min(const Tensor& self, int64_t dim, bool keepdim = false);
/// Values alone; equal extrema share the gradient.
RAMET_API Tensor amax(const Tensor& self, IntArrayRef dim = {}, bool keepdim = false);
RAMET_API Tensor amin(const Tensor& self, IntArrayRef dim = {}, bool keepdim = false);
/// Positions (int64, not differentiable), of the flattened tensor where there is no `dim`. Not for
/// bool.
RAMET_API Tensor argmax(const Tensor& self, std::optional<int64_t> dim = std::nullopt,
                        bool keepdim = false);
RAMET_API Tensor argmin(const Tensor& self, std::optional<int64_t> dim = std::nullopt,
                        bool keepdim = false);

/// (sum |x|^p)^(1/p); p = 0 counts elements != 0, infinities give the extrema of |x|. Floating
/// point only.
RAMET_API Tensor norm(const Tensor& self, const Scalar& p = 2);
RAMET_API Tensor norm(const Tensor& self, const std::optional<Scalar>& p, ScalarType dtype);
RAMET_API Tensor norm(const Tensor& self, const std::optional<Scalar>& p, IntArrayRef dim,
                      bool keepdim = false);
RAMET_API Tensor norm(const Tensor& self, const std::optional<Scalar>& p, IntArrayRef dim,
                      bool keepdim, ScalarType dtype);
/// log sum exp(x), without overflow.
RAMET_API Tensor logsumexp(const Tensor& self, IntArrayRef dim, bool keepdim = false);

/// Is any (are all) != 0? bool (uint8 for uint8), not differentiable. Of nothing: false (true). An
/// empty list reduces no dimension, as in LibTorch.
RAMET_API Tensor any(const Tensor& self);
RAMET_API Tensor any(const Tensor& self, int64_t dim, bool keepdim = false);
RAMET_API Tensor any(const Tensor& self, OptionalIntArrayRef dim, bool keepdim = false);
RAMET_API Tensor all(const Tensor& self);
RAMET_API Tensor all(const Tensor& self, int64_t dim, bool keepdim = false);
RAMET_API Tensor all(const Tensor& self, OptionalIntArrayRef dim, bool keepdim = false);

/// Running sums along `dim`; integers and bool give int64.
RAMET_API Tensor cumsum(const Tensor& self, int64_t dim,
                        std::optional<ScalarType> dtype = std::nullopt);

// Out forms: `out` is resized where its shape differs; no history (an Error where one would be
// needed). Over a list of dimensions sum, mean, prod and cumsum compute in out's dtype (`dtype`, if
// given, must be that); var, std, logsumexp, max and min of all elements need an `out` that takes
// the result's dtype, any and all a bool or uint8 one, all others one of the result's dtype.
#define RAMET_TOTAL_OUT(name)                                   \
  RAMET_API Tensor& name##_out(Tensor& out, const Tensor& self, \
                               std::optional<ScalarType> dtype = std::nullopt);
#define RAMET_DIMS_OUT(name)                                                             \
  RAMET_API Tensor& name##_out(Tensor& out, const Tensor& self, OptionalIntArrayRef dim, \
                               bool keepdim = false,                                     \
                               std::optional<ScalarType> dtype = std::nullopt);
RAMET_TOTAL_OUT(sum)
RAMET_DIMS_OUT(sum)
RAMET_TOTAL_OUT(mean)
RAMET_DIMS_OUT(mean)
RAMET_TOTAL_OUT(prod)
#undef RAMET_TOTAL_OUT
#undef RAMET_DIMS_OUT
RAMET_API Tensor& prod_out(Tensor& out, const Tensor& self, int64_t dim, bool keepdim = false,
                           std::optional<ScalarType> dtype = std::nullopt);
RAMET_API Tensor& cumsum_out(Tensor& out, const Tensor& self, int64_t dim,
                             std::optional<ScalarType> dtype = std::nullopt);
#define RAMET_SPREAD_OUT(name)                                                           \
  RAMET_API Tensor& name##_out(Tensor& out, const Tensor& self, OptionalIntArrayRef dim, \
                               bool unbiased, bool keepdim = false);                     \
  RAMET_API Tensor& name##_out(                                                          \
      Tensor& out, const Tensor& self, OptionalIntArrayRef dim = std::nullopt,           \
      const std::optional<Scalar>& correction = std::nullopt, bool keepdim = false);
RAMET_SPREAD_OUT(var)
RAMET_SPREAD_OUT(std)
#undef RAMET_SPREAD_OUT
#define RAMET_EXTREMUM_OUT(name)                                 \
  RAMET_API Tensor& name##_out(Tensor& out, const Tensor& self); \
  RAMET_API std::tuple<Tensor&, Tensor&> name##_out(             \
      Tensor& values, Tensor& positions, const Tensor& self, int64_t dim, bool keepdim = false);
RAMET_EXTREMUM_OUT(max)
RAMET_EXTREMUM_OUT(min)
#undef RAMET_EXTREMUM_OUT
RAMET_API Tensor& amax_out(Tensor& out, const Tensor& self, IntArrayRef dim = {},
                           bool keepdim = false);
RAMET_API Tensor& amin_out(Tensor& out, const Tensor& self, IntArrayRef dim = {},
                           bool keepdim = false);
RAMET_API Tensor& argmax_out(Tensor& out, const Tensor& self,
                             std::optional<int64_t> dim = std::nullopt, bool keepdim = false);
RAMET_API Tensor& argmin_out(Tensor& out, const Tensor& self,
                             std::optional<int64_t> dim = std::nullopt, bool keepdim = false);
RAMET_API Tensor& norm_out(Tensor& out, const Tensor& self, const Scalar& p = 2);
RAMET_API Tensor& norm_out(Tensor& out, const Tensor& self, const std::optional<Scalar>& p,
                           ScalarType dtype);
RAMET_API Tensor& norm_out(Tensor& out, const Tensor& self, const std::optional<Scalar>& p,
                           IntArrayRef dim, bool keepdim = false);
RAMET_API Tensor& norm_out(Tensor& out, const Tensor& self, const std::optional<Scalar>& p,
                           IntArrayRef dim, bool keepdim, ScalarType dtype);
RAMET_API Tensor& logsumexp_out(Tensor& out, const Tensor& self, IntArrayRef dim,
                                bool keepdim = false);
#define RAMET_TRUTH_OUT(name)                                                            \
  RAMET_API Tensor& name##_out(Tensor& out, const Tensor& self);                         \
  RAMET_API Tensor& name##_out(Tensor& out, const Tensor& self, int64_t dim,             \
                               bool keepdim = false);                                    \
  RAMET_API Tensor& name##_out(Tensor& out, const Tensor& self, OptionalIntArrayRef dim, \
                               bool keepdim = false);
RAMET_TRUTH_OUT(any)
RAMET_TRUTH_OUT(all)
#undef RAMET_TRUTH_OUT

}  // namespace ramet
