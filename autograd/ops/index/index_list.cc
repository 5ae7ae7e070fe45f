// x.index({...}) and x.index_put_({...}, v). First integers, slices, None and Ellipsis make a view;
// then index_put.cc handles the index tensors.
#include "autograd/ops/index/index_list.h"

#include <algorithm>
#include <limits>

#include "autograd/ops/front/index_internal.h"
#include "autograd/ops/make/copy.h"
#include "autograd/ops/shape/view.h"
#include "runtime/capture/capture.h"

namespace ramet {

using namespace autograd;
using indexing::TensorIndex;

namespace indexing {

Slice::Slice(std::optional<int64_t> start, std::optional<int64_t> stop, std::optional<int64_t> step)
    : start_(start.value_or(0)),
      stop_(stop.value_or(std::numeric_limits<int64_t>::max())),
      step_(step.value_or(1)) {
  RAMET_CHECK(step_ > 0, "Slice", "step must be greater than zero: got ", step_);
}

std::ostream& operator<<(std::ostream& out, const Slice& slice) {
  const ramet::detail::ClassicScope classic(out);
  return out << slice.start() << ':' << slice.stop() << ':' << slice.step();
}

std::ostream& operator<<(std::ostream& out, const TensorIndex& index) {
  const ramet::detail::ClassicScope classic(out);
  switch (index.type()) {
    case TensorIndexType::None: return out << "None";
    case TensorIndexType::Ellipsis: return out << "...";
    case TensorIndexType::Integer: return out << index.integer();
    case TensorIndexType::Boolean: return out << (index.boolean() ? "true" : "false");
    case TensorIndexType::Slice: return out << index.slice();
    case TensorIndexType::Tensor: break;
  }
  return out << index.tensor();
}

std::ostream& operator<<(std::ostream& out, const std::vector<TensorIndex>& indices) {
  out << '(';
  for (size_t i = 0; i < indices.size(); ++i) out << (i ? ", " : "") << indices[i];
  return out << ')';
}

TensorIndex::TensorIndex(const char* text) : type_(TensorIndexType::Ellipsis) {
  RAMET_CHECK(std::strcmp(text, "...") == 0, "index",
              "Expected \"...\" to represent an ellipsis index, but got \"", text, "\"");
}

TensorIndex::TensorIndex(const Scalar& value)
    : type_(value.isBoolean() ? TensorIndexType::Boolean : TensorIndexType::Integer),
      integer_(value.isBoolean() ? value.toBool() : value.toLong()) {}

}  // namespace indexing

namespace {

Tensor truth_tensor(bool value, Device device) {
  Tensor t(TensorBase::empty({1}, kBool, device));
  fill_values(t, value);
  return t;
}

// The result of applying integers, slices, None and Ellipsis to a tensor: a view, and the remaining
// index tensors, by the view's dimensions.
struct Viewed {
  Tensor x;
  IndexTensors tensors;
  IndexOrigin origin;
};

// Makes such a view, one entry of the list after the other.
class ViewMaker {
 public:
  ViewMaker(const char* op, const Tensor& self, int64_t specified)
      : op_(op), self_(self), specified_(specified), v_{self, {}, {self.sizes(), {}}} {}

  void apply(const TensorIndex& i) {
    switch (i.type()) {
      case indexing::TensorIndexType::None: insert(); break;
      case indexing::TensorIndexType::Ellipsis:
        RAMET_CHECK(!ellipsis_, op_, "an index can only have a single ellipsis ('...')");
        ellipsis_ = true;
        keep(self_.dim() - specified_);
        break;
      case indexing::TensorIndexType::Integer: choose(i.integer()); break;
      case indexing::TensorIndexType::Boolean: add_truth(i.boolean()); break;
      case indexing::TensorIndexType::Slice: cut(i.slice()); break;
      case indexing::TensorIndexType::Tensor: add_index(i.tensor()); break;
    }
  }
  // The dimensions that no entry names stay.
  Viewed end() {
    keep(self_.dim() - next_);
    return std::move(v_);
  }

 private:
  int64_t here() const { return static_cast<int64_t>(v_.origin.dims.size()); }
  void keep(int64_t n) {
    for (int64_t i = 0; i < n; ++i) v_.origin.dims.push_back(next_++);
  }
  void insert() {
    v_.x = v_.x.unsqueeze(here());
    v_.origin.dims.push_back(-1);
  }
  void add(const Tensor& t) {
    v_.tensors.resize(v_.origin.dims.size());
    v_.tensors.emplace_back(t);
  }
  void add_truth(bool value) {
    add(truth_tensor(value, self_.device()));
    insert();
  }
  void choose(int64_t i) {
    const int64_t n = self_.size(next_);
    if (i < -n || i >= n)
      throw IndexError(detail::join("[", op_, "] index out of range: got ", i, ", expected [", -n,
                                    ", ", n, ") (size of dimension ", next_, " of ", self_.sizes(),
                                    ")"));
    v_.x = v_.x.select(here(), i);
    ++next_;
  }
  void cut(const indexing::Slice& s) {
    if (s.start() != 0 || s.stop() < self_.size(next_) || s.step() != 1)
      v_.x = v_.x.slice(here(), s.start(), s.stop(), s.step());
    keep(1);
  }
  void add_index(const Tensor& t) {
    if (t.dim() == 0 && is_integral(t.scalar_type())) {
      capture::refuse(op_, "the host reads an index; give a number");
      if (is_mask(t)) add_truth(t.item<bool>());
      else choose(t.item<int64_t>());
    } else {
      add(t);
      keep(is_mask(t) ? t.dim() : 1);
    }
  }

