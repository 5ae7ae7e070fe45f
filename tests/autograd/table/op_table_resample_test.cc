// Rows of the operation table: images and sequences at other resolutions, bags of rows.
#include <algorithm>
#include <cmath>

#include "autograd/ops.h"
#include "tests/autograd/table/op_table_suite.h"

namespace ramet {
namespace op_table {
namespace {

// ---- upsample_*: each dimension by itself

// What an output is made of.
struct Tap {
  int64_t from;
  double weight;
};
using Taps = std::vector<Tap>;
// The taps of output o, from `in` inputs to `out` outputs, `step` inputs apart.
using Rule = std::function<Taps(int64_t in, double step, int64_t o)>;

Taps nearest(int64_t in, double step, int64_t o) {
  return {{std::min(in - 1, int64_t(std::floor(double(o) * step))), 1}};
}
Taps nearest_exact(int64_t in, double step, int64_t o) {
  return {{std::min(in - 1, int64_t(std::floor((double(o) + 0.5) * step))), 1}};
}
// `reach` neighbours to each side of x, those outside as the border.
Taps around(int64_t in, double x, int64_t reach, double (*weight)(double)) {
  Taps taps;
  const auto left = int64_t(std::floor(x));
  for (int64_t i = left - reach + 1; i <= left + reach; ++i) {
    const int64_t at = std::clamp<int64_t>(i, 0, in - 1);
    const double w = weight(std::fabs(x - double(i)));
    if (!taps.empty() && taps.back().from == at) taps.back().weight += w;
    else taps.push_back({at, w});
  }
  return taps;
}
double triangle(double d) { return d < 1 ? 1 - d : 0; }
double keys(double d, double a) {
  return d < 1   ? (a + 2) * d * d * d - (a + 3) * d * d + 1
         : d < 2 ? a * (d * d * d - 5 * d * d + 8 * d - 4)
                 : 0;
}
double cubic(double d) { return keys(d, -0.75); }
double place(double step, int64_t o) { return (double(o) + 0.5) * step - 0.5; }
Taps linear(int64_t in, double step, int64_t o) {
  return around(in, std::max(place(step, o), 0.0), 1, triangle);
}
Taps cornered(int64_t in, double step, int64_t o) {
  return around(in, double(o) * step, 1, triangle);
}
Taps cubic_around(int64_t in, double step, int64_t o) {
  return around(in, place(step, o), 2, cubic);
}
// All inputs with a centre less than `reach` outputs (or inputs) away.
Taps wide(int64_t in, double step, int64_t o, double reach, double (*weight)(double)) {
  const double size = std::max(step, 1.0), center = (double(o) + 0.5) * step;
  Taps taps;
  double sum = 0;
  for (int64_t i = 0; i < in; ++i) {
    const double w = weight(std::fabs(double(i) + 0.5 - center) / size);
    if (std::fabs(double(i) + 0.5 - center) > reach * size) continue;
    taps.push_back({i, w});
    sum += w;
  }
  for (Tap& t : taps) t.weight /= sum;
  return taps;
}

// The last sizes.size() dimensions; `scales` or none, of which each 0 is not given.
Plain resampled(Plain x, const Index& sizes, const std::vector<double>& scales, const Rule& rule,
                bool corners = false) {
  for (size_t k = 0; k < sizes.size(); ++k) {
    const int64_t d = x.rank() - int64_t(sizes.size()) + int64_t(k), in = x.size(d), out = sizes[k];
    const double step = corners           ? (out > 1 ? double(in - 1) / double(out - 1) : 0)
                        : !scales.empty() ? 1 / scales[k]
                                          : double(in) / double(out);
    if (count(x.sizes) == 0) {
      x.sizes[size_t(d)] = out;
      continue;
    }
    x = along(x, d, Line::kResize, [&](const std::vector<double>& line) {
      std::vector<double> y;
      for (int64_t o = 0; o < out; ++o) {
        double s = 0;
        bool first = true;
        for (const Tap& t : rule(in, step, o)) {
          const double v = t.weight * line[size_t(t.from)];
          s = first ? v : s + v;
          first = false;
        }
        y.push_back(s);
      }
      return y;
    });
  }
  return x;
}

// Samples with these extents after the channels, and one without a batch.
Samples pictures(const std::vector<Index>& extents) {
  Samples all;
  for (Index e : extents) {
    e.insert(e.begin(), {2, 3});
    all.push_back({real(e)});
  }
  Index none = all[0][0].sizes;
  none[0] = 0;
  all.push_back({real(none)});
  return all;
}
const Sample kLines = {real({70, 3, 90})}, kImages = {real({70, 3, 9, 9})},
             kSolids = {real({70, 3, 4, 5, 5})};

struct Upsampling {
  Table& t;
  Row& operator()(const char* name, uint16_t dtypes, Samples samples, const Sample& large,
                  Calls call, Reference reference) const {
    return t.row(name, dtypes, std::move(samples), std::move(call), std::move(reference))
        .big(large, 1)
        .within(4);
  }
};

void add_nearest(Table& t) {
  const Upsampling up{t};
  constexpr uint16_t kTypes = kFloats | set_of(kByte);
  up("upsample_nearest1d", kTypes, pictures({{5}, {1}}), kLines,
     CALL_OUT(upsample_nearest1d, x[0], 7), [](P x) { return resampled(x[0], {7}, {}, nearest); });
  up("upsample_nearest2d", kTypes, pictures({{3, 5}, {1, 8}}), kImages,
     CALL_OUT(upsample_nearest2d, x[0], {6, 7}), [](P x) {
       return resampled(x[0], {6, 7}, {}, nearest);
     });
  up("upsample_nearest3d", kTypes, pictures({{2, 3, 5}}), kSolids,
     CALL_OUT(upsample_nearest3d, x[0], {4, 2, 7}), [](P x) {
       return resampled(x[0], {4, 2, 7}, {}, nearest);
     });
  up("_upsample_nearest_exact1d", kTypes, pictures({{5}, {1}}), kLines,
     CALL_OUT(_upsample_nearest_exact1d, x[0], 7, std::optional<double>(1.5)),
     [](P x) { return resampled(x[0], {7}, {1.5}, nearest_exact); });
  up("_upsample_nearest_exact2d", kTypes, pictures({{3, 5}, {1, 8}}), kImages,
     CALL_OUT(_upsample_nearest_exact2d, x[0], {2, 7}), [](P x) {
       return resampled(x[0], {2, 7}, {}, nearest_exact);
     });
  up("_upsample_nearest_exact3d", kTypes, pictures({{2, 3, 5}}), kSolids,
     CALL_OUT(_upsample_nearest_exact3d, x[0], {3, 2, 7}), [](P x) {
       return resampled(x[0], {3, 2, 7}, {}, nearest_exact);
     });
}

void add_smooth(Table& t) {
  const Upsampling up{t};
  constexpr uint16_t kTypes = kFloats | set_of(kByte);
  const uint16_t narrow = set_of(kHalf) | set_of(kBFloat16);
  up("upsample_linear1d", kFloats, pictures({{5}, {1}}), kLines,
     CALL_OUT(upsample_linear1d, x[0], 12, false),
     [](P x) { return resampled(x[0], {12}, {}, linear); });
  up("upsample_bilinear2d", kTypes, pictures({{3, 5}, {1, 8}}), kImages,
     CALL_OUT(upsample_bilinear2d, x[0], {7, 12}, true),
     [](P x) {
       return resampled(x[0], {7, 12}, {}, cornered, true);
     })
      .only(kFloats);
  up("upsample_bilinear2d.scales", kTypes, pictures({{3, 5}, {7, 8}}), kImages,
     CALL_OUT(upsample_bilinear2d, x[0], {2, 7}, false, 0.6, 1.3),
     [](P x) {
       return resampled(x[0], {2, 7}, {0.6, 1.3}, linear);
     })
      .only(kFloats);
  up("upsample_trilinear3d", kFloats, pictures({{2, 3, 5}, {3, 1, 2}}), kSolids,
     CALL_OUT(upsample_trilinear3d, x[0], {5, 2, 7}, false), [](P x) {
       return resampled(x[0], {5, 2, 7}, {}, linear);
     });
  up("upsample_bicubic2d", kTypes, pictures({{3, 5}, {1, 8}}), kImages,
     CALL_OUT(upsample_bicubic2d, x[0], {7, 4}, false),
     [](P x) {
       return resampled(x[0], {7, 4}, {}, cubic_around);
     })
      .only(kFloats);
  up("_upsample_bilinear2d_aa", kWide | set_of(kByte), pictures({{3, 9}, {5, 8}}), kImages,
     CALL_OUT(_upsample_bilinear2d_aa, x[0], {4, 4}, false),
     [](P x) {
       return resampled(x[0], {4, 4}, {}, [](int64_t in, double step, int64_t o) {
         return wide(in, step, o, 1, triangle);
       });
     })
      .only(kFloats)
      .also(narrow);
  up("_upsample_bicubic2d_aa", kWide | set_of(kByte), pictures({{3, 9}, {5, 8}}), kImages,
     CALL_OUT(_upsample_bicubic2d_aa, x[0], {4, 4}, false),
     [](P x) {
       return resampled(x[0], {4, 4}, {}, [](int64_t in, double step, int64_t o) {
         return wide(in, step, o, 2, [](double d) { return keys(d, -0.5); });
       });
     })
      .only(kFloats)
      .also(narrow);
}

// ---- bags of rows

void add_bags(Table& t) {
  // Bags of two.
  const auto bags = [](V x, int64_t mode, const std::optional<Tensor>& scale) {
    const int64_t n = x[1].size(0);
    const Tensor offsets = arange(0, n, 2, TensorOptions(kLong).device(x[0].device()));
    return std::get<0>(embedding_bag(x[0], x[1], offsets, false, mode, false, scale));
  };
  // f(values of a bag, its first index) for each bag and column.
  const auto each = [](auto f) -> Reference {
    return [=](P x) {
      const int64_t n = x[1].size(0);
      return made({(n + 1) / 2, x[0].size(1)}, [&](const Index& i) {
        std::vector<double> v;
        for (int64_t k = 2 * i[0]; k < std::min(n, 2 * i[0] + 2); ++k)
          v.push_back(x[0].at({int64_t(x[1].at({k})), i[1]}) * (x.size() > 2 ? x[2].at({k}) : 1));
        return f(v);
      });
    };
  };
  const auto sum = [](const std::vector<double>& v) { return v.size() > 1 ? v[0] + v[1] : v[0]; };
  const Samples some = {
      {real({5, 3}), index({7}, 5)}, {real({5, 3}), index({0}, 5)}, {real({5, 0}), index({4}, 5)}};
  Samples weighted = some;
  for (Sample& s : weighted) s.push_back(real(s[1].sizes));
  const Sample many = {real({50, 131}), index({900}, 50)};
  Sample many_weighted = many;
  many_weighted.push_back(real({900}));
  t.row("embedding_bag", kFloats, weighted, CALL(bags, x, 0, x[2]), each(sum))
      .big(many_weighted)
      .small("bags and rows are fewer than what they hold")
      .sliced({1, -1, -1}, 1)
      .within(2);
  t.row("embedding_bag.mean", kFloats, some, CALL(bags, x, 1, std::nullopt),
        each([=](const std::vector<double>& v) { return sum(v) / double(v.size()); }))
      .big(many)
      .small("bags and rows are fewer than what they hold")
      .sliced({1, -1}, 1)
      .within(2);
  t.row(
       "embedding_bag.max", kFloats, some, CALL(bags, x, 2, std::nullopt),
       each([](const std::vector<double>& v) { return v.size() > 1 && v[1] > v[0] ? v[1] : v[0]; }))
      .big(many)
      .small("bags and rows are fewer than what they hold")
      .sliced({1, -1}, 1);
  // Rows 0, 2, ... of limited norm; the others as they are.
  const auto rows = [](const Tensor& x) {
    return arange(0, x.size(0), 2, TensorOptions(kLong).device(x.device()));
  };
  t.row("embedding_renorm", kFloats, shapes({{5, 3}, {2, 1}, {0, 3}}),
        CALL(embedding_renorm, x[0], rows(x[0]), 1.5, 2),
        [](P x) {
          return made(x[0].sizes, [&](const Index& i) {
            double squares = 0;
            for (int64_t j = 0; j < x[0].size(1); ++j)
              squares += x[0].at({i[0], j}) * x[0].at({i[0], j});
            const double norm = std::sqrt(squares);
            return x[0].at(i) * (i[0] % 2 == 0 && norm > 1.5 ? 1.5 / (norm + 1e-7) : 1);
          });
        })
      .big({real({700, 131})})
      .small("bags and rows are fewer than what they hold")
      .in_one("every other row is named")
      .no_gradient()
      .within(4)
      .changes([=](V x) {
        Tensor self = x[0];
        return embedding_renorm_(self, rows(self), 1.5, 2);
      })
      .writes(OUT(embedding_renorm, x[0], rows(x[0]), 1.5, 2));
}

RAMET_OP_TABLE(add_bags, add_nearest, add_smooth);

}  // namespace
}  // namespace op_table
}  // namespace ramet
