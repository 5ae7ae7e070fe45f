// Lists of views that together make up a tensor: one node for all of them.
#include <algorithm>

#include "autograd/graph/view.h"
#include "autograd/ops/front/common_internal.h"
#include "autograd/ops/make/copy.h"
#include "autograd/ops/shape/view_parts.h"
#include "runtime/base/checked_size.h"
#include "runtime/capture/capture.h"

namespace ramet {

using namespace autograd;

namespace {

using Sizes = std::vector<int64_t>;

// The parts of a tensor along one dimension, in order; together they make up the tensor.
struct Parts {
  const char* name;  // of the node
  Sizes whole;       // the tensor's sizes
  size_t d;
  Sizes extents;
  bool dropped;  // each is one position, without the dimension

  Sizes sizes_of(size_t part) const {
    Sizes sizes = whole;
    if (dropped) sizes.erase(at(sizes));
    else sizes[d] = extents[part];
    return sizes;
  }
  Sizes strides_in(const Tensor& x) const {
    Sizes strides = x.raw_strides().vec();
    if (dropped) strides.erase(at(strides));
    return strides;
  }

 private:
  Sizes::iterator at(Sizes& list) const { return list.begin() + static_cast<ptrdiff_t>(d); }
};

std::vector<Tensor> parts_of(const Tensor& x, Parts p);

// The adjoint of parts_of: writes the parts' gradients next to each other into `out`, and zeros for
// undefined ones.
Tensor side_by_side(const Parts& p, const Tensor* grads, Tensor out) {
  const Sizes strides = p.strides_in(out);
  std::vector<Tensor> inputs;
  std::vector<size_t> places;
  int64_t start = 0;
  for (size_t i = 0; i < p.extents.size(); ++i) {
    const TensorBase to(out.view_impl(p.sizes_of(i), strides, offset_of(out, p.d, start)));
    start += p.extents[i];
    if (!grads[i].defined()) {
      fill_values(to, 0);
      continue;
    }
    copy_values(to, grads[i]);
    if (!recording(grads[i])) continue;
    inputs.push_back(grads[i]);
    places.push_back(i);
  }
  if (inputs.empty()) return out;
  return record_list(
      p.name, inputs, std::move(out),
      saves_nothing([p, places](const Node&, const Tensor& g, std::vector<Tensor>& in) {
        const std::vector<Tensor> parts = parts_of(g, p);
        for (size_t i = 0; i < places.size(); ++i) in[i] = parts[places[i]];
      }));
}

// The node; it has one slot for each part.
class PartsBackward final : public Node {
 public:
  PartsBackward(const Tensor& x, Parts parts)
      : Node(parts.name, 1, static_cast<int>(parts.extents.size()), sizeof(PartsBackward)),
        edge_(edge_of(x.impl())),
        dtype_(x.scalar_type()),
        parts_(std::move(parts)) {
    device = x->device;
    follow_edges();
  }
  ~PartsBackward() override { release(edge_.node); }
  RawEdge* edges() override { return &edge_; }
  void apply(Tensor* in, Tensor* out) override {
    out[0] =
        side_by_side(parts_, in, output_for(0, parts_.whole, dtype_, Device::from_ordinal(device)));
  }

