#include <algorithm>
#include <cmath>

#include "nn/formats/onnx/images_internal.h"

namespace ramet::formats {
namespace {

using Op = const OnnxOperation&;

// Do windows that the input's end cuts count (ceil_mode)? Then in both dimensions as ONNX counts.
bool counts_cut_windows(Op o) {
  const autograd::Arguments& a = o.arguments;
  bool cut = false, all = true;
  for (size_t i = 0; i < 2; ++i) {
    const auto d = static_cast<int64_t>(i) + 2;
    const int64_t reach = a.integers("dilation")[i] * (a.integers("kernel_size")[i] - 1) + 1,
                  step = a.integers("stride")[i],
                  room = o.in(0).size(d) + 2 * a.integers("padding")[i] - reach;
    cut = cut || o.out().size(d) > room / step + 1;
    all = all && o.out().size(d) == (room + step - 1) / step + 1;
  }
  if (cut && !all) o.call.refuse("ceil_mode with a window in the padding alone");
  return cut;
}
OnnxAttributes window(Op o) {
  OnnxAttributes a;
  a.integers("kernel_shape", o.arguments.integers("kernel_size"));
  a.integers("strides", o.arguments.integers("stride"));
  a.integers("pads", both_ends(o.arguments.integers("padding")));
  if (counts_cut_windows(o)) a.integer("ceil_mode", 1);
  return a;
}

}  // namespace

std::string onnx_convolution(Op o) {
  const autograd::Arguments& in = o.arguments;
  if (!in.find("stride")) o.call.refuse("a convolution of volumes as a function: use the module");
  const bool transposed = in.flag("transposed");
  const std::vector<int64_t>&stride = in.integers("stride"), &dilation = in.integers("dilation"),
        kernel = o.in(1).sizes().slice(2).vec();
  std::vector<int64_t> pads = both_ends(in.integers("padding")), more;
  for (size_t i = 0; i < 2; ++i) {
    const auto d = static_cast<int64_t>(i) + 2;
    const int64_t small = o.in(0).size(d), large = o.out().size(d),
                  reach = dilation[i] * (kernel[i] - 1) + 1;
    if (!transposed) {  // "same" pads an odd pixel at the end
      pads[2 + i] = std::max(pads[2 + i], (large - 1) * stride[i] + reach - small - pads[i]);
      continue;
    }
    more.push_back(large - ((small - 1) * stride[i] - 2 * pads[i] + reach));
    fit_output_padding(o.call, stride[i], more[i], pads[2 + i]);
  }
  OnnxAttributes a;
  a.integers("kernel_shape", kernel).integers("strides", stride).integers("pads", pads);
  a.integers("dilations", dilation).integer("group", in.integer("groups"));
  if (transposed) a.integers("output_padding", more);
  std::vector<std::string> operands{o.name(), o.name(1)};
  if (o.call.in.size() > 2 && o.in(2).defined()) operands.push_back(o.name(2));
  return o.ops().op(transposed ? "ConvTranspose" : "Conv", operands, a);
}

std::string onnx_max_pool(Op o) {
  return o.ops().op("MaxPool", {o.name()},
                    window(o).integers("dilations", o.arguments.integers("dilation")));
}

std::string onnx_average_pool(Op o) {
  if (o.arguments.integer("divisor_override") != 0)
    o.call.refuse("an average with a divisor_override, which no operator has");
  OnnxAttributes a = window(o);
  if (counts_cut_windows(o))
    o.call.refuse("an average of windows that are cut off: ONNX divides by another number");
  return o.ops().op("AveragePool", {o.name()},
                    a.integer("count_include_pad", o.arguments.flag("count_include_pad")));
}

std::string onnx_adaptive_pool(Op o) {
  const std::vector<int64_t>& size = o.arguments.integers("output_size");
  if (size[0] == 1 && size[1] == 1) return o.ops().op("GlobalAveragePool", {o.name()});
  std::vector<int64_t> window;
  for (size_t i = 0; i < 2; ++i) {
    const int64_t extent = o.in(0).size(static_cast<int64_t>(i) + 2);
    if (extent % size[i] != 0)
      o.call.refuse("an adaptive average of ", extent, " to ", size[i],
                    ", which does not divide it: use the module");
    window.push_back(extent / size[i]);
  }
  OnnxAttributes a;
  a.integers("kernel_shape", window).integers("strides", window);
  return o.ops().op("AveragePool", {o.name()}, a);
}

std::string onnx_upsample(Op o) {
  const bool nearest = o.node.find("Nearest") != std::string::npos;
  const bool cubic = o.node.find("Bicubic") != std::string::npos;
  const bool corners = o.arguments.flag("align_corners");
  const IntArrayRef from = o.in(0).sizes(), to = o.out().sizes();
  // A factor that is not the extents' ratio counts in Ramet; ONNX computes it from the sizes.
  for (size_t d = 2; d < from.size(); ++d) {
    const double scale = o.arguments.number("scale", d - 2).value_or(0);
    const bool said = scale != 0 && !corners;
    const double ratio = static_cast<double>(to[d]) / static_cast<double>(from[d]);
    if (said && std::fabs(scale - ratio) > 1e-12 * ratio)
      o.call.refuse("a scale_factor of ", scale, " where the extents' ratio is ", ratio,
                    ": use the module, or a size");
  }
  return o.ops().resized(o.name(), to.slice(2), resize_attributes(nearest, cubic, corners));
}

}  // namespace ramet::formats
