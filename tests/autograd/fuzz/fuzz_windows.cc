#include "tests/autograd/fuzz/fuzz_windows.h"

#include <algorithm>
#include <cmath>

#include "autograd/autograd.h"
#include "autograd/ops.h"
#include "tests/autograd/check.h"

namespace ramet {
namespace {

using Wide = __int128;
constexpr int64_t kMost = INT64_MAX, kLargestExtent = 20;

const std::vector<int64_t>& distances() {
  static const std::vector<int64_t> list = {
      1,         2,     3,    5,         16,        17,        18,
      29,        10000, 1000, 1LL << 31, 1LL << 32, 1LL << 61, (1LL << 61) + 3,
      1LL << 62, kMost};
  return list;
}

struct Axis {
  int64_t in, kernel, stride, padding, dilation;
  bool ceil;
  Wide reach() const { return Wide{dilation} * (kernel - 1) + 1; }
  Wide out() const {
    const Wide room = in + Wide{2} * padding - reach();
    if (room < 0 && !(ceil && room + stride - 1 >= 0)) return 0;
    Wide n = (room + (ceil ? stride - 1 : 0)) / stride + 1;
    if (ceil && (n - 1) * stride >= Wide{in} + padding) --n;
    return n;
  }
  Wide begin(int64_t output) const { return Wide{output} * stride - padding; }
  // Of output i through tap r; below 0 or at least `in`: none.
  int64_t place(int64_t i, int64_t r) const {
    const Wide at = begin(i) + Wide{r} * dilation;
    return at < 0 || at >= in ? -1 : static_cast<int64_t>(at);
  }
  // Is input y in the window of output i?
  bool has(int64_t i, int64_t y) const {
    const Wide from = y - begin(i);
    return from >= 0 && from % dilation == 0 && from / dilation < kernel;
  }
  // The window with what of it lies in the padding.
  double counted(int64_t i) const {
    return static_cast<double>(std::min(begin(i) + kernel, Wide{in} + padding) - begin(i));
  }
};
std::ostream& operator<<(std::ostream& s, const Axis& a) {
  return s << a.in << " kernel " << a.kernel << " stride " << a.stride << " padding " << a.padding
           << " dilation " << a.dilation << (a.ceil ? " ceil" : "");
}

int64_t clamped(Wide x, Wide most) { return static_cast<int64_t>(std::clamp<Wide>(x, 0, most)); }

Axis drawn_axis(fuzz::Tape& tape, bool pool) {
  Axis a{};
  a.in = tape.between(1, 7);
  a.kernel = pool && tape.one_in(2) ? tape.one_of(distances()) : tape.between(1, 4);
  a.stride = tape.one_of(distances());
  a.dilation = tape.one_of(distances());
  a.ceil = pool && tape.one_in(2);
  const Wide most = pool ? std::min<Wide>(a.reach() / 2, kMost) : kMost;
  switch (tape.below(4)) {
    case 0: a.padding = clamped(tape.below(4), most); break;
    case 1:  // some outputs more than the least
      a.padding = clamped((a.reach() - a.in + 1) / 2 + tape.below(12), most);
      break;
    case 2: a.padding = clamped(Wide{a.dilation} * tape.below(4) + tape.below(9) - 4, most); break;
    default:  // an output of stride and dilation that overlaps the image
      a.padding = clamped(
          Wide{a.stride} * tape.below(3) + Wide{a.dilation} * tape.below(3) + tape.below(9) - 4,
          most);
  }
  return a;
}

using Values = std::vector<double>;
void compare(const char* what, const Tensor& t, const Values& want, double tolerance) {
  const Values got = values(t.detach().to(Device(kCPU, 0)).to(kDouble).contiguous());
  RC_ASSERT(got.size() == want.size());
  for (size_t i = 0; i < want.size(); ++i)
    if (!(std::fabs(got[i] - want[i]) <= tolerance * (1 + std::fabs(want[i]))))
      RC_FAIL(detail::join(what, " ", i, ": got ", got[i], ", expected ", want[i]));
}

// The reference's view of images: [images][channels][rows][columns].
struct Twin {
  Axis y, x;
  int64_t images, groups, ci, co;
  int64_t oh() const { return static_cast<int64_t>(y.out()); }
  int64_t ow() const { return static_cast<int64_t>(x.out()); }

