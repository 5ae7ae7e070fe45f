// Guesses of operations between layers that have a number, dimensions or a shape of their own.
#include <optional>

#include "autograd/ops.h"
#include "nn/formats/onnx/between_internal.h"

namespace ramet::formats {
namespace {

// s, t: what the kernel was given. An operand that is a number is t.
struct Numbered {
  const char *node, *op;
  bool left;  // the number comes first
  double (*number)(OnnxSeen::Numbers n);
  Tensor (*function)(const Tensor& x, OnnxSeen::Numbers n);
};
double times(OnnxSeen::Numbers n) { return n.s * n.t; }
double plain(OnnxSeen::Numbers n) { return n.t; }
template <int half> double exponent(OnnxSeen::Numbers) { return half / 2.; }
template <int half> Tensor power(const Tensor& x, OnnxSeen::Numbers) { return x.pow(half / 2.); }

const Numbered kNumbered[] = {
    {"AddBackward1", "Add", false, times,
     [](const Tensor& x, OnnxSeen::Numbers n) { return x.add(Scalar(n.t), Scalar(n.s)); }},
    {"SubBackward1", "Sub", false, times,
     [](const Tensor& x, OnnxSeen::Numbers n) { return x.sub(Scalar(n.t), Scalar(n.s)); }},
    {"RsubBackward1", "Sub", true, plain,
     [](const Tensor& x, OnnxSeen::Numbers n) { return rsub(x, Scalar(n.t)); }},
    {"MulBackward1", "Mul", false, plain,
     [](const Tensor& x, OnnxSeen::Numbers n) { return x.mul(Scalar(n.t)); }},
    {"DivBackward1", "Div", false, plain,
     [](const Tensor& x, OnnxSeen::Numbers n) { return x.div(Scalar(n.t)); }},
    {"PowBackward2", "Pow", true, plain,
     [](const Tensor& x, OnnxSeen::Numbers n) { return pow(Scalar(n.t), x); }},
    // Exponents that have kernels of their own, without a number; then any.
    {"PowBackward0", "Pow", false, exponent<4>, power<4>},
    {"PowBackward0", "Pow", false, exponent<6>, power<6>},
    {"PowBackward0", "Pow", false, exponent<1>, power<1>},
    {"PowBackward0", "Pow", false, exponent<-1>, power<-1>},
    {"PowBackward0", "Pow", false, exponent<-2>, power<-2>},
    {"PowBackward0", "Pow", false, plain,
     [](const Tensor& x, OnnxSeen::Numbers n) { return x.pow(Scalar(n.t)); }},
};

struct Reduction {
  const char *node, *op;
  Tensor (*function)(const Tensor& x, IntArrayRef dims, bool keep);
  bool rounds = true;  // sums do, extrema do not
};
const Reduction kReductions[] = {
    {"SumBackward", "ReduceSum",
     [](const Tensor& x, IntArrayRef d, bool keep) { return x.sum(d, keep); }},
    {"MeanBackward", "ReduceMean",
     [](const Tensor& x, IntArrayRef d, bool keep) { return x.mean(d, keep); }},
    {"NormBackward", "ReduceL2",
     [](const Tensor& x, IntArrayRef d, bool keep) { return x.norm(2, d, keep); }},
    {"NormBackward", "ReduceL1",
     [](const Tensor& x, IntArrayRef d, bool keep) { return x.norm(1, d, keep); }},
    {"AmaxBackward", "ReduceMax",
     [](const Tensor& x, IntArrayRef d, bool keep) { return amax(x, d, keep); }, false},
    {"AminBackward", "ReduceMin",
     [](const Tensor& x, IntArrayRef d, bool keep) { return amin(x, d, keep); }, false},
    {"MaxBackward", "ReduceMax",
     [](const Tensor& x, IntArrayRef d, bool keep) { return amax(x, d, keep); }, false},
    {"MinBackward", "ReduceMin",
     [](const Tensor& x, IntArrayRef d, bool keep) { return amin(x, d, keep); }, false},
};

// Is `result` the sum `value`? A convolution's result lies in another order until its strides are
// asked for. A sum of it was added in that order, and may be rounded otherwise. `most`: the same
// sum of magnitudes.
bool same_but_rounded(const Tensor& value, const Tensor& result, const Tensor& most) {
  if (same_bits(value, result)) return true;
  const ScalarType dtype = value.scalar_type();
  if (dtype != result.scalar_type() || !is_floating(dtype)) return false;
  const double unit = dtype == kHalf       ? 0x1p-11
                      : dtype == kBFloat16 ? 0x1p-8
                      : dtype == kFloat    ? 0x1p-24
                                           : 0x1p-53;
  const Tensor apart = (value.to(kDouble) - result.to(kDouble)).abs();
  return apart.le(most.to(kDouble) * (16 * unit)).all().item<bool>();
}

// Is `result` what the row gives of x?
bool gives(const Reduction& row, const Tensor& x, IntArrayRef dims, bool keep,
           const Tensor& result) {
  const Tensor value = row.function(x, dims, keep);
  return row.rounds ? same_but_rounded(value, result, row.function(x.abs(), dims, keep))
                    : same_bits(value, result);
}

std::vector<int64_t> reduced_sizes(IntArrayRef sizes, const std::vector<bool>& gone, bool keep) {
  std::vector<int64_t> out;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (!gone[d]) out.push_back(sizes[d]);
    else if (keep) out.push_back(1);
  return out;
}

}  // namespace

void OnnxTensors::guess_number(const std::string& node, const Term& x, OnnxSeen::Numbers n,
                               Terms& made) {
  const Tensor& v = x.value;
  const ScalarType dtype = v.scalar_type();
  for (const Numbered& row : kNumbered) {
    if (node != row.node) continue;
    const size_t before = made.size();
    put(
        made, [&] { return row.function(v, n); },
        [this, &row, x, n, dtype, prefix = prefix_] {
          const std::string in = x.add();
          const std::string number =
              graph_.number(onnx_name(prefix, "number"), row.number(n), dtype);
          return row.left ? graph_.node(prefix, row.op, {number, in})
                          : graph_.node(prefix, row.op, {in, number});
        });
    // The operators want one dtype.
    if (made.size() > before && made.back().value.scalar_type() != dtype) made.pop_back();
  }
  if (node == "LeakyReluBackward0") {
    put_node(made, x, "LeakyRelu", OnnxAttributes().real("alpha", n.s),
             [n](const Tensor& t) { return leaky_relu(t, n.s); });
  }
  const bool low = node == "ClampMinBackward0", high = node == "ClampMaxBackward0";
  if (low || high || node == "ClampBackward1") {
    // One bound is the other operand of a maximum or minimum.
    using Bound = std::optional<Scalar>;
    const Bound from = high ? Bound() : Scalar(low ? n.t : n.s), to = low ? Bound() : Scalar(n.t);
    put(
        made, [&] { return v.clamp(from, to); },
        [this, x, from, to, dtype, prefix = prefix_] {
          std::vector<std::string> in{x.add()};
          for (const Bound& b : {from, to})
            in.push_back(b ? graph_.number(onnx_name(prefix, "number"), b->toDouble(), dtype) : "");
          while (in.back().empty()) in.pop_back();
          return graph_.node(prefix, "Clip", in);
        });
  }
}

void OnnxTensors::guess_reduction(const std::string& node, const Term& x, const Tensor& result,
                                  Terms& made) {
  const Tensor& v = x.value;
  const auto rank = static_cast<size_t>(v.dim());
  for (const Reduction& row : kReductions) {
    if (node.size() != std::string(row.node).size() + 1 || node.rfind(row.node, 0) != 0) continue;
    if (rank == 0 || rank > 6) return;
    // The last dimensions first: where several say the same for this example, because they have one
    // place, it is not the batch's that goes.
    for (size_t choice = size_t{1} << rank; choice-- > 1;) {
      std::vector<bool> gone(rank);
      std::vector<int64_t> dims;
      bool one = false, more = false;  // places, of a dimension that goes
      for (size_t d = 0; d < rank; ++d) {
        gone[d] = choice >> d & 1;
        if (!gone[d]) continue;
        dims.push_back(static_cast<int64_t>(d));
        (v.sizes()[d] == 1 ? one : more) = true;
      }
      const bool all = dims.size() == rank;
      for (const bool keep : {false, true}) {
        if (keep && one && more) continue;  // the same without those of one place
        if (result.sizes() != IntArrayRef(reduced_sizes(v.sizes(), gone, keep))) continue;
        if (!gives(row, v, dims, keep, result.detach())) continue;
        put(
            made, [&] { return result.detach(); },
            [this, &row, x, dims, keep, all, prefix = prefix_] {
              OnnxAttributes a;
              a.integer("keepdims", keep);
              std::vector<std::string> in{x.add()};
              const bool sum = row.op == std::string("ReduceSum");
              if (!all && sum) in.push_back(graph_.integers(onnx_name(prefix, "integers"), dims));
              else if (!all) a.integers("axes", dims);
              return graph_.node(prefix, row.op, in, a);
            });
        return;
      }
    }
  }
}

// Windows of one size, as they are where the output's extents divide the input's.
void OnnxTensors::guess_adaptive(const Term& x, const Tensor& result, Terms& made) {
  const Tensor& v = x.value;
  if (v.dim() != 4) return;
  const int64_t height = result.size(2), width = result.size(3);
  if (v.size(2) % height != 0 || v.size(3) % width != 0) return;
  const auto pooled = [height, width](const Tensor& t) {
    return adaptive_avg_pool2d(t, {height, width});
  };
  if (!same_but_rounded(pooled(v), result.detach(), pooled(v.abs()))) return;
  put(
      made, [&] { return result.detach(); },
      [this, x, v, height, width, prefix = prefix_] {
        if (height == 1 && width == 1) return graph_.node(prefix, "GlobalAveragePool", {x.add()});
        const std::vector<int64_t> window{v.size(2) / height, v.size(3) / width};
        OnnxAttributes a;
        a.integers("kernel_shape", window).integers("strides", window);
        return graph_.node(prefix, "AveragePool", {x.add()}, a);
      });
}

void OnnxTensors::guess_product(const std::string& node, const std::vector<const Terms*>& of,
                                Terms& made) {
  if (of.size() < 2 || of.size() > 3) return;
  for (const Term& a : *of[0]) {
    for (const Term& b : *of[1]) {
      const Term* const c = of.size() == 3 ? &of[2]->front() : nullptr;
      if (node == "AddmmBackward0" && c) {
        put(
            made, [&] { return addmm(a.value, b.value, c->value); },
            [this, a, b, c = *c, prefix = prefix_] {
              const std::string left = b.add(), right = c.add();
              return graph_.node(prefix, "Gemm", {left, right, a.add()});
            });
      } else if (node == "LinearBackward0") {
        put(
            made, [&] { return linear(a.value, b.value, c ? c->value : Tensor()); },
            [this, a, b, c = c ? c->add : nullptr, prefix = prefix_] {
              const std::string x = a.add();
              const std::string weight = graph_.node(prefix, "Transpose", {b.add()},
                                                     OnnxAttributes().integers("perm", {1, 0}));
              const std::string y = graph_.node(prefix, "MatMul", {x, weight});
              return c ? graph_.node(prefix, "Add", {y, c()}) : y;
            });
      }
    }
  }
}

}  // namespace ramet::formats
