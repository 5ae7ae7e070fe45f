// Convolutions of volumes and their gradients, without history.
//
// Note [Depth as channels]
// All planes under the filter's depth become channels of one image. A volume is unfolded along its
// depth alone, into n od images of ci kd channels. They are convolved with the same weight, viewed
// as [co, ci / groups kd, kh, kw]. That is one convolution of images with longer runs. It does the
// same arithmetic as a sum of kd convolutions of planes, but writes its result once. That takes
// about 2 kd + 4 passes over a volume against 4 kd + 2. Single channels, which medical volumes
// have, fill the register tile kd times as well. Unfolding all dimensions would take kh kw times as
// much memory.
#include "autograd/ops/front/convolve_internal.h"
#include "autograd/ops/make/copy.h"
#include "autograd/ops/pointwise/arithmetic.h"
#include "autograd/ops/shape/view.h"

namespace ramet {
namespace autograd {

namespace {

Conv2dShape image_shape(const VolumeShape& s) {
  Conv2dShape p = s.plane;
  p.n *= s.od;
  p.ci *= s.kd;
  return p;
}

// The depths that outputs read through tap r. Output `first` reads depth `input`; each of the next
// `count` - 1 outputs reads sd further.
struct Seen {
  int64_t first, count, input;
};
Seen seen_through(const VolumeShape& s, int64_t r) {
  using Wide = __int128;
  const Wide before = Wide{s.pd} - Wide{r} * s.dd;  // output o reads o sd - before
  const Wide first = before > 0 ? (before + s.sd - 1) / s.sd : 0, last = s.d - 1 + before;
  const Wide end = last < 0 ? 0 : std::min<Wide>(last / s.sd + 1, s.od);
  if (first >= end) return {0, 0, 0};
  return {static_cast<int64_t>(first), static_cast<int64_t>(end - first),
          static_cast<int64_t>(first * s.sd - before)};
}
// Those depths of a volume [n, c, d, h, w], as a tensor [n, count, c, h, w].
Tensor seen_of(const Tensor& x, const Seen& seen, int64_t stride) {
  return x.slice(2, seen.input, seen.input + (seen.count - 1) * stride + 1, stride).transpose(1, 2);
}

// x as images [n od, ci kd, h, w].
Tensor unfolded(const Tensor& x, const VolumeShape& s) {
  const Conv2dShape& p = s.plane;
  const Tensor out(
      TensorBase::empty({p.n, s.od, p.ci, s.kd, p.h, p.w}, x.scalar_type(), x.device()));
  for (int64_t r = 0; r < s.kd; ++r) {
    const Tensor tap = out.select(3, r);
    const Seen seen = seen_through(s, r);
    const int64_t end = seen.first + seen.count;
    if (seen.count > 0) tap.narrow(1, seen.first, seen.count).copy_(seen_of(x, seen, s.sd));
    if (seen.first > 0) tap.narrow(1, 0, seen.first).zero_();
    if (end < s.od) tap.narrow(1, end, s.od - end).zero_();
  }
  return out.view({p.n * s.od, p.ci * s.kd, p.h, p.w});
}
// The adjoint of unfolded().
Tensor folded(const Tensor& images, const VolumeShape& s) {
  const Conv2dShape& p = s.plane;
  Tensor out(TensorBase::empty({p.n, p.ci, s.d, p.h, p.w}, images.scalar_type(), images.device()));
  out.zero_();
  const Tensor taps = images.view({p.n, s.od, p.ci, s.kd, p.h, p.w});
  for (int64_t r = 0; r < s.kd; ++r)
    if (const Seen seen = seen_through(s, r); seen.count > 0)
      seen_of(out, seen, s.sd).add_(taps.select(3, r).narrow(1, seen.first, seen.count));
  return out;
}

Tensor weight_of_images(const Tensor& w, const VolumeShape& s) {
  const Conv2dShape& p = s.plane;
  return w.contiguous().view({p.co, p.ci / p.groups * s.kd, p.kh, p.kw});
}
// A result viewed as [n od, co, oh, ow].
Tensor results_as_images(const Tensor& g, const VolumeShape& s) {
  const Conv2dShape& p = s.plane;
  return g.transpose(1, 2).reshape({p.n * s.od, p.co, p.oh, p.ow});
}

}  // namespace

Tensor raw_result(const Tensor& x, const Tensor& w, const Tensor& bias, const VolumeShape& s,
                  ImageLayout) {
  const NoGradGuard off;
  const Conv2dShape& p = s.plane;
  const Tensor images =
      raw_result(unfolded(x, s), weight_of_images(w, s), bias, image_shape(s), ImageLayout::kRows);
  return images.view({p.n, s.od, p.co, p.oh, p.ow}).transpose(1, 2).contiguous();
}

Tensor raw_input(const Tensor& g, const Tensor& w, const VolumeShape& s, ImageLayout) {
  const NoGradGuard off;
  return folded(raw_input(results_as_images(g, s), weight_of_images(w, s), image_shape(s),
                          ImageLayout::kRows),
                s);
}

Tensor raw_weight(const Tensor& g, const Tensor& x, const VolumeShape& s) {
  const NoGradGuard off;
  const Conv2dShape& p = s.plane;
  return raw_weight(results_as_images(g, s), unfolded(x, s), image_shape(s))
      .view({p.co, p.ci / p.groups, s.kd, p.kh, p.kw});
}

}  // namespace autograd
}  // namespace ramet
