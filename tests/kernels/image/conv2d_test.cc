#include "kernels/image/conv2d.h"

#include "tests/kernels/raw.h"

namespace ramet::kernels::raw {
namespace {

enum Layout { kNchw, kChannelsLast, kOdd };  // kOdd: neither dimension dense

ImageView view(Buffer& b, int64_t c, int64_t h, int64_t w, Layout layout) {
  if (layout == kNchw) return {b.data(), c * h * w, h * w, w, 1};
  if (layout == kChannelsLast) return {b.data(), c * h * w, 1, w * c, c};
  return {b.data(), 2 * c * h * w, 2 * h * w, 2 * w, 2};
}
int64_t span(Layout layout) { return layout == kOdd ? 2 : 1; }

// f(place, channel) for each element.
template <class F>
void each(int64_t n, int64_t c, int64_t h, int64_t w, const ImageView& v, const F& f) {
  for (int64_t i = 0; i < n * c * h * w; ++i) {
    const int64_t channel = i / (h * w) % c;
    f(i / (c * h * w) * v.n + channel * v.c + i / w % h * v.h + i % w * v.w, channel);
  }
}

// One convolution with operands, and with naive gradients in double.
struct Case {
  Conv2dShape s;
  ScalarType dtype;
  Layout lx, ly;
  bool with_bias;
  Buffer x, w, b, dy;

  Case(Conv2dShape shape, ScalarType t, Layout x_layout, Layout y_layout, bool bias, uint64_t seed)
      : s(shape),
        dtype(t),
        lx(x_layout),
        ly(y_layout),
        with_bias(bias),
        x(s.n * s.ci * s.h * s.w * span(lx), t),
        w(s.co * (s.ci / s.groups) * s.kh * s.kw, t),
        b(s.co, t),
        dy(s.n * s.co * s.oh * s.ow * span(ly), t) {
    Values v(seed);
    x.fill(v), w.fill(v), b.fill(v), dy.fill(v);
  }
  Conv2dArgs args(Buffer& xb, Buffer& yb, void* weight, void* bias) {
    Conv2dArgs a{s,      view(xb, s.ci, s.h, s.w, lx), view(yb, s.co, s.oh, s.ow, ly),
                 weight, with_bias ? bias : nullptr,   dtype,
                 nullptr};
    conv2d_simplify(a);
    return a;
  }
  template <class Bytes, class Kernel> void run(Conv2dArgs a, Bytes bytes, const Kernel& kernel) {
    Buffer work(bytes(a, max_parallel_slots()), ScalarType::Byte);
    a.workspace = work.data();
    kernel(kCpuStream, a);
    EXPECT_TRUE(work.guards_intact()) << "a write outside the workspace";
  }
  void forward(Buffer& y) {
    run(args(x, y, w.data(), b.data()), conv2d_forward_workspace, conv2d_forward);
  }
  void backward_input(Buffer& dx) {
    run(args(dx, dy, w.data(), nullptr), conv2d_backward_input_workspace, conv2d_backward_input);
  }
  void backward_weight(Buffer& dw, Buffer& db) {
    run(args(x, dy, dw.data(), db.data()), conv2d_backward_weight_workspace,
        conv2d_backward_weight);
  }

