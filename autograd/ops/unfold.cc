// Tensor::unfold: sliding windows as a view. Its elements share memory where windows overlap.
#include <vector>

#include "autograd/graph/view.h"
#include "autograd/ops/factory.h"
#include "autograd/ops/index.h"
#include "autograd/ops/view.h"
#include "runtime/checked_size.h"

namespace ramet {

using namespace autograd;

Tensor Tensor::unfold(int64_t dimension, int64_t size, int64_t step) const {
  RAMET_CHECK(defined(), "unfold", "undefined tensor");
  const int64_t d = wrap_dim("unfold", dimension, dim());
  // A 0-dim tensor counts as a vector of one element.
  const int64_t extent = dim() == 0 ? 1 : this->size(d);
  RAMET_CHECK(size >= 0, "unfold", "size: got ", size, ", expected at least 0");
  RAMET_CHECK(size <= extent, "unfold", "size: got ", size, ", expected at most ", extent,
              ", the extent of dimension ", d);
  RAMET_CHECK(step > 0, "unfold", "step: got ", step, ", expected more than 0");
  std::vector<int64_t> sizes = this->sizes().vec(), steps = strides().vec();
  const int64_t windows = (extent - size) / step + 1;
  const auto k = static_cast<size_t>(d);
  sizes.push_back(size);
  steps.push_back(dim() == 0 ? 1 : steps[k]);
  if (dim() > 0) {
    sizes[k] = windows;
    steps[k] = stepped_stride(steps[k], step);
  }
  Tensor v = make_view(*this, sizes, steps, 0);
  if (!recording(*this)) return v;
  return record("UnfoldBackward0", {*this}, std::move(v),
                [old = this->sizes().vec(), d, windows, size, step](const Node&, const Tensor& g) {
                  if (old.empty()) return g.sum();
                  // Each window's elements are added where they came from.
                  const TensorOptions on = TensorOptions().dtype(kLong).device(g.device());
                  const Tensor first = arange(windows, on).mul(step).unsqueeze(1);
                  const Tensor places = (first + arange(size, on)).flatten();
                  const Tensor laid = g.movedim(-1, d + 1).flatten(d, d + 1);
                  return index_add_zeros(old, d, places, laid);
                });
}

}  // namespace ramet
