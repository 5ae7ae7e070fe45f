// The mask has one byte for each element. It is drawn and applied in one pass, and kept for the
// gradient.
#include "autograd/ops/random/dropout.h"

#include <cmath>

#include "autograd/ops/front/pointwise_internal.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/pointwise/arithmetic.h"
#include "autograd/ops/random/mersenne_internal.h"
#include "kernels/random/random.h"

namespace ramet {

using namespace autograd;

namespace {

void check_dropout(const char* op, const Tensor& x, double p, bool train) {
  check_defined(op, x);
  const bool drops = train && p > 0;  // a call that returns its input takes every dtype
  RAMET_CHECK(!drops || is_floating(x.scalar_type()), op, "only for floating-point dtypes: got ",
              describe(x));
  RAMET_CHECK(p >= 0 && p <= 1, op, "dropout probability has to be between 0 and 1, but got ", p);
}
double scale_of(double p) { return p == 1 ? 0 : 1 / (1 - p); }
// LibTorch divides in the tensor's type.
double scale_of(double p, ScalarType dtype) {
  if (p == 1) return 0;
  const float narrow = 1 / static_cast<float>(1 - p);
  switch (dtype) {
    case kHalf: return Half(narrow);
    case kBFloat16: return BFloat16(narrow);
    case kFloat: return narrow;
    default: return 1 / (1 - p);
  }
}

bool draws_from_mersenne(const Tensor& x) { return ramet::draws_from_mersenne(x.device(), {}); }
// New: 1 with probability 1 - p, else 0. LibTorch draws in the order of x's memory, and for p = 1
// nothing.
Tensor kept_by_mersenne(const char* op, const Tensor& x, double p, ScalarType dtype) {
  Tensor kept = empty_like(x.detach(), TensorOptions(dtype));
  if (p == 1) kept.zero_();
  else mersenne::bernoulli(op, kept, 1 - p, {});
  return kept;
}

// y = x * mask * scale, contiguous; returns scale, about 1 / (1 - p). x has the elements of
// `input`, row by row; y may be x.
double drop(const Tensor& input, const Tensor& x, const Tensor& y, const Tensor& mask, double p) {
  if (draws_from_mersenne(x)) {
    const ScalarType dtype = x.scalar_type();
    const double scale = scale_of(p, dtype);
    copy_values(mask, kept_by_mersenne("dropout", input, p, kBool));
    pointwise_into(RAMET_POINTWISE(scaled_product), y, compute_type(dtype), x, mask, {}, scale);
    return scale;
  }
  const PhiloxKey key = reserve_random(x.device(), x.sizes(), {});
  kernels::dropout_forward(x.stream(), {x.ptr(),
                                        y.ptr(),
                                        mask.ptr(),
                                        x.numel(),
                                        {key.seed, key.offset, key.base},
                                        1 - p,
                                        scale_of(p),
                                        x.scalar_type()});
  return scale_of(p);
}

// One number for each channel: 1 with probability 1 - p, else 0.
Tensor channels_kept(const char* op, const Tensor& x, double p) {
  RAMET_CHECK(x.dim() >= 2, op, "Feature dropout requires at least 2 dimensions in the input: got ",
              describe(x));
  std::vector<int64_t> size(static_cast<size_t>(x.dim()), 1);
  size[0] = x.size(0);
  size[1] = x.size(1);
  Tensor noise(TensorBase::empty(size, x.scalar_type(), x.device()));
  if (p == 1 && draws_from_mersenne(x)) noise.zero_();
  else noise.bernoulli_(1 - p);
  return noise;
}
// 0 or 1 / (1 - p) for each channel.
Tensor channel_noise(const char* op, const Tensor& x, double p) {
  const Tensor noise = channels_kept(op, x, p);
  if (p < 1 && draws_from_mersenne(x)) {
    const NoGradGuard off;
    return noise.div_(1 - p);
  }
  pointwise_into(RAMET_POINTWISE(mul), noise, compute_type(x.scalar_type()), noise,
                 Scalar(scale_of(p)));
  return noise;
}

// The factors and terms of alpha dropout.
struct AlphaNoise {
  Tensor factor, term;
};
AlphaNoise alpha_noise(const Tensor& kept, double p) {
  const NoGradGuard off;
  if (p == 1) return {mul(kept, 0), mul(kept, 0)};
  constexpr double kAlpha = 1.7580993408473766;  // -selu(-infinity)
  const double a = 1 / std::sqrt((kAlpha * kAlpha * p + 1) * (1 - p));
  return {mul(kept, a), kept.sub(1).mul_(kAlpha * a).add_(kAlpha * a * p)};
}
Tensor elements_kept(const Tensor& x, double p) {
  if (draws_from_mersenne(x)) return kept_by_mersenne("alpha_dropout", x, p, x.scalar_type());
  Tensor kept(TensorBase::empty(x.sizes(), x.scalar_type(), x.device()));
  kept.bernoulli_(1 - p);
  return kept;
}

template <class Kept>
Tensor alpha_dropped(const char* op, const Tensor& x, double p, bool train, const Kept& kept) {
  check_dropout(op, x, p, train);
  if (!train || p == 0 || x.numel() == 0) return x;
  const AlphaNoise noise = alpha_noise(kept(x, p), p);
  return mul(x, noise.factor).add(noise.term);
}
template <class Kept>
Tensor& alpha_drop(const char* op, Tensor& self, double p, bool train, const Kept& kept) {
  check_dropout(op, self, p, train);
  if (!train || p == 0 || self.numel() == 0) return self;
  check_inplace(op, self);
  const AlphaNoise noise = alpha_noise(kept(self, p), p);
  return self.mul_(noise.factor).add_(noise.term);
}

}  // namespace

Tensor native_dropout_backward(const Tensor& g, const Tensor& mask, double scale) {
  common_device("native_dropout_backward", g, mask);
  RAMET_CHECK(same_sizes(g.impl(), mask.impl()), "native_dropout_backward",
              "expected a mask of the gradient's sizes: got ", describe(g), " and ",
              describe(mask));
  if (!is_floating(g.scalar_type()))
    return native_dropout_backward(g.to(get_default_dtype()), mask, scale);
  Tensor out = pointwise_result("native_dropout_backward", g.scalar_type(), g, &mask);
  pointwise_into(RAMET_POINTWISE(scaled_product), out, compute_type(g.scalar_type()), g, mask, {},
                 scale);
  if (!recording(g)) return out;
  return record("NativeDropoutBackwardBackward0", {g}, std::move(out),
                [mask, scale](const Node&, const Tensor& v) {
                  return native_dropout_backward(v, mask, scale);
                });
}

Tensor dropout(const Tensor& input, double p, bool train) {
  check_dropout("dropout", input, p, train);
  if (!train || p == 0 || input.numel() == 0) return input;
  // Random numbers go by row-major index.
  const Tensor x = input.raw_contiguous() ? input : input.detach().contiguous();
  Tensor y(TensorBase::empty(x.sizes(), x.scalar_type(), x.device())),
      mask(TensorBase::empty(x.sizes(), kBool, x.device()));
  const double scale = drop(input, x, y, mask, p);
  if (!recording(input)) return y;
  return record("NativeDropoutBackward0", {input}, std::move(y),
                [mask, scale](const Node&, const Tensor& g) {
                  return native_dropout_backward(g, mask, scale);
                });
}

Tensor& dropout_(Tensor& self, double p, bool train) {
  check_dropout("dropout_", self, p, train);
  if (!train || p == 0 || self.numel() == 0) return self;
  check_inplace("dropout_", self);
  const Tensor mask(TensorBase::empty(self.sizes(), kBool, self.device()));
  double scale;
  if (self.raw_contiguous()) {
    scale = drop(self, self, self, mask, p);
  } else {
    const Tensor x = self.detach().contiguous();
    scale = drop(self, x, x, mask, p);
    copy_values(self, x);
  }
  wrote("dropout_", self);
  if (recording(self)) {
    record_inplace("NativeDropoutBackward0", {self}, self,
                   [mask, scale](const Node&, const Tensor& g) {
                     return native_dropout_backward(g, mask, scale);
                   });
  }
  return self;
}

Tensor feature_dropout(const Tensor& input, double p, bool train) {
  check_dropout("feature_dropout", input, p, train);
  if (!train || p == 0 || input.numel() == 0) return input;
  return mul(input, channel_noise("feature_dropout", input, p));
}
Tensor& feature_dropout_(Tensor& self, double p, bool train) {
  check_dropout("feature_dropout_", self, p, train);
  if (!train || p == 0 || self.numel() == 0) return self;
  return self.mul_(channel_noise("feature_dropout_", self, p));
}

Tensor alpha_dropout(const Tensor& input, double p, bool train) {
  return alpha_dropped("alpha_dropout", input, p, train, elements_kept);
}
Tensor& alpha_dropout_(Tensor& self, double p, bool train) {
  return alpha_drop("alpha_dropout_", self, p, train, elements_kept);
}
Tensor feature_alpha_dropout(const Tensor& input, double p, bool train) {
  constexpr const char* kOp = "feature_alpha_dropout";
  return alpha_dropped(kOp, input, p, train,
                       [](const Tensor& x, double q) { return channels_kept(kOp, x, q); });
}
Tensor& feature_alpha_dropout_(Tensor& self, double p, bool train) {
  constexpr const char* kOp = "feature_alpha_dropout_";
  return alpha_drop(kOp, self, p, train,
                    [](const Tensor& x, double q) { return channels_kept(kOp, x, q); });
}

}  // namespace ramet
