// Rows of random sizes: channels as pixels, blocks as columns, bags of rows.
#include "autograd/ops.h"
#include "tests/autograd/fuzz/fuzz_rows.h"

namespace ramet {
namespace fuzz {
namespace {

// A picture with or without a batch, of these channels and extents.
Tensor planes(SizeDraw& d, int64_t channels, int64_t most) {
  std::vector<int64_t> sizes = {channels, d.tape().between(1, most), d.tape().between(1, most)};
  if (d.flag("batched")) sizes.insert(sizes.begin(), 2);
  return ones(sizes);
}
template <int64_t channels, int64_t most> struct Planes : Tensor {
  static Planes take(Arguments& a) {
    (void)a.next();
    return {planes(a.draw, channels, most)};
  }
};
Right shuffled(const Tensor& x, int64_t factor, bool up) {
  WideShape out = wide(x.sizes());
  const size_t c = out.size() - 3;
  const Wide r = factor;
  if (r <= 0 || r >= Wide{1} << 62) return refused();
  if (up ? out[c] % (r * r) != 0 : out[c + 1] % r != 0 || out[c + 2] % r != 0) return refused();
  out[c] = up ? out[c] / (r * r) : out[c] * r * r;
  for (const size_t k : {c + 1, c + 2}) out[k] = up ? out[k] * r : out[k] / r;
  return one(out);
}
Tensor batch(const Tensor& x) { return x.unsqueeze(0).flatten(0, -4); }
Right in_groups(const Tensor& x, int64_t groups) {
  return as(x, groups > 0 && x.size(1) % groups == 0);
}
// Four lists of two numbers; the blocks that fit into extents, if they are any.
struct Grid {
  std::vector<int64_t> kernel, dilation, padding, stride;
  std::optional<Wide> blocks(Wide h, Wide w) const {
    Wide all = 1;
    for (size_t i : {0, 1}) {
      if (kernel[i] <= 0 || dilation[i] <= 0 || padding[i] < 0 || stride[i] <= 0)
        return std::nullopt;
      const Wide n = windows(i == 0 ? h : w, kernel[i], stride[i], padding[i], dilation[i]);
      if (n < 1) return std::nullopt;
      all *= n;
    }
    return all;
  }
};
Grid draw_grid(SizeDraw& d) {
  Grid g;
  for (int i = 0; i < 2; ++i) {
    g.kernel.push_back(d.mostly("kernel_size", 1, 3));
    g.dilation.push_back(d.mostly("dilation", 1, 2));
    g.padding.push_back(d.mostly("padding", 0, 2));
    g.stride.push_back(d.mostly("stride", 1, 3));
  }
  // The padding is made, and places in it are numbers.
  for (const auto* list : {&g.kernel, &g.dilation, &g.padding, &g.stride})
    for (const int64_t n : *list)
      if (n > 1000) d.may_refuse();
  return g;
}

}  // namespace

#define PIXELS(name, up) \
  ROW(name, (Planes<36, 6> x, Mostly<1, 3> factor), shuffled(x, factor, up), name(x, factor))
#define GROUPS(name)                                                            \
  ROW(name, (Planes<6, 3> x, Mostly<1, 3> groups), in_groups(batch(x), groups), \
      name(batch(x), groups))

std::vector<SizeRow> size_rows_of_pixels() {
  return {
      ROW(embedding_bag, (Mostly<0, 2> mode, Mostly<-4, 3> padding, bool last),
          right_if(mode >= 0 && mode <= 2 && padding >= -4 && padding < 4, {last ? 2 : 3, 2}),
          std::get<0>(embedding_bag(ones({4, 2}), zeros({5}, kLong),
                                    arange(3, TensorOptions(kLong)), false, mode, false,
                                    std::nullopt, last, padding))),
      PIXELS(pixel_shuffle, true),
      PIXELS(pixel_unshuffle, false),
      {"im2col",
       [](SizeDraw& d) {
         const Tensor x = planes(d, 2, 6);
         const Grid g = draw_grid(d);
         const auto n = g.blocks(x.size(-2), x.size(-1));
         WideShape out;
         if (x.dim() == 4) out.push_back(2);
         if (n) out.insert(out.end(), {Wide{2} * g.kernel[0] * g.kernel[1], *n});
         d.expect(
             right_if(n.has_value(), out),
             [&] { return im2col(x, g.kernel, g.dilation, g.padding, g.stride); }, 4);
       }},
      {"col2im",
       [](SizeDraw& d) {
         const Grid g = draw_grid(d);
         const std::vector<int64_t> size = {d.mostly("output_size", 1, 6),
                                            d.mostly("output_size", 1, 6)};
         const Wide n = size[0] > 0 && size[1] > 0 ? g.blocks(size[0], size[1]).value_or(0) : 0;
         // As many columns as there should be, or one.
         const auto few = [](Wide k) { return k > 0 && k <= 64; };
         const bool fits = few(n) && few(g.kernel[0]) && few(g.kernel[1]);
         const Tensor x = fits ? ones({2 * g.kernel[0] * g.kernel[1], int64_t(n)}) : ones({2, 65});
         const Wide per = Wide{g.kernel[0]} * g.kernel[1];
         const bool fine = fits || (n == 65 && 2 % per == 0);
         d.expect(
             fine ? one({x.size(0) / per, size[0], size[1]}) : Right(),
             [&] { return col2im(x, size, g.kernel, g.dilation, g.padding, g.stride); }, 4);
       }},
      GROUPS(channel_shuffle),
      GROUPS(native_channel_shuffle),
  };
}

}  // namespace fuzz
}  // namespace ramet
