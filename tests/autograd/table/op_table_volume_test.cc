// Rows of the operation table: volumes, transposed convolutions, and what else works on windows of
// any number of dimensions.
#include <algorithm>
#include <cmath>

#include "autograd/ops.h"
#include "tests/autograd/table/op_table_suite.h"
#include "tests/autograd/table/op_windows.h"

namespace ramet {
namespace op_table {
namespace {

void add_convolutions(Table& t) {
  const auto sample = [](Index image, Index kernel, int64_t bias) {
    Sample s = {real(image), real(kernel)};
    if (bias) s.push_back(real({bias}));
    return s;
  };
  const auto bias_of = EXPRESSION(x.size() > 2 ? std::optional<Tensor>(x[2]) : std::nullopt);
  const char* kPadding = "an infinite weight times padding is NaN or left out";
  constexpr uint16_t kTransposed = kFloats | set_of(kLong);
  Windows odd;
  odd.stride = odd.dilation = {2}, odd.padding = {1}, odd.output_padding = 1;
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

void add_pools(Table& t) {
  const Samples few = shapes({{2, 2, 4, 3, 5}, {2, 3, 3, 4}, {0, 2, 3, 3, 3}}, -9, 9);
  const Sample many = {real({70, 2, 5, 4, 5}, -9, 9)};
  Windows two, odd;
  two.kernel = {2, 2, 2}, odd.kernel = {3, 3, 3};
  two.stride = odd.stride = {2}, odd.padding = {1};
  const char* kPlanes = "the kernels of max_pool2d";
  t.row("max_pool3d", kNumbers, few, CALL(max_pool3d, x[0], 2),
        [=](P x) { return max_pooled(x[0], two); })
      .big(many, 1)
      .small(kPlanes);
  t.row("max_pool3d_with_indices.values", kNumbers, few,
        FIRST_OUT(kLong, max_pool3d_with_indices, x[0], 3, 2, 1),
        [=](P x) { return max_pooled(x[0], odd); })
      .big(many, 1)
      .small(kPlanes);
  t.row("max_pool3d_with_indices.positions", kNumbers, few,
        SECOND(max_pool3d_with_indices, x[0], 3, 2, 1),
        [=](P x) { return max_pooled(x[0], odd, true); })
      .big(many, 1)
      .small(kPlanes)
      .gives(positions)
      .no_gradient();
  // LibTorch's has neither 16 bits nor other integers than int64 on CPUs.
  constexpr uint16_t kAverages = kWide | set_of(kLong);
  t.row("avg_pool3d", kAverages, few, CALL_OUT(avg_pool3d, x[0], 3, 2, 1),
        [=](P x) { return mean_pooled(x[0], odd, true); })
      .big(many, 1)
      .small(kPlanes)
      .also(kFloats | kInts);
  t.row("avg_pool3d.inside", kAverages, few, CALL(avg_pool3d, x[0], 3, 2, 1, false, false),
        [=](P x) { return mean_pooled(x[0], odd, false); })
      .big(many, 1)
      .small(kPlanes)
      .also(kFloats | kInts);
  t.row("adaptive_avg_pool3d", kFloats, few, CALL_OUT(adaptive_avg_pool3d, x[0], {2, 2, 3}),
        [=](P x) {
          return mean_adapted(x[0], {2, 2, 3});
        })
      .big(many, 1)
      .small(kPlanes);
  const auto add = [&](const char* name, auto function, const Index& out, const Samples& samples,
                       const Sample& large) {
    const std::string place = std::string(name) + ".positions";
    t.row(name, kFloats, samples, EXPRESSION(std::get<0>(function(x[0], out))),
          [=](P x) { return max_adapted(x[0], out); })
        .big(large, 1)
        .small(kPlanes);
    t.row(place.c_str(), kFloats, samples, EXPRESSION(std::get<1>(function(x[0], out))),
          [=](P x) { return max_adapted(x[0], out, true); })
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

RAMET_OP_TABLE(add_convolutions, add_pools);

}  // namespace
}  // namespace op_table
}  // namespace ramet
