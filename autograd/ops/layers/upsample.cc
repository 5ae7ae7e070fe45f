#include "autograd/ops/layers/upsample.h"

#include <algorithm>

#include "autograd/ops/front/image_internal.h"
#include "autograd/ops/front/out_internal.h"
#include "autograd/ops/pointwise/unary.h"
#include "autograd/ops/shape/view.h"
#include "kernels/image/resample.h"
#include "runtime/base/checked_size.h"
#include "runtime/base/thread_pool.h"

namespace ramet {

using namespace autograd;

namespace {

using kernels::ResampleAxis;
using kernels::Resampling;

constexpr ResampleAxis kNoAxis{1, 1, 0, Resampling::kNone, false};

struct Plan {
  int64_t n, c;
  std::array<ResampleAxis, 3> axes;  // the last `dims` of d, h, w
  int dims;
  ImageLayout layout;
  const char *forward, *backward;

  const ResampleAxis& axis(int d) const { return axes[static_cast<size_t>(d)]; }
  int64_t from(int d, bool back) const { return back ? axis(d).out : axis(d).in; }
  int64_t to(int d, bool back) const { return back ? axis(d).in : axis(d).out; }
};

// Runs the kernel on dense memory.
Tensor pass(const Tensor& x, Tensor y, int64_t planes, int64_t inner, const ResampleAxis& h,
            const ResampleAxis& w, bool back) {
  kernels::ResampleArgs args{planes, inner, h, w, back, x.ptr(), y.ptr(), nullptr, x.scalar_type()};
  const Tensor work =
      scratch(kernels::resample_workspace(args, x.is_cpu() ? max_parallel_slots() : 0), x.device());
  args.workspace = pointer(work);
  kernels::resample(x.stream(), args);
  return y;
}

// No history. x is the plan's input, or with `back` a gradient of its output.
Tensor computed(const Tensor& x, const Plan& p, bool back) {
  const NoGradGuard off;
  const ScalarType t = x.scalar_type();
  const int64_t d = p.to(0, back), h = p.to(1, back), w = p.to(2, back);
  if (p.dims == 2) {
    const bool inside = p.layout != ImageLayout::kRows;
    Tensor y = empty_image(p.layout, p.n, p.c, h, w, t, x.device());
    if (y.numel() == 0) return y;
    const Tensor look = inside ? channels_innermost(x) : x.shallow().contiguous();
    return pass(look, std::move(y), inside ? p.n : p.n * p.c, inside ? p.c : 1, p.axis(1),
                p.axis(2), back);
  }
  const auto made = [&](IntArrayRef sizes) {
    return Tensor(TensorBase::empty(sizes, t, x.device()));
  };
  const Tensor look = x.shallow().contiguous();
  if (p.dims == 1) {
    Tensor y = made({p.n, p.c, w});
    return y.numel() == 0 ? y : pass(look, std::move(y), p.n * p.c, 1, kNoAxis, p.axis(2), back);
  }
  Tensor y = made({p.n, p.c, d, h, w});
  if (y.numel() == 0) return y;
  const auto down = [&](const Tensor& from, Tensor to, int64_t inner) {
    return pass(from, std::move(to), p.n * p.c, inner, p.axis(0), kNoAxis, back);
  };
  const auto across = [&](const Tensor& from, Tensor to, int64_t depth) {
    return pass(from, std::move(to), p.n * p.c * depth, 1, p.axis(1), p.axis(2), back);
  };
  const int64_t depth = p.from(0, back), area = p.from(1, back) * p.from(2, back);
  if (d < depth) return across(down(look, made({p.n, p.c, d, area}), area), std::move(y), d);
  return down(across(look, made({p.n, p.c, depth, h * w}), depth), std::move(y), h * w);
}

Tensor resampled(const Tensor& x, const Plan& p, bool back) {
  Tensor y = computed(x, p, back);
  if (!recording(x)) return y;
  return record(back ? p.backward : p.forward, {x}, std::move(y),
                [p, back](const Node&, const Tensor& g) { return resampled(g, p, !back); },
                [&](Arguments& to) {
                  to("align_corners", p.axes[2].align_corners);
                  for (int d = 3 - p.dims; d < 3; ++d) to("scale", p.axis(d).scale);
                });
}

// For uint8: rounds and clamps after each dimension, the last one first.
Tensor of_bytes(const Tensor& x, const Plan& p) {
  const auto unchanged = [](int64_t n) {
    return ResampleAxis{n, n, 0, Resampling::kLinear, false};
  };
  Plan across = p, down = p;
  across.axes[1] = unchanged(p.axes[1].in), down.axes[2] = unchanged(p.axes[2].out);
  const Tensor rows = resampled(x.to(kFloat), across, false).round().clamp(0, 255);
  return resampled(rows, down, false).round().clamp(0, 255).to(kByte);
}

// "H: 2, W: 3"
std::string extents(IntArrayRef last) {
  std::string text;
  for (size_t i = 0; i < last.size(); ++i)
    text += detail::join(i ? ", " : "", "DHW"[3 - last.size() + i], ": ", last[i]);
  return text;
}

struct Kind {
  const char *op, *forward, *backward;
  int dims;
  Resampling how;
};
using Factors = std::array<std::optional<double>, 3>;

Tensor upsample(const Kind& k, const Tensor& x, IntArrayRef size, bool align_corners,
                const Factors& scales) {
  check_defined(k.op, x);
  const auto dims = static_cast<size_t>(k.dims);
  RAMET_CHECK(size.size() == dims, k.op, "It is expected output_size equals to ", dims,
              ", but got size ", size.size());
  RAMET_CHECK(x.dim() == k.dims + 2, k.op, "It is expected input_size equals to ", dims + 2,
              ", but got size ", x.dim());
  const IntArrayRef in(x.sizes().begin() + 2, x.sizes().end());
  const auto positive = [](IntArrayRef all) {
    return std::all_of(all.begin(), all.end(), [](int64_t n) { return n > 0; });
  };
  RAMET_CHECK(positive(in) && positive(size), k.op,
              "Input and output sizes should be greater than 0, but got input (", extents(in),
              k.dims == 2 ? ") output (" : ") and output (", extents(size), ")");
  RAMET_CHECK(x.size(1) > 0, k.op, "Non-empty ", dims + 2,
              "D data tensor expected but got a tensor with sizes ", x.sizes());
  const ScalarType t = x.scalar_type();
  const bool nearest = k.how == Resampling::kNearest || k.how == Resampling::kNearestExact;
  if (!is_floating(t) && !(t == kByte && (nearest || k.dims == 2)))
    throw NotImplementedError(
        detail::join("[", k.op, "] not implemented for '", name_of(t), "': got ", describe(x)));
  Plan p{x.size(0),
         x.size(1),
         {kNoAxis, kNoAxis, kNoAxis},
         k.dims,
         k.dims == 2 ? layout_of(x) : ImageLayout::kRows,
         k.forward,
         k.backward};
  for (size_t i = 0; i < dims; ++i) {
    ResampleAxis& axis = p.axes[3 - dims + i];
    // As LibTorch on CPUs, for images alone: an extent that stays or doubles ignores the factor.
    const bool whole = k.how == Resampling::kNearest && k.dims == 2 &&
                       (size[i] == in[i] || (size[i] % 2 == 0 && size[i] / 2 == in[i]));
    axis = {in[i], size[i], whole ? 0 : scales[i].value_or(0), k.how, align_corners};
    checked_mul(k.op, "weights", 64 * kernels::resample_taps(axis), size[i]);
  }
  if (t == kByte && !nearest) return of_bytes(x, p);
  return resampled(x, p, false);
}

// Takes one list of sizes or of factors.
Tensor upsample(const Kind& k, const Tensor& x, const OptionalIntArrayRef& size, bool align_corners,
                const std::optional<ArrayRef<double>>& factors) {
  check_defined(k.op, x);
  RAMET_CHECK(size.has_value() != factors.has_value(), k.op,
              "Must specify exactly one of output_size and scale_factors");
  if (size) return upsample(k, x, *size, align_corners, Factors{});
  const auto dims = static_cast<size_t>(k.dims);
  RAMET_CHECK(factors->size() == dims && x.dim() == k.dims + 2, k.op, "scale_factors: got ",
              *factors, " for ", describe(x), ", expected ", dims, " for ", dims + 2,
              " dimensions");
  std::vector<int64_t> sizes;
  Factors scales;
  for (size_t i = 0; i < dims; ++i) {
    const double scale = (*factors)[i],
                 extent = static_cast<double>(x.size(static_cast<int64_t>(i) + 2)) * scale;
    RAMET_CHECK(extent > -0x1p62 && extent < 0x1p62, k.op, "scale_factors: got ", *factors, " for ",
                describe(x), ", expected extents that an int64 holds");
    sizes.push_back(static_cast<int64_t>(extent));
    scales[i] = scale;
  }
  return upsample(k, x, sizes, align_corners, scales);
}

}  // namespace

// The two forms of a function.
#define RAMET_UPSAMPLE(name, dims, node, how, corners, arg, scales, factors)                    \
  constexpr Kind kind_of_##name{#name, node "Backward0", node "BackwardBackward0", dims,        \
                                Resampling::how};                                               \
  static Tensor name##_body(const Tensor& x, IntArrayRef size,                                  \
                            RAMET_LIST corners RAMET_LIST scales) {                             \
    return upsample(kind_of_##name, x, size, arg, Factors{RAMET_LIST factors});                 \
  }                                                                                             \
  static Tensor name##_body(const Tensor& x, OptionalIntArrayRef size,                          \
                            RAMET_LIST corners std::optional<ArrayRef<double>> scale_factors) { \
    return upsample(kind_of_##name, x, size, arg, scale_factors);                               \
  }
#define RAMET_UPSAMPLE_1D(name, node, how, corners, arg) \
  RAMET_UPSAMPLE(name, 1, node, how, corners, arg, (std::optional<double> w), (w))
#define RAMET_UPSAMPLE_2D(name, node, how, corners, arg) \
  RAMET_UPSAMPLE(name, 2, node, how, corners, arg,       \
                 (std::optional<double> h, std::optional<double> w), (h, w))
#define RAMET_UPSAMPLE_3D(name, node, how, corners, arg)                                      \
  RAMET_UPSAMPLE(name, 3, node, how, corners, arg,                                            \
                 (std::optional<double> d, std::optional<double> h, std::optional<double> w), \
                 (d, h, w))

RAMET_UPSAMPLE_1D(upsample_nearest1d, "UpsampleNearest1D", kNearest, (), false)
RAMET_UPSAMPLE_2D(upsample_nearest2d, "UpsampleNearest2D", kNearest, (), false)
RAMET_UPSAMPLE_3D(upsample_nearest3d, "UpsampleNearest3D", kNearest, (), false)
RAMET_UPSAMPLE_1D(_upsample_nearest_exact1d, "UpsampleNearestExact1D", kNearestExact, (), false)
RAMET_UPSAMPLE_2D(_upsample_nearest_exact2d, "UpsampleNearestExact2D", kNearestExact, (), false)
RAMET_UPSAMPLE_3D(_upsample_nearest_exact3d, "UpsampleNearestExact3D", kNearestExact, (), false)
RAMET_UPSAMPLE_1D(upsample_linear1d, "UpsampleLinear1D", kLinear, (bool align_corners, ),
                  align_corners)
RAMET_UPSAMPLE_2D(upsample_bilinear2d, "UpsampleBilinear2D", kLinear, (bool align_corners, ),
                  align_corners)
RAMET_UPSAMPLE_3D(upsample_trilinear3d, "UpsampleTrilinear3D", kLinear, (bool align_corners, ),
                  align_corners)
RAMET_UPSAMPLE_2D(upsample_bicubic2d, "UpsampleBicubic2D", kCubic, (bool align_corners, ),
                  align_corners)
RAMET_UPSAMPLE_2D(_upsample_bilinear2d_aa, "UpsampleBilinear2DAa", kLinearWide,
                  (bool align_corners, ), align_corners)
RAMET_UPSAMPLE_2D(_upsample_bicubic2d_aa, "UpsampleBicubic2DAa", kCubicWide, (bool align_corners, ),
                  align_corners)

#undef RAMET_UPSAMPLE
#undef RAMET_UPSAMPLE_1D
#undef RAMET_UPSAMPLE_2D
#undef RAMET_UPSAMPLE_3D
#include "autograd/forms/definitions.inc"
#include "autograd/ops/layers/upsample.inc"

}  // namespace ramet
