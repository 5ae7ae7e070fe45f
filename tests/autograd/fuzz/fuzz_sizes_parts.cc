// Rows of random sizes: views of a part, and the lists made of them.
#include <algorithm>

#include "autograd/ops.h"
#include "tests/autograd/fuzz/fuzz_sizes.h"

namespace ramet {
namespace fuzz {

namespace {

Right refused() { return std::nullopt; }

// Of a shape with one extent replaced.
Right with(WideShape shape, size_t at, Wide extent) {
  shape[at] = extent;
  return one(std::move(shape));
}

// A place of a slice, as Python's.
Wide clamped(std::optional<int64_t> at, Wide otherwise, Wide n) {
  const Wide i = at ? Wide{*at} + (*at < 0 ? n : 0) : otherwise;
  return std::min(std::max<Wide>(i, 0), n);
}

Right sliced(const Tensor& x, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end,
             int64_t step) {
  const auto d = place_of(dim, x.dim());
  if (x.dim() == 0 || !d || step <= 0) return refused();
  const Wide n = x.sizes()[*d], from = clamped(start, 0, n), to = clamped(end, n, n);
  return with(wide(x.sizes()), *d, to > from ? above(to - from, step) : 0);
}

Right narrowed(const Tensor& x, int64_t dim, int64_t start, int64_t length) {
  const auto d = place_of(dim, x.dim());
  if (x.dim() == 0 || !d || length < 0) return refused();
  const Wide n = x.sizes()[*d], from = Wide{start} + (start < 0 ? n : 0);
  if (from < 0 || from > n || from + length > n) return refused();
  return with(wide(x.sizes()), *d, length);
}

Right parts(const Tensor& x, int64_t dim, const WideShape& sizes) {
  const auto d = place_of(dim, x.dim());
  if (x.dim() == 0 || !d) return refused();
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
  const auto d = place_of(dim, x.dim());
  if (x.dim() == 0 || !d || each < 0) return refused();
  const Wide n = x.sizes()[*d];
  if (each == 0 && n > 0) return refused();
  if (n == 0) return parts(x, dim, {0});
  if (many(above(n, each))) return refused();
  WideShape sizes;
  for (Wide left = n; left > 0; left -= each) sizes.push_back(std::min(left, each));
  return parts(x, dim, sizes);
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

std::optional<int64_t> maybe(SizeDraw& d, const char* name) {
  return d.tape().one_in(4) ? std::nullopt : std::optional<int64_t>(d.number(name));
}

Right sections(const Tensor& x, int64_t dim, int64_t n) {
  const auto d = place_of(dim, x.dim());
  if (x.dim() == 0 || !d || n <= 0 || many(n)) return refused();
  const Wide extent = x.sizes()[*d];
  WideShape sizes;
  for (Wide i = 0; i < n; ++i) sizes.push_back(extent / n + (i < extent % n));
  return parts(x, dim, sizes);
}
// Between places that are as a slice's: parts may overlap.
Right cut_at(const Tensor& x, int64_t dim, const std::vector<int64_t>& places) {
  const auto d = place_of(dim, x.dim());
  if (x.dim() == 0 || !d) return refused();
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
// hsplit and its kin.
template <class Sections, class Places>
SizeRow with_cuts(const char* name, int64_t dim, Sections by_sections, Places by_places) {
  return {name, [=](SizeDraw& d) {
            const Tensor x = d.view_source();
            const int64_t least = dim == 1 ? 1 : dim == 0 ? 2 : 3, at = x.dim() == 1 ? 0 : dim;
            const bool fits = x.dim() >= least;
            if (d.flag("by places")) {
              const std::vector<int64_t> places = d.numbers("indices", 0, 3);
              return d.expect_view(fits ? cut_at(x, at, places) : refused(),
                                   [&] { return by_places(x, places); });
            }
            const int64_t n = d.number("sections");
            const bool even = fits && n > 0 && x.size(at) % n == 0;
            d.expect_view(even ? sections(x, at, n) : refused(), [&] { return by_sections(x, n); });
          }};
}

}  // namespace

std::vector<SizeRow> size_rows_of_parts() {
  return {
      {"slice",
       [](SizeDraw& d) {
         const Tensor x = d.view_source();
         const int64_t dim = d.dim("dim", x.dim());
         const auto start = maybe(d, "start"), end = maybe(d, "end");
         const int64_t step = d.number("step");
         d.expect_view(sliced(x, dim, start, end, step),
                       [&] { return x.slice(dim, start, end, step); });
       }},
      {"slice",  // strides of one place may be anything
       [](SizeDraw& d) {
         const Tensor x = d.tensor(1, 3, 1);
         const int64_t from = d.mostly("start", 0, 2), dim = d.dim("dim", x.dim()),
                       step = d.number("step");
         const Right right = sliced(x, dim, from, INT64_MAX, step);
         d.expect_view(right, [&] {
           const Tensor y = x.slice(dim, from, INT64_MAX, step);
           const Tensor turned = y.unsqueeze(-1).transpose(0, -1).contiguous();
           if (y.dim() > 1) y.diagonal().contiguous();
           y.slice(0, 1).slice(0, 1).unfold(0, 0, step).contiguous();
           const bool read = turned.sum().item<int64_t>() == y.numel() &&
                             y.add(1).sum().item<int64_t>() == 2 * y.numel();
           return read ? y : ones({0, 0, 0, 0});
         });
       }},
      {"index",
       [](SizeDraw& d) {
         const Tensor x = d.view_source(1);
         const auto start = maybe(d, "start"), end = maybe(d, "end");
         const int64_t step = d.mostly("step", 1, 3), at = d.mostly("index", -2, 1);
         const bool both = d.flag("and a place");
         Right right = sliced(x, 0, start, end, step);
         if (both && x.dim() < 2) right = refused();
         if (both && right) {
           const Wide n = x.sizes()[1];
           (*right)[0].erase((*right)[0].begin() + 1);
           if (at >= n || at < -n) right = refused();
         }
         d.expect_view(right, [&] {
           const indexing::Slice slice(start, end, step);
           return both ? x.index({slice, at}) : x.index({slice});
         });
       }},
      {"narrow",
       [](SizeDraw& d) {
         const Tensor x = d.view_source();
         const int64_t dim = d.dim("dim", x.dim()), start = d.number("start"),
                       length = d.number("length");
         const bool by_tensor = d.flag("by a tensor");
         d.expect_view(narrowed(x, dim, start, length), [&] {
           return by_tensor ? narrow(x, dim, tensor(start), length) : narrow(x, dim, start, length);
         });
       }},
      {"select",
       [](SizeDraw& d) {
         const Tensor x = d.view_source();
         const int64_t dim = d.dim("dim", x.dim()), index = d.number("index");
         const auto at = place_of(dim, x.dim());
         Right right = refused();
         if (x.dim() > 0 && at && index < x.sizes()[*at] && Wide{index} >= -Wide{x.sizes()[*at]}) {
           WideShape shape = wide(x.sizes());
           shape.erase(shape.begin() + static_cast<ptrdiff_t>(*at));
           right = one(shape);
         }
         d.expect_view(right, [&] { return select(x, dim, index); });
       }},
      {"diagonal",
       [](SizeDraw& d) {
         const Tensor x = d.view_source(1);
         const int64_t offset = d.number("offset"), a = d.dim("dim1", x.dim()),
                       b = d.dim("dim2", x.dim());
         d.expect_view(diagonal_of(x, offset, a, b), [&] { return diagonal(x, offset, a, b); });
       }},
      {"unbind",
       [](SizeDraw& d) {
         const Tensor x = d.view_source();
         const int64_t dim = d.dim("dim", x.dim());
         const auto at = place_of(dim, x.dim());
         Right right = refused();
         if (x.dim() > 0 && at && !many(x.sizes()[*at])) {
           WideShape shape = wide(x.sizes());
           shape.erase(shape.begin() + static_cast<ptrdiff_t>(*at));
           right = std::vector<WideShape>(static_cast<size_t>(x.sizes()[*at]), shape);
         }
         d.expect_view(right, [&] { return unbind(x, dim); });
       }},
      {"split",
       [](SizeDraw& d) {
         const Tensor x = d.view_source();
         const int64_t each = d.number("split_size"), dim = d.dim("dim", x.dim());
         d.expect_view(split_evenly(x, dim, each), [&] { return split(x, each, dim); });
       }},
      {"chunk",
       [](SizeDraw& d) {
         const Tensor x = d.view_source();
         const int64_t chunks = d.number("chunks"), dim = d.dim("dim", x.dim());
         const auto at = place_of(dim, x.dim());
         Right right = refused();
         if (x.dim() > 0 && at && chunks > 0) {
           const Wide n = x.sizes()[*at];
           if (n > 0) right = split_evenly(x, dim, above(n, chunks));
           else if (!many(chunks)) right = parts(x, dim, WideShape(static_cast<size_t>(chunks), 0));
         }
         d.expect_view(right, [&] { return chunk(x, chunks, dim); });
       }},
      {"split_with_sizes",
       [](SizeDraw& d) {
         const Tensor x = d.view_source();
         const int64_t dim = d.dim("dim", x.dim());
         std::vector<int64_t> sizes = d.numbers("sizes", 0, 4);
         const auto at = place_of(dim, x.dim());
         if (at && x.dim() && d.flag("the rest, too")) {
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
      {"tensor_split",
       [](SizeDraw& d) {
         const Tensor x = d.view_source();
         const int64_t n = d.number("sections"), dim = d.dim("dim", x.dim());
         const bool by_tensor = d.flag("by a tensor");
         d.expect_view(sections(x, dim, n), [&] {
           return by_tensor ? tensor_split(x, tensor(n), dim) : tensor_split(x, n, dim);
         });
       }},
      {"tensor_split",  // by places
       [](SizeDraw& d) {
         const Tensor x = d.view_source();
         const int64_t dim = d.dim("dim", x.dim());
         const std::vector<int64_t> places = d.numbers("indices", 0, 4);
         const bool by_tensor = d.flag("by a tensor");
         d.expect_view(cut_at(x, dim, places), [&] {
           return by_tensor ? tensor_split(x, tensor(places), dim) : tensor_split(x, places, dim);
         });
       }},
      with_cuts(
          "hsplit", 1, [](const Tensor& x, int64_t n) { return hsplit(x, n); },
          [](const Tensor& x, IntArrayRef at) { return hsplit(x, at); }),
      with_cuts(
          "vsplit", 0, [](const Tensor& x, int64_t n) { return vsplit(x, n); },
          [](const Tensor& x, IntArrayRef at) { return vsplit(x, at); }),
      with_cuts(
          "dsplit", 2, [](const Tensor& x, int64_t n) { return dsplit(x, n); },
          [](const Tensor& x, IntArrayRef at) { return dsplit(x, at); }),
      {"unfold",
       [](SizeDraw& d) {
         const Tensor x = d.view_source();
         const int64_t dim = d.dim("dim", x.dim()), size = d.mostly("size", 0, 3),
                       step = d.number("step");
         d.expect_view(unfolded(x, dim, size, step), [&] { return x.unfold(dim, size, step); });
       }},
  };
}

}  // namespace fuzz
}  // namespace ramet
