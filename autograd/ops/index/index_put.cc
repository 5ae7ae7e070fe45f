// index and index_put with index tensors. x.index({...}) is in index_list.cc.
#include "autograd/ops/index/index_put.h"

#include <algorithm>

#include "autograd/ops/front/index_internal.h"
#include "autograd/ops/front/out_internal.h"
#include "autograd/ops/index/gather_scatter.h"
#include "autograd/ops/make/copy.h"
#include "autograd/ops/shape/view.h"
#include "runtime/capture/capture.h"

namespace ramet {

using namespace autograd;
using kernels::IndexMode;

namespace {

// Index tensors for the dimensions of one tensor. All are checked, int64, and of one common shape
// (each may be broadcast).
struct Places {
  std::vector<Tensor> at;       // one per dimension; undefined: ":"
  std::vector<int64_t> common;  // their common shape
  std::vector<int64_t> result;  // shape of self[at]
  int64_t first = 0;            // the position of the common dimensions in the result
};

// Appends a mask over dims [d, d + mask.dim()), as the coordinates of its true elements.
void append_mask(const char* op, const Tensor& self, const Tensor& mask, std::vector<Tensor>& at,
                 const IndexOrigin& origin) {
  const int64_t d = static_cast<int64_t>(at.size());
  if (mask.dim() == 0)  // Tensor::index makes a dimension for it
    throw IndexError(detail::join("[", op, "] a 0-dim mask in a list of index tensors at index ", d,
                                  " chooses along no dimension: got ", describe(mask),
                                  ", expected one dimension or more"));
  for (int64_t i = 0; i < mask.dim(); ++i) {
    if (d + i < self.dim() && mask.size(i) == self.size(d + i)) continue;
    throw IndexError(detail::join("[", op, "] The shape of the mask ", mask.sizes(), " at index ",
                                  i, " does not match the shape of the indexed tensor ",
                                  origin.dims.empty() ? self.sizes() : origin.sizes, " at index ",
                                  origin.dim(d + i)));
  }
  capture::refuse(op, "the size of a mask's result depends on values");
  for (Tensor& t : unbind(mask.nonzero(), 1)) at.push_back(std::move(t));
}

Places places_of(const char* op, const Tensor& self, const IndexTensors& indices,
                 const IndexOrigin& origin = {}) {
  check_defined(op, self);
  Places p;
  for (const std::optional<Tensor>& entry : indices) {
    if (!entry || !entry->defined()) {
      p.at.emplace_back();
      continue;
    }
    const Tensor& t = *entry;
    RAMET_CHECK(t->device == self->device || t.device() == Device(kCPU, 0), op,
                "indices should be either on cpu or on the same device as the indexed tensor: got ",
                describe(t), " for ", describe(self));
    if (is_mask(t)) {
      append_mask(op, self, t, p.at, origin);
    } else {
      RAMET_CHECK(t.scalar_type() == kLong || t.scalar_type() == kInt, op,
                  "tensors used as indices must be long, int, byte or bool tensors: got ",
                  describe(t));
      p.at.push_back(t.to(kLong));
    }
    if (p.at.back().device() != self.device()) p.at.back() = p.at.back().to(self.device());
  }
  if (static_cast<int64_t>(p.at.size()) > self.dim())
    throw IndexError(detail::join("[", op, "] too many indices for tensor of dimension ",
                                  self.dim(), ": got ", p.at.size()));
  p.at.resize(static_cast<size_t>(self.dim()));
  // Neighbours? Then the common dimensions replace the first one, otherwise they come in front.
  int64_t begin = -1, end = -1, count = 0;
  for (int64_t d = 0; d < self.dim(); ++d) {
    const Tensor& t = p.at[static_cast<size_t>(d)];
    if (!t.defined()) continue;
    p.common = count++ ? broadcast_sizes(op, p.common, t.sizes()) : t.sizes().vec();
    if (begin < 0) begin = d;
    end = d + 1;
  }
  RAMET_CHECK(count <= kernels::kMaxIndexTensors, op, "index tensors: got ", count,
              ", expected at most ", kernels::kMaxIndexTensors);
  const bool together = end - begin == count;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (together && d == begin) {
      p.first = static_cast<int64_t>(p.result.size());
      p.result.insert(p.result.end(), p.common.begin(), p.common.end());
    }
    if (!p.at[static_cast<size_t>(d)].defined()) p.result.push_back(self.size(d));
  }
  if (!together) p.result.insert(p.result.begin(), p.common.begin(), p.common.end());
  for (int64_t d = 0; d < self.dim(); ++d) {
    const Tensor& t = p.at[static_cast<size_t>(d)];
    if (t.defined())
      check_indices(op, t, -self.size(d), self.size(d),
                    ("size of dimension " + std::to_string(origin.dim(d))).c_str());
  }
  return p;
}

// y has the result's shape (it may be expanded).
void run(IndexMode mode, const Tensor& x, const Places& p, const Tensor& y) {
  IndexLoop loop;
  const auto push_common = [&] {
    for (size_t i = 0; i < p.common.size(); ++i) {
      const auto lead =
          static_cast<int>(p.common.size() - i);  // counted from the last common dimension
      const int d = loop.rank;
      loop.push(p.common[i], 0, y->strides()[d]);
      int k = 0;
      for (const Tensor& t : p.at) {
        if (!t.defined()) continue;
        const int64_t own = t.dim() - lead;
        loop.strides[IndexLoop::kIndices + k++][d] =
            own < 0 || t->sizes()[own] == 1 ? 0 : t->strides()[own];
      }
    }
  };
  bool pushed = false;
  int64_t kept = 0;
  for (int64_t d = 0; d < x.dim(); ++d) {
    if (!pushed && kept == p.first) push_common(), pushed = true;
    if (p.at[static_cast<size_t>(d)].defined()) continue;
    loop.push(x->sizes()[d], x->strides()[d], y->strides()[loop.rank]);
    ++kept;
  }
  if (!pushed) push_common();
  for (int64_t d = 0; d < x.dim(); ++d)
    if (p.at[static_cast<size_t>(d)].defined())
      loop.add_index(p.at[static_cast<size_t>(d)], x->sizes()[d], x->strides()[d]);
  loop.run(mode, x, y);
}

std::vector<Saved> save_all(const Places& p) {
  std::vector<Saved> s;
  for (const Tensor& t : p.at) s.push_back(t.defined() ? save(t) : Saved());
  return s;
}
IndexTensors get_all(const std::vector<Saved>& saved, const Node& node) {
  IndexTensors at;
  for (const Saved& s : saved)
    at.push_back(s.get(node).defined() ? std::optional<Tensor>(s.get(node)) : std::nullopt);
  return at;
}

// Adds g to zeros of these sizes at the chosen positions: the adjoint of index.
Tensor index_backward(const Tensor& g, IntArrayRef sizes, const IndexTensors& indices) {
  Tensor out(TensorBase::empty(sizes, g.scalar_type(), g.device()));
  fill_values(out, 0);
  const Places p = places_of("index", out, indices);
  run(IndexMode::kAdd, out, p, g.shallow());
  if (!recording(g)) return out;
  return record("IndexBackward0", {g}, std::move(out),
                [at = save_all(p)](const Node& node, const Tensor& gg) {
                  return index(gg, get_all(at, node));
                });
}

}  // namespace