  const char* const op_;
  const Tensor& self_;
  const int64_t specified_;  // dimensions of self that entries name
  Viewed v_;
  int64_t next_ = 0;  // the next dimension of self
  bool ellipsis_ = false;
};

Viewed apply_views(const char* op, const Tensor& self, ArrayRef<TensorIndex> list) {
  check_defined(op, self);
  int64_t specified = 0;
  for (const TensorIndex& i : list) {
    if (i.is_none() || i.is_ellipsis() || i.is_boolean()) continue;
    if (i.is_tensor()) check_defined(op, i.tensor());
    specified += i.is_tensor() && is_mask(i.tensor()) ? i.tensor().dim() : 1;
  }
  if (specified > self.dim())
    throw IndexError(detail::join("[", op, "] too many indices for tensor of dimension ",
                                  self.dim(), ": got ", specified));
  ViewMaker maker(op, self, specified);
  for (const TensorIndex& i : list) maker.apply(i);
  return maker.end();
}
// A mask of several dimensions takes several positions. So later entries move together.
IndexTensors by_dimension(const IndexTensors& tensors) {
  IndexTensors out;
  for (size_t i = 0; i < tensors.size(); ++i) {
    out.push_back(tensors[i]);
    if (tensors[i] && is_mask(*tensors[i]) && tensors[i]->dim() > 1)
      i += static_cast<size_t>(tensors[i]->dim() - 1);  // the gaps that apply_views left
  }
  return out;
}

}  // namespace

Tensor Tensor::index(ArrayRef<TensorIndex> indices) const {
  RAMET_CHECK(!indices.empty(), "index",
              "Passing an empty index list to Tensor::index() is not valid syntax");
  const Viewed v = apply_views("index", *this, indices);
  if (!v.tensors.empty()) return index_at(v.x, by_dimension(v.tensors), v.origin);
  return v.x.is_same(*this) ? v.x.view(sizes()) : v.x;  // always another handle, as every view
}
Tensor Tensor::index(std::initializer_list<TensorIndex> indices) const {
  return index(ArrayRef<TensorIndex>(indices.begin(), indices.size()));
}

Tensor& Tensor::index_put_(ArrayRef<TensorIndex> indices, const Tensor& values,
                           bool accumulate) const {
  RAMET_CHECK(!indices.empty(), "index_put_",
              "Passing an empty index list to Tensor::index_put_() is not valid syntax");
  check_defined("index_put_", values);
  const Viewed v = apply_views("index_put_", *this, indices);
  if (v.tensors.empty()) {
    const Tensor from = without_leading_ones(values, v.x.dim());
    if (accumulate) v.x.add_(from);
    else v.x.copy_(from);
    return as_mutable(*this);
  }
  index_put_at("index_put_", v.x, by_dimension(v.tensors), values, accumulate, true, v.origin);
  return as_mutable(*this);
}
Tensor& Tensor::index_put_(ArrayRef<TensorIndex> indices, const Scalar& value) const {
  check_defined("index_put_", *this);
  Tensor v(TensorBase::empty({}, scalar_type(), device()));
  fill_values(v, value);
  return index_put_(indices, v);
}
Tensor& Tensor::index_put_(std::initializer_list<TensorIndex> indices, const Tensor& values,
                           bool accumulate) const {
  return index_put_(ArrayRef<TensorIndex>(indices.begin(), indices.size()), values, accumulate);
}
Tensor& Tensor::index_put_(std::initializer_list<TensorIndex> indices, const Scalar& value) const {
  return index_put_(ArrayRef<TensorIndex>(indices.begin(), indices.size()), value);
}

Tensor Tensor::index_put(ArrayRef<TensorIndex> indices, const Tensor& values,
                         bool accumulate) const {
  check_defined("index_put", *this);
  return clone(MemoryFormat::Contiguous).index_put_(indices, values, accumulate);
}
Tensor Tensor::index_put(std::initializer_list<TensorIndex> indices, const Tensor& values,
                         bool accumulate) const {
  return index_put(ArrayRef<TensorIndex>(indices.begin(), indices.size()), values, accumulate);
}

Tensor Tensor::operator[](const Tensor& at) const { return index({TensorIndex(at)}); }

}  // namespace ramet
