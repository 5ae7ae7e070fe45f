#include <algorithm>
#include <cstring>
#include <optional>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "nn/formats/onnx/between_internal.h"

namespace ramet::formats {
namespace {

constexpr const char* kOp = "export_onnx";

// The dimension of `from` without which it is `to`, or that is shorter there.
struct Cut {
  int64_t dim, start;
};
std::optional<Cut> cut_of(const Tensor& from, const Tensor& to, int64_t offset) {
  const bool selected = to.dim() == from.dim() - 1;
  if (!selected && to.dim() != from.dim()) return std::nullopt;
  for (int64_t d = 0; d < from.dim(); ++d) {
    bool fits = from.stride(d) > 0 && offset % from.stride(d) == 0;
    for (int64_t k = 0; fits && k < from.dim(); ++k) {
      if (k == d && (selected || to.size(k) < from.size(k))) continue;
      const int64_t other = selected && k > d ? k - 1 : k;
      fits = to.size(other) == from.size(k) && to.stride(other) == from.stride(k);
    }
    if (!fits || (!selected && to.stride(d) != from.stride(d))) continue;
    const int64_t start = offset / from.stride(d);
    if (start >= 0 && start + (selected ? 1 : to.size(d)) <= from.size(d)) return Cut{d, start};
  }
  return std::nullopt;
}

// to is from.permute(order).
std::optional<std::vector<int64_t>> order_of(const Tensor& from, const Tensor& to) {
  if (to.dim() != from.dim()) return std::nullopt;
  std::vector<int64_t> order;
  std::vector<bool> taken(static_cast<size_t>(from.dim()));
  for (int64_t d = 0; d < to.dim(); ++d) {
    int64_t k = 0;
    while (k < from.dim() && (taken[static_cast<size_t>(k)] || from.size(k) != to.size(d) ||
                              from.stride(k) != to.stride(d)))
      ++k;
    if (k == from.dim()) return std::nullopt;
    taken[static_cast<size_t>(k)] = true;
    order.push_back(k);
  }
  return order;
}

}  // namespace

bool same_bits(const Tensor& a, const Tensor& b) {
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes()) return false;
  const Tensor x = a.to(Device(kCPU, 0)).contiguous(), y = b.to(Device(kCPU, 0)).contiguous();
  return std::memcmp(x.data_ptr(), y.data_ptr(), x.nbytes()) == 0;
}

void OnnxTensors::know(const Tensor& t, const std::string& name) {
  places_[t.impl()] = known_.size();
  if (t->node) by_node_[{t->node, t->slot}] = known_.size();
  known_.push_back({t, t.version(), name});
  const NoGradGuard only_values;
  if (t->node) known_.back().value = t.detach().clone();
}

const OnnxTensors::Known* OnnxTensors::current(const TensorImpl* t) const {
  const auto found = places_.find(t);
  if (found == places_.end()) return nullptr;
  const Known& known = known_[found->second];
  return known.current() ? &known : nullptr;
}

bool OnnxTensors::view_of(const Known& from, const Tensor& t, std::string& name) {
  const Tensor& x = from.tensor;
  const OnnxCall call{prefix_, {}, {}, {}};
  const OnnxOps o{graph_, call};
  const int64_t offset = t.storage_offset() - x.storage_offset();
  if (offset == 0 && t.numel() == x.numel() && t.is_contiguous() && x.is_contiguous()) {
    name = t.sizes() == x.sizes() ? from.name
                                  : o.shaped(from.name, reshape_sizes(x.sizes(), t.sizes()));
    return true;
  }
  if (const auto order = offset == 0 ? order_of(x, t) : std::nullopt) {
    name = o.moved(from.name, *order);
    return true;
  }
  const auto cut = cut_of(x, t, offset);
  if (!cut) return false;
  if (t.dim() < x.dim()) {
    const Tensor index = full({}, cut->start, kLong);
    name = o.op("Gather", {from.name, graph_.tensor(call.own("index"), index)},
                OnnxAttributes().integer("axis", cut->dim));
  } else {
    name = o.op("Slice", {from.name, o.integers({cut->start}),
                          o.integers({cut->start + t.size(cut->dim)}), o.integers({cut->dim})});
  }
  return true;
}

// x is `from`, of which `result` is a view.
void OnnxTensors::guess_view(const std::string& node, const Term& x, const Tensor& from,
                             const Tensor& result, Terms& made) {
  if (result.storage_impl() != from.storage_impl() || !same_bits(x.value, from)) return;
  const int64_t offset = result.storage_offset() - from.storage_offset();
  const bool expands = node == "ExpandBackward0";
  const bool reshapes = offset == 0 && result.numel() == from.numel() && result.is_contiguous() &&
                        from.is_contiguous();
  if (!expands && !reshapes && !(offset == 0 && order_of(from, result)) &&
      !cut_of(from, result, offset))
    return;
  put(
      made, [&] { return result; },
      [this, x, from, result, expands, prefix = prefix_] {
        const std::string in = x.add();
        prefix_ = prefix;
        std::string name;
        if (!expands) return view_of({from, from.version(), in}, result, name), name;
        // 1: as it is there. New dimensions come in front.
        std::vector<int64_t> sizes = result.sizes().vec();
        const size_t more = sizes.size() - from.sizes().size();
        for (size_t d = 0; d < from.sizes().size(); ++d)
          if (sizes[more + d] == from.sizes()[d]) sizes[more + d] = 1;
        return graph_.node(prefix, "Expand",
                           {in, graph_.integers(onnx_name(prefix, "integers"), sizes)});
      });
}

std::string OnnxTensors::plain_name(const Tensor& t) {
  if (const Known* known = current(t.impl())) return known->name;
  std::string name;
  for (const Known& known : known_) {
    if (known.tensor.storage_impl() != t.storage_impl() || !known.current() ||
        known.tensor.scalar_type() != t.scalar_type() || !view_of(known, t, name))
      continue;
    know(t, name);
    return name;
  }
  if (t.grad_fn()) return "";
  const auto p = std::find_if(parameters_.begin(), parameters_.end(), [&t](const Parameter& q) {
    return q.tensor.defined() && q.tensor.is_same(t);
  });
  if (p == parameters_.end()) constants_.push_back({t, prefix_, whose_});
  name = graph_.tensor(p != parameters_.end() ? p->name : onnx_name(prefix_, "constant"), t);
  know(t, name);
  return name;
}

std::string OnnxTensors::name_of(const Tensor& t, const std::string& where,
                                 const std::string& whose) {
  prefix_ = where, whose_ = whose;
  std::string name = plain_name(t);
  if (!name.empty()) return name;
  looked_at_.clear();
  const Terms& guesses = terms(*t.grad_fn(), t->slot, {&t, 0}, 0);
  const Term* right = nullptr;
  for (const Term& guess : guesses) {
    if (!same_bits(guess.value, t)) continue;
    if (right) blocked_ += ", of which two ways give the same";
    if (right) refuse(t, where, whose);
    right = &guess;
  }
  if (!right) refuse(t, where, whose);
  name = right->add();
  looked_at_.clear();
  know(t, name);
  return name;
}

void OnnxTensors::refuse(const Tensor& t, const std::string& where, const std::string& whose) {
  fail(kOp, "in the forward of ", named(where), ": ",
       whose.empty() ? std::string("an output") : "what '" + whose + "' is given", ", ",
       describe(t), ", comes by an operation that cannot be exported: got ", blocked_,
       ", expected layers, or what onnx.h lists as \"between\"");
}

}  // namespace ramet::formats