  // f(x element, weight element, y element, output channel) for every product of the convolution.
  template <class F> void products(const F& f) {
    Buffer none(0, dtype);
    const ImageView vx = view(x, s.ci, s.h, s.w, lx), vy = view(dy, s.co, s.oh, s.ow, ly);
    const int64_t cig = s.ci / s.groups, cog = s.co / s.groups;
    for (int64_t n = 0; n < s.n; ++n)
      for (int64_t o = 0; o < s.co; ++o)
        for (int64_t i = 0; i < s.oh; ++i)
          for (int64_t j = 0; j < s.ow; ++j)
            for (int64_t c = 0; c < cig; ++c)
              for (int64_t r = 0; r < s.kh; ++r)
                for (int64_t q = 0; q < s.kw; ++q) {
                  const int64_t y = i * s.sh - s.ph + r * s.dh, xx = j * s.sw - s.pw + q * s.dw;
                  if (y < 0 || y >= s.h || xx < 0 || xx >= s.w) continue;
                  f(n * vx.n + (o / cog * cig + c) * vx.c + y * vx.h + xx * vx.w,
                    ((o * cig + c) * s.kh + r) * s.kw + q,
                    n * vy.n + o * vy.c + i * vy.h + j * vy.w, o);
                }
  }
};

struct Sum {
  std::vector<double> value, size;
  explicit Sum(int64_t n) : value(static_cast<size_t>(n)), size(static_cast<size_t>(n)) {}
  void add(int64_t i, double v) {
    value[static_cast<size_t>(i)] += v, size[static_cast<size_t>(i)] += std::fabs(v);
  }
  void expect(const Buffer& got, const char* what) const {
    const double bound = got.dtype == ScalarType::Float    ? 4e-6
                         : got.dtype == ScalarType::Double ? 1e-14
                                                           : 0;
    for (int64_t i = 0; i < got.size; ++i)
      ASSERT_LE(std::fabs(got[i] - value[static_cast<size_t>(i)]),
                bound * size[static_cast<size_t>(i)])
          << what << " at " << i << ": got " << got[i] << ", expected "
          << value[static_cast<size_t>(i)];
    EXPECT_TRUE(got.guards_intact()) << what;
  }
};

void check_all(Case c) {
  const Conv2dShape& s = c.s;
  SCOPED_TRACE(detail::join("n ", s.n, " ci ", s.ci, " co ", s.co, " ", s.h, "x", s.w, " k ", s.kh,
                            "x", s.kw, " s ", s.sh, ",", s.sw, " p ", s.ph, ",", s.pw, " d ", s.dh,
                            ",", s.dw, " g ", s.groups, " layouts ", c.lx, c.ly));
  Buffer y(c.dy.size, c.dtype), dx(c.x.size, c.dtype), dw(c.w.size, c.dtype), db(s.co, c.dtype);
  y.fill(0), dx.fill(0);  // gaps of kOdd stay zero; what lies between them is written again
  Sum sy(y.size), sdx(dx.size), sdw(dw.size), sdb(s.co);
  each(s.n, s.co, s.oh, s.ow, view(c.dy, s.co, s.oh, s.ow, c.ly), [&](int64_t at, int64_t o) {
    y.set(at, 77);
    if (c.with_bias) sy.add(at, c.b[o]);
    sdb.add(o, c.dy[at]);
  });
  each(s.n, s.ci, s.h, s.w, view(c.x, s.ci, s.h, s.w, c.lx),
       [&](int64_t at, int64_t) { dx.set(at, 77); });
  c.products([&](int64_t xi, int64_t wi, int64_t yi, int64_t) {
    sy.add(yi, c.x[xi] * c.w[wi]);
    sdx.add(xi, c.dy[yi] * c.w[wi]);
    sdw.add(wi, c.x[xi] * c.dy[yi]);
  });
  c.forward(y);
  sy.expect(y, "y");
  c.backward_input(dx);
  sdx.expect(dx, "dx");
  c.backward_weight(dw, db);
  sdw.expect(dw, "dw");
  if (c.with_bias) sdb.expect(db, "db");
}

Conv2dShape shape(int64_t n, int64_t ci, int64_t co, int64_t h, int64_t w, int64_t kh, int64_t kw,
                  int64_t sh = 1, int64_t sw = 1, int64_t ph = 0, int64_t pw = 0, int64_t dh = 1,
                  int64_t dw = 1, int64_t groups = 1) {
  return {n,
          ci,
          h,
          w,
          co,
          (h + 2 * ph - dh * (kh - 1) - 1) / sh + 1,
          (w + 2 * pw - dw * (kw - 1) - 1) / sw + 1,
          kh,
          kw,
          sh,
          sw,
          ph,
          pw,
          dh,
          dw,
          groups};
}

TEST(Conv2d, AgreesWithTheDefinition) {
  for_each_variant([](Variant variant) {
    const ScalarType f = ScalarType::Float;
    check_all({shape(2, 3, 5, 7, 8, 3, 3, 1, 1, 1, 1), f, kNchw, kNchw, true, 1});
    check_all({shape(17, 1, 33, 9, 9, 3, 3, 1, 1, 1, 1), f, kNchw, kChannelsLast, true, 2});
    check_all(
        {shape(3, 16, 40, 6, 20, 3, 3, 1, 1, 1, 1), f, kChannelsLast, kChannelsLast, false, 3});
    check_all({shape(2, 8, 4, 5, 6, 1, 1), f, kNchw, kNchw, true, 4});
    check_all({shape(2, 8, 24, 5, 6, 1, 1), f, kChannelsLast, kChannelsLast, true, 5});
    check_all({shape(2, 6, 4, 9, 8, 3, 2, 2, 3, 1, 0), f, kNchw, kNchw, false, 6});
    check_all({shape(2, 6, 9, 11, 10, 3, 3, 1, 1, 2, 2, 2, 2), f, kChannelsLast, kNchw, true, 7});
    check_all({shape(2, 6, 9, 7, 7, 3, 3, 2, 2, 1, 1, 1, 1, 3), f, kChannelsLast, kChannelsLast,
               true, 8});
    check_all({shape(2, 6, 6, 7, 7, 3, 3, 1, 1, 1, 1, 1, 1, 6), f, kNchw, kNchw, true, 9});
    // padding wider than the filter
    check_all({shape(1, 2, 2, 5, 5, 2, 2, 3, 3, 4, 4, 3, 2), f, kOdd, kOdd, true, 10});
    // inputs that nothing reads
    check_all({shape(1, 2, 3, 4, 4, 1, 1, 3, 3), f, kNchw, kNchw, true, 11});
    check_all({shape(2, 20, 3, 12, 5, 5, 5, 1, 1, 2, 2), f, kNchw, kOdd, false, 12});
    Values pick(20 + static_cast<int>(variant));
    for (int round = 0; round < 40; ++round) {
      const int64_t groups = round % 3 ? 1 : 1 + pick.below(3);
      Conv2dShape s{};
      s.n = 1 + pick.below(4), s.groups = groups,
      s.ci = groups * (1 + pick.below(round % 5 ? 4 : 20)),
      s.co = groups * (1 + pick.below(round % 4 ? 6 : 40));
      s.kh = 1 + pick.below(4), s.kw = 1 + pick.below(4), s.sh = 1 + pick.below(3),
      s.sw = 1 + pick.below(3);
      s.ph = pick.below(4), s.pw = pick.below(4), s.dh = 1 + pick.below(2),
      s.dw = 1 + pick.below(2);
      s.h = s.dh * (s.kh - 1) + 1 + pick.below(9), s.w = s.dw * (s.kw - 1) + 1 + pick.below(17);
      s.oh = (s.h + 2 * s.ph - s.dh * (s.kh - 1) - 1) / s.sh + 1,
      s.ow = (s.w + 2 * s.pw - s.dw * (s.kw - 1) - 1) / s.sw + 1;
      check_all({s, f, static_cast<Layout>(pick.below(3)), static_cast<Layout>(pick.below(3)),
                 pick.below(2) == 1, 50 + static_cast<uint64_t>(round)});
    }
  });
}

// Fewer outputs than the image allows, and more, with zeros only on the right and below.
TEST(Conv2d, PaddingOfOneSide) {
  for_each_variant([](Variant variant) {
    Values pick(90 + static_cast<int>(variant));
    for (int round = 0; round < 40; ++round) {
      const int64_t kernel = 1 + pick.below(3);
      Conv2dShape s = shape(1 + pick.below(3), 1 + pick.below(20), 1 + pick.below(20),
                            kernel + 3 + pick.below(9), kernel + 3 + pick.below(17), kernel, kernel,
                            1 + pick.below(2), 1 + pick.below(2), pick.below(2), pick.below(2));
      s.oh += pick.below(4) - 1, s.ow += pick.below(4) - 1;
      const ScalarType t = round % 4 ? ScalarType::Float : ScalarType::Double;
      check_all({s, t, static_cast<Layout>(pick.below(3)), static_cast<Layout>(pick.below(3)),
                 pick.below(2) == 1, 300 + static_cast<uint64_t>(round)});
    }
  });
}

// Of short rows: tiles of several images, and a gradient of the weight tile by tile.
TEST(Conv2d, SmallImages) {
  const Conv2dShape shapes[] = {
      shape(17, 6, 40, 5, 7, 4, 4, 2, 2, 1, 1), shape(20, 36, 10, 4, 4, 4, 4),
      shape(8, 64, 70, 4, 4, 3, 3, 1, 1, 1, 1),  // images 4 KB apart
      shape(33, 40, 40, 3, 3, 2, 3, 3, 3, 1, 0), shape(9, 40, 70, 6, 5, 3, 2, 3, 1, 2, 1, 2, 1)};
  for_each_variant([&](Variant) {
    uint64_t seed = 400;
    for (const Conv2dShape& s : shapes) {
      EXPECT_TRUE(conv2d_forward_plan(s).by_images);
      EXPECT_TRUE(conv2d_backward_input_plan(s).by_images);
      EXPECT_TRUE(conv2d_backward_weight_plan(s).by_tiles);
      for (Layout layout : {kNchw, kChannelsLast, kOdd})
        check_all({s, ScalarType::Float, layout, layout, true, ++seed});
      check_all({s, ScalarType::Float, kChannelsLast, kNchw, false, ++seed});
    }
    // Several images at a time for the gradient of the weight, and those that are left.
    const Conv2dShape several = shape(21, 16, 80, 9, 11, 3, 3, 1, 1, 1, 1);
    EXPECT_GT(conv2d_backward_weight_plan(several).batch, 1);
    EXPECT_FALSE(conv2d_backward_weight_plan(several).by_tiles);
    check_all({several, ScalarType::Float, kChannelsLast, kNchw, true, 500});
  });
}

// Of few channels: vectors of pixels.
TEST(Conv2d, FewChannels) {
  const Conv2dShape results[] = {
      shape(2, 20, 1, 11, 21, 3, 3, 1, 1, 1, 1), shape(3, 9, 4, 9, 37, 3, 2, 2, 1, 2, 3, 2, 3),
      shape(1, 16, 1, 30, 30, 1, 1), shape(2, 35, 35, 10, 19, 3, 3, 1, 1, 1, 1, 1, 1, 35),
      shape(9, 18, 36, 10, 9, 3, 5, 2, 1, 1, 2, 1, 2, 18)};
  const Conv2dShape sources[] = {shape(2, 1, 64, 28, 26, 4, 4, 2, 2, 1, 1),
                                 shape(3, 3, 10, 12, 19, 3, 5, 1, 3, 0, 2, 2, 1),
                                 shape(2, 20, 20, 12, 19, 3, 6, 2, 2, 1, 2, 1, 1, 20)};
  for_each_variant([&](Variant) {
    uint64_t seed = 600;
    const auto check = [&](const Conv2dShape& s) {
      for (Layout layout : {kNchw, kChannelsLast, kOdd})
        check_all({s, ScalarType::Float, layout, layout, true, ++seed});
    };
    for (const Conv2dShape& s : results) {
      EXPECT_GT(conv2d_forward_plan(s).plane, 0);
      check(s);
    }
    for (const Conv2dShape& s : sources) {
      EXPECT_GT(conv2d_backward_input_plan(s).plane, 0);
      check(s);
    }
  });
}

// Each channel by itself: vectors of channels.
TEST(Conv2d, Depthwise) {
  const Conv2dShape shapes[] = {shape(2, 8, 8, 7, 6, 3, 3, 1, 1, 1, 1, 1, 1, 8),
                                shape(1, 33, 33, 14, 23, 5, 5, 2, 2, 2, 2, 1, 1, 33),
                                shape(3, 17, 17, 9, 12, 3, 2, 1, 3, 4, 5, 2, 3, 17),
                                shape(2, 40, 40, 2, 3, 3, 5, 1, 1, 2, 2, 1, 1, 40),
                                shape(1, 9, 9, 5, 5, 5, 5, 1, 1, 0, 0, 1, 1, 9),
                                shape(2, 12, 12, 4, 30, 1, 7, 1, 2, 0, 3, 1, 1, 12)};
  for_each_variant([&](Variant) {
    uint64_t seed = 800;
    for (const Conv2dShape& s : shapes)
      for (const bool bias : {true, false})
        check_all({s, ScalarType::Float, kChannelsLast, kChannelsLast, bias, ++seed});
  });
}

TEST(Conv2d, DoubleAndInteger) {
  for_each_variant([](Variant) {
    for (ScalarType t : {ScalarType::Double, ScalarType::Long}) {
      check_all({shape(2, 3, 5, 7, 8, 3, 3, 1, 1, 1, 1), t, kNchw, kNchw, true, 1});
      check_all(
          {shape(9, 6, 9, 7, 7, 3, 2, 2, 2, 1, 1, 2, 1, 3), t, kChannelsLast, kNchw, true, 8});
      // several blocks of rows
      check_all({shape(1, 40, 20, 33, 70, 3, 3), t, kNchw, kChannelsLast, false, 9});
    }
  });
}

TEST(Conv2d, LargeImageInBlocksOfRows) {
  check_all({shape(1, 64, 8, 40, 100, 3, 3, 1, 1, 1, 1), ScalarType::Float, kNchw, kNchw, true, 1});
  check_all(
      {shape(1, 16, 64, 60, 100, 3, 3, 2, 1, 1, 1), ScalarType::Float, kNchw, kNchw, true, 2});
}

TEST(Conv2d, EmptyBatch) {
  for (ScalarType t : {ScalarType::Float, ScalarType::Double}) {
    Case c(shape(0, 3, 5, 7, 8, 3, 3, 1, 1, 1, 1), t, kNchw, kNchw, true, 1);
    Buffer y(0, t), dx(0, t), dw(c.w.size, t), db(5, t);
    c.forward(y), c.backward_input(dx), c.backward_weight(dw, db);
    for (int64_t i = 0; i < dw.size; ++i) ASSERT_EQ(dw[i], 0);
    for (int64_t i = 0; i < 5; ++i) ASSERT_EQ(db[i], 0);
  }
}

TEST(Conv2d, SameBitsForEveryThreadCountAndVectorWidth) {
  const Conv2dShape shapes[] = {shape(20, 3, 40, 9, 15, 3, 3, 1, 1, 1, 1),
                                shape(3, 32, 20, 14, 14, 3, 3, 1, 1, 1, 1),
                                shape(2, 8, 12, 20, 13, 5, 3, 2, 2, 2, 1),
                                shape(2, 6, 12, 20, 13, 3, 3, 1, 1, 2, 2, 2, 2, 3),
                                shape(70, 4, 6, 5, 5, 2, 2),
                                shape(40, 12, 40, 5, 7, 4, 4, 2, 2, 1, 1),
                                shape(21, 16, 80, 9, 11, 3, 3, 1, 1, 1, 1),
                                shape(3, 20, 2, 11, 21, 3, 3, 1, 1, 1, 1),
                                shape(2, 2, 40, 28, 26, 4, 4, 2, 2, 1, 1),
                                shape(10, 35, 35, 10, 19, 3, 3, 1, 1, 1, 1, 1, 1, 35),
                                shape(1, 70, 70, 21, 13, 3, 5, 2, 1, 1, 2, 1, 1, 70)};
  uint64_t seed = 0;
  for (const Conv2dShape& s : shapes)
    for (Layout layout : {kNchw, kChannelsLast}) {
      Case c(s, ScalarType::Float, layout, layout, true, ++seed);
      Buffer y(c.dy.size, c.dtype), dx(c.x.size, c.dtype), dw(c.w.size, c.dtype), db(s.co, c.dtype);
      expect_same_bits({&y, &dx, &dw, &db},
                       [&] { c.forward(y), c.backward_input(dx), c.backward_weight(dw, db); });
    }
}

// An image's result has the same bits alone and in a batch, and the layouts do not matter.
TEST(Conv2d, AnImageDoesNotDependOnTheBatchOrTheLayout) {
  const auto check = [](const Conv2dShape& s) {
    Case all(s, ScalarType::Float, kNchw, kNchw, true, 3);
    Buffer y(all.dy.size, all.dtype), dx(all.x.size, all.dtype);
    all.forward(y), all.backward_input(dx);
    Conv2dShape one_shape = s;
    one_shape.n = 1;
    for (Layout layout : {kNchw, kChannelsLast}) {
      Case one(one_shape, ScalarType::Float, layout, layout, true, 3);
      one.w = all.w, one.b = all.b;
      const ImageView vx = view(one.x, s.ci, s.h, s.w, layout),
                      vy = view(one.dy, s.co, s.oh, s.ow, layout);
      const int64_t n = 7;
      const auto each = [&](int64_t c, int64_t h, int64_t w, const ImageView& v, const auto& f) {
        for (int64_t i = 0; i < c * h * w; ++i)
          f(n * c * h * w + i, i / (h * w) * v.c + i / w % h * v.h + i % w * v.w);
      };
      each(s.ci, s.h, s.w, vx, [&](int64_t from, int64_t to) { one.x.set(to, all.x[from]); });
      each(s.co, s.oh, s.ow, vy, [&](int64_t from, int64_t to) { one.dy.set(to, all.dy[from]); });
      Buffer y1(one.dy.size, one.dtype), dx1(one.x.size, one.dtype);
      one.forward(y1), one.backward_input(dx1);
      each(s.co, s.oh, s.ow, vy, [&](int64_t from, int64_t to) { ASSERT_EQ(y[from], y1[to]); });
      each(s.ci, s.h, s.w, vx, [&](int64_t from, int64_t to) { ASSERT_EQ(dx[from], dx1[to]); });
    }
  };
  for_each_variant([&](Variant) {
    check(shape(18, 5, 40, 11, 17, 3, 3, 1, 1, 1, 1));
    check(shape(18, 5, 40, 6, 7, 3, 3, 2, 2, 1, 1));
    check(shape(18, 20, 20, 11, 9, 3, 3, 2, 1, 1, 1, 1, 1, 20));
  });
}

}  // namespace
}  // namespace ramet::kernels::raw
