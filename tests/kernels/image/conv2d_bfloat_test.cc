// Convolutions in bfloat16, compared bit by bit with the model in integers: Note [Convolution in
// pairs] in kernels/image/conv2d.h.
#include "kernels/image/conv2d.h"
#include "runtime/base/float_modes_internal.h"
#include "tests/kernels/matrix/bfloat_model.h"
#include "tests/kernels/raw.h"

namespace ramet::kernels::raw {
namespace {

using Elements = std::vector<uint16_t>;

enum class Places { kRows, kChannelsLast, kApart };  // kApart: nothing is dense

// A convolution and what the model expects of it. All elements are in the order of NCHW.
struct BfloatConv {
  Conv2dShape s;
  Places places = Places::kChannelsLast;
  bool with_bias = true;
  Elements x{}, w{}, b{}, dy{}, input_bias{};
  int64_t cig = s.ci / s.groups, cog = s.co / s.groups;

  std::string text() const {
    return detail::join("n ", s.n, " ci ", s.ci, " co ", s.co, " ", s.h, "x", s.w, " k ", s.kh, "x",
                        s.kw, " s ", s.sh, ",", s.sw, " p ", s.ph, ",", s.pw, " d ", s.dh, ",",
                        s.dw, " g ", s.groups, " places ", static_cast<int>(places));
  }
  // Large numbers that cancel each other, among small ones: another order gives other results.
  void fill(Values& v, bool special) {
    const auto draw = [&](Elements& e, int64_t n) {
      e.resize(static_cast<size_t>(n));
      for (uint16_t& i : e)
        i = static_cast<uint16_t>((v.bits() >> 40 & 0x807f) | (120 + v.below(10)) << 7);
    };
    draw(x, s.n * s.ci * s.h * s.w), draw(w, s.co * cig * s.kh * s.kw);
    draw(b, s.co), draw(dy, s.n * s.co * s.oh * s.ow), draw(input_bias, s.ci);
    const auto cancel = [](Elements& e, int64_t outer, int64_t lines, int64_t inner, int scale,
                           uint16_t sign) {
      for (int64_t i = 0; i < outer && lines > 1; ++i)
        for (int64_t j = 0; j < inner; ++j) {
          uint16_t& one = e[static_cast<size_t>(i * lines * inner + j)];
          one = static_cast<uint16_t>(one + (scale << 7));
          e[static_cast<size_t>((i * lines + lines - 1) * inner + j)] = one ^ sign;
        }
    };
    cancel(x, s.n * s.groups, cig, s.h * s.w, 18, 0x8000);
    cancel(w, s.co, cig, s.kh * s.kw, 0, 0);
    cancel(dy, s.n * s.groups, cog, s.oh * s.ow, 18, 0x8000);
    cancel(w, s.groups, cog, cig * s.kh * s.kw, 0, 0);
    cancel(x, 1, s.n, s.ci * s.h * s.w, 0, 0);
    cancel(dy, 1, s.n, s.co * s.oh * s.ow, 18, 0x8000);
    if (special)
      for (Elements* e : {&x, &w, &dy, &b, &input_bias})
        for (size_t i = 0; i < e->size() / 20 + 1; ++i)
          (*e)[static_cast<size_t>(v.below(static_cast<int64_t>(e->size())))] =
              v.below(8) ? static_cast<uint16_t>((v.bits() >> 40 & 0x807f) | v.below(70) << 7)
                         : static_cast<uint16_t>(v.bits() >> 40);
  }

  // Elements outside an image are zero.
  uint16_t at(const Elements& e, int64_t c, int64_t h, int64_t width, int64_t n, int64_t channel,
              int64_t i, int64_t j) const {
    if (i < 0 || i >= h || j < 0 || j >= width) return 0;
    return e[static_cast<size_t>(((n * c + channel) * h + i) * width + j)];
  }
  uint16_t weight(int64_t o, int64_t c, int64_t r, int64_t q) const {
    return w[static_cast<size_t>(((o * cig + c) * s.kh + r) * s.kw + q)];
  }
  uint16_t plus_bias(uint32_t sum, const Elements* bias, int64_t c) const {
    if (!bias) return to_bfloat(sum);
    return to_bfloat(as_bits(as_float(sum) + widened((*bias)[static_cast<size_t>(c)])));
  }

