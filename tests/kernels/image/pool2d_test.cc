#include "kernels/image/pool2d.h"

#include "tests/kernels/raw.h"

namespace ramet::kernels::raw {
namespace {

ImageView view(Buffer& b, int64_t c, int64_t h, int64_t w, bool channels_last) {
  if (channels_last) return {b.data(), c * h * w, 1, w * c, c};
  return {b.data(), c * h * w, h * w, w, 1};
}

Pool2dShape shape(int64_t n, int64_t c, int64_t h, int64_t w, int64_t kh, int64_t kw, int64_t sh,
                  int64_t sw, int64_t ph = 0, int64_t pw = 0, int64_t dh = 1, int64_t dw = 1,
                  bool ceil_mode = false) {
  const auto out = [&](int64_t in, int64_t k, int64_t s, int64_t p, int64_t d) {
    const int64_t room = in + 2 * p - d * (k - 1) - 1;
    int64_t o = (ceil_mode ? (room + s - 1) / s : room / s) + 1;
    if (ceil_mode && (o - 1) * s >= in + p) --o;
    return o;
  };
  return {n,  c,  h,  w, out(h, kh, sh, ph, dh), out(w, kw, sw, pw, dw), kh, kw, sh, sw,
          ph, pw, dh, dw};
}

// f(output offset, input offset, place in the plane) for every element of every window, in
// row-major order.
template <class F>
void windows(const Pool2dShape& s, const ImageView& x, const ImageView& y, const F& f) {
  for (int64_t n = 0; n < s.n; ++n)
    for (int64_t c = 0; c < s.c; ++c)
      for (int64_t i = 0; i < s.oh; ++i)
        for (int64_t j = 0; j < s.ow; ++j)
          for (int64_t r = 0; r < s.kh; ++r)
            for (int64_t q = 0; q < s.kw; ++q) {
              const int64_t iy = i * s.sh - s.ph + r * s.dh, ix = j * s.sw - s.pw + q * s.dw;
              if (iy < 0 || iy >= s.h || ix < 0 || ix >= s.w) continue;
              f(n * y.n + c * y.c + i * y.h + j * y.w, n * x.n + c * x.c + iy * x.h + ix * x.w,
                iy * s.w + ix);
            }
}

const Pool2dShape kShapes[] = {
    shape(2, 3, 6, 8, 2, 2, 2, 2),
    shape(3, 17, 7, 5, 3, 3, 2, 2, 1, 1),
    shape(1, 33, 9, 10, 3, 2, 1, 2, 1, 0),
    shape(2, 4, 7, 7, 2, 2, 2, 2, 0, 0, 1, 1, true),
    shape(2, 1, 5, 6, 3, 3, 3, 3, 1, 1, 1, 1, true),
    shape(20, 5, 9, 9, 2, 3, 1, 1, 0, 0, 2, 2),
    shape(2, 3, 9, 10, 4, 5, 1, 2, 2, 2, 2, 2),
    shape(1, 130, 6, 6, 2, 2, 2, 2),
    shape(0, 4, 5, 5, 2, 2, 2, 2),
    // rows that are worked on in several pieces
    shape(1, 2, 4, 1045, 2, 3, 2, 2, 0, 1),
    shape(1, 1, 3, 700, 1, 20, 1, 1, 0, 3),
};

TEST(MaxPool2d, ForwardBackwardAndGather) {
  for_each_variant([](Variant) {
    uint64_t seed = 0;
    for (ScalarType t : {ScalarType::Float, ScalarType::Double, ScalarType::Long})
      for (const Pool2dShape& s : kShapes)
        for (bool last : {false, true}) {
          Values v(++seed);
          Buffer x(s.n * s.c * s.h * s.w, t), y(s.n * s.c * s.oh * s.ow, t),
              index(y.size, ScalarType::Long), dy(y.size, t), dx(x.size, t), back(y.size, t);
          x.fill(v), dy.fill(v);
          // ties
          for (int64_t i = 0; i < x.size; i += 3) x.set(i, static_cast<double>(v.below(3)));
          if (is_floating(t)) {
            for (int64_t i = 5; i < x.size; i += 29) x.set(i, NAN);
            for (int64_t i = 3; i < x.size; i += 17) x.set(i, -INFINITY);
          }
          const ImageView vx = view(x, s.c, s.h, s.w, last), vy = view(y, s.c, s.oh, s.ow, last);
          MaxPool2dArgs a{s, vx, vy, view(index, s.c, s.oh, s.ow, last), t};
          max_pool2d_forward(kCpuStream, a);

          std::vector<double> best(static_cast<size_t>(y.size), 0);
          std::vector<int64_t> at(static_cast<size_t>(y.size), -1),
              from(static_cast<size_t>(y.size));
          windows(s, vx, vy, [&](int64_t o, int64_t i, int64_t place) {
            const auto u = static_cast<size_t>(o);
            if (at[u] < 0 || x[i] > best[u] || std::isnan(x[i]))
              best[u] = x[i], at[u] = place, from[u] = i;
          });
          std::vector<double> want(static_cast<size_t>(x.size), 0);
          for (int64_t i = 0; i < y.size; ++i) {
            const auto u = static_cast<size_t>(i);
            ASSERT_EQ(index[i], static_cast<double>(at[u])) << i;
            ASSERT_TRUE(y[i] == best[u] || (std::isnan(y[i]) && std::isnan(best[u]))) << i;
            want[static_cast<size_t>(from[u])] += dy[i];
          }
          Buffer plain(y.size, t);
          MaxPool2dArgs no_index = a;
          no_index.y = view(plain, s.c, s.oh, s.ow, last), no_index.index.data = nullptr;
          max_pool2d_forward(kCpuStream, no_index);
          EXPECT_TRUE(plain.same_bits(y));

          a.x = view(dx, s.c, s.h, s.w, last), a.y = view(dy, s.c, s.oh, s.ow, last);
          max_pool2d_backward(kCpuStream, a);
          for (int64_t i = 0; i < x.size; ++i)
            ASSERT_NEAR(dx[i], want[static_cast<size_t>(i)], 1e-6) << i;

          a.x = vx, a.y = view(back, s.c, s.oh, s.ow, last);
          max_pool2d_gather(kCpuStream, a);
          EXPECT_TRUE(back.same_bits(y));
          EXPECT_TRUE(y.guards_intact() && index.guards_intact() && dx.guards_intact() &&
                      back.guards_intact());
        }
  });
}

TEST(AvgPool2d, ForwardAndBackward) {
  for_each_variant([](Variant) {
    uint64_t seed = 0;
    for (ScalarType t : {ScalarType::Float, ScalarType::Double})
      for (Pool2dShape s : kShapes)
        for (int mode = 0; mode < 8; ++mode) {
          const bool last = mode & 1, include = mode & 2;
          const int64_t over = mode & 4 ? 3 : 0;
          if (s.dh != 1) continue;
          Values v(++seed);
          Buffer x(s.n * s.c * s.h * s.w, t), y(s.n * s.c * s.oh * s.ow, t), dy(y.size, t),
              dx(x.size, t);
          x.fill(v), dy.fill(v);
          const ImageView vx = view(x, s.c, s.h, s.w, last), vy = view(y, s.c, s.oh, s.ow, last);
          AvgPool2dArgs a{s, vx, vy, t, false, include, over};
          avg_pool2d_forward(kCpuStream, a);
          std::vector<double> sum(static_cast<size_t>(y.size), 0),
              count(static_cast<size_t>(y.size), 0), want(static_cast<size_t>(x.size), 0);
          windows(s, vx, vy, [&](int64_t o, int64_t i, int64_t) {
            sum[static_cast<size_t>(o)] += x[i], count[static_cast<size_t>(o)] += 1;
          });
          for (int64_t n = 0; n < s.n; ++n)
            for (int64_t c = 0; c < s.c; ++c)
              for (int64_t i = 0; i < s.oh; ++i)
                for (int64_t j = 0; j < s.ow; ++j) {
                  double& k = count[static_cast<size_t>(n * vy.n + c * vy.c + i * vy.h + j * vy.w)];
                  if (include)
                    k = static_cast<double>(
                        (std::min(i * s.sh - s.ph + s.kh, s.h + s.ph) - (i * s.sh - s.ph)) *
                        (std::min(j * s.sw - s.pw + s.kw, s.w + s.pw) - (j * s.sw - s.pw)));
                  if (over) k = static_cast<double>(over);
                }
          windows(s, vx, vy, [&](int64_t o, int64_t i, int64_t) {
            want[static_cast<size_t>(i)] += dy[o] / count[static_cast<size_t>(o)];
          });
          for (int64_t i = 0; i < y.size; ++i)
            ASSERT_NEAR(y[i], sum[static_cast<size_t>(i)] / count[static_cast<size_t>(i)], 1e-6)
                << i;
          a.x = view(dx, s.c, s.h, s.w, last), a.y = view(dy, s.c, s.oh, s.ow, last);
          avg_pool2d_backward(kCpuStream, a);
          for (int64_t i = 0; i < x.size; ++i)
            ASSERT_NEAR(dx[i], want[static_cast<size_t>(i)], 1e-6) << i;
          EXPECT_TRUE(y.guards_intact() && dx.guards_intact());
        }
  });
}

TEST(AvgPool2d, IntegersTruncate) {
  Buffer x(4, ScalarType::Long), y(1, ScalarType::Long);
  for (int64_t i = 0; i < 4; ++i) x.set(i, static_cast<double>(-3 - i));
  avg_pool2d_forward(kCpuStream, {shape(1, 1, 2, 2, 2, 2, 2, 2), view(x, 1, 2, 2, false),
                                  view(y, 1, 1, 1, false), ScalarType::Long, false, true, 0});
  EXPECT_EQ(y[0], -4);  // -18 / 4
}

TEST(AdaptiveAvgPool2d, ForwardAndBackward) {
  for_each_variant([](Variant) {
    for (ScalarType t : {ScalarType::Float, ScalarType::Double})
      for (int64_t h : {1, 5, 7})
        for (int64_t oh : {1, 3, 7, 9})
          for (bool last : {false, true}) {
            Pool2dShape s{};
            s.n = 2, s.c = 19, s.h = h, s.w = 6, s.oh = oh, s.ow = 4;
            if (oh == 3) s.n = 1, s.c = 2, s.w = 700, s.ow = 300;  // several pieces of a row
            Values v(static_cast<uint64_t>(h * 10 + oh));
            Buffer x(s.n * s.c * s.h * s.w, t), y(s.n * s.c * s.oh * s.ow, t), dy(y.size, t),
                dx(x.size, t);
            x.fill(v), dy.fill(v);
            const ImageView vx = view(x, s.c, s.h, s.w, last), vy = view(y, s.c, s.oh, s.ow, last);
            AvgPool2dArgs a{s, vx, vy, t, true, false, 0};
            avg_pool2d_forward(kCpuStream, a);
            std::vector<double> want(static_cast<size_t>(x.size), 0);
            for (int64_t n = 0; n < s.n; ++n)
              for (int64_t c = 0; c < s.c; ++c)
                for (int64_t i = 0; i < s.oh; ++i)
                  for (int64_t j = 0; j < s.ow; ++j) {
                    const auto y0 = static_cast<int64_t>(
                        std::floor(static_cast<double>(i * s.h) / static_cast<double>(s.oh)));
                    const auto y1 = static_cast<int64_t>(
                        std::ceil(static_cast<double>((i + 1) * s.h) / static_cast<double>(s.oh)));
                    const auto x0 = static_cast<int64_t>(
                        std::floor(static_cast<double>(j * s.w) / static_cast<double>(s.ow)));
                    const auto x1 = static_cast<int64_t>(
                        std::ceil(static_cast<double>((j + 1) * s.w) / static_cast<double>(s.ow)));
                    const int64_t o = n * vy.n + c * vy.c + i * vy.h + j * vy.w;
                    double sum = 0, k = static_cast<double>((y1 - y0) * (x1 - x0));
                    for (int64_t iy = y0; iy < y1; ++iy)
                      for (int64_t ix = x0; ix < x1; ++ix) {
                        const int64_t at = n * vx.n + c * vx.c + iy * vx.h + ix * vx.w;
                        sum += x[at], want[static_cast<size_t>(at)] += dy[o] / k;
                      }
                    ASSERT_NEAR(y[o], sum / k, 1e-6);
                  }
            a.x = view(dx, s.c, s.h, s.w, last), a.y = view(dy, s.c, s.oh, s.ow, last);
            avg_pool2d_backward(kCpuStream, a);
            for (int64_t i = 0; i < x.size; ++i)
              ASSERT_NEAR(dx[i], want[static_cast<size_t>(i)], 1e-6);
          }
  });
}

// Each operand may have a layout of its own; channels two elements apart are what x.slice(1, 0, n,
// 2) of a channels-last image gives.
enum class Lie { kFirst, kLast, kSpaced };
ImageView lying(Buffer& b, int64_t c, int64_t h, int64_t w, Lie lie) {
  if (lie == Lie::kSpaced) return {b.data(), 2 * c * h * w, 2, w * 2 * c, 2 * c};
  return view(b, c, h, w, lie == Lie::kLast);
}

TEST(Pool2d, OperandsInDifferentLayouts) {
  const Pool2dShape s = shape(2, 19, 7, 6, 3, 2, 2, 2, 1, 0);
  const Lie all[] = {Lie::kFirst, Lie::kLast, Lie::kSpaced};
  for_each_variant([&](Variant) {
    for (ScalarType t : {ScalarType::Float, ScalarType::Double})
      for (Lie lx : all)
        for (Lie ly : all)
          for (Lie li : all) {
            Values v(7);
            Buffer x(2 * s.n * s.c * s.h * s.w, t), y(2 * s.n * s.c * s.oh * s.ow, t),
                index(y.size, ScalarType::Long), mean(y.size, t);
            x.fill(v);
            const ImageView vx = lying(x, s.c, s.h, s.w, lx), vy = lying(y, s.c, s.oh, s.ow, ly),
                            vi = lying(index, s.c, s.oh, s.ow, li);
            max_pool2d_forward(kCpuStream, {s, vx, vy, vi, t});
            avg_pool2d_forward(kCpuStream,
                               {s, vx, lying(mean, s.c, s.oh, s.ow, ly), t, false, false, 0});
            const auto size = static_cast<size_t>(y.size);
            std::vector<double> best(size), sum(size), count(size);
            std::vector<int64_t> at(size);
            windows(s, vx, vy, [&](int64_t o, int64_t i, int64_t place) {
              const auto u = static_cast<size_t>(o);
              if (count[u] == 0 || x[i] > best[u]) best[u] = x[i], at[u] = place;
              sum[u] += x[i], count[u] += 1;
            });
            for (int64_t n = 0; n < s.n; ++n)
              for (int64_t c = 0; c < s.c; ++c)
                for (int64_t i = 0; i < s.oh; ++i)
                  for (int64_t j = 0; j < s.ow; ++j) {
                    const int64_t o = n * vy.n + c * vy.c + i * vy.h + j * vy.w;
                    const auto u = static_cast<size_t>(o);
                    ASSERT_EQ(y[o], best[u]);
                    ASSERT_EQ(index[n * vi.n + c * vi.c + i * vi.h + j * vi.w], at[u]);
                    ASSERT_NEAR(mean[o], sum[u] / count[u], 1e-6);
                  }
            EXPECT_TRUE(y.guards_intact() && index.guards_intact() && mean.guards_intact());
          }
  });
}

// Threads, vector widths, layouts and the number of images: the same bits.
TEST(Pool2d, SameBits) {
  const Pool2dShape s = shape(3, 70, 33, 21, 3, 3, 2, 2, 1, 1);
  Values v(1);
  Buffer x(s.n * s.c * s.h * s.w, ScalarType::Float),
      dy(s.n * s.c * s.oh * s.ow, ScalarType::Float), index(dy.size, ScalarType::Long);
  x.fill(v), dy.fill(v);
  Buffer y(dy.size, ScalarType::Float), dx(x.size, ScalarType::Float),
      results[2][4] = {{y, dx, y, dx}, {y, dx, y, dx}};
  for (bool last : {false, true}) {
    const ImageView vx = view(x, s.c, s.h, s.w, last), vy = view(dy, s.c, s.oh, s.ow, last),
                    vi = view(index, s.c, s.oh, s.ow, last);
    Buffer* r = results[last];
    expect_same_bits(r[0], [&](Buffer& o) {
      max_pool2d_forward(kCpuStream,
                         {s, vx, view(o, s.c, s.oh, s.ow, last), vi, ScalarType::Float});
    });
    expect_same_bits(r[1], [&](Buffer& o) {
      max_pool2d_backward(kCpuStream, {s, view(o, s.c, s.h, s.w, last), vy, vi, ScalarType::Float});
    });
    expect_same_bits(r[2], [&](Buffer& o) {
      avg_pool2d_forward(
          kCpuStream, {s, vx, view(o, s.c, s.oh, s.ow, last), ScalarType::Float, false, true, 0});
    });
    expect_same_bits(r[3], [&](Buffer& o) {
      avg_pool2d_backward(kCpuStream,
                          {s, view(o, s.c, s.h, s.w, last), vy, ScalarType::Float, false, true, 0});
    });
    if (last) {  // the same tensors, channels-last
      const auto same = [&](Buffer& a, Buffer& b, int64_t c, int64_t h, int64_t w) {
        const ImageView va = view(a, c, h, w, false), vb = view(b, c, h, w, true);
        for (int64_t n = 0; n < s.n; ++n)
          for (int64_t i = 0; i < c * h * w; ++i)
            ASSERT_EQ(a[n * va.n + i],
                      b[n * vb.n + i / (h * w) * vb.c + i / w % h * vb.h + i % w * vb.w]);
      };
      same(results[0][0], r[0], s.c, s.oh, s.ow), same(results[0][2], r[2], s.c, s.oh, s.ow);
      same(results[0][1], r[1], s.c, s.h, s.w), same(results[0][3], r[3], s.c, s.h, s.w);
    } else {  // x and dy become channels-last
      const auto turn = [&](Buffer& a, int64_t c, int64_t h, int64_t w) {
        Buffer b = a;
        for (int64_t n = 0; n < s.n; ++n)
          for (int64_t i = 0; i < c * h * w; ++i)
            a.set(n * c * h * w + i % (h * w) * c + i / (h * w), b[n * c * h * w + i]);
      };
      turn(x, s.c, s.h, s.w), turn(dy, s.c, s.oh, s.ow);
    }
  }
}

}  // namespace
}  // namespace ramet::kernels::raw
