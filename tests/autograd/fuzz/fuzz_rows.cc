#include "tests/autograd/fuzz/fuzz_rows.h"

#include <algorithm>

namespace ramet {
namespace fuzz {

std::string Arguments::next() {
  size_t end = at_;
  for (int depth = 0; depth > 0 || (list_[end] != ',' && list_[end] != ')'); ++end)
    depth += (list_[end] == '<') - (list_[end] == '>');
  at_ = end + 1;
  const size_t begin = list_.rfind(' ', end) + 1;
  return list_.substr(begin, end - begin);
}

Right with(WideShape shape, size_t at, Wide extent) {
  shape[at] = extent;
  return one(std::move(shape));
}
Right twice(Right right) {
  if (right) right->push_back((*right)[0]);
  return right;
}
Right reduced(const Tensor& x, const std::vector<int64_t>& dims, bool keep, bool all_of_none) {
  std::vector<bool> gone(static_cast<size_t>(std::max<int64_t>(x.dim(), 1)),
                         dims.empty() && all_of_none);
  for (const int64_t dim : dims) {
    const auto d = place_of(dim, x.dim());
    if (!d || gone[*d]) return refused();
    gone[*d] = true;
  }
  WideShape out;
  for (size_t d = 0; d < x.sizes().size(); ++d) {
    if (!gone[d]) out.push_back(x.sizes()[d]);
    else if (keep) out.push_back(1);
  }
  return one(out);
}
Right reduced_some(const Tensor& x, const std::vector<int64_t>& dims, bool keep) {
  for (size_t d = 0; d < x.sizes().size(); ++d) {
    const auto here = [&](int64_t dim) { return place_of(dim, x.dim()) == d; };
    if (x.sizes()[d] == 0 && (dims.empty() || std::any_of(dims.begin(), dims.end(), here)))
      return refused();
  }
  return reduced(x, dims, keep);
}
Right diagonal_of(const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2) {
  const auto a = place_of(dim1, x.dim()), b = place_of(dim2, x.dim());
  if (!a || !b || *a == *b) return refused();
  const Wide rows = x.sizes()[*a], cols = x.sizes()[*b];
  const Wide length = offset >= 0 ? std::min(rows, cols - offset) : std::min(rows + offset, cols);
  WideShape out;
  for (size_t d = 0; d < x.sizes().size(); ++d)
    if (d != *a && d != *b) out.push_back(x.sizes()[d]);
  out.push_back(std::max<Wide>(length, 0));
  return one(out);
}

std::vector<SizeRow> size_rows() {
  std::vector<SizeRow> all;
  for (const auto& rows : {size_rows_of_parts(), size_rows_of_views(), size_rows_of_factories(),
                           size_rows_of_dimensions(), size_rows_of_images(), size_rows_of_losses(),
                           size_rows_of_pixels(), size_rows_of_rearranged(), size_rows_of_values()})
    all.insert(all.end(), rows.begin(), rows.end());
  return all;
}

}  // namespace fuzz
}  // namespace ramet
