// The largest positions of convolutions, pools and batch norm, from their shapes alone
// (kernels/gpu/gpu_reach.h). For .cu files and tests.
#pragma once
#include "kernels/gpu/gpu_reach.h"
#include "kernels/image/batch_norm.h"
#include "kernels/image/conv2d.h"
#include "kernels/image/pool2d.h"

namespace ramet {
namespace kernels {

/// The largest number in the products of a convolution: positions, including those of pixels
/// outside an image that taps name, and counts.
inline double conv2d_reach(const Conv2dArgs& a) {
  const Conv2dShape& s = a.shape;
  const double rows = farthest({{s.oh, s.sh}, {s.kh, s.dh}, {s.ph, 1}, {s.h, 1}}),
               columns = farthest({{s.ow, s.sw}, {s.kw, s.dw}, {s.pw, 1}, {s.w, 1}});
  const auto reach = [&](const ImageView& v, int64_t channels) {
    return farthest({{s.n, v.n}, {channels, v.c}}) + rows * std::fabs(static_cast<double>(v.h)) +
           columns * std::fabs(static_cast<double>(v.w));
  };
  return largest_of({rows, columns, reach(a.x, s.ci), reach(a.y, s.co),
                     product_of({s.kh, s.kw, s.co, s.ci > 1 ? s.ci : 1}),
                     product_of({s.n, s.oh, s.ow}), product_of({s.n, s.h, s.w})});
}

/// The largest number in a pool: positions of taps, also outside of the image, positions of
/// elements, and the numbers that an adaptive pool divides.
inline double pool2d_reach(const Pool2dShape& s, std::initializer_list<ImageView> views) {
  double most = largest_of({farthest({{s.oh, s.sh}, {s.ph, 1}, {s.kh, s.dh}, {s.h, 1}}),
                            farthest({{s.ow, s.sw}, {s.pw, 1}, {s.kw, s.dw}, {s.w, 1}}),
                            farthest({{s.h + 1, s.oh + 1}}), farthest({{s.w + 1, s.ow + 1}}),
                            product_of({s.n, s.c, s.h, s.w}), product_of({s.n, s.c, s.oh, s.ow}),
                            product_of({s.h, s.w})});
  for (const ImageView& v : views)
    if (v.data)
      most = largest_of({most, farthest({{s.n, v.n},
                                         {s.c, v.c},
                                         {s.h > s.oh ? s.h : s.oh, v.h},
                                         {s.w > s.ow ? s.w : s.ow, v.w}})});
  return most;
}

/// The same for batch norm over n samples of c channels of l values.
inline double batch_norm_reach(int64_t n, int64_t c, int64_t l,
                               std::initializer_list<ChannelView> views) {
  double most = product_of({n, c, l});
  for (const ChannelView& v : views)
    most = largest_of({most, farthest({{n, v.n}, {c, v.c}, {l, v.l}})});
  return most;
}

}  // namespace kernels
}  // namespace ramet
