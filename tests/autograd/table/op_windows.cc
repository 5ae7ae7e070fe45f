#include "tests/autograd/table/op_windows.h"

#include <cmath>

namespace ramet {
namespace op_table {
namespace {

int64_t of(const Index& numbers, size_t d) { return numbers[numbers.size() == 1 ? 0 : d]; }
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
Index tail(const Index& i) { return {i.begin() + 2, i.end()}; }

// Where tap `tap` of window `at` lies; false: outside of `sizes`, the last extents.
bool place(const Windows& w, const Index& at, const Index& tap, const Plain& x, Index* out) {
  const size_t from = x.sizes.size() - at.size();
  out->resize(at.size());
  for (size_t d = 0; d < at.size(); ++d) {
    (*out)[d] = at[d] * of(w.stride, d) - of(w.padding, d) + tap[d] * of(w.dilation, d);
    if ((*out)[d] < 0 || (*out)[d] >= x.sizes[from + d]) return false;
  }
  return true;
}
// How many windows fit.
Index slid(const Index& in, const Index& kernel, const Windows& w) {
  Index out;
  for (size_t d = 0; d < in.size(); ++d) {
    const int64_t stride = of(w.stride, d), before = in[d] + of(w.padding, d),
                  room = before + of(w.padding, d) - of(w.dilation, d) * (kernel[d] - 1) - 1;
    out.push_back((room + (w.ceil ? stride - 1 : 0)) / stride + 1);
    if (w.ceil && (out.back() - 1) * stride >= before) --out.back();
  }
  return out;
}

// The places of a window along each dimension; those outside of the input count as padding.
struct Box {
  Index first, extent, step;
};
using Boxes = std::function<Box(const Index& at, const Index& in)>;
Boxes sliding(const Windows& w) {
  return [=](const Index& at, const Index&) {
    Box b;
    for (size_t d = 0; d < at.size(); ++d) {
      b.first.push_back(at[d] * of(w.stride, d) - of(w.padding, d));
      b.extent.push_back(w.kernel[d]);
      b.step.push_back(of(w.dilation, d));
    }
    return b;
  };
}
Boxes adaptive(const Index& out) {
  return [=](const Index& at, const Index& in) {
    Box b;
    for (size_t d = 0; d < at.size(); ++d) {
      b.first.push_back(at[d] * in[d] / out[d]);
      b.extent.push_back(((at[d] + 1) * in[d] + out[d] - 1) / out[d] - b.first[d]);
      b.step.push_back(1);
    }
    return b;
  };
}
// f(c, places) with c(visit), which calls visit(place, value) for what of the window lies inside,
// and the number of its places.
using Visit = std::function<void(int64_t, double)>;
using Contents = std::function<void(const Visit&)>;
Plain pooled(const Plain& given, const Index& out, const Boxes& boxes,
             const std::function<double(const Contents&, int64_t)>& f) {
  const Plain x = batched(given, out.size());
  const Index in = tail(x.sizes);
  const auto at_one = [&](const Index& o) {
    const Box box = boxes(tail(o), in);
    const Contents contents = [&](const Visit& visit) {
      each(box.extent, [&](const Index& e) {
        Index at = {o[0], o[1]};
        int64_t flat = 0;
        for (size_t d = 0; d < in.size(); ++d) {
          at.push_back(box.first[d] + e[d] * box.step[d]);
          if (at.back() < 0 || at.back() >= in[d]) return;
          flat = flat * in[d] + at.back();
        }
        visit(flat, x.at(at));
      });
    };
    return f(contents, count(box.extent));
  };
  return as_given(made(joined({x.size(0), x.size(1)}, out), at_one), given);
}
// The first of equals, but the last NaN.
Plain maxima(const Plain& x, const Index& out, const Boxes& boxes, bool places) {
  return pooled(x, out, boxes, [=](const Contents& contents, int64_t) {
    double best = 0;
    int64_t at = -1;
    contents([&](int64_t here, double v) {
      if (at < 0 || std::isnan(v) || v > best) best = v, at = here;
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
Index extents(const Plain& x, size_t spatial) {
  return Index(x.sizes.end() - int64_t(spatial), x.sizes.end());
}

}  // namespace

Plain convolved(P in, const Windows& w) {
  const Plain& k = in[1];
  const Plain x = batched(in[0], k.sizes.size() - 2);
  const int64_t per = k.size(1), of_group = k.size(0) / w.groups;
  const Index out = slid(tail(x.sizes), tail(k.sizes), w);
  const auto at_one = [&](const Index& o) {
    double s = in.size() > 2 ? in[2].at({o[1]}) : 0;
    Index at;
    for (int64_t c = 0; c < per; ++c)
      each(tail(k.sizes), [&](const Index& tap) {
        if (place(w, tail(o), tap, x, &at))
          s += k.at(joined({o[1], c}, tap)) * x.at(joined({o[0], o[1] / of_group * per + c}, at));
      });
    return s;
  };
  return as_given(made(joined({x.size(0), k.size(0)}, out), at_one), in[0]);
}
Plain spread(P in, const Windows& w) {
  const Plain& k = in[1];
  const Plain x = batched(in[0], k.sizes.size() - 2);
  const int64_t per = k.size(0) / w.groups, out = k.size(1);
  Index sizes = {x.size(0), out * w.groups};
  for (size_t d = 0; d < k.sizes.size() - 2; ++d)
    sizes.push_back((x.sizes[2 + d] - 1) * of(w.stride, d) - 2 * of(w.padding, d) +
                    of(w.dilation, d) * (k.sizes[2 + d] - 1) + w.output_padding + 1);
  Plain y = made(sizes, [&](const Index& o) { return in.size() > 2 ? in[2].at({o[1]}) : 0; });
  const Plain shape = y;
  Index at;
  each(x.sizes, [&](const Index& i) {
    each(tail(k.sizes), [&](const Index& tap) {
      if (!place(w, tail(i), tap, shape, &at)) return;
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

Plain max_pooled(const Plain& x, const Windows& w, bool places) {
  return maxima(x, slid(extents(x, w.kernel.size()), w.kernel, w), sliding(w), places);
}
Plain mean_pooled(const Plain& x, const Windows& w, bool with_padding) {
  return means(x, slid(extents(x, w.kernel.size()), w.kernel, w), sliding(w), with_padding);
}
Plain max_adapted(const Plain& x, const Index& out, bool places) {
  return maxima(x, out, adaptive(out), places);
}
Plain mean_adapted(const Plain& x, const Index& out) { return means(x, out, adaptive(out), false); }

}  // namespace op_table
}  // namespace ramet
