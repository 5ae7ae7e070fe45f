// Rows of the operation table: convolution, pools.
#include <algorithm>
#include <cmath>

#include "autograd/ops.h"
#include "tests/autograd/table/op_table_suite.h"
#include "tests/autograd/table/op_windows.h"

namespace ramet {
namespace op_table {
namespace {

void add_convolutions(Table& t) {
  const auto sample = [](Index image, Index kernel, bool bias) {
    Sample s = {real(image), real(kernel)};
    if (bias) s.push_back(real({kernel[0]}));
    return s;
  };
  const auto bias_of = EXPRESSION(x.size() > 2 ? std::optional<Tensor>(x[2]) : std::nullopt);
  // Sums of a few dozen products.
  t.row("conv2d", kNumbers,
        {sample({2, 3, 5, 4}, {4, 3, 3, 2}, true), sample({3, 5, 5}, {2, 3, 1, 1}, true),
         sample({0, 3, 5, 5}, {2, 3, 3, 3}, true)},
        CALL(conv2d, x[0], x[1], bias_of(x)), [](P x) { return convolved(x, {}); })
      .products()
      .big(sample({70, 3, 9, 9}, {5, 3, 3, 3}, true), 1)
      .slim(sample({4, 3, 144, 144}, {3, 3, 3, 3}, true))
      .within(4);
  Windows wide;
  wide.stride = {2, 1}, wide.padding = {1, 2};
  t.row("conv2d.padded", kNumbers,
        {sample({2, 2, 5, 6}, {3, 2, 3, 3}, false), sample({1, 2, 1, 1}, {3, 2, 3, 3}, false),
         sample({0, 2, 5, 6}, {3, 2, 3, 3}, false)},
        CALL(conv2d, x[0], x[1], {}, {2, 1}, {1, 2}), [=](P x) { return convolved(x, wide); })
      .products()
      .big(sample({70, 3, 9, 9}, {5, 3, 3, 3}, false), 1)
      .within(4)
      .partly_tame(2, "an infinite weight times padding is NaN or left out");
  Windows apart;
  apart.dilation = apart.padding = {2}, apart.groups = 2;
  t.row("conv2d.groups", kFloats | set_of(kLong),
        {sample({2, 4, 5, 6}, {6, 2, 3, 2}, true), sample({0, 4, 5, 6}, {6, 2, 3, 2}, true)},
        CALL(conv2d, x[0], x[1], bias_of(x), 1, 2, 2, 2), [=](P x) { return convolved(x, apart); })
      .products()
      .big(sample({70, 4, 9, 9}, {6, 2, 3, 3}, true), 1)
      .also(kInts)
      .within(4)
      .partly_tame(2, "an infinite weight times padding is NaN or left out");
  t.row("conv1d", kNumbers,
        {sample({2, 3, 6}, {4, 3, 3}, true), sample({3, 6}, {4, 3, 1}, true),
         sample({0, 3, 6}, {4, 3, 2}, true)},
        CALL(conv1d, x[0], x[1], bias_of(x)), [](P x) { return convolved(x, {}); })
      .products()
      .big(sample({70, 3, 90}, {5, 3, 3}, true), 1)
      .within(4);
}

void add_pools(Table& t) {
  const Sample images = {real({70, 3, 9, 9}, -9, 9)}, lines = {real({70, 3, 90}, -9, 9)};
  const Samples few = shapes({{2, 3, 5, 6}, {3, 4, 4}, {0, 3, 4, 4}}, -9, 9),
                few_lines = shapes({{2, 3, 7}, {3, 6}, {0, 3, 6}}, -9, 9);
  Windows two, odd, dilated, line;
  two.kernel = {2, 2}, two.stride = {2};
  odd.kernel = {3, 2}, odd.stride = {2, 1}, odd.padding = {1}, odd.ceil = true;
  dilated.kernel = {2, 3}, dilated.stride = {1, 2}, dilated.padding = {1};
  dilated.dilation = {2, 1};
  line.kernel = {3}, line.stride = {2}, line.padding = {1};
  t.row("max_pool2d", kNumbers, few, CALL(max_pool2d, x[0], 2), [=](P x) {
     return max_pooled(x[0], two);
   }).big(images, 1);
  t.row("max_pool2d.odd", kNumbers, few, CALL(max_pool2d, x[0], {3, 2}, {2, 1}, 1, 1, true),
        [=](P x) { return max_pooled(x[0], odd); })
      .big(images, 1);
  t.row("max_pool2d.dilated", kNumbers, few, CALL(max_pool2d, x[0], {2, 3}, {1, 2}, 1, {2, 1}),
        [=](P x) { return max_pooled(x[0], dilated); })
      .big(images, 1);
  t.row("max_pool2d_with_indices.values", kNumbers, few,
        FIRST_OUT(kLong, max_pool2d_with_indices, x[0], 2),
        [=](P x) { return max_pooled(x[0], two); })
      .big(images, 1);
  t.row("max_pool2d_with_indices.positions", kNumbers, few,
        SECOND_OUT(max_pool2d_with_indices, x[0], {3, 2}, {2, 1}, 1, 1, true),
        [=](P x) { return max_pooled(x[0], odd, true); })
      .big(images, 1)
      .gives(positions)
      .no_gradient();
  t.row("max_pool1d", kFloats, few_lines, CALL(max_pool1d, x[0], 3, 2, 1),
        [=](P x) { return max_pooled(x[0], line); })
      .big(lines, 1)
      .also(kInts);
  t.row("max_pool1d_with_indices.values", kNumbers, few_lines,
        FIRST(max_pool1d_with_indices, x[0], 3, 2, 1), [=](P x) { return max_pooled(x[0], line); })
      .big(lines, 1);
  t.row("max_pool1d_with_indices.positions", kNumbers, few_lines,
        SECOND(max_pool1d_with_indices, x[0], 3, 2, 1),
        [=](P x) { return max_pooled(x[0], line, true); })
      .big(lines, 1)
      .gives(positions)
      .no_gradient();
  // Integers divide towards zero.
  constexpr uint16_t kAverages = kFloats | set_of(kLong);
  t.row("avg_pool2d", kAverages, few, CALL_OUT(avg_pool2d, x[0], 2),
        [=](P x) { return mean_pooled(x[0], two, true); })
      .big(images, 1)
      .also(kInts);
  t.row("avg_pool2d.odd", kAverages, shapes({{2, 3, 5, 6}, {3, 5, 4}, {0, 3, 5, 4}}),
        CALL(avg_pool2d, x[0], {3, 2}, {2, 1}, 1, false, false),
        [=](P x) {
          Windows w = odd;
          w.ceil = false;
          return mean_pooled(x[0], w, false);
        })
      .big(images, 1)
      .also(kInts);
  t.row("avg_pool1d", kAverages, few_lines, CALL(avg_pool1d, x[0], 3, 2, 1),
        [=](P x) { return mean_pooled(x[0], line, true); })
      .big(lines, 1)
      .also(kInts);
  t.row("adaptive_avg_pool2d", kFloats, few, CALL_OUT(adaptive_avg_pool2d, x[0], {3, 2}), [](P x) {
     return mean_adapted(x[0], {3, 2});
   }).big(images, 1);
  t.row("adaptive_avg_pool1d", kFloats, few_lines, CALL(adaptive_avg_pool1d, x[0], 4), [](P x) {
     return mean_adapted(x[0], {4});
   }).big(lines, 1);
}

RAMET_OP_TABLE(add_convolutions, add_pools);

}  // namespace
}  // namespace op_table
}  // namespace ramet
