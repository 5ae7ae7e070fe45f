// Rows of random sizes: triangles, diagonals, and copies with elements moved or repeated.
#include <algorithm>

#include "autograd/ops.h"
#include "tests/autograd/fuzz/fuzz_rows.h"

namespace ramet {
namespace fuzz {

namespace {

// Elements of a triangle, row by row. Rows beyond `kMost` are more than a draw's memory holds.
constexpr Wide kMost = Wide{1} << 24;
Right triangle(bool upper, int64_t rows, int64_t cols, int64_t k) {
  if (rows < 0 || cols < 0) return refused();
  Wide count = 0;
  for (Wide r = 0; r < rows && count <= kMost; ++r) {
    const Wide first = upper ? std::max<Wide>(0, r + k) : 0,
               last = upper ? Wide{cols} : std::min<Wide>(cols, r + k + 1);
    if (last > first) count += last - first;
    else if (upper) break;  // the rows below have none, either
    else if (cols > 0 && r + k + 1 <= 0) r = std::max<Wide>(r, -Wide{k} - 1);
    else if (cols == 0) break;
  }
  return count > kMost ? refused() : one({2, count});
}

Right embedded(const WideShape& of, int64_t offset, int64_t a, int64_t b) {
  const auto rank = static_cast<int64_t>(of.size()) + 1;
  const auto p = place_of(a, rank), q = place_of(b, rank);
  if (of.empty() || !p || !q || *p == *q || offset == INT64_MIN) return refused();
  const Wide extent = of.back() + (offset < 0 ? -Wide{offset} : Wide{offset});
  WideShape out(of.begin(), of.end() - 1);
  for (const size_t at : {std::min(*p, *q), std::max(*p, *q)})
    out.insert(out.begin() + static_cast<ptrdiff_t>(at), extent);
  return one(out);
}

// With dimension d `factor` times as long; without one all elements are a dimension.
Right longer(const Tensor& x, std::optional<int64_t> dim, Wide factor) {
  if (!dim) return one({factor * x.numel()});
  const auto at = place_of(*dim, x.dim());
  if (x.dim() == 0 || !at) return refused();
  return with(wide(x.sizes()), *at, factor * x.sizes()[*at]);
}
Right interleaved(const Tensor& x, std::optional<int64_t> dim, int64_t n) {
  // Before it is one dimension it is two.
  Wide product = std::max<Wide>(n, 1);
  if (!dim) product *= std::max<int64_t>(x.numel(), 1);
  else
    for (const int64_t e : x.sizes()) product *= std::max<int64_t>(e, 1);
  return n < 0 || product > INT64_MAX ? refused() : longer(x, dim, n);
}
// By a tensor of `length` equal numbers, or by one of rank 0.
Right interleaved(const Tensor& x, std::optional<int64_t> dim, int64_t n, int64_t length,
                  bool number) {
  const Right whole = longer(x, dim, 1);
  if (!whole) return whole;
  const Wide extent = (*whole)[0][dim ? *place_of(*dim, x.dim()) : 0];
  const bool fits = number || length == 1 || extent == length;
  // Nothing is repeated any number of times.
  return fits && (n >= 0 || extent == 0) ? longer(x, dim, std::max<int64_t>(n, 0)) : refused();
}
Right positions(int64_t first, int64_t second, bool claims, int64_t claimed) {
  const Wide sum = Wide{first} + second;
  return right_if(first >= 0 && second >= 0 && sum <= INT64_MAX && (!claims || sum == claimed),
                  {sum});
}
Right tiled(const Tensor& x, const std::vector<int64_t>& times) {
  const size_t rank = std::max(times.size(), x.sizes().size());
  WideShape out(rank, 1);
  Wide n = 1;                          // of what repeat works on, where zeros do not count
  for (size_t i = 0; i < rank; ++i) {  // from the last
    const Wide t = i < times.size() ? Wide{times[times.size() - 1 - i]} : Wide{1},
               e = i < x.sizes().size() ? Wide{x.sizes()[x.sizes().size() - 1 - i]} : Wide{1};
    if (t < 0) return refused();
    out[rank - 1 - i] = t * e;
    for (const Wide f : {t, e}) {
      if (f > 0) n *= f;
      if (n > INT64_MAX) return refused();
    }
  }
  return one(out);
}
Right rolled(const Tensor& x, const std::vector<int64_t>& shifts,
             const std::vector<int64_t>& dims) {
  const bool flat = dims.empty() && shifts.size() == 1;
  bool fine = !shifts.empty() && (flat || shifts.size() == dims.size());
  if (x.numel() > 0 && !flat)
    for (const int64_t dim : dims) fine = fine && x.dim() > 0 && place_of(dim, x.dim());
  return as(x, fine);
}
Right turned(const Tensor& x, int64_t k, const std::vector<int64_t>& dims) {
  if (x.dim() < 2 || dims.size() != 2) return refused();
  const auto a = place_of(dims[0], x.dim()), b = place_of(dims[1], x.dim());
  if (!a || !b || *a == *b) return refused();
  WideShape shape = wide(x.sizes());
  if (k % 2 != 0) std::swap(shape[*a], shape[*b]);
  return one(shape);
}
// n zeros along `dim`, or of all elements.
Right taken(const Tensor& x, std::optional<int64_t> dim, int64_t n) {
  if (!dim) return right_if(x.numel() > 0 || n == 0, {n});
  const auto at = place_of(*dim, x.dim());
  if (x.dim() == 0 || !at) return refused();
  const Right chosen = with(wide(x.sizes()), *at, n);
  Wide count = 1;
  for (const Wide e : (*chosen)[0]) count *= e;
  return x.sizes()[*at] > 0 || count == 0 ? chosen : refused();
}
Tensor take(const Tensor& x, std::optional<int64_t> dim, int64_t n) {
  std::vector<int64_t> sizes(static_cast<size_t>(x.dim()), 1);
  const auto at = dim ? place_of(*dim, x.dim()) : std::nullopt;
  if (!dim) sizes = {n};
  else if (x.dim() > 0 && at) sizes[*at] = n;
  return take_along_dim(x, zeros(sizes, TensorOptions(kLong)), dim);
}
Right differences(const Tensor& x, int64_t n, int64_t dim) {
  const auto at = place_of(dim, x.dim());
  if (x.dim() == 0 || !at || n < 0) return refused();
  return with(wide(x.sizes()), *at, std::max<Wide>(Wide{x.sizes()[*at]} - n, 0));
}
Right combined(int64_t n, int64_t r, bool again) {
  if (r <= 0) return right_if(r == 0, {0});
  const Wide of = again && n > 0 ? Wide{n} + r - 1 : Wide{n};
  Wide count = n == 0 || r > of ? 0 : 1;
  for (Wide i = 1; i <= std::min<Wide>(r, of - r) && count <= kMost; ++i)
    count = count * (of - i + 1) / i;
  return right_if(count <= kMost, {count, r});
}
bool is_square(const Tensor& x) { return x.dim() >= 2 && x.size(-1) == x.size(-2); }
// Of ones on the diagonal, which have every power.
Tensor identity(const Tensor& x) { return is_square(x) ? eye(x.size(-1)).expand(x.sizes()) : x; }
Right diagonal_matrix(const Tensor& x, int64_t offset) {
  return x.dim() == 1   ? embedded(wide(x.sizes()), offset, 0, 1)
         : x.dim() == 2 ? diagonal_of(x, offset, 0, 1)
                        : refused();
}
// What fits a diagonal, or has one dimension more.
Tensor for_diagonal(const Tensor& x, int64_t offset, int64_t a, int64_t b, bool wrong) {
  std::vector<int64_t> sizes;
  if (const Right place = diagonal_of(x, offset, a, b))
    for (const Wide n : (*place)[0]) sizes.push_back(static_cast<int64_t>(n));
  if (wrong) sizes.push_back(2);
  return zeros(sizes);
}

}  // namespace

#define TRIANGLE(name)                                                   \
  COSTLY(name, 4, (Any x, Number k, bool in_place), as(x, x.dim() >= 2), \
         in_place ? Tensor(x.clone().name##_(k)) : name(x, k))
#define TRIANGLE_INDICES(name, upper)                                                   \
  COSTLY(name, 6, (Number rows, Number cols, Number k), triangle(upper, rows, cols, k), \
         name(rows, cols, k))

std::vector<SizeRow> size_rows_of_rearranged() {
  using MaybeDim = Maybe<Dim<>>;
  return {
      TRIANGLE(triu),
      TRIANGLE(tril),
      TRIANGLE_INDICES(triu_indices, true),
      TRIANGLE_INDICES(tril_indices, false),
      COSTLY(matrix_power, 8, (Any x, Number n), as(x, is_square(x)), matrix_power(identity(x), n)),
      COSTLY(linalg_matrix_power, 8, (Any x, Number n), as(x, is_square(x)),
             linalg_matrix_power(identity(x), n)),
      ROW(diag, (Some<0, 3> x, Number offset), diagonal_matrix(x, offset), diag(x, offset)),
      ROW(diagflat, (Any x, Number offset), embedded({x.numel()}, offset, 0, 1),
          diagflat(x, offset)),
      ROW(diag_embed, (Any x, Number offset, Dim<1> a, Dim<1> b),
          embedded(wide(x.sizes()), offset, a, b), diag_embed(x, offset, a, b)),
      ROW(diagonal_scatter, (Some<1> x, Number offset, Dim<> a, Dim<> b, bool wrong),
          as(x, diagonal_of(x, offset, a, b) && !wrong),
          diagonal_scatter(x, for_diagonal(x, offset, a, b, wrong), offset, a, b)),
      ROW(tile, (Any x, Numbers<0, 5> times), tiled(x, times), tile(x, times)),
      ROW(repeat_interleave, (Any x, MaybeDim dim, Number n), interleaved(x, dim, n),
          repeat_interleave(x, n.value, dim)),
      // Positions take memory where nothing lies at them, too.
      COSTLY(repeat_interleave, 64,
             (Any x, MaybeDim dim, Number n, Within<0, 3> length, bool number),
             lenient(d, x.numel() == 0 && n > 1000, interleaved(x, dim, n, length, number)),
             repeat_interleave(
                 x, number ? tensor(n.value) : full({length}, n.value, TensorOptions(kLong)), dim)),
      COSTLY(repeat_interleave, 8, (Number first, Number second, Mostly<0, 8> claimed, bool claims),
             positions(first, second, claims, claimed),
             repeat_interleave(tensor({first.value, second.value}),
                               claims ? std::optional<int64_t>(claimed) : std::nullopt)),
      COSTLY(roll, 4, (Any x, Numbers<0, 3> shifts, Dims dims), rolled(x, shifts, dims),
             roll(x, shifts, dims)),
      COSTLY(rot90, 2, (Any x, Number k, Dims dims), turned(x, k, dims), rot90(x, k, dims)),
      COSTLY(take_along_dim, 4, (Any x, MaybeDim dim, Within<0, 3> n), taken(x, dim, n),
             take(x, dim, n)),
      COSTLY(diff, 3, (Any x, Number n, Dim<> dim), differences(x, n, dim), diff(x, n, dim)),
      COSTLY(combinations, 6, (Within<0, 5> n, Number r, bool again), combined(n, r, again),
             combinations(zeros({n}), r, again)),
  };
}

}  // namespace fuzz
}  // namespace ramet
