// Rows of the operation table: volumes, transposed convolutions, and what else works on windows of
// any number of dimensions.
#include <algorithm>
#include <cmath>

#include "autograd/ops.h"
#include "tests/autograd/table/op_table_suite.h"

namespace ramet {
namespace op_table {
namespace {

// Calls f for every index below `sizes`.
void each(const Index& sizes, const std::function<void(const Index&)>& f) {
  made(sizes, [&](const Index& i) { return f(i), 0.0; });
}
Index joined(Index a, const Index& b) { return a.insert(a.end(), b.begin(), b.end()), a; }
// [n, c, ...] of one without n.
Plain batched(Plain x, size_t spatial) {
  if (x.sizes.size() == spatial + 1) x.sizes.insert(x.sizes.begin(), 1);
  return x;
}
Plain as_given(Plain y, const Plain& x) {
  if (y.rank() > x.rank()) y.sizes.erase(y.sizes.begin());
  return y;
}

// Windows with the same numbers in every dimension.
struct Windows {
  int64_t stride = 1, padding = 0, dilation = 1, groups = 1, output_padding = 0;
  // Where tap `tap` of window `at` lies; false: outside of `sizes`, the last extents.
  bool place(const Index& at, const Index& tap, const Plain& x, Index* out) const {
    const size_t from = x.sizes.size() - at.size();
    out->resize(at.size());
    for (size_t d = 0; d < at.size(); ++d) {
      (*out)[d] = at[d] * stride - padding + tap[d] * dilation;
      if ((*out)[d] < 0 || (*out)[d] >= x.sizes[from + d]) return false;
    }
    return true;
  }
};
Index tail(const Index& i) { return {i.begin() + 2, i.end()}; }

Plain convolved(P in, const Windows& w) {
  const Plain& k = in[1];
  const Plain x = batched(in[0], k.sizes.size() - 2);
  const int64_t per = k.size(1), of_group = k.size(0) / w.groups;
  Index sizes = {x.size(0), k.size(0)};
  for (int64_t d = 2; d < k.rank(); ++d)
    sizes.push_back((x.size(d) + 2 * w.padding - w.dilation * (k.size(d) - 1) - 1) / w.stride + 1);
  return as_given(made(sizes,
                       [&](const Index& o) {
                         double s = in.size() > 2 ? in[2].at({o[1]}) : 0;
                         Index at;
                         for (int64_t c = 0; c < per; ++c)
                           each(tail(k.sizes), [&](const Index& tap) {
                             if (w.place(tail(o), tap, x, &at))
                               s += k.at(joined({o[1], c}, tap)) *
                                    x.at(joined({o[0], o[1] / of_group * per + c}, at));
                           });
                         return s;
                       }),
                  in[0]);
}
// Each input, times the taps, is added to the outputs that it would see as their convolution.
Plain spread(P in, const Windows& w) {
  const Plain& k = in[1];
  const Plain x = batched(in[0], k.sizes.size() - 2);
  const int64_t per = k.size(0) / w.groups, out = k.size(1);
  Index sizes = {x.size(0), out * w.groups};
  for (int64_t d = 2; d < k.rank(); ++d)
    sizes.push_back((x.size(d) - 1) * w.stride - 2 * w.padding + w.dilation * (k.size(d) - 1) +
                    w.output_padding + 1);
  Plain y = made(sizes, [&](const Index& o) { return in.size() > 2 ? in[2].at({o[1]}) : 0; });
  const Plain shape = y;
  Index at;
  each(x.sizes, [&](const Index& i) {
    each(tail(k.sizes), [&](const Index& tap) {
      if (!w.place(tail(i), tap, shape, &at)) return;
      for (int64_t c = 0; c < out; ++c) {
        const Index to = joined({i[0], i[1] / per * out + c}, at);
        int64_t flat = 0;
        for (size_t d = 0; d < to.size(); ++d) flat = flat * sizes[d] + to[d];
        y.v[size_t(flat)] += x.at(i) * k.at(joined({i[1], c}, tap));
      }
    });
  });
  return as_given(y, in[0]);
}

void add_convolutions(Table& t) {
  const auto sample = [](Index image, Index kernel, int64_t bias) {
    Sample s = {real(image), real(kernel)};
    if (bias) s.push_back(real({bias}));
    return s;
  };
  const auto bias_of = [](V x) {
    return x.size() > 2 ? std::optional<Tensor>(x[2]) : std::nullopt;
  };
  const char* kPadding = "an infinite weight times padding is NaN or left out";
  constexpr uint16_t kTransposed = kFloats | set_of(kLong);
  Windows odd;
  odd.stride = odd.dilation = 2, odd.padding = odd.output_padding = 1;
  Windows apart = odd;
  apart.groups = 2;
  t.row("conv_transpose2d", kTransposed,
        {sample({2, 3, 3, 4}, {3, 4, 3, 2}, 4), sample({3, 4, 3}, {3, 2, 1, 1}, 2),
         sample({0, 3, 3, 3}, {3, 2, 2, 2}, 2)},
        CALL(conv_transpose2d, x[0], x[1], bias_of(x)), [](P x) { return spread(x, {}); })
      .products()
      .also(kInts)
      .big(sample({70, 3, 9, 9}, {3, 5, 3, 3}, 5), 1)
      .slim(sample({4, 3, 72, 72}, {3, 3, 2, 2}, 3))
      .within(4)
      .partly_tame(2, kPadding);
  t.row("conv_transpose2d.strided", kTransposed,
        {sample({2, 4, 3, 2}, {4, 3, 2, 3}, 6), sample({0, 4, 3, 3}, {4, 2, 2, 2}, 0)},
        CALL(conv_transpose2d, x[0], x[1], bias_of(x), 2, 1, 1, 2, 2),
        [=](P x) { return spread(x, apart); })
      .products()
      .also(kInts)
      .big(sample({70, 4, 9, 9}, {4, 3, 3, 3}, 6), 1)
      .small("the kernels of conv_transpose2d")
      .within(4)
      .partly_tame(2, kPadding);
  t.row("conv_transpose1d", kTransposed,
        {sample({2, 3, 4}, {3, 2, 3}, 2), sample({3, 5}, {3, 2, 2}, 0),
         sample({0, 3, 4}, {3, 2, 2}, 2)},
        CALL(conv_transpose1d, x[0], x[1], bias_of(x), 2, 1, 1, 1, 2),
        [=](P x) { return spread(x, odd); })
      .products()
      .also(kInts)
      .big(sample({70, 3, 90}, {3, 5, 3}, 5), 1)
      .small("the kernels of conv_transpose2d")
      .within(4)
      .partly_tame(2, kPadding);
  t.row("conv_transpose3d", kTransposed,
        {sample({2, 2, 2, 1, 2}, {2, 2, 2, 3, 2}, 4), sample({2, 2, 2, 2}, {2, 1, 3, 2, 2}, 0),
         sample({0, 2, 2, 2, 2}, {2, 2, 2, 2, 2}, 4)},
        CALL(conv_transpose3d, x[0], x[1], bias_of(x), 2, 1, 1, 2, 2),
        [=](P x) { return spread(x, apart); })
      .products()
      .also(kInts)
      .big(sample({70, 4, 3, 4, 3}, {4, 2, 2, 3, 2}, 4), 1)
      .small("the kernels of conv3d")
      .within(4)
      .partly_tame(2, kPadding);
  t.row("conv3d", kNumbers,
        {sample({2, 2, 3, 3, 2}, {3, 2, 2, 2, 2}, 3), sample({2, 2, 3, 2}, {2, 2, 1, 1, 1}, 0),
         sample({0, 2, 3, 3, 3}, {2, 2, 2, 2, 2}, 2)},
        CALL(conv3d, x[0], x[1], bias_of(x)), [](P x) { return convolved(x, {}); })
      .products()
      .big(sample({70, 2, 4, 5, 4}, {3, 2, 2, 3, 2}, 3), 1)
      .within(4);
  t.row("convolution", kNumbers,
        {sample({2, 4, 5, 6}, {4, 2, 2, 3}, 4), sample({0, 4, 5, 6}, {4, 2, 2, 3}, 0)},
        CALL(convolution, x[0], x[1], bias_of(x), 2, 1, 2, false, 0, 2),
        [=](P x) { return convolved(x, apart); })
      .products()
      .big(sample({70, 4, 9, 9}, {6, 2, 3, 3}, 6), 1)
      .small("the kernels of conv2d")
      .within(4)
      .partly_tame(2, kPadding);
  t.row("convolution.transposed", kTransposed,
        {sample({2, 3, 4}, {3, 2, 3}, 2), sample({0, 3, 4}, {3, 2, 2}, 2)},
        CALL(convolution, x[0], x[1], bias_of(x), 2, 1, 2, true, 1, 1),
        [=](P x) { return spread(x, odd); })
      .products()
      .also(kInts)
      .big(sample({70, 3, 90}, {3, 5, 3}, 5), 1)
      .small("the kernels of conv_transpose2d")
      .within(4)
      .partly_tame(2, kPadding);
  t.row("conv_tbc", kNumbers,
        {{real({6, 2, 3}), real({3, 3, 4}), real({4})},
         {real({5, 0, 3}), real({2, 3, 4}), real({4})}},
        CALL(conv_tbc, x[0], x[1], x[2], 1),
        [](P x) {
          const Plain &in = x[0], &w = x[1];
          return made({in.size(0) + 3 - w.size(0), in.size(1), w.size(2)}, [&](const Index& o) {
            double s = x[2].at({o[2]});
            for (int64_t k = 0; k < w.size(0); ++k)
              for (int64_t c = 0, at = o[0] + k - 1; c < in.size(2); ++c)
                if (at >= 0 && at < in.size(0)) s += in.at({at, o[1], c}) * w.at({k, c, o[2]});
            return s;
          });
        })
      .products()
      .big({real({90, 70, 3}), real({3, 3, 5}), real({5})})
      .sliced({1, -1, -1}, 1)
      .small("the kernels of conv2d")
      .within(4)
      .partly_tame(2, kPadding);
  t.row("conv3d.padded", kNumbers,
        {sample({2, 2, 3, 3, 4}, {2, 1, 2, 3, 2}, 2), sample({0, 2, 3, 3, 3}, {2, 1, 2, 2, 2}, 0)},
        CALL(conv3d, x[0], x[1], bias_of(x), 2, 1, 2, 2), [=](P x) { return convolved(x, apart); })
      .products()
      .big(sample({70, 2, 4, 5, 6}, {4, 1, 2, 3, 2}, 4), 1)
      .small("the kernels of conv3d")
      .within(4)
      .partly_tame(2, kPadding);
}

// ---- pools

// The first of equals, but the last NaN.
bool larger(double a, double b) { return std::isnan(a) || a > b; }

// The places of a window along each dimension, from the first to before the last; those outside of
// the input count as `padding`.
struct Box {
  Index first, end;
};
using Boxes = std::function<Box(const Index& at, const Index& in)>;
Boxes sliding(int64_t kernel, int64_t stride, int64_t padding) {
  return [=](const Index& at, const Index&) {
    Box b;
    for (const int64_t i : at) {
      b.first.push_back(i * stride - padding);
      b.end.push_back(i * stride - padding + kernel);
    }
    return b;
  };
}
Boxes adaptive(const Index& out) {
  return [=](const Index& at, const Index& in) {
    Box b;
    for (size_t d = 0; d < at.size(); ++d) {
      b.first.push_back(at[d] * in[d] / out[d]);
      b.end.push_back(((at[d] + 1) * in[d] + out[d] - 1) / out[d]);
    }
    return b;
  };
}
Index slid(const Index& in, int64_t kernel, int64_t stride, int64_t padding) {
  Index out;
  for (const int64_t n : in) out.push_back((n + 2 * padding - kernel) / stride + 1);
  return out;
}
// f(c) with c(visit), which calls visit(place, value) for what of the window lies inside, and the
// number of its places.
using Visit = std::function<void(int64_t, double)>;
using Contents = std::function<void(const Visit&)>;
Plain pooled(const Plain& given, const Index& out, const Boxes& boxes,
             const std::function<double(const Contents&, int64_t)>& f) {
  const Plain x = batched(given, out.size());
  const Index in = tail(x.sizes);
  return as_given(made(joined({x.size(0), x.size(1)}, out),
                       [&](const Index& o) {
                         const Box box = boxes(tail(o), in);
                         Index extent;
                         for (size_t d = 0; d < in.size(); ++d)
                           extent.push_back(box.end[d] - box.first[d]);
                         const Contents contents = [&](const Visit& visit) {
                           each(extent, [&](const Index& e) {
                             Index at = {o[0], o[1]};
                             int64_t flat = 0;
                             for (size_t d = 0; d < in.size(); ++d) {
                               at.push_back(box.first[d] + e[d]);
                               if (at.back() < 0 || at.back() >= in[d]) return;
                               flat = flat * in[d] + at.back();
                             }
                             visit(flat, x.at(at));
                           });
                         };
                         return f(contents, count(extent));
                       }),
                  given);
}
Plain maxima(const Plain& x, const Index& out, const Boxes& boxes, bool places) {
  return pooled(x, out, boxes, [=](const Contents& contents, int64_t) {
    double best = 0;
    int64_t at = -1;
    contents([&](int64_t place, double v) {
      if (at < 0 || larger(v, best)) best = v, at = place;
    });
    return places ? double(at) : best;
  });
}
Plain means(const Plain& x, const Index& out, const Boxes& boxes, bool with_padding) {
  return pooled(x, out, boxes, [=](const Contents& contents, int64_t all) {
    double s = 0, n = 0;
    contents([&](int64_t, double v) { s += v, n += 1; });
    return s / (with_padding ? double(all) : n);
  });
}

void add_pools(Table& t) {
  const Samples few = shapes({{2, 2, 4, 3, 5}, {2, 3, 3, 4}, {0, 2, 3, 3, 3}}, -9, 9);
  const Sample many = {real({70, 2, 5, 4, 5}, -9, 9)};
  const auto in = [](const Plain& x, int64_t spatial) {
    return Index(x.sizes.end() - spatial, x.sizes.end());
  };
  const char* kPlanes = "the kernels of max_pool2d";
  t.row("max_pool3d", kNumbers, few, CALL(max_pool3d, x[0], 2),
        [=](P x) { return maxima(x[0], slid(in(x[0], 3), 2, 2, 0), sliding(2, 2, 0), false); })
      .big(many, 1)
      .small(kPlanes);
  t.row("max_pool3d_with_indices.values", kNumbers, few,
        FIRST_OUT(kLong, max_pool3d_with_indices, x[0], 3, 2, 1),
        [=](P x) { return maxima(x[0], slid(in(x[0], 3), 3, 2, 1), sliding(3, 2, 1), false); })
      .big(many, 1)
      .small(kPlanes);
  t.row("max_pool3d_with_indices.positions", kNumbers, few,
        SECOND(max_pool3d_with_indices, x[0], 3, 2, 1),
        [=](P x) { return maxima(x[0], slid(in(x[0], 3), 3, 2, 1), sliding(3, 2, 1), true); })
      .big(many, 1)
      .small(kPlanes)
      .gives(positions)
      .no_gradient();
  // LibTorch's has neither 16 bits nor other integers than int64 on CPUs.
  constexpr uint16_t kAverages = kWide | set_of(kLong);
  t.row("avg_pool3d", kAverages, few, CALL_OUT(avg_pool3d, x[0], 3, 2, 1),
        [=](P x) { return means(x[0], slid(in(x[0], 3), 3, 2, 1), sliding(3, 2, 1), true); })
      .big(many, 1)
      .small(kPlanes)
      .also(kFloats | kInts);
  t.row("avg_pool3d.inside", kAverages, few, CALL(avg_pool3d, x[0], 3, 2, 1, false, false),
        [=](P x) { return means(x[0], slid(in(x[0], 3), 3, 2, 1), sliding(3, 2, 1), false); })
      .big(many, 1)
      .small(kPlanes)
      .also(kFloats | kInts);
  t.row("adaptive_avg_pool3d", kFloats, few, CALL_OUT(adaptive_avg_pool3d, x[0], {2, 2, 3}),
        [=](P x) {
          return means(x[0], {2, 2, 3}, adaptive({2, 2, 3}), false);
        })
      .big(many, 1)
      .small(kPlanes);
  const auto add = [&](const char* name, auto function, const Index& out, const Samples& samples,
                       const Sample& large) {
    const std::string place = std::string(name) + ".positions";
    t.row(
         name, kFloats, samples, [=](V x) { return std::get<0>(function(x[0], out)); },
         [=](P x) { return maxima(x[0], out, adaptive(out), false); })
        .big(large, 1)
        .small(kPlanes);
    t.row(
         place.c_str(), kFloats, samples, [=](V x) { return std::get<1>(function(x[0], out)); },
         [=](P x) { return maxima(x[0], out, adaptive(out), true); })
        .big(large, 1)
        .small(kPlanes)
        .gives(positions)
        .no_gradient();
  };
  add("adaptive_max_pool1d", adaptive_max_pool1d, {4},
      shapes({{2, 3, 7}, {3, 8}, {2, 3, 3}, {0, 3, 6}}, -9, 9), {real({70, 3, 90}, -9, 9)});
  add("adaptive_max_pool2d", adaptive_max_pool2d, {3, 2},
      shapes({{2, 3, 5, 6}, {3, 7, 4}, {2, 2, 2, 1}, {0, 3, 4, 4}}, -9, 9),
      {real({70, 3, 9, 9}, -9, 9)});
  add("adaptive_max_pool3d", adaptive_max_pool3d, {2, 2, 3}, few, many);
  t["adaptive_max_pool2d"].writes([](Tensor& o, V x) {
    Tensor at = empty({0}, x[0].options().dtype(kLong));
    return std::get<0>(adaptive_max_pool2d_out(o, at, x[0], {3, 2}));
  });
  t["adaptive_max_pool3d.positions"].writes([](Tensor& o, V x) {
    Tensor y = empty({0}, x[0].options());
    return std::get<1>(adaptive_max_pool3d_out(y, o, x[0], {2, 2, 3}));
  });
}

std::vector<Row> rows() {
  Table t;
  add_convolutions(t);
  add_pools(t);
  return t.rows();
}
RAMET_OP_TABLE(rows());

}  // namespace
}  // namespace op_table
}  // namespace ramet
