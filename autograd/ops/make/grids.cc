#include "autograd/ops/make/grids.h"

#include <algorithm>
#include <utility>

#include "autograd/ops/front/common_internal.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/shape/cat.h"
#include "autograd/ops/shape/rearrange.h"
#include "autograd/ops/shape/view.h"
#include "runtime/base/checked_size.h"

namespace ramet {

using namespace autograd;

std::vector<Tensor> meshgrid(TensorList tensors) { return meshgrid(tensors, "ij"); }

std::vector<Tensor> meshgrid(TensorList tensors, std::string_view indexing) {
  RAMET_CHECK(!tensors.empty(), "meshgrid", "expects a non-empty TensorList");
  RAMET_CHECK(indexing == "ij" || indexing == "xy", "meshgrid",
              "indexing must be one of \"xy\" or \"ij\", but received: ", indexing);
  std::vector<int64_t> sizes;
  for (const Tensor& t : tensors) {
    check_defined("meshgrid", t);
    RAMET_CHECK(t.dim() <= 1, "meshgrid",
                "Expected 0D or 1D tensor in the tensor list but got: ", describe(t));
    RAMET_CHECK(t.scalar_type() == tensors[0].scalar_type(), "meshgrid",
                "expects all tensors to have the same dtype: got ", describe(tensors[0]), " and ",
                describe(t));
    check_same_device("meshgrid", tensors[0], t);
    sizes.push_back(t.numel());
  }
  const bool swap = indexing == "xy" && sizes.size() > 1;
  if (swap) std::swap(sizes[0], sizes[1]);
  std::vector<Tensor> out;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const size_t d = swap && i < 2 ? 1 - i : i;
    std::vector<int64_t> line(sizes.size(), 1);
    line[d] = sizes[d];
    out.push_back(tensors[i].reshape(line).expand(sizes));
  }
  return out;
}

Tensor cartesian_prod(TensorList tensors) {
  for (const Tensor& t : tensors) {
    check_defined("cartesian_prod", t);
    RAMET_CHECK(t.dim() == 1, "cartesian_prod", "Expect a 1D vector, but got shape ", t.sizes());
  }
  if (tensors.size() == 1) return tensors[0];
  std::vector<Tensor> columns;
  for (const Tensor& grid : meshgrid(tensors, "ij")) columns.push_back(grid.flatten());
  return stack(columns, 1);
}

namespace {

// The number of ways to choose k of n.
int64_t choices(int64_t n, int64_t k) {
  __int128 count = 1;
  for (int64_t i = 1; i <= std::min(k, n - k); ++i) {
    count = count * (n - i + 1) / i;
    RAMET_CHECK(count <= INT64_MAX, "combinations", "choices: got ", k, " of ", n,
                ", which are more than an int64 holds");
  }
  return static_cast<int64_t>(count);
}

// [choices, r] of int64: all rising sequences of r numbers below n; there are `count` of them.
Tensor rising(int64_t n, int64_t r, int64_t count, Device device) {
  const TensorOptions on = TensorOptions(kLong).device(device);
  if (count == 1) return arange(r, on).unsqueeze(0);
  // For sequences of 1, 2, ... numbers: the last number of each, and the index of the shorter
  // sequence that it extends. The new number is above the last one of that sequence, and below
  // `end`.
  std::vector<Tensor> last{arange(n - r + 1, on)}, continues{Tensor()};
  for (int64_t k = 1; k < r; ++k) {
    const int64_t end = n - r + k + 1, longer = choices(end, k + 1);
    const Tensor &old = last.back(), counts = old.neg().add(end - 1),
                 from = repeated_positions(counts, longer),
                 first = old.add(1).sub(counts.cumsum(0)).add(counts);
    last.push_back(first.index_select(0, from).add(arange(longer, on)));
    continues.push_back(from);
  }
  std::vector<Tensor> columns(static_cast<size_t>(r));
  Tensor at = arange(count, on);
  for (size_t k = columns.size(); k-- > 0;) {
    columns[k] = last[k].index_select(0, at);
    if (k > 0) at = continues[k].index_select(0, at);
  }
  return stack(columns, 1);
}

}  // namespace

Tensor combinations(const Tensor& self, int64_t r, bool with_replacement) {
  check_defined("combinations", self);
  RAMET_CHECK(self.dim() == 1, "combinations", "Expect a 1D vector, but got shape ", self.sizes());
  RAMET_CHECK(r >= 0, "combinations", "Expect a non-negative number, but got ", r);
  if (r == 0) return Tensor(TensorBase::empty(0, self.scalar_type(), self.device()));
  int64_t n = self.numel();
  const bool none = n == 0 || (!with_replacement && r > n);
  // With replacement: choose r of n + r - 1 numbers, then subtract i from the i-th one of each
  // choice.
  if (with_replacement && !none) n = checked_add("combinations", "size", n, r - 1);
  const int64_t count = none ? 0 : choices(n, r);
  check_room("combinations", "elements",
             static_cast<uint64_t>(checked_mul("combinations", "size", count, r)), sizeof(int64_t));
  Tensor places(TensorBase::empty({0, r}, kLong, self.device()));
  if (count > 0) places = rising(n, r, count, self.device());
  if (count > 0 && with_replacement) places = places.sub(arange(r, places.options()));
  return self.index_select(0, places.reshape(-1)).reshape(places.sizes());
}

}  // namespace ramet