  // f(result, input, weight) for every product.
  template <class F> void products(const F& f) const {
    const int64_t per = ci / groups, of = co / groups;
    for (int64_t i = 0; i < oh(); ++i)
      for (int64_t j = 0; j < ow(); ++j)
        for (int64_t r = 0; r < y.kernel; ++r)
          for (int64_t q = 0; q < x.kernel; ++q) {
            const int64_t row = y.place(i, r), column = x.place(j, q);
            if (row < 0 || column < 0) continue;
            for (int64_t n = 0; n < images; ++n)
              for (int64_t o = 0; o < co; ++o)
                for (int64_t c = 0; c < per; ++c)
                  f(static_cast<size_t>(((n * co + o) * oh() + i) * ow() + j),
                    static_cast<size_t>(((n * ci + o / of * per + c) * y.in + row) * x.in + column),
                    static_cast<size_t>(((o * per + c) * y.kernel + r) * x.kernel + q));
          }
  }
  Values forward(const Values& in, const Values& w) const {
    Values to(static_cast<size_t>(images * co * oh() * ow()));
    products([&](size_t a, size_t b, size_t c) { to[a] += in[b] * w[c]; });
    return to;
  }
  Values input(const Values& g, const Values& w) const {
    Values to(static_cast<size_t>(images * ci * y.in * x.in));
    products([&](size_t a, size_t b, size_t c) { to[b] += g[a] * w[c]; });
    return to;
  }
  Values weight(const Values& g, const Values& in) const {
    Values to(static_cast<size_t>(co * (ci / groups) * y.kernel * x.kernel));
    products([&](size_t a, size_t b, size_t c) { to[c] += g[a] * in[b]; });
    return to;
  }
};

}  // namespace

FarDraw check_far_convolution(fuzz::Tape& tape, Device device) {
  Twin t{drawn_axis(tape, false), drawn_axis(tape, false), tape.between(1, 2), 1, 1, 1};
  t.groups = tape.between(1, 2), t.ci = t.groups * tape.between(1, 2), t.co = 2 * t.groups;
  const ScalarType dtype = tape.one_in(2) ? kDouble : kFloat;
  const bool with_bias = tape.one_in(2), last = tape.one_in(3);
  RC_LOG() << "conv2d of " << t.y << ", " << t.x << ", channels " << t.ci << " to " << t.co
           << ", groups " << t.groups << ", " << name_of(dtype) << (with_bias ? ", bias" : "")
           << (last ? ", channels last" : "") << "\n";
  const auto made = [&](IntArrayRef sizes, int seed) {
    return varied(sizes, seed).to(dtype).to(device);
  };
  const auto seen = [](const Tensor& of) {
    return values(of.detach().to(Device(kCPU, 0)).to(kDouble).contiguous());
  };
  Tensor x = made({t.images, t.ci, t.y.in, t.x.in}, 1);
  if (last) x = x.permute({0, 2, 3, 1}).contiguous().permute({0, 3, 1, 2});
  x = x.detach().requires_grad_();
  const Tensor w = made({t.co, t.ci / t.groups, t.y.kernel, t.x.kernel}, 2).requires_grad_();
  const Tensor b = with_bias ? made({t.co}, 3).requires_grad_() : Tensor();
  const auto run = [&] {
    return conv2d(x, w, with_bias ? std::optional<Tensor>(b) : std::nullopt,
                  {t.y.stride, t.x.stride}, {t.y.padding, t.x.padding},
                  {t.y.dilation, t.x.dilation}, t.groups);
  };
  const Wide oh = t.y.out(), ow = t.x.out();
  if (oh < 1 || ow < 1) {
    bool refused = false;
    try {
      run();
    } catch (const Error&) { refused = true; }
    RC_ASSERT(refused);
    return FarDraw::kRefused;
  }
  if (oh > kLargestExtent || ow > kLargestExtent) return FarDraw::kLarge;
  const double tolerance = dtype == kDouble ? 1e-13 : 2e-6;
  const Tensor y = run();
  Values want = t.forward(seen(x), seen(w));
  const size_t pixels = static_cast<size_t>(oh * ow);
  if (with_bias)
    for (size_t i = 0; i < want.size(); ++i)
      want[i] += seen(b)[i / pixels % static_cast<size_t>(t.co)];
  compare("result", y, want, tolerance);
  const Tensor g = made(y.sizes(), 4).requires_grad_();
  for (bool create : {false, true}) {
    std::vector<Tensor> of = {x, w};
    if (with_bias) of.push_back(b);
    const auto d = autograd::grad({y}, of, {g}, true, create);
    compare("gradient of the input", d[0], t.input(seen(g), seen(w)), tolerance);
    compare("gradient of the weight", d[1], t.weight(seen(g), seen(x)), tolerance);
    if (with_bias) {
      Values sums(static_cast<size_t>(t.co));
      const Values all = seen(g);
      for (size_t i = 0; i < all.size(); ++i) sums[i / pixels % sums.size()] += all[i];
      compare("gradient of the bias", d[2], sums, 4 * tolerance);
    }
    if (!create) continue;
    const Tensor u = made(x.sizes(), 5), v = made(w.sizes(), 6);
    const auto by_x = autograd::grad({d[0]}, {g, w}, {u}, true),
               by_w = autograd::grad({d[1]}, {g, x}, {v}, true);
    compare("cotangent's gradient by the input's", by_x[0], t.forward(seen(u), seen(w)), tolerance);
    compare("weight's gradient by the input's", by_x[1], t.weight(seen(g), seen(u)), tolerance);
    compare("cotangent's gradient by the weight's", by_w[0], t.forward(seen(x), seen(v)),
            tolerance);
    compare("input's gradient by the weight's", by_w[1], t.input(seen(g), seen(v)), tolerance);
  }
  return FarDraw::kCompared;
}

FarDraw check_far_pool(fuzz::Tape& tape, Device device) {
  Axis r = drawn_axis(tape, true), q = drawn_axis(tape, true);
  const bool largest = tape.one_in(2), with_padding = tape.one_in(2), last = tape.one_in(2);
  q.ceil = r.ceil;
  if (!largest)
    for (Axis* a : {&r, &q}) a->dilation = 1, a->padding = std::min(a->padding, a->kernel / 2);
  const ScalarType dtype = tape.one_in(2) ? kDouble : kFloat;
  const int64_t channels = tape.between(1, 3);
  RC_LOG() << (largest ? "max_pool2d" : "avg_pool2d") << " of " << r << ", " << q << ", "
           << name_of(dtype) << (with_padding ? ", padding counted" : "")
           << (last ? ", channels last" : "") << "\n";
  Tensor x = varied({2, channels, r.in, q.in}, 1).to(dtype).to(device);
  if (last) x = x.permute({0, 2, 3, 1}).contiguous().permute({0, 3, 1, 2});
  x = x.detach().requires_grad_();
  Tensor index;
  const auto run = [&] {
    if (!largest)
      return avg_pool2d(x, {r.kernel, q.kernel}, {r.stride, q.stride}, {r.padding, q.padding},
                        r.ceil, with_padding);
    const auto both =
        max_pool2d_with_indices(x, {r.kernel, q.kernel}, {r.stride, q.stride},
                                {r.padding, q.padding}, {r.dilation, q.dilation}, r.ceil);
    index = std::get<1>(both);
    return std::get<0>(both);
  };
  const Wide oh = r.out(), ow = q.out();
  const auto empty = [](const Axis& a) {
    for (int64_t i = 0; i < a.out(); ++i) {
      bool any = false;
      for (int64_t y = 0; y < a.in; ++y) any |= a.has(i, y);
      if (!any) return true;
    }
    return false;
  };
  if (oh > kLargestExtent || ow > kLargestExtent) return FarDraw::kLarge;
  if (oh < 1 || ow < 1 || empty(r) || empty(q) || Wide{r.padding} + r.in > kMost ||
      Wide{q.padding} + q.in > kMost) {
    bool refused = false;
    try {
      run();
    } catch (const Error&) { refused = true; }
    RC_ASSERT(refused);
    return FarDraw::kRefused;
  }
  const Tensor y = run(), g = varied(y.sizes(), 2).to(dtype).to(device);
  const Values in = values(x.detach().to(Device(kCPU, 0)).to(kDouble).contiguous()),
               dy = values(g.to(Device(kCPU, 0)).to(kDouble).contiguous());
  Values want(dy.size()), at(dy.size()), dx(in.size());
  size_t o = 0;
  for (int64_t plane = 0; plane < 2 * channels; ++plane)
    for (int64_t i = 0; i < oh; ++i)
      for (int64_t j = 0; j < ow; ++j, ++o) {
        double best = -INFINITY, sum = 0, count = 0;
        int64_t where = -1;
        const auto each = [&](const auto& f) {
          for (int64_t a = 0; a < r.in; ++a)
            for (int64_t b = 0; b < q.in; ++b)
              if (r.has(i, a) && q.has(j, b)) f((plane * r.in + a) * q.in + b, a * q.in + b);
        };
        each([&](int64_t from, int64_t place) {
          const double v = in[static_cast<size_t>(from)];
          if (v > best) best = v, where = place;
          sum += v, ++count;
        });
        if (with_padding) count = r.counted(i) * q.counted(j);
        want[o] = largest ? best : sum / count;
        at[o] = static_cast<double>(where);
        each([&](int64_t from, int64_t place) {
          if (!largest) dx[static_cast<size_t>(from)] += dy[o] / count;
          else if (place == where) dx[static_cast<size_t>(from)] += dy[o];
        });
      }
  // Averages over 2^64 elements are small numbers.
  const auto scaled = [](const Tensor& of, Values v, const char* what, double tolerance) {
    double size = 1e-300;
    for (double one : v) size = std::max(size, std::fabs(one));
    for (double& one : v) one /= size;
    compare(what, of.detach().to(Device(kCPU, 0)).to(kDouble).div(size), v, tolerance);
  };
  const double tolerance = dtype == kDouble ? 1e-13 : 2e-6;
  scaled(y, want, "result", tolerance);
  if (largest) compare("index", index, at, 0);
  scaled(autograd::grad({y}, {x}, {g})[0], dx, "gradient", tolerance);
  return FarDraw::kCompared;
}

}  // namespace ramet
