// Rows of random sizes: convolutions, pools, other resolutions.
#include <algorithm>

#include "autograd/ops.h"
#include "tests/autograd/fuzz/fuzz_rows.h"

namespace ramet {
namespace fuzz {

namespace {

using List = std::vector<int64_t>;

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

// One number for each dimension of a picture.
template <int64_t low, int64_t high> struct Each : List {
  static Each take(Arguments& a) {
    const std::string name = a.next();
    Each out;
    for (int64_t i = 2; i < a.rank; ++i) out.push_back(a.draw.mostly(name.c_str(), low, high));
    return out;
  }
};
/// Or no numbers: the default.
struct Strides : List {
  static Strides take(Arguments& a) {
    if (a.draw.flag("stride given")) return {Each<1, 3>::take(a)};
    (void)a.next();
    return {};
  }
  List or_ones(const Tensor& x) const {
    return empty() ? List(x.sizes().size() - 2, 1) : List(*this);
  }
};
template <int64_t spatial> struct Picture : Tensor {
  static Picture take(Arguments& a) {
    (void)a.next();
    List sizes = {2, 2};
    for (int64_t i = 0; i < spatial; ++i)
      sizes.push_back(a.draw.note("extent", a.draw.tape().between(1, 6)));
    a.rank = 2 + spatial;
    return {ones(sizes)};
  }
};

// Positions outside of the image may then not fit into an int64.
bool far(std::initializer_list<const List*> lists, int64_t from = int64_t{1} << 60) {
  return std::any_of(lists.begin(), lists.end(), [&](const List* list) {
    return std::any_of(list->begin(), list->end(), [&](int64_t n) { return n >= from; });
  });
}
Right pooled(SizeDraw& d, const Tensor& x, const List& kernel, const List& stride,
             const List& padding, const List& dilation, bool up) {
  if (far({&kernel, &stride, &padding, &dilation})) d.may_refuse();
  WideShape out = wide(x.sizes());
  for (size_t i = 0; i < kernel.size(); ++i) {
    const Wide k = kernel[i], s = stride.empty() ? k : Wide{stride[i]}, pad = padding[i],
               dil = dilation.empty() ? 1 : dilation[i], in = out[2 + i];
    if (k <= 0 || s <= 0 || dil <= 0 || pad < 0 || pad > ((k - 1) * dil + 1) / 2) return refused();
    const Wide n = up ? windows_up(in, k, s, pad, dil) : windows(in, k, s, pad, dil);
    if (n < 1 || !all_reach(in, n, k, s, pad, dil)) return refused();
    out[2 + i] = n;
  }
  return one(out);
}
// A weight that has as many numbers as the kernel's size says, up to 3.
Tensor weight(List channels, const List& kernel) {
  for (const int64_t k : kernel) channels.push_back(std::clamp<int64_t>(k, 1, 3));
  return ones(channels);
}
Tensor weight(const List& kernel, int64_t groups) {
  return weight({2, groups == 2 ? 1 : 2}, kernel);
}
Right convolved(SizeDraw& d, const Tensor& x, const List& kernel, const Strides& strides,
                const List& padding, const List& dilation, int64_t groups) {
  if (far({&kernel, &strides, &padding, &dilation})) d.may_refuse();
  const List stride = strides.or_ones(x);
  WideShape out = wide(x.sizes());
  if (groups != 1 && groups != 2) return refused();
  for (size_t i = 0; i < kernel.size(); ++i) {
    const Wide k = std::clamp<int64_t>(kernel[i], 1, 3), s = stride[i], pad = padding[i],
               dil = dilation[i];
    if (s <= 0 || dil <= 0 || pad < 0) return refused();
    out[2 + i] = windows(out[2 + i], k, s, pad, dil);
    if (out[2 + i] < 1) return refused();
  }
  return one(out);
}
Right transposed(SizeDraw& d, const Tensor& x, const List& kernel, const Strides& strides,
                 const List& padding, const List& dilation, const List& more, int64_t groups) {
  if (far({&kernel, &strides, &padding, &dilation})) d.may_refuse();
  const List stride = strides.or_ones(x);
  WideShape out = wide(x.sizes());
  if (groups != 1 && groups != 2) return refused();
  out[1] = 3 * Wide{groups};
  for (size_t i = 0; i < kernel.size(); ++i) {
    const Wide k = std::clamp<int64_t>(kernel[i], 1, 3), s = stride[i], pad = padding[i],
               dil = dilation[i];
    if (s <= 0 || dil <= 0 || pad < 0 || more[i] < 0 || (more[i] >= s && more[i] >= dil))
      return refused();
    out[2 + i] = (out[2 + i] - 1) * s - 2 * pad + dil * (k - 1) + more[i] + 1;
    if (out[2 + i] < 1) return refused();
  }
  return one(out);
}
// To sizes, which are all that the shape comes from.
Right sized(SizeDraw& d, const Tensor& x, const List& to, int64_t least, int64_t large) {
  if (far({&to}, large)) d.may_refuse();
  WideShape out = wide(x.sizes());
  std::copy(to.begin(), to.end(), out.begin() + 2);
  return right_if(std::all_of(to.begin(), to.end(), [&](int64_t n) { return n >= least; }), out);
}
// Any number.
std::optional<double> scale_of(const Maybe<Number>& n) {
  return n ? std::optional<double>(static_cast<double>(*n) / 1024) : std::nullopt;
}
struct Output : List {
  static Output take(Arguments& a) {
    const std::string name = a.next();
    Output out;
    for (int64_t i = 2; i < a.rank; ++i) out.push_back(a.draw.number(name.c_str()));
    return out;
  }
};
Right steps_of(const Tensor& x, int64_t pad) {
  const Wide steps = Wide{x.size(0)} + 2 * Wide{pad} - 1;
  return right_if(pad >= 0 && steps >= 1, {steps, x.size(1), 3});
}

}  // namespace

#define MAX_POOL_OF(name, spatial, right)                                         \
  ROW(name,                                                                       \
      (Picture<spatial> x, Each<1, 3> kernel, Strides stride, Each<0, 1> padding, \
       Each<1, 2> dilation, bool up),                                             \
      right, name(x, kernel, stride, padding, dilation, up))
#define MAX_POOL(name, spatial)                                                    \
  MAX_POOL_OF(name, spatial, pooled(d, x, kernel, stride, padding, dilation, up)), \
      MAX_POOL_OF(name##_with_indices, spatial,                                    \
                  twice(pooled(d, x, kernel, stride, padding, dilation, up)))
#define AVG_POOL(name, spatial, ...)                                                              \
  ROW(name, (Picture<spatial> x, Each<1, 3> kernel, Strides stride, Each<0, 1> padding, bool up), \
      pooled(d, x, kernel, stride, padding, {}, up), __VA_ARGS__)
#define CONVOLUTION(name, spatial, ...)                                           \
  ROW(name,                                                                       \
      (Picture<spatial> x, Each<1, 3> kernel, Strides stride, Each<0, 1> padding, \
       Each<1, 2> dilation, Mostly<1, 2> groups),                                 \
      convolved(d, x, kernel, stride, padding, dilation, groups), __VA_ARGS__)
#define CONV(name, spatial) \
  CONVOLUTION(              \
      name, spatial,        \
      name(x, weight(kernel, groups), std::nullopt, stride.or_ones(x), padding, dilation, groups))
#define TRANSPOSED(name, spatial, ...)                                            \
  ROW(name,                                                                       \
      (Picture<spatial> x, Each<1, 3> kernel, Strides stride, Each<0, 1> padding, \
       Each<1, 2> dilation, Each<0, 1> more, Mostly<1, 2> groups),                \
      transposed(d, x, kernel, stride, padding, dilation, more, groups), __VA_ARGS__)
#define CONV_TRANSPOSE(name, spatial)                                                        \
  TRANSPOSED(name, spatial,                                                                  \
             name(x, weight({2, 3}, kernel), std::nullopt, stride.or_ones(x), padding, more, \
                  groups, dilation))
#define ADAPTIVE(name, spatial) \
  ROW(name, (Picture<spatial> x, Output to), sized(d, x, to, 0, int64_t{1} << 60), name(x, to))
#define ADAPTIVE_BOTH(name, spatial)                                                      \
  ROW(name, (Picture<spatial> x, Output to), twice(sized(d, x, to, 0, int64_t{1} << 60)), \
      name(x, to))
// `s` is a scale, if there is one.
#define UPSAMPLE(name, spatial, ...)                                                 \
  COSTLY(name, 3, (Picture<spatial> x, Each<1, 9> to, Maybe<Number> scale),          \
         sized(d, x, to, 1, int64_t{1} << 40), [&](const std::optional<double>& s) { \
           return name(x, to, __VA_ARGS__);                                          \
         }(scale_of(scale)))

std::vector<SizeRow> size_rows_of_images() {
  return {
      MAX_POOL(max_pool1d, 1),
      MAX_POOL(max_pool2d, 2),
      MAX_POOL(max_pool3d, 3),
      AVG_POOL(avg_pool1d, 1, avg_pool1d(x, kernel, stride, padding, up)),
      AVG_POOL(avg_pool2d, 2, avg_pool2d(x, kernel, stride, padding, up)),
      AVG_POOL(avg_pool3d, 3, avg_pool3d(x, kernel, stride, padding, up)),
      AVG_POOL(avg_pool3d, 3, avg_pool3d(x.to(kLong), kernel, stride, padding, up, !up)),
      CONV(conv1d, 1),
      CONV(conv2d, 2),
      CONV(conv3d, 3),
      CONVOLUTION(convolution, 2,
                  convolution(x, weight(kernel, groups), std::nullopt, stride.or_ones(x), padding,
                              dilation, false, 0, groups)),
      TRANSPOSED(convolution, 1,
                 convolution(x, weight({2, 3}, kernel), std::nullopt, stride.or_ones(x), padding,
                             dilation, true, more, groups)),
      ROW(conv_tbc, (Some<3, 3, 1> x, Mostly<0, 2> pad), steps_of(x, pad),
          conv_tbc(x, zeros({2, x.size(2), 3}), zeros({3}), pad)),
      CONV_TRANSPOSE(conv_transpose1d, 1),
      CONV_TRANSPOSE(conv_transpose2d, 2),
      CONV_TRANSPOSE(conv_transpose3d, 3),
      ADAPTIVE(adaptive_avg_pool1d, 1),
      ADAPTIVE(adaptive_avg_pool2d, 2),
      ADAPTIVE(adaptive_avg_pool3d, 3),
      ADAPTIVE_BOTH(adaptive_max_pool1d, 1),
      ADAPTIVE_BOTH(adaptive_max_pool2d, 2),
      ADAPTIVE_BOTH(adaptive_max_pool3d, 3),
      UPSAMPLE(upsample_nearest1d, 1, s),
      UPSAMPLE(upsample_nearest2d, 2, s, s),
      UPSAMPLE(upsample_nearest3d, 3, s, s, s),
      UPSAMPLE(_upsample_nearest_exact1d, 1, s),
      UPSAMPLE(_upsample_nearest_exact2d, 2, s, s),
      UPSAMPLE(_upsample_nearest_exact3d, 3, s, s, s),
      UPSAMPLE(upsample_linear1d, 1, false, s),
      UPSAMPLE(upsample_bilinear2d, 2, false, s, s),
      UPSAMPLE(upsample_trilinear3d, 3, false, s, s, s),
      UPSAMPLE(upsample_bicubic2d, 2, false, s, s),
      UPSAMPLE(_upsample_bilinear2d_aa, 2, false, s, s),
      UPSAMPLE(_upsample_bicubic2d_aa, 2, false, s, s),
  };
}

}  // namespace fuzz
}  // namespace ramet