  uint16_t forward(int64_t n, int64_t o, int64_t i, int64_t j) const {
    const int64_t even = cig + cig % 2, g = o / cog;
    const uint32_t sum = model_chain(
        0, s.kh * s.kw * even,
        [&](int64_t e) {
          const int64_t c = e % even, q = e / even % s.kw, r = e / even / s.kw;
          return c == cig ? uint16_t{0}
                          : at(x, s.ci, s.h, s.w, n, g * cig + c, i * s.sh - s.ph + r * s.dh,
                               j * s.sw - s.pw + q * s.dw);
        },
        [&](int64_t e) {
          const int64_t c = e % even;
          return c == cig ? uint16_t{0} : weight(o, c, e / even / s.kw, e / even % s.kw);
        });
    return plus_bias(sum, with_bias ? &b : nullptr, o);
  }
  uint16_t backward_input(int64_t n, int64_t c, int64_t i, int64_t j) const {
    // Rows and columns of dy in ascending order.
    std::vector<std::array<int64_t, 4>> taps;
    for (int64_t r = s.kh - 1; r >= 0; --r)
      for (int64_t q = s.kw - 1; q >= 0; --q) {
        const int64_t y = i + s.ph - r * s.dh, z = j + s.pw - q * s.dw;
        if (y % s.sh == 0 && z % s.sw == 0) taps.push_back({r, q, y / s.sh, z / s.sw});
      }
    const int64_t even = cog + cog % 2, g = c / cig;
    const uint32_t sum = model_chain(
        0, static_cast<int64_t>(taps.size()) * even,
        [&](int64_t e) {
          const auto& tap = taps[static_cast<size_t>(e / even)];
          return e % even == cog ? uint16_t{0}
                                 : at(dy, s.co, s.oh, s.ow, n, g * cog + e % even, tap[2], tap[3]);
        },
        [&](int64_t e) {
          const auto& tap = taps[static_cast<size_t>(e / even)];
          return e % even == cog ? uint16_t{0}
                                 : weight(g * cog + e % even, c % cig, tap[0], tap[1]);
        });
    return plus_bias(sum, with_bias ? &input_bias : nullptr, c);
  }
  uint16_t backward_weight(int64_t o, int64_t c, int64_t r, int64_t q) const {
    const Conv2dBfloatWeightPlan p = conv2d_bfloat_weight_plan(s);
    float total = 0;
    for (int64_t first = 0; first < s.n; first += p.per) {
      const int64_t plane = s.oh * s.ow, images = std::min(p.per, s.n - first);
      total += as_float(model_chain(
          0, images * plane,
          [&](int64_t e) {
            return at(x, s.ci, s.h, s.w, first + e / plane, o / cog * cig + c,
                      e % plane / s.ow * s.sh - s.ph + r * s.dh, e % s.ow * s.sw - s.pw + q * s.dw);
          },
          [&](int64_t e) {
            return at(dy, s.co, s.oh, s.ow, first + e / plane, o, e % plane / s.ow, e % s.ow);
          }));
    }
    return to_bfloat(as_bits(total));
  }
  uint16_t backward_bias(int64_t o) const {
    const Conv2dBfloatWeightPlan p = conv2d_bfloat_weight_plan(s);
    double total = 0;
    for (int64_t first = 0; first < s.n; first += p.per) {
      float part = 0;
      for (int64_t n = first; n < std::min(s.n, first + p.per); ++n)
        for (int64_t e = 0; e < s.oh * s.ow; ++e)
          part += widened(at(dy, s.co, s.oh, s.ow, n, o, e / s.ow, e % s.ow));
      total += part;
    }
    return to_bfloat(as_bits(static_cast<float>(total)));
  }

