#include <algorithm>
#include <cmath>
#include <numeric>

#include "autograd/ops/make/factory.h"
#include "nn/formats/onnx/expressions_internal.h"

namespace ramet::formats {

std::string OnnxOps::exchanged(const std::string& x, int64_t rank, int64_t dim0,
                               int64_t dim1) const {
  std::vector<int64_t> order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::swap(order[static_cast<size_t>(dim0)], order[static_cast<size_t>(dim1)]);
  return moved(x, order);
}

std::string OnnxOps::selected(const std::string& x, int64_t dim, int64_t index) const {
  return op("Gather", {x, g.tensor(c.own("index"), full({}, index, kLong))}, onnx_axis(dim));
}

std::string OnnxOps::slice(const std::string& x, int64_t dim, int64_t begin, int64_t end,
                           int64_t step) const {
  std::vector<std::string> in{x, integers({begin}), integers({end}), integers({dim})};
  if (step != 1) in.push_back(integers({step}));
  return op("Slice", in);
}

std::string OnnxOps::resized(const std::string& x, IntArrayRef extents,
                             const OnnxAttributes& a) const {
  const std::string front = slice(op("Shape", {x}), 0, 0, 2);
  return op("Resize", {x, "", "", op("Concat", {front, integers(extents)}, onnx_axis(0))}, a);
}

std::vector<int64_t> reshape_sizes(IntArrayRef from, IntArrayRef to) {
  std::vector<int64_t> sizes = to.vec();
  size_t same = 0;
  while (same < from.size() && same < to.size() && from[same] == to[same]) sizes[same++] = 0;
  if (same < to.size()) sizes[same] = -1;
  return sizes;
}

std::string gelu_operators(const OnnxOps& o, const std::string& x, bool by_tanh) {
  const std::string half = o.op("Mul", {x, o.number(0.5)});
  std::string inner;
  if (by_tanh) {
    const std::string cube = o.op("Mul", {x, o.op("Mul", {x, x})});
    const std::string sum = o.op("Add", {x, o.op("Mul", {cube, o.number(0.044715)})});
    inner = o.op("Tanh", {o.op("Mul", {sum, o.number(std::sqrt(2 / M_PI))})});
  } else {
    inner = o.op("Erf", {o.op("Mul", {x, o.number(std::sqrt(0.5))})});
  }
  return o.op("Mul", {half, o.op("Add", {inner, o.number(1)})});
}

std::vector<int64_t> along_channels(int64_t channels, int64_t rank) {
  std::vector<int64_t> sizes(static_cast<size_t>(rank > 1 ? rank - 1 : 1), 1);
  sizes[0] = channels;
  return sizes;
}

std::vector<int64_t> both_ends(IntArrayRef pads) {
  std::vector<int64_t> both = pads.vec();
  both.insert(both.end(), pads.begin(), pads.end());
  return both;
}

void fit_output_padding(const OnnxCall& c, int64_t stride, int64_t& output_padding,
                        int64_t& pad_at_end) {
  if (output_padding < stride) return;
  const int64_t less = std::min(output_padding, pad_at_end);
  pad_at_end -= less, output_padding -= less;
  if (output_padding >= stride)
    c.refuse("output_padding that is a stride or more, and more than the padding");
}

OnnxAttributes resize_attributes(bool nearest, bool cubic, bool align_corners) {
  OnnxAttributes a;
  a.text("mode", nearest ? "nearest" : cubic ? "cubic" : "linear");
  a.text("coordinate_transformation_mode", nearest         ? "asymmetric"
                                           : align_corners ? "align_corners"
                                                           : "half_pixel");
  if (nearest) a.text("nearest_mode", "floor");
  if (cubic) a.real("cubic_coeff_a", -0.75);
  return a;
}

}  // namespace ramet::formats
