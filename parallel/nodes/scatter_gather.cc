#include "parallel/nodes/scatter_gather.h"

#include <algorithm>
#include <cstring>

#include "autograd/graph/node.h"
#include "autograd/ops/make/copy.h"
#include "parallel/move/movement_internal.h"
#include "parallel/move/pieces_internal.h"
#include "runtime/base/logging.h"

using ramet::detail::tls;

namespace ramet {
namespace parallel {
namespace {

using autograd::Node;
using autograd::RawEdge;

// How a tensor was cut: what each direction needs to undo the other.
struct Cut {
  std::vector<Device> devices;     // of the pieces
  std::vector<ScalarType> dtypes;  // Of the pieces: gather may have promoted them.
  std::vector<int64_t> extents;    // Of the pieces along dim.
  std::vector<int64_t> sizes;      // of the whole; the extent along dim is not used
  int64_t dim = 0;
  bool scalars = false;  // the pieces are 0-dim, the whole is a vector
};

std::vector<Tensor> scatter_recorded(const Tensor& x, const Cut& cut, detail::Own own,
                                     const Node* wanted);
Tensor gather_recorded(ArrayRef<Tensor> tensors, const detail::Concatenation& plan,
                       Device destination);

struct ScatterBackward final : Node {
  RawEdge edge;
  Cut cut;
  ScatterBackward(const Tensor& x, Cut c)
      : Node("ScatterBackward", 1, static_cast<int>(c.devices.size()), sizeof(ScatterBackward)),
        cut(std::move(c)) {
    edge = autograd::edge_of(x.impl());
    device = x->device;
    flags |= kSpans;
    follow_edges();
  }
  ~ScatterBackward() override { autograd::release(edge.node); }
  RawEdge* edges() override { return &edge; }
  void apply(Tensor* in, Tensor* out) override {
    std::vector<Tensor> pieces(in, in + slot_count);
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (pieces[i].defined()) continue;
      std::vector<int64_t> sizes = cut.scalars ? std::vector<int64_t>{} : cut.sizes;
      if (!cut.scalars) sizes[static_cast<size_t>(cut.dim)] = cut.extents[i];
      pieces[i] = Tensor(TensorBase::empty(sizes, cut.dtypes[i], Device::from_ordinal(device)));
      autograd::fill_values(pieces[i], 0);
    }
    out[0] = gather_recorded(pieces, detail::plan_gather(pieces, cut.dim, false),
                             Device::from_ordinal(device));
  }
};

struct GatherBackward final : Node {
  std::vector<RawEdge> edge;
  Cut cut;
  GatherBackward(ArrayRef<Tensor> inputs, Device to, Cut c)
      : Node("GatherBackward", static_cast<int>(inputs.size()), 1, sizeof(GatherBackward)),
        cut(std::move(c)) {
    for (const Tensor& t : inputs) edge.push_back(autograd::edge_of(t.impl()));
    device = static_cast<uint8_t>(to.ordinal());
    flags |= kSpans;
    follow_edges();
  }
  ~GatherBackward() override {
    for (RawEdge& e : edge) autograd::release(e.node);
  }
  RawEdge* edges() override { return edge.data(); }
  void apply(Tensor* in, Tensor* out) override {
    // Views, if the gradient is there already: the engine never adds into memory that other code
    // sees.
    std::vector<Tensor> pieces = scatter_recorded(
        in[0], cut, tls.grad_mode ? detail::Own::kShared : detail::Own::kView, this);
    for (size_t i = 0; i < pieces.size(); ++i)
      out[i] = pieces[i].defined() && pieces[i].scalar_type() != cut.dtypes[i]
                   ? pieces[i].to(cut.dtypes[i])
                   : std::move(pieces[i]);
  }
};

// `wanted`: a node. If nothing is recorded, pieces with a gradient that this node does not need
// stay undefined.
std::vector<Tensor> scatter_recorded(const Tensor& x, const Cut& cut, detail::Own own,
                                     const Node* wanted) {
  const bool records = autograd::recording(x);
  std::vector<Tensor> out;
  if (wanted && !records) {
    int64_t start = 0;
    for (size_t i = 0; i < cut.devices.size(); start += cut.extents[i++]) {
      if (!wanted->needs(static_cast<int>(i))) {
        out.emplace_back();
        continue;
      }
      out.push_back(detail::scatter_piece(x, cut.devices[i], cut.dim, start, cut.extents[i], own));
    }
  } else {
    out = detail::scatter_pieces(x, cut.devices, cut.extents, cut.dim, own);
  }
  if (cut.scalars)
    for (Tensor& t : out)
      if (t.defined()) t = Tensor(t.view_impl({}, {}, 0));
  if (!records) return out;
  Cut back = cut;
  back.dtypes.assign(out.size(), x.scalar_type());
  auto* node = autograd::new_node<ScatterBackward>(x, std::move(back));
  for (size_t i = 0; i < out.size(); ++i) autograd::attach(out[i], node, static_cast<uint32_t>(i));
  if (RAMET_UNLIKELY(tls.watching))
    autograd::tell_made(*node, autograd::Input(x),
                        std::vector<autograd::Input>(out.begin(), out.end()));
  autograd::release(node);
  return out;
}

Tensor gather_recorded(ArrayRef<Tensor> tensors, const detail::Concatenation& plan,
                       Device destination) {
  Tensor out = detail::gather_result(plan, destination);
  detail::gather_into(out, tensors, plan);
  bool records = false;
  for (const Tensor& t : tensors) records = records || autograd::recording(t);
  if (!records) return out;
  Cut cut;
  cut.extents = plan.extents;
  cut.sizes = plan.sizes;
  cut.dim = plan.dim;
  cut.scalars = plan.scalars;
  for (const Tensor& t : tensors) {
    cut.devices.push_back(t.device());
    cut.dtypes.push_back(t.scalar_type());
  }
  auto* node = autograd::new_node<GatherBackward>(tensors, destination, std::move(cut));
  autograd::attach(out, node, 0);
  if (RAMET_UNLIKELY(tls.watching))
    autograd::tell_made(*node, std::vector<autograd::Input>(tensors.begin(), tensors.end()),
                        autograd::Input(out));
  autograd::release(node);
  return out;
}

}  // namespace

std::vector<Tensor> scatter(const Tensor& t, ArrayRef<Device> devices,
                            const ScatterOptions& options) {
  Cut cut;
  cut.extents = detail::scatter_sizes(t, devices.size(), options, cut.dim);
  cut.devices = detail::resolved(devices);
  cut.devices.erase(cut.devices.begin() + static_cast<std::ptrdiff_t>(cut.extents.size()),
                    cut.devices.end());
  cut.sizes = t.sizes().vec();
  return scatter_recorded(
      t, cut, options.alias == Alias::view ? detail::Own::kShared : detail::Own::kCopy, nullptr);
}

std::vector<Tensor> scatter(const Tensor& t, ArrayRef<Device> devices,
                            const std::optional<std::vector<int64_t>>& chunk_sizes, int64_t dim) {
  ScatterOptions options;
  if (chunk_sizes) options.split = Split::sizes(*chunk_sizes);
  options.dim = dim;
  return scatter(t, devices, options);
}

Tensor detail::stack_scalars(ArrayRef<Tensor> tensors, Device destination) {
  return gather_recorded(tensors, plan_gather(tensors, 0, false), destination);
}

Tensor gather(ArrayRef<Tensor> tensors, int64_t dim, std::optional<Device> destination,
              bool promote) {
  const detail::Concatenation plan = detail::plan_gather(tensors, dim, promote);
  if (plan.scalars) {
    RAMET_WARN_ONCE(
        "[gather] Was asked to gather along dimension 0, but all input tensors were scalars; will "
        "instead unsqueeze and "
        "return a vector.");
  }
  return gather_recorded(tensors, plan, detail::destination_of(tensors[0], destination));
}

}  // namespace parallel
}  // namespace ramet