  // ---- the kernels ----
  int64_t apart() const { return places == Places::kApart ? 2 : 1; }
  ImageView view(Buffer& to, int64_t c, int64_t h, int64_t width) const {
    if (places == Places::kChannelsLast) return {to.data(), c * h * width, 1, width * c, c};
    return {to.data(), apart() * c * h * width, apart() * h * width, apart() * width, apart()};
  }
  template <class F>
  void each(const ImageView& v, int64_t c, int64_t h, int64_t width, const F& f) const {
    for (int64_t i = 0; i < s.n * c * h * width; ++i)
      f(i, i / (c * h * width) * v.n + i / (h * width) % c * v.c + i / width % h * v.h +
               i % width * v.w);
  }
  Buffer images(const Elements& e, int64_t c, int64_t h, int64_t width) const {
    Buffer out(s.n * c * h * width * apart(), kBFloat16);
    each(view(out, c, h, width), c, h, width, [&](int64_t i, int64_t place) {
      out.as<uint16_t>()[place] = e.empty() ? 0x7777 : e[static_cast<size_t>(i)];
    });
    return out;
  }
  static Buffer dense(const Elements& e) {
    Buffer out(static_cast<int64_t>(e.size()), kBFloat16);
    for (size_t i = 0; i < e.size(); ++i) out.as<uint16_t>()[i] = e[i];
    return out;
  }
  template <class Bytes, class Kernel>
  void run(Buffer& images_x, Buffer& images_y, Buffer& weights, Buffer* bias, const Bytes& bytes,
           const Kernel& kernel) const {
    Conv2dArgs a{s,
                 view(images_x, s.ci, s.h, s.w),
                 view(images_y, s.co, s.oh, s.ow),
                 weights.data(),
                 with_bias ? bias->data() : nullptr,
                 kBFloat16,
                 nullptr};
    conv2d_simplify(a);
    Buffer work(bytes(a, max_parallel_slots()), kByte);
    a.workspace = work.data();
    kernel(kCpuStream, a);
    EXPECT_TRUE(work.guards_intact()) << "a write outside the workspace";
  }
  // y, dx, dw, db
  std::vector<Buffer> results() const {
    Buffer in = images(x, s.ci, s.h, s.w), grad = images(dy, s.co, s.oh, s.ow), filter = dense(w),
           bias = dense(b), of_input = dense(input_bias);
    Buffer y = images({}, s.co, s.oh, s.ow), dx = images({}, s.ci, s.h, s.w),
           dw(filter.size, kBFloat16), db(s.co, kBFloat16);
    run(in, y, filter, &bias, conv2d_forward_workspace, conv2d_forward);
    run(dx, grad, filter, &of_input, conv2d_backward_input_workspace, conv2d_backward_input);
    run(in, grad, dw, &db, conv2d_backward_weight_workspace, conv2d_backward_weight);
    for (const Buffer* out : {&y, &dx, &dw, &db}) EXPECT_TRUE(out->guards_intact());
    return {y, dx, dw, db};
  }

