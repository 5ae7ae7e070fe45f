// Operators of one call, written as expressions.
#pragma once
#include <limits>
#include <string>
#include <vector>

#include "nn/formats/onnx/graph_internal.h"

namespace ramet {
namespace formats {

/// A module in error texts: 'features.0', or "the root module" for the empty path.
inline std::string named(const std::string& path) {
  return path.empty() ? "the root module" : "'" + path + "'";
}

/// A call of a layer, in evaluation mode.
struct OnnxCall {
  std::string path;  // "features.0"; "" for the whole model
  std::vector<Tensor> in, out;
  std::vector<std::string> names;  // of `in` in the graph; "" of an undefined one

  /// The name of something of the layer: "features.0.weight".
  std::string own(const std::string& what) const { return onnx_name(path, what); }
  ScalarType dtype() const { return out[0].scalar_type(); }
  /// "[export_onnx] 'features.0': ..."
  template <class... Parts> [[noreturn]] void refuse(const Parts&... parts) const {
    fail("export_onnx", named(path), ": ", parts...);
  }
};

inline OnnxAttributes onnx_axis(int64_t dim) { return OnnxAttributes().integer("axis", dim); }

struct OnnxOps {
  OnnxGraph& g;
  const OnnxCall& c;

  std::string op(const char* name, const std::vector<std::string>& in,
                 const OnnxAttributes& attributes = {}) const {
    return g.node(c.path, name, in, attributes);
  }
  std::string number(double value) const { return g.number(c.own("number"), value, c.dtype()); }
  std::string integers(IntArrayRef values) const { return g.integers(c.own("integers"), values); }
  std::string shaped(const std::string& x, IntArrayRef sizes) const {
    return op("Reshape", {x, integers(sizes)});
  }
  std::string moved(const std::string& x, IntArrayRef order) const {
    return op("Transpose", {x}, OnnxAttributes().integers("perm", order));
  }
  /// `x`, of `rank` dimensions, with two of them exchanged.
  std::string exchanged(const std::string& x, int64_t rank, int64_t dim0, int64_t dim1) const;
  /// x[index] along a dimension, which goes.
  std::string selected(const std::string& x, int64_t dim, int64_t index) const;
  /// x[begin:end:step] along a dimension.
  std::string slice(const std::string& x, int64_t dim, int64_t begin,
                    int64_t end = std::numeric_limits<int64_t>::max(), int64_t step = 1) const;
  /// A single part stays as it is.
  std::string concat(const std::vector<std::string>& parts, int64_t dim) const {
    return parts.size() == 1 ? parts[0] : op("Concat", parts, onnx_axis(dim));
  }
  /// `x` resampled to these extents; batch and channels stay. `a`: resize_attributes().
  std::string resized(const std::string& x, IntArrayRef extents, const OnnxAttributes& a) const;
};

/// `f` of an input with d dimensions after batch and channels. The batch is added for a while where
/// there is none.
template <class F> std::string batched(OnnxGraph& g, const OnnxCall& c, size_t d, const F& f) {
  if (c.in[0].dim() == static_cast<int64_t>(d) + 2) return f(c.names[0]);
  const OnnxOps o{g, c};
  const std::string axis = o.integers({0});
  return o.op("Squeeze", {f(o.op("Unsqueeze", {c.names[0], axis})), axis});
}

/// gelu(x): by its approximation with tanh, or by the error function.
std::string gelu_operators(const OnnxOps& o, const std::string& x, bool by_tanh);

/// Reshape's sizes for from -> to, which hold for other batches too. They are 0 for the first
/// dimensions that stay, and -1 for the first that does not. `from` is not empty.
std::vector<int64_t> reshape_sizes(IntArrayRef from, IntArrayRef to);

/// The sizes with which a number for each channel goes along dimension 1 of `rank` dimensions.
std::vector<int64_t> along_channels(int64_t channels, int64_t rank);

/// ONNX's pads, {before each dimension..., after each...}, where both are the same.
std::vector<int64_t> both_ends(IntArrayRef pads);

/// ONNX Runtime takes no output_padding of a stride or more. Less padding at the end is the same:
/// this moves it there. Refuses where the padding at the end is too small for that.
void fit_output_padding(const OnnxCall& c, int64_t stride, int64_t& output_padding,
                        int64_t& pad_at_end);

/// What Resize does: nearest, cubic or (neither) linear; with align_corners.
OnnxAttributes resize_attributes(bool nearest, bool cubic, bool align_corners);

}  // namespace formats
}  // namespace ramet