namespace autograd {

Tensor without_leading_ones(const Tensor& values, int64_t rank) {
  Tensor v = values;
  while (v.dim() > rank && v.size(0) == 1) v = v.squeeze(0);
  return v;
}

Tensor index_at(const Tensor& self, const IndexTensors& indices, const IndexOrigin& origin) {
  const Places p = places_of("index", self, indices, origin);
  Tensor out(TensorBase::empty(p.result, self.scalar_type(), self.device()));
  run(IndexMode::kGet, self.shallow(), p, out);
  if (!recording(self)) return out;
  return record("IndexBackward0", {self}, std::move(out),
                [m = Meta(self), at = save_all(p)](const Node& node, const Tensor& g) {
                  return index_backward(g, m.shape(), get_all(at, node));
                });
}

Tensor index_put_at(const char* op, const Tensor& self, const IndexTensors& indices,
                    const Tensor& given, bool accumulate, bool in_place,
                    const IndexOrigin& origin) {
  check_defined(op, given);
  Places p = places_of(op, self, indices, origin);
  for (Tensor& t : p.at)
    if (t.defined()) t = index_apart(t, self, in_place);
  const Tensor values_ = without_leading_ones(given, static_cast<int64_t>(p.result.size()));
  RAMET_CHECK(values_->device == self->device || is_host_number(values_), op, "expected values on ",
              self.device(), ": got ", describe(values_));
  RAMET_CHECK(values_.scalar_type() == self.scalar_type() || values_.numel() == 1, op,
              "Index put requires the source and destination dtypes match, got ",
              name_of(self.scalar_type()), " for the destination and ",
              name_of(values_.scalar_type()), " for the source.");
  const int64_t lead = static_cast<int64_t>(p.result.size()) - values_.dim();
  bool fits = lead >= 0;
  for (int64_t d = 0; fits && d < values_.dim(); ++d)
    fits = values_.size(d) == 1 || values_.size(d) == p.result[static_cast<size_t>(lead + d)];
  RAMET_CHECK(fits, op, "shape mismatch: value tensor of shape ", values_.sizes(),
              " cannot be broadcast to indexing result of shape ", IntArrayRef(p.result));
  if (in_place) check_inplace(op, self, values_);
  Tensor out, values;
  {
    const NoGradGuard off;
    values = values_.shallow().to(self.scalar_type()).to(self.device());
    out = in_place ? self : self.shallow().clone(MemoryFormat::Contiguous);
    if (in_place && values.may_overlap(self)) values = values.clone();
    values = expand(values, p.result);
  }
  const bool history = recording(self, values_);
  auto saved = history ? save_all(p) : decltype(save_all(p))();  // an Error comes before the write
  run(accumulate ? IndexMode::kAdd : IndexMode::kPut, out, p, values);
  if (in_place) wrote(op, self);
  if (!history) return out;
  auto backward = [accumulate, m = Meta(values_), at = std::move(saved)](const Node& node,
                                                                         const Tensor& g) {
    const IndexTensors indices = get_all(at, node);
    std::array<Tensor, 2> r;
    if (node.needs(0)) {
      if (accumulate) {
        r[0] = g;
      } else {
        Tensor zero(TensorBase::empty({}, g.scalar_type(), g.device()));
        fill_values(zero, 0);
        r[0] = index_put(g, indices, zero);
      }
    }
    if (node.needs(1)) r[1] = m.reduce(index(g, indices));
    return r;
  };
  if (!in_place)
    return record("IndexPutBackward0", {self, values_}, std::move(out), std::move(backward));
  record_inplace("IndexPutBackward0", {self, values_}, self, std::move(backward));
  return self;
}

}  // namespace autograd

Tensor index(const Tensor& self, const IndexTensors& indices) {
  return index_at(self, indices, {});
}
Tensor& index_out(Tensor& out, const Tensor& self, const IndexTensors& indices) {
  return out_form(
      kSame, "index_out", out, [&] { return index(self, indices); }, self);
}
static Tensor index_put_body(const Tensor& self, const IndexTensors& indices, const Tensor& values,
                             bool accumulate) {
  return index_put_at("index_put", self, indices, values, accumulate, false, {});
}
Tensor& index_put_(Tensor& self, const IndexTensors& indices, const Tensor& values,
                   bool accumulate) {
  index_put_at("index_put_", self, indices, values, accumulate, true, {});
  return self;
}

#include "autograd/forms/definitions.inc"
#include "autograd/ops/index/index_put.inc"

}  // namespace ramet