  void expect_model() const {
    SCOPED_TRACE(text());
    std::vector<Elements> want(4);
    const auto over = [](Elements& to, int64_t a, int64_t c, int64_t h, int64_t width,
                         const auto& f) {
      for (int64_t i = 0; i < a * c * h * width; ++i)
        to.push_back(f(i / (c * h * width), i / (h * width) % c, i / width % h, i % width));
    };
    over(want[0], s.n, s.co, s.oh, s.ow, [&](auto... i) { return forward(i...); });
    over(want[1], s.n, s.ci, s.h, s.w, [&](auto... i) { return backward_input(i...); });
    over(want[2], s.co, cig, s.kh, s.kw, [&](auto... i) { return backward_weight(i...); });
    for (int64_t o = 0; o < s.co; ++o) want[3].push_back(backward_bias(o));
    for_each_way([&] {
      const uint64_t before = ramet::detail::float_modes();
      std::vector<Buffer> got = results();
      EXPECT_EQ(ramet::detail::float_modes(), before);
      const char* names[] = {"y", "dx", "dw", "db"};
      const auto compare = [&](size_t r, int64_t i, int64_t place) {
        ASSERT_EQ(got[r].as<uint16_t>()[place], want[r][static_cast<size_t>(i)])
            << names[r] << " " << i;
      };
      each(view(got[0], s.co, s.oh, s.ow), s.co, s.oh, s.ow,
           [&](int64_t i, int64_t place) { compare(0, i, place); });
      each(view(got[1], s.ci, s.h, s.w), s.ci, s.h, s.w,
           [&](int64_t i, int64_t place) { compare(1, i, place); });
      for (int64_t i = 0; i < got[2].size; ++i) compare(2, i, i);
      for (int64_t i = 0; i < got[3].size && with_bias; ++i) compare(3, i, i);
    });
  }
};

Conv2dShape bfloat_shape(int64_t n, int64_t ci, int64_t co, int64_t h, int64_t w, int64_t kh,
                         int64_t kw, int64_t stride, int64_t pad, int64_t dilation = 1,
                         int64_t groups = 1) {
  const auto out = [&](int64_t size, int64_t k) {
    return (size + 2 * pad - dilation * (k - 1) - 1) / stride + 1;
  };
  return {n,  ci,     h,      w,   co,  out(h, kh), out(w, kw), kh,
          kw, stride, stride, pad, pad, dilation,   dilation,   groups};
}

TEST(Conv2dBfloat, IsTheModel) {
  const Conv2dShape shapes[] = {
      bfloat_shape(2, 8, 9, 5, 6, 3, 3, 1, 1),   bfloat_shape(3, 9, 33, 6, 7, 3, 2, 2, 1),
      bfloat_shape(3, 3, 17, 7, 8, 3, 3, 1, 1),  bfloat_shape(2, 10, 4, 9, 8, 3, 3, 1, 2, 2),
      bfloat_shape(9, 12, 16, 4, 5, 4, 4, 2, 1), bfloat_shape(2, 12, 18, 6, 5, 3, 3, 2, 1, 1, 3),
      bfloat_shape(2, 8, 40, 5, 7, 1, 1, 1, 0),  bfloat_shape(1, 2, 3, 4, 4, 1, 1, 3, 0),
      bfloat_shape(17, 4, 6, 3, 3, 2, 2, 1, 0),  bfloat_shape(1, 1, 1, 5, 5, 2, 2, 3, 4, 2),
      bfloat_shape(1, 34, 8, 24, 40, 1, 3, 1, 1)};
  Values v(1);
  for (const Conv2dShape& s : shapes)
    for (Places places : {Places::kRows, Places::kChannelsLast, Places::kApart}) {
      BfloatConv c{s, places, v.below(3) > 0};
      c.fill(v, false);
      c.expect_model();
    }
}

TEST(Conv2dBfloat, IsTheModelForNumbersThatAreNotOrdinary) {
  Values v(2);
  for (int round = 0; round < 12; ++round) {
    BfloatConv c{
        bfloat_shape(1 + v.below(4), 1 + v.below(9), 1 + v.below(20), 3 + v.below(5),
                     3 + v.below(5), 1 + v.below(3), 1 + v.below(3), 1 + v.below(2), v.below(2)),
        static_cast<Places>(v.below(3)), v.below(2) == 1};
    c.fill(v, true);
    c.expect_model();
  }
}

TEST(Conv2dBfloat, SameBitsForEveryVariantAndThreadCount) {
  const Conv2dShape shapes[] = {bfloat_shape(20, 16, 40, 9, 15, 3, 3, 1, 1),
                                bfloat_shape(3, 32, 20, 14, 13, 5, 3, 2, 2),
                                bfloat_shape(2, 64, 96, 20, 20, 3, 3, 1, 1, 1, 2)};
  const int threads = get_num_threads();
  Values v(3);
  for (const Conv2dShape& s : shapes) {
    BfloatConv c{s};
    c.fill(v, false);
    SCOPED_TRACE(c.text());
    std::vector<Buffer> want;
    for (Places places : {Places::kRows, Places::kChannelsLast}) {
      c.places = places;
      want.clear();
      for_each_way([&] {
        for (int n : {1, 3}) {
          set_num_threads(n);
          const std::vector<Buffer> got = c.results();
          if (want.empty()) want = got;
          for (size_t i = 0; i < got.size(); ++i)
            EXPECT_TRUE(got[i].same_bits(want[i])) << "result " << i << ", " << n << " threads";
        }
      });
    }
  }
  set_num_threads(threads);
}

TEST(Conv2dBfloat, EmptyBatch) {
  BfloatConv c{bfloat_shape(0, 8, 9, 5, 7, 3, 3, 1, 1)};
  Values v(4);
  c.fill(v, false);
  for_each_way([&] {
    const std::vector<Buffer> got = c.results();
    for (int64_t i = 0; i < got[2].size; ++i) ASSERT_EQ(got[2][i], 0);
    for (int64_t i = 0; i < got[3].size; ++i) ASSERT_EQ(got[3][i], 0);
  });
}

}  // namespace
}  // namespace ramet::kernels::raw
