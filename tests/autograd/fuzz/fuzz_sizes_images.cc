// Rows of random sizes: convolutions, pools, other resolutions.
#include <algorithm>

#include "autograd/ops.h"
#include "tests/autograd/fuzz/fuzz_sizes.h"

namespace ramet {
namespace fuzz {

namespace {

// With `up` one more where something is left, if it begins inside or in the padding on the left.
Wide windows_up(Wide in, Wide k, Wide stride, Wide padding, Wide dilation) {
  const Wide n = above(in + 2 * padding - dilation * (k - 1) - 1, stride) + 1;
  return n - ((n - 1) * stride >= in + padding);
}
// Does each window that begins in the padding have an element? Those of average pools may be
// padding alone nowhere, for at most half of one is padding.
bool all_reach(Wide in, Wide out, Wide k, Wide stride, Wide padding, Wide dilation) {
  for (Wide o = 0; o < out && o * stride < padding; ++o) {
    const Wide first = above(padding - o * stride, dilation);
    if (first >= k || first * dilation - (padding - o * stride) >= in) return false;
    if (o > 1000) return true;
  }
  return true;
}

struct Pooling {
  std::vector<int64_t> kernel, stride, padding, dilation;
  bool up;
};
Pooling draw_pooling(SizeDraw& d, size_t spatial, bool dilates) {
  Pooling p;
  const auto draw = [&](const char* name, int64_t low, int64_t high) {
    std::vector<int64_t> out;
    for (size_t i = 0; i < spatial; ++i) out.push_back(d.mostly(name, low, high));
    return out;
  };
  p.kernel = draw("kernel_size", 1, 3);
  if (d.flag("stride given")) p.stride = draw("stride", 1, 3);
  p.padding = draw("padding", 0, 1);
  p.dilation = dilates ? draw("dilation", 1, 2) : std::vector<int64_t>(spatial, 1);
  p.up = d.flag("ceil_mode");
  // Positions outside of the image may then not fit into an int64.
  for (const auto* list : {&p.kernel, &p.stride, &p.padding, &p.dilation})
    for (const int64_t n : *list)
      if (n >= int64_t{1} << 60) d.may_refuse();
  return p;
}
Right pooled(const Tensor& x, const Pooling& p) {
  WideShape out = wide(x.sizes());
  const size_t spatial = p.kernel.size(), first = out.size() - spatial;
  for (size_t i = 0; i < spatial; ++i) {
    const Wide k = p.kernel[i], s = p.stride.empty() ? k : Wide{p.stride[i]}, pad = p.padding[i],
               dil = p.dilation[i], in = out[first + i];
    if (k <= 0 || s <= 0 || dil <= 0 || pad < 0 || pad > ((k - 1) * dil + 1) / 2)
      return std::nullopt;
    const Wide n = p.up ? windows_up(in, k, s, pad, dil) : windows(in, k, s, pad, dil);
    if (n < 1 || !all_reach(in, n, k, s, pad, dil)) return std::nullopt;
    out[first + i] = n;
  }
  return one(out);
}
Tensor picture(SizeDraw& d, size_t spatial) {
  std::vector<int64_t> sizes = {2, 2};
  for (size_t i = 0; i < spatial; ++i) sizes.push_back(d.note("extent", d.tape().between(1, 6)));
  return ones(sizes);
}

template <class Call>
SizeRow of_pool(const char* name, size_t spatial, bool dilates, const Call& call,
                bool two = false) {
  return {name, [=](SizeDraw& d) {
            const Tensor x = picture(d, spatial);
            const Pooling p = draw_pooling(d, spatial, dilates);
            Right right = pooled(x, p);
            if (right && two) right->push_back((*right)[0]);
            d.expect(right, [&] { return call(x, p); });
          }};
}

template <class Call> SizeRow of_convolution(const char* name, size_t spatial, const Call& call) {
  return {name, [=](SizeDraw& d) {
            const Tensor x = picture(d, spatial);
            const Pooling p = draw_pooling(d, spatial, true);
            const int64_t groups = d.mostly("groups", 1, 2);
            const std::vector<int64_t> stride =
                p.stride.empty() ? std::vector<int64_t>(spatial, 1) : p.stride;
            std::vector<int64_t> of_weight = {2, groups == 2 ? 1 : 2};
            WideShape out = wide(x.sizes());
            bool fine = groups == 1 || groups == 2;
            for (size_t i = 0; i < spatial; ++i) {
              const int64_t k = std::min<int64_t>(std::max<int64_t>(p.kernel[i], 1), 3);
              of_weight.push_back(k);
              const Wide s = stride[i], pad = p.padding[i], dil = p.dilation[i];
              if (s <= 0 || dil <= 0 || pad < 0) {
                fine = false;
                continue;
              }
              out[2 + i] = windows(out[2 + i], k, s, pad, dil);
              fine = fine && out[2 + i] >= 1;
            }
            const Tensor w = ones(of_weight);
            d.expect(fine ? one(out) : Right(),
                     [&] { return call(x, w, stride, p.padding, p.dilation, groups); });
          }};
}

template <class Call> SizeRow of_transposed(const char* name, size_t spatial, const Call& call) {
  return {name, [=](SizeDraw& d) {
            const Tensor x = picture(d, spatial);
            const Pooling p = draw_pooling(d, spatial, true);
            const int64_t groups = d.mostly("groups", 1, 2);
            const std::vector<int64_t> stride =
                p.stride.empty() ? std::vector<int64_t>(spatial, 1) : p.stride;
            std::vector<int64_t> of_weight = {2, 3}, more;
            WideShape out = wide(x.sizes());
            bool fine = groups == 1 || groups == 2;
            out[1] = 3 * Wide{groups};
            for (size_t i = 0; i < spatial; ++i) {
              more.push_back(d.mostly("output_padding", 0, 1));
              const int64_t k = std::min<int64_t>(std::max<int64_t>(p.kernel[i], 1), 3);
              of_weight.push_back(k);
              const Wide s = stride[i], pad = p.padding[i], dil = p.dilation[i];
              fine = fine && s > 0 && dil > 0 && pad >= 0 && more[i] >= 0 &&
                     (more[i] < s || more[i] < dil);
              out[2 + i] = (out[2 + i] - 1) * s - 2 * pad + dil * (k - 1) + more[i] + 1;
              fine = fine && out[2 + i] >= 1;
            }
            const Tensor w = ones(of_weight);
            d.expect(fine ? one(out) : Right(),
                     [&] { return call(x, w, stride, p.padding, more, groups, p.dilation); });
          }};
}

template <class Call>
SizeRow of_adaptive(const char* name, size_t spatial, const Call& call, bool two = false) {
  return {name, [=](SizeDraw& d) {
            const Tensor x = picture(d, spatial);
            WideShape out = wide(x.sizes());
            std::vector<int64_t> wanted;
            bool fine = true;
            for (size_t i = 0; i < spatial; ++i) {
              wanted.push_back(d.number("output_size"));
              if (wanted.back() >= int64_t{1} << 60) d.may_refuse();
              out[2 + i] = wanted.back();
              fine = fine && wanted.back() >= 0;
            }
            Right right = fine ? one(out) : Right();
            if (right && two) right->push_back((*right)[0]);
            d.expect(right, [&] { return call(x, wanted); });
          }};
}

// To sizes, which are all that the shape comes from; a scale is any number.
template <class Call> SizeRow of_upsample(const char* name, size_t spatial, const Call& call) {
  return {name, [=](SizeDraw& d) {
            const Tensor x = picture(d, spatial);
            WideShape out = wide(x.sizes());
            std::vector<int64_t> wanted;
            bool fine = true;
            for (size_t i = 0; i < spatial; ++i) {
              wanted.push_back(d.mostly("output_size", 1, 9));
              if (wanted.back() >= int64_t{1} << 40) d.may_refuse();
              out[2 + i] = wanted.back();
              fine = fine && wanted.back() > 0;
            }
            std::optional<double> scale;
            if (d.flag("scale given")) scale = static_cast<double>(d.number("scale")) / 1024;
            d.expect(
                fine ? one(out) : Right(), [&] { return call(x, wanted, scale); }, 3);
          }};
}

}  // namespace

std::vector<SizeRow> size_rows_of_images() {
  using X = const Tensor&;
  using P = const Pooling&;
  using N = const std::vector<int64_t>&;
  using S = const std::optional<double>&;
  return {
      of_pool(
          "max_pool1d", 1, true,
          [](X x, P p) { return max_pool1d(x, p.kernel, p.stride, p.padding, p.dilation, p.up); }),
      of_pool(
          "max_pool2d", 2, true,
          [](X x, P p) { return max_pool2d(x, p.kernel, p.stride, p.padding, p.dilation, p.up); }),
      of_pool(
          "max_pool1d_with_indices", 1, true,
          [](X x, P p) {
            return max_pool1d_with_indices(x, p.kernel, p.stride, p.padding, p.dilation, p.up);
          },
          true),
      of_pool(
          "max_pool2d_with_indices", 2, true,
          [](X x, P p) {
            return max_pool2d_with_indices(x, p.kernel, p.stride, p.padding, p.dilation, p.up);
          },
          true),
      of_pool("avg_pool1d", 1, false,
              [](X x, P p) { return avg_pool1d(x, p.kernel, p.stride, p.padding, p.up); }),
      of_pool("avg_pool2d", 2, false,
              [](X x, P p) { return avg_pool2d(x, p.kernel, p.stride, p.padding, p.up); }),
      of_pool(
          "max_pool3d", 3, true,
          [](X x, P p) { return max_pool3d(x, p.kernel, p.stride, p.padding, p.dilation, p.up); }),
      of_pool(
          "max_pool3d_with_indices", 3, true,
          [](X x, P p) {
            return max_pool3d_with_indices(x, p.kernel, p.stride, p.padding, p.dilation, p.up);
          },
          true),
      of_pool("avg_pool3d", 3, false,
              [](X x, P p) { return avg_pool3d(x, p.kernel, p.stride, p.padding, p.up); }),
      of_pool("avg_pool3d.integers", 3, false,
              [](X x, P p) {
                return avg_pool3d(x.to(kLong), p.kernel, p.stride, p.padding, p.up, !p.up);
              }),
      of_convolution("conv1d", 1,
                     [](X x, X w, N s, N p, N d, int64_t g) {
                       return conv1d(x, w, std::nullopt, s, p, d, g);
                     }),
      of_convolution("conv2d", 2,
                     [](X x, X w, N s, N p, N d, int64_t g) {
                       return conv2d(x, w, std::nullopt, s, p, d, g);
                     }),
      of_convolution("conv3d", 3,
                     [](X x, X w, N s, N p, N d, int64_t g) {
                       return conv3d(x, w, std::nullopt, s, p, d, g);
                     }),
      of_convolution("convolution", 2,
                     [](X x, X w, N s, N p, N d, int64_t g) {
                       return convolution(x, w, std::nullopt, s, p, d, false, 0, g);
                     }),
      of_transposed("convolution", 1,
                    [](X x, X w, N s, N p, N o, int64_t g, N d) {
                      return convolution(x, w, std::nullopt, s, p, d, true, o, g);
                    }),
      {"conv_tbc",
       [](SizeDraw& d) {
         const Tensor x = d.tensor(3, 3, 1), w = zeros({2, x.size(2), 3});
         const int64_t pad = d.mostly("pad", 0, 2);
         const Wide steps = Wide{x.size(0)} + 2 * Wide{pad} - 1;
         d.expect(pad >= 0 && steps >= 1 ? one({steps, x.size(1), 3}) : Right(),
                  [&] { return conv_tbc(x, w, zeros({3}), pad); });
       }},
      of_transposed("conv_transpose1d", 1,
                    [](X x, X w, N s, N p, N o, int64_t g, N d) {
                      return conv_transpose1d(x, w, std::nullopt, s, p, o, g, d);
                    }),
      of_transposed("conv_transpose2d", 2,
                    [](X x, X w, N s, N p, N o, int64_t g, N d) {
                      return conv_transpose2d(x, w, std::nullopt, s, p, o, g, d);
                    }),
      of_transposed("conv_transpose3d", 3,
                    [](X x, X w, N s, N p, N o, int64_t g, N d) {
                      return conv_transpose3d(x, w, std::nullopt, s, p, o, g, d);
                    }),
      of_adaptive("adaptive_avg_pool1d", 1, [](X x, N n) { return adaptive_avg_pool1d(x, n); }),
      of_adaptive("adaptive_avg_pool2d", 2, [](X x, N n) { return adaptive_avg_pool2d(x, n); }),
      of_upsample("upsample_nearest1d", 1,
                  [](X x, N n, S s) { return upsample_nearest1d(x, n, s); }),
      of_upsample("upsample_nearest2d", 2,
                  [](X x, N n, S s) { return upsample_nearest2d(x, n, s, s); }),
      of_upsample("upsample_nearest3d", 3,
                  [](X x, N n, S s) { return upsample_nearest3d(x, n, s, s, s); }),
      of_upsample("_upsample_nearest_exact1d", 1,
                  [](X x, N n, S s) { return _upsample_nearest_exact1d(x, n, s); }),
      of_upsample("_upsample_nearest_exact2d", 2,
                  [](X x, N n, S s) { return _upsample_nearest_exact2d(x, n, s, s); }),
      of_upsample("_upsample_nearest_exact3d", 3,
                  [](X x, N n, S s) { return _upsample_nearest_exact3d(x, n, s, s, s); }),
      of_upsample("upsample_linear1d", 1,
                  [](X x, N n, S s) { return upsample_linear1d(x, n, false, s); }),
      of_upsample("upsample_bilinear2d", 2,
                  [](X x, N n, S s) { return upsample_bilinear2d(x, n, false, s, s); }),
      of_upsample("upsample_trilinear3d", 3,
                  [](X x, N n, S s) { return upsample_trilinear3d(x, n, false, s, s, s); }),
      of_upsample("upsample_bicubic2d", 2,
                  [](X x, N n, S s) { return upsample_bicubic2d(x, n, false, s, s); }),
      of_upsample("_upsample_bilinear2d_aa", 2,
                  [](X x, N n, S s) { return _upsample_bilinear2d_aa(x, n, false, s, s); }),
      of_upsample("_upsample_bicubic2d_aa", 2,
                  [](X x, N n, S s) { return _upsample_bicubic2d_aa(x, n, false, s, s); }),
      of_adaptive("adaptive_avg_pool3d", 3, [](X x, N n) { return adaptive_avg_pool3d(x, n); }),
      of_adaptive(
          "adaptive_max_pool1d", 1, [](X x, N n) { return adaptive_max_pool1d(x, n); }, true),
      of_adaptive(
          "adaptive_max_pool2d", 2, [](X x, N n) { return adaptive_max_pool2d(x, n); }, true),
      of_adaptive(
          "adaptive_max_pool3d", 3, [](X x, N n) { return adaptive_max_pool3d(x, n); }, true),
  };
}

}  // namespace fuzz
}  // namespace ramet
