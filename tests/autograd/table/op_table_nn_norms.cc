// Rows of the operation table: normalisation.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "autograd/ops.h"
#include "tests/autograd/table/op_table_suite.h"

namespace ramet {
namespace op_table {
namespace {

// (x - mean) / sqrt(var + eps) over each group of elements that `group` numbers.
Plain normalised(const Plain& x, int64_t groups, const std::function<int64_t(const Index&)>& group,
                 double eps) {
  std::vector<double> mean(size_t(groups), 0.0), var(size_t(groups), 0.0), n(size_t(groups), 0.0);
  const auto each = [&](const std::function<double(double, size_t)>& f) {
    return made(x.sizes, [&](const Index& i) { return f(x.at(i), size_t(group(i))); });
  };
  each([&](double v, size_t g) { return n[g] += 1, mean[g] += v; });
  for (size_t g = 0; g < mean.size(); ++g) mean[g] /= n[g];
  each([&](double v, size_t g) { return var[g] += (v - mean[g]) * (v - mean[g]) / n[g]; });
  return each([&](double v, size_t g) { return (v - mean[g]) / std::sqrt(var[g] + eps); });
}
Plain batch_normalised(P x, double eps) {
  const Plain y = normalised(
      x[0], x[0].size(1), [](const Index& i) { return i[1]; }, eps);
  return made(y.sizes, [&](const Index& i) { return y.at(i) * x[1].at({i[1]}) + x[2].at({i[1]}); });
}
Tensor constant(const Tensor& like, int64_t n, double value) {
  return full(n, value,
              TensorOptions(is_floating(like.scalar_type()) ? like.scalar_type() : kFloat)
                  .device(like.device()));
}

void add_norms(Table& t) {
  const auto sample = [](Index x, Index scale) {
    return Sample{real(x), real(scale, 0.5, 1.5), real(scale)};
  };
  const Samples some = {sample({4, 3, 2, 3}, {3}), sample({5, 2}, {2}), sample({2, 3, 5}, {3}),
                        sample({0, 3, 2}, {3})};
  const Sample channels = sample({9, 75, 5, 7}, {75});
  t.row("batch_norm", kFloats, some,
        CALL(batch_norm, x[0], x[1], x[2], {}, {}, true, 0.1, 1e-3, true),
        [](P x) { return batch_normalised(x, 1e-3); })
      .big(channels)
      .slim(sample({4, 3, 144, 144}, {3}))
      .sliced({1, 0, 0}, 1)
      .within(8);
  t.row(
       "batch_norm.fixed", kFloats, some,
       [](V x) {
         const Tensor mean = constant(x[0], x[0].size(1), 0.5),
                      var = constant(x[0], x[0].size(1), 4);
         return batch_norm(x[0], x[1], x[2], mean, var, false, 0.1, 1e-3, true);
       },
       [](P x) {
         return made(x[0].sizes, [&](const Index& i) {
           return (x[0].at(i) - 0.5) / std::sqrt(4 + 1e-3) * x[1].at({i[1]}) + x[2].at({i[1]});
         });
       })
      .big(sample({70, 5, 7, 9}, {5}), 1)
      .within(8)
      .partly_tame(2, "an infinite weight meets x and the mean apart");
  t.row(
       "batch_norm.statistics", kFloats, shapes({{4, 3, 2, 3}, {0, 3}}),
       [](V x) {
         const Tensor mean = constant(x[0], x[0].size(1), 0.5),
                      var = constant(x[0], x[0].size(1), 4);
         batch_norm(x[0], {}, {}, mean, var, true, 0.25, 1e-3, true);
         return mean;
       },
       [](P x) {
         // Nothing changes nothing.
         const double n = double(count(x[0].sizes)) / double(x[0].size(1));
         return made({x[0].size(1)}, [&](const Index& c) {
           double s = 0;
           made(x[0].sizes, [&](const Index& i) { return i[1] == c[0] ? s += x[0].at(i) : 0; });
           return n == 0 ? 0.5 : 0.75 * 0.5 + 0.25 * s / n;
         });
       })
      .big({channels[0]})
      .sliced({1}, 0)
      .no_gradient();
  t.row("batch_norm_relu_max_pool2d", kFloats,
        {sample({3, 2, 4, 6}, {2}), sample({2, 3, 5, 3}, {3}), sample({0, 2, 4, 6}, {2})},
        CALL(batch_norm_relu_max_pool2d, x[0], x[1], x[2], {}, {}, true, 0.1, 1e-3),
        [](P x) {
          const Plain y = batch_normalised(x, 1e-3);
          return made({y.size(0), y.size(1), y.size(2) / 2, y.size(3) / 2}, [&](const Index& i) {
            double most = 0;  // NaN where one is
            for (int64_t k = 0; k < 4; ++k) {
              const double v = y.at({i[0], i[1], 2 * i[2] + k / 2, 2 * i[3] + k % 2});
              if (!std::isnan(most) && !(v <= most)) most = v;
            }
            return most;
          });
        })
      .big(sample({9, 75, 8, 8}, {75}))
      .sliced({1, 0, 0}, 1)
      .within(8);
  const auto last = [](P x) {
    const int64_t dims = x.size() > 1 ? x[1].rank() : 1;
    const Index outer(x[0].sizes.begin(), x[0].sizes.end() - dims);
    const Plain y = normalised(
        x[0], count(outer),
        [&](const Index& i) {
          int64_t g = 0;
          for (size_t d = 0; d < outer.size(); ++d) g = g * outer[d] + i[d];
          return g;
        },
        1e-3);
    return made(y.sizes, [&](const Index& i) {
      return x.size() > 1 ? y.at(i) * x[1].broadcast(i) + x[2].broadcast(i) : y.at(i);
    });
  };
  t.row("layer_norm", kFloats,
        {sample({3, 5}, {5}), sample({2, 3, 4}, {3, 4}), sample({6}, {6}), sample({0, 4}, {4})},
        CALL(layer_norm, x[0], x[1].sizes(), x[1], x[2], 1e-3), last)
      .big(sample({97, 131}, {131}), 1)
      .slim(sample({31250, 8}, {8}))
      .within(8);
  t.row("layer_norm.line", kFloats, {sample({6}, {6}), sample({0}, {0})},
        CALL(layer_norm, x[0], x[1].sizes(), x[1], x[2], 1e-3), last)
      .big(sample({16000}, {16000}))
      .alone("a row is one thread's")
      .in_one("there is one row")
      .narrow("a row belongs to one block, however long it is")
      .within(8);
  t.row("group_norm", kFloats,
        {sample({4, 6, 2, 3}, {6}), sample({5, 4}, {4}), sample({2, 6, 5}, {6}),
         sample({0, 4, 3}, {4}), sample({2, 4, 0}, {4})},
        CALL(group_norm, x[0], 2, x[1], x[2], 1e-3),
        [](P x) {
          const int64_t channels = x[0].size(1) / 2;
          const Plain y = normalised(
              x[0], 2 * x[0].size(0), [=](const Index& i) { return 2 * i[0] + i[1] / channels; },
              1e-3);
          return made(y.sizes,
                      [&](const Index& i) { return y.at(i) * x[1].at({i[1]}) + x[2].at({i[1]}); });
        })
      .big(sample({75, 10, 5, 9}, {10}), 1)
      .slim(sample({64, 2, 40, 40}, {2}))
      .within(8);
  t.row(
       "residual_layer_norm", kFloats,
       {{real({3, 5}), real({3, 5}), real({5}, 0.5, 1.5), real({5})},
        {real({2, 3, 4}), real({2, 3, 4}), real({3, 4}, 0.5, 1.5), real({3, 4})},
        {real({0, 4}), real({0, 4}), real({4}), real({4})}},
       [](V x) {
         const auto [y, sum] = residual_layer_norm(x[0], x[1], x[2].sizes(), x[2], x[3], 1e-3);
         return y.add(sum);
       },
       [=](P x) {
         Plain sum = x[0];
         for (size_t i = 0; i < sum.v.size(); ++i) sum.v[i] += x[1].v[i];
         Plain y = last({sum, x[2], x[3]});
         for (size_t i = 0; i < sum.v.size(); ++i) y.v[i] += sum.v[i];
         return y;
       })
      .big({real({97, 131}), real({97, 131}), real({131}, 0.5, 1.5), real({131})}, 3)
      .within(8);
  t.row("layer_norm.plain", kFloats, shapes({{3, 5}, {2, 3, 4}, {0, 4}}),
        CALL(layer_norm, x[0], x[0].size(-1), {}, {}, 1e-3), last)
      .big({real({97, 131})}, 1)
      .within(8);
}

// ---- of channels of each image, and by the root of the mean square

// f(the moments of the group of elements that key names: mean, mean of squares) at each element.
Plain by_moments(const Plain& x, const std::function<Index(const Index&)>& key,
                 const std::function<double(const Index&, double, double)>& f) {
  std::map<Index, std::array<double, 3>> sums;
  made(x.sizes, [&](const Index& i) {
    auto& s = sums[key(i)];
    s[0] += 1, s[1] += x.at(i), s[2] += x.at(i) * x.at(i);
    return 0.0;
  });
  return made(x.sizes, [&](const Index& i) {
    const auto& s = sums[key(i)];
    return f(i, s[1] / s[0], s[2] / s[0]);
  });
}

void add_more_norms(Table& t) {
  const auto sample = [](Index x, Index scale) {
    return Sample{real(x), real(scale, 0.5, 1.5), real(scale)};
  };
  const Samples some = {sample({2, 3, 2, 3}, {3}), sample({2, 3, 2, 2, 2}, {3}),
                        sample({2, 3, 5}, {3}), sample({0, 3, 4}, {3})};
  const Sample many = sample({70, 5, 9, 7}, {5});
  const auto normalised = [](P x) {
    return by_moments(
        x[0],
        [](const Index& i) {
          return Index{i[0], i[1]};
        },
        [=](const Index& i, double mean, double squares) {
          return (x[0].at(i) - mean) / std::sqrt(squares - mean * mean + 1e-2) * x[1].at({i[1]}) +
                 x[2].at({i[1]});
        });
  };
  t.row("instance_norm", kFloats, some,
        CALL(instance_norm, x[0], x[1], x[2], {}, {}, true, 0.1, 1e-2, true), normalised)
      .big(many, 1)
      .within(8)
      .small("the kernels of group_norm");
  const auto constant = [](const Tensor& x, double value) {
    return full(x.size(1), value, TensorOptions(kFloat).device(x.device()));
  };
  t.row("instance_norm.running", kFloats, some,
        CALL(instance_norm, x[0], x[1], x[2], constant(x[0], 0), constant(x[0], 1), true, 0.1, 1e-2,
             true),
        normalised)
      .big(many, 1)
      .within(8)
      .small("the kernels of batch_norm");
  t.row("instance_norm.fixed", kFloats, some,
        CALL(instance_norm, x[0], x[1], x[2], constant(x[0], 0.5), constant(x[0], 4), false, 0.1,
             1e-2, true),
        [](P x) {
          return made(x[0].sizes, [&](const Index& i) {
            return (x[0].at(i) - 0.5) / std::sqrt(4 + 1e-2) * x[1].at({i[1]}) + x[2].at({i[1]});
          });
        })
      .big(many, 1)
      .within(8)
      .small("the kernels of batch_norm")
      .partly_tame(2, "an infinite weight meets x and the mean apart");
  t.row("rms_norm", kFloats,
        {{real({3, 5}), real({5}, 0.5, 1.5)},
         {real({2, 3, 4}), real({3, 4}, 0.5, 1.5)},
         {real({6}), real({6})},
         {real({0, 4}), real({4})}},
        CALL(rms_norm, x[0], x[1].sizes(), x[1], 1e-2),
        [](P x) {
          const int64_t outer = x[0].rank() - x[1].rank();
          return by_moments(
              x[0], [=](const Index& i) { return Index(i.begin(), i.begin() + outer); },
              [=](const Index& i, double, double squares) {
                return x[0].at(i) / std::sqrt(squares + 1e-2) * x[1].broadcast(i);
              });
        })
      .big({real({97, 131}), real({131}, 0.5, 1.5)}, 1)
      .within(8);
}

RAMET_OP_TABLE(add_norms, add_more_norms);

}  // namespace
}  // namespace op_table
}  // namespace ramet