 private:
  RawEdge edge_;
  const ScalarType dtype_;
  const Parts parts_;
};

// One node for all parts: with a node for each part, each would make a whole gradient of zeros. A
// part gets a history of its own, like any other view, when it or its base is written in place.
std::vector<Tensor> parts_of(const Tensor& x, Parts p) {
  settled(p.name, x);
  std::vector<Tensor> out;
  out.reserve(p.extents.size());
  const bool records = recording(x);
  const auto d = static_cast<int64_t>(p.d);
  int64_t start = 0;
  if (records && p.extents.size() > UINT16_MAX) {  // a node cannot have more slots
    for (const int64_t n : p.extents) {
      out.push_back(p.dropped ? select(x, d, start) : slice(x, d, start, start + n, 1));
      start += n;
    }
    return out;
  }
  const Sizes strides = p.strides_in(x);
  for (size_t i = 0; i < p.extents.size(); ++i) {
    out.push_back(make_view(x, p.sizes_of(i), strides, offset_of(x, p.d, start)));
    start += p.extents[i];
  }
  if (!records || out.empty()) return out;
  make_history(x);  // an Error comes before there is a node
  Node* const node = new_node<PartsBackward>(x, std::move(p));
  for (size_t i = 0; i < out.size(); ++i) attach(out[i], node, static_cast<uint32_t>(i));
  if (RAMET_UNLIKELY(ramet::detail::tls.watching))
    tell_made(*node, Input(x), std::vector<Input>(out.begin(), out.end()),
              [&](Arguments& to) { to("dim", d); });
  release(node);
  return out;
}

// A list of views needs memory itself.
void check_parts(const char* op, int64_t parts) {
  check_room(op, "parts", static_cast<uint64_t>(parts),
             sizeof(TensorImpl) + sizeof(Tensor) + 2 * sizeof(int64_t));
}

}  // namespace

std::vector<Tensor> unbind(const Tensor& self, int64_t dim) {
  check_defined("unbind", self);
  RAMET_CHECK(self.dim() > 0, "unbind", "Dimension specified as ", dim,
              " but tensor has no dimensions");
  const int64_t d = wrap_dim("unbind", dim, self.dim()), n = self.size(d);
  check_parts("unbind", n);
  return parts_of(self, {"UnbindBackward0", self.sizes().vec(), static_cast<size_t>(d),
                         Sizes(static_cast<size_t>(n), 1), /*dropped=*/true});
}

namespace {

// Parts of these extents, which add up to dimension d.
std::vector<Tensor> cut(const char* name, const Tensor& self, int64_t d, Sizes extents) {
  return parts_of(self, {name, self.sizes().vec(), static_cast<size_t>(d), std::move(extents),
                         /*dropped=*/false});
}

}  // namespace

std::vector<Tensor> split_with_sizes(const Tensor& self, IntArrayRef sizes, int64_t dim) {
  check_defined("split_with_sizes", self);
  RAMET_CHECK(self.dim() > 0, "split_with_sizes", "split expects at least a 1-dimensional tensor");
  const int64_t d = wrap_dim("split_with_sizes", dim, self.dim()), n = self.size(d);
  int64_t sum = 0;
  for (int64_t s : sizes) {
    RAMET_CHECK(s >= 0, "split_with_sizes",
                "expects split_sizes have only non-negative entries: got ", sizes);
    sum = checked_add("split_with_sizes", "sum of split_sizes", sum, s);
  }
  RAMET_CHECK(sum == n, "split_with_sizes", "expects split_sizes to sum exactly to ", n,
              " (input tensor's size at dimension ", dim, "): got ", sizes);
  return cut("SplitWithSizesBackward0", self, d, sizes.vec());
}

std::vector<Tensor> split(const Tensor& self, IntArrayRef sizes, int64_t dim) {
  return split_with_sizes(self, sizes, dim);
}

std::vector<Tensor> split(const Tensor& self, int64_t split_size, int64_t dim) {
  check_defined("split", self);
  RAMET_CHECK(self.dim() > 0, "split", "split expects at least a 1-dimensional tensor");
  RAMET_CHECK(split_size >= 0, "split", "split expects split_size be non-negative: got ",
              split_size);
  const int64_t d = wrap_dim("split", dim, self.dim()), n = self.size(d);
  RAMET_CHECK(split_size > 0 || n == 0, "split",
              "split_size can only be 0 if dimension size is 0: got a dimension of ", n);
  const int64_t parts = n == 0 ? 1 : ceil_div(n, split_size);
  check_parts("split", parts);
  Sizes sizes(static_cast<size_t>(parts), split_size);
  sizes.back() = n - (parts - 1) * split_size;
  return cut("SplitBackward0", self, d, std::move(sizes));
}

std::vector<Tensor> chunk(const Tensor& self, int64_t chunks, int64_t dim) {
  check_defined("chunk", self);
  RAMET_CHECK(self.dim() > 0, "chunk", "chunk expects at least a 1-dimensional tensor");
  RAMET_CHECK(chunks > 0, "chunk", "chunk expects `chunks` to be greater than 0: got ", chunks);
  const int64_t n = self.size(wrap_dim("chunk", dim, self.dim()));
  if (n > 0) return split(self, ceil_div(n, chunks), dim);
  check_parts("chunk", chunks);
  return split_with_sizes(self, Sizes(static_cast<size_t>(chunks), 0), dim);
}

namespace {

int64_t split_dim(const char* op, const Tensor& self, int64_t dim) {
  check_defined(op, self);
  RAMET_CHECK(self.dim() > 0, op,
              "expected at least a 1-dimensional tensor, but got a tensor with 0 dims");
  return wrap_dim(op, dim, self.dim());
}

// The dimension that hsplit, vsplit or dsplit splits.
int64_t cut_dim(const char* op, const Tensor& self, int64_t dim) {
  check_defined(op, self);
  const int64_t least = dim == 1 ? 1 : dim == 0 ? 2 : 3;
  RAMET_CHECK(self.dim() >= least, op, "requires a tensor with at least ", least,
              " dimension, but got a tensor with ", self.dim(), " dimensions!");
  return self.dim() == 1 ? 0 : dim;
}
std::vector<Tensor> cut_evenly(const char* op, const Tensor& self, int64_t sections, int64_t dim) {
  const int64_t d = cut_dim(op, self, dim);
  RAMET_CHECK(sections != 0 && (sections < 0 || self.size(d) % sections == 0), op,
              "attempted to split along dimension ", d, ", but the size of the dimension ",
              self.size(d), " is not divisible by the split_size ", sections, "!");
  return tensor_split(self, sections, d);
}
constexpr const char* kCutNode = "SliceBackward0";  // LibTorch's: it has a node for each part

}  // namespace

std::vector<Tensor> tensor_split(const Tensor& self, int64_t sections, int64_t dim) {
  const int64_t d = split_dim("tensor_split", self, dim);
  RAMET_CHECK(sections > 0, "tensor_split", "number of sections must be larger than 0, got ",
              sections);
  check_parts("tensor_split", sections);
  const int64_t each = self.size(d) / sections, longer = self.size(d) % sections;
  Sizes extents(static_cast<size_t>(sections), each);
  std::for_each_n(extents.begin(), longer, [](int64_t& n) { ++n; });
  return cut(kCutNode, self, d, std::move(extents));
}
std::vector<Tensor> tensor_split(const Tensor& self, IntArrayRef indices, int64_t dim) {
  const int64_t d = split_dim("tensor_split", self, dim), n = self.size(d);
  Sizes extents;
  int64_t done = 0;
  bool whole = true;  // in order, and no position twice
  for (int64_t end : indices) {
    end = std::clamp<int64_t>(end < 0 ? end + n : end, 0, n);
    whole = whole && end >= done;
    extents.push_back(end - done);
    done = end;
  }
  extents.push_back(n - done);
  if (whole) return cut(kCutNode, self, d, std::move(extents));
  std::vector<Tensor> out;
  int64_t start = 0;
  for (const int64_t end : indices) {
    out.push_back(slice(self, d, start, end, 1));
    start = end;
  }
  out.push_back(slice(self, d, start, std::nullopt, 1));
  return out;
}
std::vector<Tensor> tensor_split(const Tensor& self, const Tensor& places, int64_t dim) {
  check_defined("tensor_split", places);
  RAMET_CHECK(places.is_cpu(), "tensor_split",
              "expected tensor_indices_or_sections to be on cpu, but it's on ", places.device());
  RAMET_CHECK(places.scalar_type() == kLong, "tensor_split",
              "expected tensor_indices_or_sections to have dtype of long, but got ",
              places.scalar_type());
  RAMET_CHECK(places.dim() < 2, "tensor_split",
              "expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional "
              "tensor, but got a tensor with ",
              places.dim(), " dims");
  capture::refuse("tensor_split", "the host reads where to cut; give numbers");
  if (places.dim() == 0) return tensor_split(self, places.item<int64_t>(), dim);
  const Tensor dense = places.contiguous();
  return tensor_split(
      self, IntArrayRef(dense.data_ptr<int64_t>(), static_cast<size_t>(dense.numel())), dim);
}

std::vector<Tensor> hsplit(const Tensor& self, int64_t n) {
  return cut_evenly("hsplit", self, n, 1);
}
std::vector<Tensor> vsplit(const Tensor& self, int64_t n) {
  return cut_evenly("vsplit", self, n, 0);
}
std::vector<Tensor> dsplit(const Tensor& self, int64_t n) {
  return cut_evenly("dsplit", self, n, 2);
}
std::vector<Tensor> hsplit(const Tensor& self, IntArrayRef indices) {
  return tensor_split(self, indices, cut_dim("hsplit", self, 1));
}
std::vector<Tensor> vsplit(const Tensor& self, IntArrayRef indices) {
  return tensor_split(self, indices, cut_dim("vsplit", self, 0));
}
std::vector<Tensor> dsplit(const Tensor& self, IntArrayRef indices) {
  return tensor_split(self, indices, cut_dim("dsplit", self, 2));
}

}  // namespace ramet
