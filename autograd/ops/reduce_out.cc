// Out forms of reductions.
#include "autograd/ops/front/out_front.h"
#include "autograd/ops/reduce.h"

namespace ramet {

using namespace autograd;

namespace {

// Sums and products over dimensions compute in the dtype of `out`; a dtype given must be that.
ScalarType type_of_out(const char* op, const Tensor& out, std::optional<ScalarType> dtype) {
  check_defined(op, out);
  RAMET_CHECK(!dtype || *dtype == out.scalar_type(), op, "Expected out tensor to have dtype ",
              name_of(*dtype), ", but got ", name_of(out.scalar_type()));
  return out.scalar_type();
}

void check_truth_type(const char* op, const Tensor& out) {
  check_defined(op, out);
  RAMET_CHECK(out.scalar_type() == kBool || out.scalar_type() == kByte, op,
              "only supports bool tensor for result, got: ", name_of(out.scalar_type()));
}

template <class F>
std::tuple<Tensor&, Tensor&> extremum_out(const char* op, Tensor& values, Tensor& positions,
                                          const Tensor& x, const F& f) {
  check_defined(op, x);
  check_defined(op, values);
  check_defined(op, positions);
  check_out_history(op, values, recording(x));
  RAMET_CHECK(positions.scalar_type() == kLong, op, "Expected out tensor to have dtype ",
              name_of(kLong), ", but got ", name_of(positions.scalar_type()));
  check_out_device(op, positions, x.device());
  const NoGradGuard off;
  const auto [v, at] = f();
  deliver(op, values, v, OutType::kSame);
  deliver(op, positions, at, OutType::kSame);
  return {values, positions};
}

}  // namespace

// `call` sees `self` and the other parameters.
#define RAMET_OUT(op, type, call) \
  check_defined(op, self);        \
  return computed_out(op, out, recording(self), OutType::type, [&] { return call; })

#define RAMET_TOTAL_OUT(name)                                                            \
  Tensor& name##_out(Tensor& out, const Tensor& self, std::optional<ScalarType> dtype) { \
    RAMET_OUT(#name "_out", kSame, name(self, dtype));                                   \
  }
RAMET_TOTAL_OUT(sum)
RAMET_TOTAL_OUT(mean)
RAMET_TOTAL_OUT(prod)
#undef RAMET_TOTAL_OUT

Tensor& sum_out(Tensor& out, const Tensor& self, OptionalIntArrayRef dim, bool keepdim,
                std::optional<ScalarType> dtype) {
  const ScalarType type = type_of_out("sum_out", out, dtype);
  RAMET_OUT("sum_out", kSame, sum(self, dim, keepdim, type));
}
Tensor& mean_out(Tensor& out, const Tensor& self, OptionalIntArrayRef dim, bool keepdim,
                 std::optional<ScalarType> dtype) {
  const ScalarType type = type_of_out("mean_out", out, dtype);
  check_defined("mean_out", self);
  RAMET_CHECK(dtype || is_floating(self.scalar_type()), "mean_out",
              "could not infer output dtype. Input dtype must be floating point: got ",
              name_of(self.scalar_type()));
  RAMET_OUT("mean_out", kSame, mean(self, dim, keepdim, type));
}
Tensor& prod_out(Tensor& out, const Tensor& self, int64_t dim, bool keepdim,
                 std::optional<ScalarType> dtype) {
  const ScalarType type = type_of_out("prod_out", out, dtype);
  RAMET_OUT("prod_out", kSame, prod(self, dim, keepdim, type));
}
Tensor& cumsum_out(Tensor& out, const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  const ScalarType type = type_of_out("cumsum_out", out, dtype);
  RAMET_OUT("cumsum_out", kSame, cumsum(self, dim, type));
}

#define RAMET_SPREAD_OUT(name)                                                                \
  Tensor& name##_out(Tensor& out, const Tensor& self, OptionalIntArrayRef dim, bool unbiased, \
                     bool keepdim) {                                                          \
    RAMET_OUT(#name "_out", kCastable, ramet::name(self, dim, unbiased, keepdim));            \
  }                                                                                           \
  Tensor& name##_out(Tensor& out, const Tensor& self, OptionalIntArrayRef dim,                \
                     const std::optional<Scalar>& correction, bool keepdim) {                 \
    RAMET_OUT(#name "_out", kCastable, ramet::name(self, dim, correction, keepdim));          \
  }
RAMET_SPREAD_OUT(var)
RAMET_SPREAD_OUT(std)
#undef RAMET_SPREAD_OUT

#define RAMET_EXTREMUM_OUT(name)                                                                 \
  Tensor& name##_out(Tensor& out, const Tensor& self) {                                          \
    RAMET_OUT(#name "_out", kCastable, name(self));                                              \
  }                                                                                              \
  std::tuple<Tensor&, Tensor&> name##_out(Tensor& values, Tensor& positions, const Tensor& self, \
                                          int64_t dim, bool keepdim) {                           \
    return extremum_out(#name "_out", values, positions, self,                                   \
                        [&] { return name(self, dim, keepdim); });                               \
  }                                                                                              \
  Tensor& a##name##_out(Tensor& out, const Tensor& self, IntArrayRef dim, bool keepdim) {        \
    RAMET_OUT("a" #name "_out", kSame, a##name(self, dim, keepdim));                             \
  }                                                                                              \
  Tensor& arg##name##_out(Tensor& out, const Tensor& self, std::optional<int64_t> dim,           \
                          bool keepdim) {                                                        \
    RAMET_OUT("arg" #name "_out", kSame, arg##name(self, dim, keepdim));                         \
  }
RAMET_EXTREMUM_OUT(max)
RAMET_EXTREMUM_OUT(min)
#undef RAMET_EXTREMUM_OUT

Tensor& norm_out(Tensor& out, const Tensor& self, const Scalar& p) {
  RAMET_OUT("norm_out", kSame, norm(self, p));
}
Tensor& norm_out(Tensor& out, const Tensor& self, const std::optional<Scalar>& p,
                 ScalarType dtype) {
  RAMET_OUT("norm_out", kSame, norm(self, p, dtype));
}
Tensor& norm_out(Tensor& out, const Tensor& self, const std::optional<Scalar>& p, IntArrayRef dim,
                 bool keepdim) {
  RAMET_OUT("norm_out", kSame, norm(self, p, dim, keepdim));
}
Tensor& norm_out(Tensor& out, const Tensor& self, const std::optional<Scalar>& p, IntArrayRef dim,
                 bool keepdim, ScalarType dtype) {
  RAMET_OUT("norm_out", kSame, norm(self, p, dim, keepdim, dtype));
}
Tensor& logsumexp_out(Tensor& out, const Tensor& self, IntArrayRef dim, bool keepdim) {
  RAMET_OUT("logsumexp_out", kCastable, logsumexp(self, dim, keepdim));
}

#define RAMET_TRUTH_OUT(name)                                                                  \
  Tensor& name##_out(Tensor& out, const Tensor& self) {                                        \
    check_truth_type(#name "_out", out);                                                       \
    RAMET_OUT(#name "_out", kSame, name(self).to(out.scalar_type()));                          \
  }                                                                                            \
  Tensor& name##_out(Tensor& out, const Tensor& self, int64_t dim, bool keepdim) {             \
    check_truth_type(#name "_out", out);                                                       \
    RAMET_OUT(#name "_out", kSame, name(self, dim, keepdim).to(out.scalar_type()));            \
  }                                                                                            \
  Tensor& name##_out(Tensor& out, const Tensor& self, OptionalIntArrayRef dim, bool keepdim) { \
    check_truth_type(#name "_out", out);                                                       \
    RAMET_OUT(#name "_out", kSame, name(self, dim, keepdim).to(out.scalar_type()));            \
  }
RAMET_TRUTH_OUT(any)
RAMET_TRUTH_OUT(all)
#undef RAMET_TRUTH_OUT
#undef RAMET_OUT

}  // namespace ramet
