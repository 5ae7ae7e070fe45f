// Convolutions, pools, pads, upsampling.
#include <algorithm>
#include <cmath>

#include "autograd/ops/make/factory.h"
#include "nn/formats/onnx/layers_internal.h"
#include "nn/layers/image/conv.h"
#include "nn/layers/image/conv_transpose.h"
#include "nn/layers/image/padding.h"
#include "nn/layers/image/pooling.h"
#include "nn/layers/image/upsampling.h"
#include "runtime/base/checked_size.h"

namespace ramet::formats {
namespace {

// ---- convolutions -------------------------------------------------------------------------------

std::vector<OnnxOption> extent_and_steps() {
  return {{"kernel_shape", "kernel_size"}, {"strides", "stride"}};
}

template <size_t D> std::vector<int64_t> padding_of(const nn::ConvOptions<D>& o) {
  std::vector<int64_t> before(D), behind(D);
  if (const auto* numbers = std::get_if<ExpandingArray<D>>(&o.padding())) {
    before.assign((*numbers)->begin(), (*numbers)->end());
    behind = before;
  } else if (std::holds_alternative<enumtype::kSame>(o.padding())) {
    for (size_t d = 0; d < D; ++d) {
      const int64_t both = (*o.dilation())[d] * ((*o.kernel_size())[d] - 1);
      before[d] = both / 2, behind[d] = both - both / 2;
    }
  }
  before.insert(before.end(), behind.begin(), behind.end());
  return before;
}

template <class M> std::vector<std::string> operands(OnnxGraph& g, const OnnxCall& c, M& m) {
  std::vector<std::string> in{"", g.tensor(c.own("weight"), m.weight)};
  if (m.bias.defined()) in.push_back(g.tensor(c.own("bias"), m.bias));
  return in;
}

template <size_t D, class M> void add_conv(OnnxLayers& layers) {
  add_layer<M>(layers, [](OnnxGraph& g, const OnnxCall& c, M& m) {
    const auto& options = m.options;
    std::vector<int64_t> pads = padding_of<D>(options);
    std::vector<std::string> in = operands(g, c, m);
    const bool circular = holds_alternative<enumtype::kCircular>(options.padding_mode());
    const bool zeros = holds_alternative<enumtype::kZeros>(options.padding_mode());
    const bool reflect = holds_alternative<enumtype::kReflect>(options.padding_mode());
    return batched(g, c, D, [&](const std::string& x) {
      const OnnxOps o{g, c};
      in[0] = x;
      for (size_t d = 0; circular && d < D; ++d) {  // Pad knows it from operator set 19 on
        const int64_t dim = static_cast<int64_t>(d) - static_cast<int64_t>(D);
        std::vector<std::string> parts{in[0]};
        if (pads[d] > 0) parts.insert(parts.begin(), o.slice(in[0], dim, -pads[d]));
        if (pads[D + d] > 0) parts.push_back(o.slice(in[0], dim, 0, pads[D + d]));
        in[0] = o.concat(parts, dim);
      }
      if (circular) {
        std::fill(pads.begin(), pads.end(), 0);
      } else if (!zeros) {  // before the convolution, along its dimensions
        std::vector<int64_t> all(2 * (D + 2));
        std::copy_n(pads.begin(), D, all.begin() + 2);
        std::copy_n(pads.begin() + D, D, all.begin() + D + 4);
        in[0] = o.op("Pad", {x, o.integers(all)},
                     OnnxAttributes().text("mode", reflect ? "reflect" : "edge"));
        std::fill(pads.begin(), pads.end(), 0);
      }
      return o.op("Conv", in,
                  with_options(m, {{"dilations", "dilation"}, {"group", "groups"}},
                               with_options(m, extent_and_steps()).integers("pads", pads)));
    });
  });
}

template <size_t D, class M> void add_conv_transpose(OnnxLayers& layers) {
  add_layer<M>(layers, [](OnnxGraph& g, const OnnxCall& c, M& m) {
    std::vector<std::string> in = operands(g, c, m);
    const auto& options = m.options;
    std::vector<int64_t> pads = both_ends(options.padding()),
                         more(options.output_padding()->begin(), options.output_padding()->end());
    for (size_t d = 0; d < D; ++d) {
      const int64_t n = c.in[0].size(static_cast<int64_t>(d) - static_cast<int64_t>(D));
      const int64_t wanted = c.out[0].size(static_cast<int64_t>(d) - static_cast<int64_t>(D));
      const int64_t got = (n - 1) * (*options.stride())[d] - 2 * (*options.padding())[d] +
                          (*options.dilation())[d] * ((*options.kernel_size())[d] - 1) +
                          (*options.output_padding())[d] + 1;
      if (got != wanted) c.refuse("called with an output_size: give it output_padding instead");
      fit_output_padding(c, (*options.stride())[d], more[d], pads[D + d]);
    }
    return batched(g, c, D, [&](const std::string& x) {
      in[0] = x;
      OnnxAttributes a = with_options(m, {{"dilations", "dilation"}},
                                      with_options(m, extent_and_steps()).integers("pads", pads));
      return g.node(c.path, "ConvTranspose", in,
                    with_options(m, {{"group", "groups"}}, a.integers("output_padding", more)));
    });
  });
}

// ---- pools --------------------------------------------------------------------------------------

// Does a window reach behind the padded input, as windows may with ceil_mode?
template <size_t D, class Options>
bool overhangs(const OnnxCall& c, const Options& options, IntArrayRef dilation) {
  if (!options.ceil_mode()) return false;
  for (size_t d = 0; d < D; ++d) {
    const int64_t n = c.in[0].size(static_cast<int64_t>(d) - static_cast<int64_t>(D));
    const int64_t left =
        n + 2 * (*options.padding())[d] - dilation[d] * ((*options.kernel_size())[d] - 1) - 1;
    if (left % (*options.stride())[d] != 0) return true;
  }
  return false;
}

template <class M> OnnxAttributes window(const M& m) {
  return with_options(m, extent_and_steps()).integers("pads", both_ends(m.options.padding()));
}

template <size_t D, class M> void add_max_pool(OnnxLayers& layers) {
  add_layer<M>(layers, [](OnnxGraph& g, const OnnxCall& c, M& m) {
    const auto& o = m.options;
    const bool ceil = overhangs<D>(c, o, o.dilation());
    for (size_t d = 0; ceil && d < D; ++d) {
      const int64_t k = static_cast<int64_t>(d) - static_cast<int64_t>(D);
      const int64_t left = c.in[0].size(k) + 2 * (*o.padding())[d] -
                           (*o.dilation())[d] * ((*o.kernel_size())[d] - 1) - 1;
      if (c.out[0].size(k) != ceil_div(left, (*o.stride())[d]) + 1)
        c.refuse("ceil_mode with a window in the padding alone, which PyTorch leaves out");
    }
    return batched(g, c, D, [&](const std::string& x) {
      OnnxAttributes a = with_options(m, {{"dilations", "dilation"}}, window(m));
      return g.node(c.path, "MaxPool", {x}, a.integer("ceil_mode", ceil));
    });
  });
}

template <size_t D, class M> void add_avg_pool(OnnxLayers& layers) {
  add_layer<M>(layers, [](OnnxGraph& g, const OnnxCall& c, M& m) {
    const auto& o = m.options;
    if (o.divisor_override()) c.refuse("divisor_override has no operator");
    if (overhangs<D>(c, o, std::vector<int64_t>(D, 1)))
      c.refuse(
          "ceil_mode with windows that are cut off: what they are divided by is another "
          "number in ONNX");
    return batched(g, c, D, [&](const std::string& x) {
      return g.node(c.path, "AveragePool", {x},
                    with_options(m, {{"count_include_pad"}}, window(m)));
    });
  });
}

// Windows of unlike sizes: each is cut out and reduced, a dimension after the other.
std::string window_by_window(const OnnxOps& o, std::string x, size_t dims, const char* reduce) {
  for (int64_t dim = -static_cast<int64_t>(dims); dim < 0; ++dim) {
    const int64_t n = o.c.in[0].size(dim), wanted = o.c.out[0].size(dim);
    std::vector<std::string> parts;
    for (int64_t i = 0; i < wanted; ++i) {
      OnnxAttributes a;
      const std::string window = o.slice(x, dim, i * n / wanted, ceil_div((i + 1) * n, wanted));
      parts.push_back(o.op(reduce, {window}, a.integers("axes", {dim}).integer("keepdims", 1)));
    }
    x = o.concat(parts, dim);
  }
  return x;
}

template <size_t D, class M>
void add_adaptive(OnnxLayers& layers, const char* op, const char* global, const char* reduce) {
  add_layer<M>(layers, [op, global, reduce](OnnxGraph& g, const OnnxCall& c, M&) {
    std::vector<int64_t> kernel;
    bool whole = true, alike = true;
    for (size_t d = 0; d < D; ++d) {
      const int64_t k = static_cast<int64_t>(d) - static_cast<int64_t>(D);
      const int64_t n = c.in[0].size(k), wanted = c.out[0].size(k);
      alike = alike && n % wanted == 0;
      kernel.push_back(n / wanted);
      whole = whole && wanted == 1;
    }
    return batched(g, c, D, [&](const std::string& x) {
      if (whole) return g.node(c.path, global, {x});
      if (!alike) return window_by_window(OnnxOps{g, c}, x, D, reduce);
      OnnxAttributes a;
      return g.node(c.path, op, {x},
                    a.integers("kernel_shape", kernel).integers("strides", kernel));
    });
  });
}

// ---- pads, upsampling ---------------------------------------------------------------------------

std::string pad(OnnxGraph& g, const OnnxCall& c, IntArrayRef given, const char* mode,
                double value) {
  const auto rank = static_cast<size_t>(c.in[0].dim());
  std::vector<int64_t> pads(2 * rank);
  for (size_t d = 0; 2 * d < given.size(); ++d) {  // the last dimension first
    pads[rank - 1 - d] = given[2 * d];
    pads[2 * rank - 1 - d] = given[2 * d + 1];
  }
  const OnnxOps o{g, c};
  std::vector<std::string> in{c.names[0], o.integers(pads)};
  const bool constant = mode == std::string("constant");
  if (constant) in.push_back(o.number(value));
  else if (std::any_of(pads.begin(), pads.end(), [](int64_t p) { return p < 0; }))
    c.refuse("got negative pads ", given, " in mode ", mode);
  return o.op("Pad", in, OnnxAttributes().text("mode", mode));
}

std::string upsample(OnnxGraph& g, const OnnxCall& c, nn::UpsampleImpl& m) {
  const OnnxOps o{g, c};
  const auto& options = m.options;
  const int64_t rank = c.in[0].dim();
  const bool nearest = holds_alternative<enumtype::kNearest>(options.mode());
  const bool cubic = holds_alternative<enumtype::kBicubic>(options.mode());
  const bool corners = options.align_corners() && *options.align_corners();
  const OnnxAttributes a = resize_attributes(nearest, cubic, corners);
  if (!options.scale_factor()) return o.resized(c.names[0], c.out[0].sizes().slice(2), a);
  const Tensor scales = empty({rank}, kFloat);
  float* s = scales.data_ptr<float>();
  bool all_stay = true, all_ones = true;
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t n = c.in[0].size(d), wanted = c.out[0].size(d);
    s[d] = d < 2 ? 1 : static_cast<float>((*options.scale_factor())[static_cast<size_t>(d - 2)]);
    // Where the factor does not count here, it must not count there.
    const bool plain = nearest ? rank == 4 : !cubic;
    if (plain && wanted == n) s[d] = 1;
    if (plain && nearest && wanted == 2 * n) s[d] = 2;
    if (d >= 2 && static_cast<int64_t>(static_cast<float>(n) * s[d]) != wanted)
      c.refuse("a scale_factor that makes another extent of ", n, " in float32, which ONNX has");
    all_stay = all_stay && wanted == n, all_ones = all_ones && s[d] == 1;
  }
  if (all_stay && !all_ones && !corners)
    c.refuse("a scale_factor that leaves the extents as they are: ONNX Runtime copies then");
  return o.op("Resize", {c.names[0], "", g.tensor(c.own("scales"), scales)}, a);
}

template <size_t D, class Conv, class Transposed, class Max, class Avg, class ToAvg, class ToMax>
void add_windows(OnnxLayers& layers) {
  add_conv<D, Conv>(layers);
  add_conv_transpose<D, Transposed>(layers);
  add_max_pool<D, Max>(layers);
  add_avg_pool<D, Avg>(layers);
  add_adaptive<D, ToAvg>(layers, "AveragePool", "GlobalAveragePool", "ReduceMean");
  add_adaptive<D, ToMax>(layers, "MaxPool", "GlobalMaxPool", "ReduceMax");
}
template <class M> void add_pad(OnnxLayers& layers, const char* mode) {
  add_layer<M>(layers, [mode](OnnxGraph& g, const OnnxCall& c, M& m) {
    return pad(g, c, m.options.padding(), mode, 0);
  });
}
template <class Reflection, class Replication, class Zero, class Constant>
void add_pads(OnnxLayers& layers) {
  add_pad<Reflection>(layers, "reflect");
  add_pad<Replication>(layers, "edge");
  add_pad<Zero>(layers, "constant");
  add_layer<Constant>(layers, [](OnnxGraph& g, const OnnxCall& c, Constant& m) {
    return pad(g, c, m.options.padding(), "constant", m.options.value());
  });
}

}  // namespace

void add_window_layers(OnnxLayers& layers) {
#define RAMET_WINDOWS(D)                                                                     \
  add_windows<D, nn::Conv##D##dImpl, nn::ConvTranspose##D##dImpl, nn::MaxPool##D##dImpl,     \
              nn::AvgPool##D##dImpl, nn::AdaptiveAvgPool##D##dImpl,                          \
              nn::AdaptiveMaxPool##D##dImpl>(layers);                                        \
  add_pads<nn::ReflectionPad##D##dImpl, nn::ReplicationPad##D##dImpl, nn::ZeroPad##D##dImpl, \
           nn::ConstantPad##D##dImpl>(layers);
  RAMET_WINDOWS(1)
  RAMET_WINDOWS(2)
  RAMET_WINDOWS(3)
#undef RAMET_WINDOWS
  add_layer<nn::UpsampleImpl>(layers, upsample);
}

}  // namespace ramet::formats
