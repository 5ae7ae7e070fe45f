// Rows of random sizes: views of a part, and the lists made of them.
#include <algorithm>

#include "autograd/ops.h"
#include "tests/autograd/fuzz/fuzz_rows.h"

namespace ramet {
namespace fuzz {

namespace {

using Places = std::vector<int64_t>;

// The place of a dimension, where there is one.
std::optional<size_t> in(const Tensor& x, int64_t dim) {
  return x.dim() == 0 ? std::nullopt : place_of(dim, x.dim());
}
// A place of a slice, as Python's.
Wide clamped(std::optional<int64_t> at, Wide otherwise, Wide n) {
  const Wide i = at ? Wide{*at} + (*at < 0 ? n : 0) : otherwise;
  return std::min(std::max<Wide>(i, 0), n);
}

Right sliced(const Tensor& x, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end,
             int64_t step) {
  const auto d = in(x, dim);
  if (!d || step <= 0) return refused();
  const Wide n = x.sizes()[*d], from = clamped(start, 0, n), to = clamped(end, n, n);
  return with(wide(x.sizes()), *d, to > from ? above(to - from, step) : 0);
}
// The element `index` of a dimension, which the result does not have.
Right selected(const Tensor& x, int64_t dim, int64_t index) {
  const auto d = in(x, dim);
  if (!d || index >= x.sizes()[*d] || Wide{index} < -Wide{x.sizes()[*d]}) return refused();
  return reduced(x, {dim}, false);
}
// A slice of the first dimension, and a place in the second.
Right indexed(const Tensor& x, std::optional<int64_t> start, std::optional<int64_t> end,
              int64_t step, bool both, int64_t at) {
  Right right = sliced(x, 0, start, end, step);
  if (!both || !right) return right;
  if (x.dim() < 2 || !selected(x, 1, at)) return refused();
  (*right)[0].erase((*right)[0].begin() + 1);
  return right;
}
Right narrowed(const Tensor& x, int64_t dim, int64_t start, int64_t length) {
  const auto d = in(x, dim);
  if (!d || length < 0) return refused();
  const Wide n = x.sizes()[*d], from = Wide{start} + (start < 0 ? n : 0);
  if (from < 0 || from > n || from + length > n) return refused();
  return with(wide(x.sizes()), *d, length);
}
Right parts(const Tensor& x, int64_t dim, const WideShape& sizes) {
  const auto d = in(x, dim);
  if (!d) return refused();
  Wide sum = 0;
  for (const Wide n : sizes) {
    if (n < 0) return refused();
    sum += n;
  }
  if (sum != x.sizes()[*d]) return refused();
  std::vector<WideShape> all(sizes.size(), wide(x.sizes()));
  for (size_t i = 0; i < all.size(); ++i) all[i][*d] = sizes[i];
  return all;
}

// More parts than memory holds handles of are refused.
constexpr Wide kMostParts = Wide{1} << 19;
bool many(const Wide& parts) { return parts > kMostParts; }

Right split_evenly(const Tensor& x, int64_t dim, Wide each) {
  const auto d = in(x, dim);
  if (!d || each < 0) return refused();
  const Wide n = x.sizes()[*d];
  if (each == 0 && n > 0) return refused();
  if (n == 0) return parts(x, dim, {0});
  if (many(above(n, each))) return refused();
  WideShape sizes;
  for (Wide left = n; left > 0; left -= each) sizes.push_back(std::min(left, each));
  return parts(x, dim, sizes);
}
Right chunked(const Tensor& x, int64_t dim, int64_t chunks) {
  const auto d = in(x, dim);
  if (!d || chunks <= 0) return refused();
  const Wide n = x.sizes()[*d];
  if (n > 0) return split_evenly(x, dim, above(n, chunks));
  return many(chunks) ? refused() : parts(x, dim, WideShape(static_cast<size_t>(chunks), 0));
}
Right unbound(const Tensor& x, int64_t dim) {
  const auto d = in(x, dim);
  if (!d || many(x.sizes()[*d])) return refused();
  const Right one_of = reduced(x, {dim}, false);
  return std::vector<WideShape>(static_cast<size_t>(x.sizes()[*d]), (*one_of)[0]);
}
Right unfolded(const Tensor& x, int64_t dim, int64_t size, int64_t step) {
  const auto d = place_of(dim, x.dim());
  if (!d || size < 0 || step <= 0) return refused();
  const Wide extent = x.dim() ? x.sizes()[*d] : 1;
  if (size > extent) return refused();
  WideShape out = wide(x.sizes());
  if (x.dim()) out[*d] = (extent - size) / step + 1;
  out.push_back(size);
  return one(out);
}
Right sections(const Tensor& x, int64_t dim, int64_t n) {
  const auto d = in(x, dim);
  if (!d || n <= 0 || many(n)) return refused();
  const Wide extent = x.sizes()[*d];
  WideShape sizes;
  for (Wide i = 0; i < n; ++i) sizes.push_back(extent / n + (i < extent % n));
  return parts(x, dim, sizes);
}
// Between places that are as a slice's: parts may overlap.
Right cut_at(const Tensor& x, int64_t dim, const Places& places) {
  const auto d = in(x, dim);
  if (!d) return refused();
  const Wide n = x.sizes()[*d];
  std::vector<WideShape> all;
  Wide start = 0;
  for (size_t i = 0; i <= places.size(); ++i) {
    const Wide end = i < places.size() ? clamped(places[i], 0, n) : n;
    all.push_back(wide(x.sizes()));
    all.back()[*d] = std::max<Wide>(end - start, 0);
    start = end;
  }
  return all;
}
// hsplit and its kin, which cut their own dimension into even sections or at places.
Right cut(const Tensor& x, int64_t dim, bool by_places, int64_t n, const Places& places) {
  const int64_t least = dim == 1 ? 1 : dim == 0 ? 2 : 3, at = x.dim() == 1 ? 0 : dim;
  if (x.dim() < least) return refused();
  if (by_places) return cut_at(x, at, places);
  return n > 0 && x.size(at) % n == 0 ? sections(x, at, n) : refused();
}

// A slice that is read in several ways: strides of one place may be anything.
Tensor read_slice(const Tensor& x, int64_t dim, int64_t from, int64_t step) {
  const Tensor y = x.slice(dim, from, INT64_MAX, step);
  const Tensor turned = y.unsqueeze(-1).transpose(0, -1).contiguous();
  if (y.dim() > 1) y.diagonal().contiguous();
  y.slice(0, 1).slice(0, 1).unfold(0, 0, step).contiguous();
  const bool read =
      turned.sum().item<int64_t>() == y.numel() && y.add(1).sum().item<int64_t>() == 2 * y.numel();
  return read ? y : ones({0, 0, 0, 0});
}
Tensor index_with(const Tensor& x, const indexing::Slice& slice, bool both, int64_t at) {
  return both ? x.index({slice, at}) : x.index({slice});
}

}  // namespace

#define CUT(name, dim)                                                  \
  VIEW(name, (Far<> x, bool by_places, Number n, Numbers<0, 3> places), \
       cut(x, dim, by_places, n, places), by_places ? name(x, places) : name(x, n.value))

std::vector<SizeRow> size_rows_of_parts() {
  using Start = Maybe<Number>;
  using End = Maybe<Number>;
  return {
      VIEW(slice, (Far<> x, Dim<> dim, Start start, End end, Number step),
           sliced(x, dim, start, end, step), x.slice(dim, start, end, step)),
      VIEW(slice, (Some<1, 3, 1> x, Mostly<0, 2> from, Dim<> dim, Number step),
           sliced(x, dim, from, INT64_MAX, step), read_slice(x, dim, from, step)),
      VIEW(index, (Far<1> x, Start start, End end, Mostly<1, 3> step, Mostly<-2, 1> at, bool both),
           indexed(x, start, end, step, both, at),
           index_with(x, indexing::Slice(start, end, step), both, at)),
      VIEW(narrow, (Far<> x, Dim<> dim, Number start, Number length, bool by_tensor),
           narrowed(x, dim, start, length),
           by_tensor ? narrow(x, dim, tensor(start.value), length)
                     : narrow(x, dim, start.value, length)),
      VIEW(select, (Far<> x, Dim<> dim, Number index), selected(x, dim, index),
           select(x, dim, index)),
      VIEW(diagonal, (Far<1> x, Number offset, Dim<> a, Dim<> b), diagonal_of(x, offset, a, b),
           diagonal(x, offset, a, b)),
      VIEW(unbind, (Far<> x, Dim<> dim), unbound(x, dim), unbind(x, dim)),
      VIEW(split, (Far<> x, Number each, Dim<> dim), split_evenly(x, dim, each),
           split(x, each.value, dim)),
      VIEW(chunk, (Far<> x, Number chunks, Dim<> dim), chunked(x, dim, chunks),
           chunk(x, chunks, dim)),
      {"split_with_sizes",
       [](SizeDraw& d) {
         const Tensor x = d.view_source();
         const int64_t dim = d.dim("dim", x.dim());
         Places sizes = d.numbers("sizes", 0, 4);
         const auto at = in(x, dim);
         if (at && d.flag("the rest, too")) {
           Wide left = x.sizes()[*at];
           for (const int64_t n : sizes) left -= n;
           // The rest, computed with arithmetic that wraps around.
           sizes.push_back(d.note("rest", static_cast<int64_t>(left)));
         }
         const bool plain = d.flag("as split");
         d.expect_view(parts(x, dim, wide(sizes)), [&] {
           return plain ? split(x, sizes, dim) : split_with_sizes(x, sizes, dim);
         });
       }},
      VIEW(tensor_split, (Far<> x, Number n, Dim<> dim, bool by_tensor), sections(x, dim, n),
           by_tensor ? tensor_split(x, tensor(n.value), dim) : tensor_split(x, n.value, dim)),
      VIEW(tensor_split, (Far<> x, Dim<> dim, Numbers<0, 4> places, bool by_tensor),
           cut_at(x, dim, places),
           by_tensor ? tensor_split(x, tensor(Places(places)), dim) : tensor_split(x, places, dim)),
      CUT(hsplit, 1),
      CUT(vsplit, 0),
      CUT(dsplit, 2),
      VIEW(unfold, (Far<> x, Dim<> dim, Mostly<0, 3> size, Number step),
           unfolded(x, dim, size, step), x.unfold(dim, size, step)),
  };
}

}  // namespace fuzz
}  // namespace ramet
