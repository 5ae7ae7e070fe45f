#include "autograd/ops/layers/shuffle.h"

#include "autograd/ops/front/common_internal.h"
#include "autograd/ops/front/out_internal.h"
#include "autograd/ops/shape/view.h"
#include "runtime/base/checked_size.h"

namespace ramet {

using namespace autograd;

namespace {

using Sizes = std::vector<int64_t>;

// Views x as `sizes`, puts its dimensions in this order, and copies it as `result`. All three lists
// describe only the last `last` dimensions of x.
Tensor moved(const Tensor& x, size_t last, const Sizes& sizes, const Sizes& order,
             const Sizes& result) {
  const NoGradGuard off;
  const auto front = static_cast<int64_t>(static_cast<size_t>(x.dim()) - last);
  const auto behind = [&](const Sizes& more) {
    Sizes all(x.sizes().begin(), x.sizes().begin() + front);
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  Sizes dims;
  for (int64_t d = 0; d < front; ++d) dims.push_back(d);
  for (const int64_t d : order) dims.push_back(front + d);
  return own(x.shallow()
                 .reshape(behind(sizes))
                 .permute(dims)
                 .clone(MemoryFormat::Contiguous)
                 .view(behind(result)));
}

void check_pixels(const char* op, const char* name, const Tensor& x, int64_t factor) {
  check_defined(op, x);
  RAMET_CHECK(x.dim() >= 3, op, "expects input to have at least 3 dimensions, but got input with ",
              x.dim(), " dimension(s)");
  RAMET_CHECK(factor > 0, op, "expects a positive ", name, ", but got ", factor);
}

}  // namespace

Tensor pixel_shuffle(const Tensor& x, int64_t r) {
  const char* op = "pixel_shuffle";
  check_pixels(op, "upscale_factor", x, r);
  const int64_t tile = checked_mul(op, "(upscale_factor)^2", r, r);
  RAMET_CHECK(x.size(-3) % tile == 0, op,
              "expects its input's 'channel' dimension to be divisible by the square of ",
              "upscale_factor, but input.size(-3)=", x.size(-3), " is not divisible by ", tile);
  const int64_t c = x.size(-3) / tile, h = x.size(-2), w = x.size(-1);
  Tensor y = moved(x, 3, {c, r, r, h, w}, {0, 3, 1, 4, 2},
                   {c, checked_mul(op, "height", h, r), checked_mul(op, "width", w, r)});
  if (!recording(x)) return y;
  return record("PixelShuffleBackward0", {x}, std::move(y),
                [r](const Node&, const Tensor& g) { return pixel_unshuffle(g, r); });
}

Tensor pixel_unshuffle(const Tensor& x, int64_t r) {
  const char* op = "pixel_unshuffle";
  check_pixels(op, "downscale_factor", x, r);
  const int64_t c = x.size(-3), h = x.size(-2), w = x.size(-1);
  RAMET_CHECK(h % r == 0, op, "expects height to be divisible by downscale_factor, but ",
              "input.size(-2)=", h, " is not divisible by ", r);
  RAMET_CHECK(w % r == 0, op, "expects width to be divisible by downscale_factor, but ",
              "input.size(-1)=", w, " is not divisible by ", r);
  const int64_t channels =
      checked_mul(op, "channels", c, checked_mul(op, "(downscale_factor)^2", r, r));
  Tensor y = moved(x, 3, {c, h / r, r, w / r, r}, {0, 2, 4, 1, 3}, {channels, h / r, w / r});
  if (!recording(x)) return y;
  return record("PixelUnshuffleBackward0", {x}, std::move(y),
                [r](const Node&, const Tensor& g) { return pixel_shuffle(g, r); });
}

Tensor channel_shuffle(const Tensor& x, int64_t groups) {
  const char* op = "channel_shuffle";
  check_defined(op, x);
  RAMET_CHECK(x.dim() > 2, op, "expects input with > 2 dims, but got input with sizes ", x.sizes());
  const int64_t c = x.size(1);
  RAMET_CHECK(groups > 0, op, "Number of groups to divide channels in must be positive. ",
              "Value of groups:", groups);
  RAMET_CHECK(c % groups == 0, op, "Number of channels must be divisible by groups. Got ", c,
              " channels and ", groups, " groups.");
  const Sizes rest(x.sizes().begin() + 2, x.sizes().end());
  Sizes sizes = {groups, c / groups}, order = {1, 0}, result = {c};
  for (size_t d = 0; d < rest.size(); ++d) {
    sizes.push_back(rest[d]), result.push_back(rest[d]);
    order.push_back(static_cast<int64_t>(d) + 2);
  }
  Tensor y = moved(x, rest.size() + 1, sizes, order, result);
  if (!recording(x)) return y;
  // Groups of what were channels of groups. Without channels there may be any number of groups.
  return record("ChannelShuffleBackward0", {x}, std::move(y),
                [back = c > 0 ? c / groups : 1](const Node&, const Tensor& g) {
                  return channel_shuffle(g, back);
                });
}
Tensor native_channel_shuffle(const Tensor& x, int64_t groups) {
  return channel_shuffle(x, groups);
}

#include "autograd/forms/definitions.inc"
#include "autograd/ops/layers/shuffle.inc"

}  // namespace ramet
