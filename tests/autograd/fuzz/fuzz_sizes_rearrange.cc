// Rows of random sizes: triangles, diagonals, and copies with elements moved or repeated.
#include <algorithm>

#include "autograd/ops.h"
#include "tests/autograd/fuzz/fuzz_sizes.h"

namespace ramet {
namespace fuzz {

namespace {

Right refused() { return std::nullopt; }

Right with(WideShape shape, size_t at, Wide extent) {
  shape[at] = extent;
  return one(std::move(shape));
}

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

Right diagonal_sizes(const Tensor& x, int64_t offset, int64_t a, int64_t b) {
  const auto p = place_of(a, x.dim()), q = place_of(b, x.dim());
  if (x.dim() < 2 || !p || !q || *p == *q) return refused();
  const Wide rows = x.sizes()[*p], cols = x.sizes()[*q];
  WideShape out;
  for (size_t d = 0; d < x.sizes().size(); ++d)
    if (d != *p && d != *q) out.push_back(x.sizes()[d]);
  out.push_back(std::max<Wide>(
      offset >= 0 ? std::min(rows, cols - offset) : std::min(rows + offset, cols), 0));
  return one(out);
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

std::optional<int64_t> maybe_dim(SizeDraw& d, int64_t rank) {
  return d.tape().one_in(4) ? std::nullopt : std::optional<int64_t>(d.dim("dim", rank));
}

// With dimension d `factor` times as long.
Right longer(const Tensor& x, std::optional<int64_t> dim, Wide factor) {
  if (!dim) return one({factor * x.numel()});
  const auto at = place_of(*dim, x.dim());
  if (x.dim() == 0 || !at) return refused();
  return with(wide(x.sizes()), *at, factor * x.sizes()[*at]);
}

// Of matrices with ones on the diagonal, which have every power.
SizeRow of_powers(const char* name, Tensor (*power)(const Tensor&, int64_t)) {
  return {name, [power](SizeDraw& d) {
            const Tensor x = d.tensor();
            const int64_t n = d.number("n");
            const bool square = x.dim() >= 2 && x.size(-1) == x.size(-2);
            const Tensor a = square ? eye(x.size(-1)).expand(x.sizes()) : x;
            d.expect(
                square ? one(wide(x.sizes())) : refused(), [&] { return power(a, n); }, 8);
          }};
}

}  // namespace

std::vector<SizeRow> size_rows_of_rearranged() {
  return {
      {"triu",
       [](SizeDraw& d) {
         const Tensor x = d.tensor();
         const int64_t k = d.number("diagonal");
         const bool in_place = d.flag("in place");
         d.expect(
             x.dim() < 2 ? refused() : one(wide(x.sizes())),
             [&] { return in_place ? Tensor(x.clone().triu_(k)) : triu(x, k); }, 4);
       }},
      {"tril",
       [](SizeDraw& d) {
         const Tensor x = d.tensor();
         const int64_t k = d.number("diagonal");
         const bool in_place = d.flag("in place");
         d.expect(
             x.dim() < 2 ? refused() : one(wide(x.sizes())),
             [&] { return in_place ? Tensor(x.clone().tril_(k)) : tril(x, k); }, 4);
       }},
      {"triu_indices",
       [](SizeDraw& d) {
         const int64_t rows = d.number("row"), cols = d.number("col"), k = d.number("offset");
         d.expect(
             triangle(true, rows, cols, k), [&] { return triu_indices(rows, cols, k); }, 6);
       }},
      {"tril_indices",
       [](SizeDraw& d) {
         const int64_t rows = d.number("row"), cols = d.number("col"), k = d.number("offset");
         d.expect(
             triangle(false, rows, cols, k), [&] { return tril_indices(rows, cols, k); }, 6);
       }},
      of_powers("matrix_power", matrix_power),
      of_powers("linalg_matrix_power", linalg_matrix_power),
      {"diag",
       [](SizeDraw& d) {
         const Tensor x = d.tensor(0, 3);
         const int64_t offset = d.number("diagonal");
         d.expect(x.dim() == 1   ? embedded(wide(x.sizes()), offset, 0, 1)
                  : x.dim() == 2 ? diagonal_sizes(x, offset, 0, 1)
                                 : refused(),
                  [&] { return diag(x, offset); });
       }},
      {"diagflat",
       [](SizeDraw& d) {
         const Tensor x = d.tensor();
         const int64_t offset = d.number("offset");
         d.expect(embedded({x.numel()}, offset, 0, 1), [&] { return diagflat(x, offset); });
       }},
      {"diag_embed",
       [](SizeDraw& d) {
         const Tensor x = d.tensor();
         const int64_t offset = d.number("offset"), a = d.dim("dim1", x.dim() + 1),
                       b = d.dim("dim2", x.dim() + 1);
         d.expect(embedded(wide(x.sizes()), offset, a, b),
                  [&] { return diag_embed(x, offset, a, b); });
       }},
      {"diagonal_scatter",
       [](SizeDraw& d) {
         const Tensor x = d.tensor(1);
         const int64_t offset = d.number("offset"), a = d.dim("dim1", x.dim()),
                       b = d.dim("dim2", x.dim());
         const Right place = diagonal_sizes(x, offset, a, b);
         std::vector<int64_t> sizes;
         if (place)
           for (const Wide n : (*place)[0]) sizes.push_back(static_cast<int64_t>(n));
         const bool wrong = d.flag("another size");
         if (wrong) sizes.push_back(2);
         const Tensor src = zeros(sizes);
         d.expect(place && !wrong ? one(wide(x.sizes())) : refused(),
                  [&] { return diagonal_scatter(x, src, offset, a, b); });
       }},
      {"tile",
       [](SizeDraw& d) {
         const Tensor x = d.tensor();
         const std::vector<int64_t> times = d.numbers("dims", 0, 5);
         const size_t rank = std::max(times.size(), x.sizes().size());
         WideShape out(rank, 1);
         Right right = one({});
         Wide n = 1;                          // of what repeat works on, where zeros do not count
         for (size_t i = 0; i < rank; ++i) {  // from the last
           const Wide t = i < times.size() ? Wide{times[times.size() - 1 - i]} : Wide{1},
                      e = i < x.sizes().size() ? Wide{x.sizes()[x.sizes().size() - 1 - i]}
                                               : Wide{1};
           if (t < 0) right = refused();
           out[rank - 1 - i] = t * e;
           for (const Wide f : {t, e}) {
             if (f > 0 && n <= INT64_MAX) n *= f;
             if (n > INT64_MAX) right = refused();
           }
         }
         if (right) right = one(out);
         d.expect(right, [&] { return tile(x, times); });
       }},
      {"repeat_interleave",
       [](SizeDraw& d) {
         const Tensor x = d.tensor();
         const std::optional<int64_t> dim = maybe_dim(d, x.dim());
         const int64_t n = d.number("repeats");
         Right right = n < 0 ? refused() : longer(x, dim, n);
         // Before it is one dimension it is two.
         Wide product = std::max<Wide>(n, 1);
         if (dim)
           for (const int64_t e : x.sizes()) product *= std::max<int64_t>(e, 1);
         else product *= std::max<int64_t>(x.numel(), 1);
         if (product > INT64_MAX) right = refused();
         d.expect(right, [&] { return repeat_interleave(x, n, dim); });
       }},
      {"repeat_interleave",  // by tensors
       [](SizeDraw& d) {
         const Tensor x = d.tensor();
         const std::optional<int64_t> dim = maybe_dim(d, x.dim());
         const int64_t n = d.number("repeats"), length = d.note("length", d.tape().below(4));
         const bool number = d.flag("0-dim");
         const Right whole = longer(x, dim, 1);
         Right right = refused();
         if (whole) {
           const Wide extent = (*whole)[0][dim ? *place_of(*dim, x.dim()) : 0];
           const bool fits = number || length == 1 || extent == length;
           // Nothing is repeated any number of times.
           if (fits && (n >= 0 || extent == 0)) right = longer(x, dim, std::max<int64_t>(n, 0));
         }
         const Tensor repeats = number ? tensor(n) : full({length}, n, TensorOptions(kLong));
         // Positions take memory where nothing lies at them, too.
         if (x.numel() == 0 && n > 1000) d.may_refuse();
         d.expect(
             right, [&] { return repeat_interleave(x, repeats, dim); }, 64);
       }},
      {"repeat_interleave",  // positions
       [](SizeDraw& d) {
         const int64_t first = d.number("first"), second = d.number("second"),
                       claimed = d.mostly("output_size", 0, 8);
         const bool claims = d.flag("claims");
         const Wide sum = Wide{first} + second;
         Right right = first >= 0 && second >= 0 && sum <= INT64_MAX ? one({sum}) : refused();
         if (claims && sum != claimed) right = refused();
         d.expect(
             right,
             [&] {
               return repeat_interleave(tensor({first, second}),
                                        claims ? std::optional<int64_t>(claimed) : std::nullopt);
             },
             8);
       }},
      {"roll",
       [](SizeDraw& d) {
         const Tensor x = d.tensor();
         const std::vector<int64_t> shifts = d.numbers("shifts", 0, 3),
                                    dims = d.dims("dims", x.dim());
         const bool flat = dims.empty() && shifts.size() == 1;
         bool fine = !shifts.empty() && (flat || shifts.size() == dims.size());
         if (x.numel() > 0 && !flat)
           for (const int64_t dim : dims) fine = fine && x.dim() > 0 && place_of(dim, x.dim());
         d.expect(
             fine ? one(wide(x.sizes())) : refused(), [&] { return roll(x, shifts, dims); }, 4);
       }},
      {"rot90",
       [](SizeDraw& d) {
         const Tensor x = d.tensor();
         const int64_t k = d.number("k");
         const std::vector<int64_t> dims = d.dims("dims", x.dim());
         Right right = refused();
         if (x.dim() >= 2 && dims.size() == 2) {
           const auto a = place_of(dims[0], x.dim()), b = place_of(dims[1], x.dim());
           if (a && b && *a != *b) {
             WideShape shape = wide(x.sizes());
             if (k % 2 != 0) std::swap(shape[*a], shape[*b]);
             right = one(shape);
           }
         }
         d.expect(
             right, [&] { return rot90(x, k, dims); }, 2);
       }},
      {"take_along_dim",
       [](SizeDraw& d) {
         const Tensor x = d.tensor();
         const std::optional<int64_t> dim = maybe_dim(d, x.dim());
         const int64_t n = d.note("indices", d.tape().below(4));
         std::vector<int64_t> sizes(static_cast<size_t>(x.dim()), 1);
         Right right = x.numel() > 0 || n == 0 ? one({n}) : refused();
         if (!dim) {
           sizes = {n};
         } else {
           const auto at = place_of(*dim, x.dim());
           right = refused();
           if (x.dim() > 0 && at) {
             sizes[*at] = n;
             const Right chosen = with(wide(x.sizes()), *at, n);
             Wide count = 1;
             for (const Wide e : (*chosen)[0]) count *= e;
             if (x.sizes()[*at] > 0 || count == 0) right = chosen;
           }
         }
         const Tensor indices = zeros(sizes, TensorOptions(kLong));
         d.expect(
             right, [&] { return take_along_dim(x, indices, dim); }, 4);
       }},
      {"diff",
       [](SizeDraw& d) {
         const Tensor x = d.tensor();
         const int64_t n = d.number("n"), dim = d.dim("dim", x.dim());
         const auto at = place_of(dim, x.dim());
         Right right = refused();
         if (x.dim() > 0 && at && n >= 0)
           right = with(wide(x.sizes()), *at, std::max<Wide>(Wide{x.sizes()[*at]} - n, 0));
         d.expect(
             right, [&] { return diff(x, n, dim); }, 3);
       }},
      {"combinations",
       [](SizeDraw& d) {
         const int64_t n = d.note("elements", d.tape().below(6));
         const int64_t r = d.number("r");
         const bool again = d.flag("with replacement");
         const Tensor x = zeros({n});
         Right right = refused();
         if (r == 0) right = one({0});
         else if (r > 0) {
           const Wide of = again && n > 0 ? Wide{n} + r - 1 : Wide{n};
           Wide count = n == 0 || r > of ? 0 : 1;
           for (Wide i = 1; i <= std::min<Wide>(r, of - r) && count <= kMost; ++i)
             count = count * (of - i + 1) / i;
           right = count <= kMost ? one({count, r}) : refused();
         }
         d.expect(
             right, [&] { return combinations(x, r, again); }, 6);
       }},
  };
}

}  // namespace fuzz
}  // namespace ramet
