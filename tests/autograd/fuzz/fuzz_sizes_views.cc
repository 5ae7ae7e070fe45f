// Rows of random sizes: other shapes of a whole tensor, and what joins or repeats.
#include <algorithm>

#include "autograd/ops.h"
#include "tests/autograd/fuzz/fuzz_rows.h"

namespace ramet {
namespace fuzz {

namespace {

// With the one -1 filled in.
Right viewed(const std::vector<int64_t>& sizes, Wide numel) {
  WideShape out = wide(sizes);
  Wide known = 1;
  size_t hole = out.size();
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i] == -1 && hole == out.size()) hole = i;
    else if (out[i] < 0) return refused();
    else if (known != 0 && out[i] > INT64_MAX / known) known = Wide{INT64_MAX} + 1;
    else known *= out[i];
    if (std::find(out.begin(), out.end(), 0) != out.end()) known = 0;
  }
  if (hole < out.size()) {
    if (known == 0) return refused();
    out[hole] = numel / known;
    known *= out[hole];
  }
  return known == numel ? one(out) : refused();
}

Right permuted(const Tensor& x, const std::vector<int64_t>& dims) {
  if (static_cast<int64_t>(dims.size()) != x.dim()) return refused();
  WideShape out;
  std::vector<bool> seen(dims.size());
  for (const int64_t dim : dims) {
    const auto d = place_of(dim, x.dim());
    if (!d || seen[*d]) return refused();
    seen[*d] = true;
    out.push_back(x.sizes()[*d]);
  }
  return one(out);
}
Right swapped(const Tensor& x, int64_t a, int64_t b) {
  const auto p = place_of(a, x.dim()), q = place_of(b, x.dim());
  if (!p || !q) return refused();
  WideShape out = wide(x.sizes());
  if (x.dim() > 0) std::swap(out[*p], out[*q]);
  return one(out);
}
Right moved(const Tensor& x, const std::vector<int64_t>& from, const std::vector<int64_t>& to) {
  if (from.size() != to.size()) return refused();
  std::vector<Wide> out(static_cast<size_t>(std::max<int64_t>(x.dim(), 1)), -1);
  std::vector<bool> gone(out.size());
  for (size_t i = 0; i < from.size(); ++i) {
    const auto f = place_of(from[i], x.dim()), t = place_of(to[i], x.dim());
    if (!f || !t || gone[*f] || out[*t] != -1) return refused();
    gone[*f] = true;
    out[*t] = x.dim() ? x.sizes()[*f] : 0;
  }
  if (x.dim() == 0) return one({});
  size_t rest = 0;
  for (Wide& n : out) {
    if (n != -1) continue;
    while (gone[rest]) ++rest;
    n = x.sizes()[rest++];
  }
  return one(out);
}
Right squeezed(const Tensor& x, const std::vector<int64_t>& dims) {
  std::vector<bool> drop(static_cast<size_t>(x.dim()));
  for (const int64_t dim : dims) {
    const auto d = place_of(dim, x.dim());
    if (!d) return refused();
    if (x.dim() == 0) continue;
    if (drop[*d]) return refused();
    drop[*d] = true;
  }
  WideShape out;
  for (size_t d = 0; d < drop.size(); ++d)
    if (!drop[d] || x.sizes()[d] != 1) out.push_back(x.sizes()[d]);
  return one(out);
}
Right unsqueezed(const Tensor& x, int64_t dim) {
  const auto d = place_of(dim, x.dim() + 1);
  if (!d) return refused();
  WideShape out = wide(x.sizes());
  out.insert(out.begin() + static_cast<ptrdiff_t>(*d), 1);
  return one(out);
}
Right expanded(const Tensor& x, const std::vector<int64_t>& sizes) {
  const auto own = static_cast<size_t>(x.dim());
  if (sizes.size() < own) return refused();
  WideShape out = wide(sizes);
  for (size_t d = 0; d < out.size(); ++d) {
    const bool fresh = d < out.size() - own;
    const Wide have = fresh ? 1 : x.sizes()[d - (out.size() - own)];
    if (out[d] == -1 && !fresh) out[d] = have;
    if (out[d] < 0 || (have != 1 && have != out[d])) return refused();
  }
  return one(out);
}
Right repeated(const Tensor& x, const std::vector<int64_t>& times) {
  const auto own = static_cast<size_t>(x.dim());
  if (times.size() < own) return refused();
  WideShape out = wide(times);
  for (size_t d = 0; d < out.size(); ++d) {
    if (out[d] < 0) return refused();
    if (d >= out.size() - own) out[d] *= x.sizes()[d - (out.size() - own)];
  }
  // Between the two there is a view of all repeats and extents, which has to be possible.
  Wide n = 1;
  for (size_t d = 0; d < out.size(); ++d) {
    const Wide extent = d >= out.size() - own ? x.sizes()[d - (out.size() - own)] : 1;
    for (const Wide f : {Wide{times[d]}, extent}) {
      if (f > 0) n *= f;
      if (n > INT64_MAX) return refused();
    }
  }
  return one(out);
}
Right flattened(const Tensor& x, int64_t start, int64_t end) {
  const auto a = place_of(start, x.dim()), b = place_of(end, x.dim());
  if (!a || !b || *a > *b) return refused();
  if (x.dim() == 0) return one({1});
  WideShape out;
  Wide run = 1;
  for (size_t d = 0; d < x.sizes().size(); ++d) {
    if (d >= *a && d <= *b) run *= x.sizes()[d];
    if (d == *b) out.push_back(run);
    if (d < *a || d > *b) out.push_back(x.sizes()[d]);
  }
  return one(out);
}

// A few numbers, changed in places; their product is x's number of elements.
std::vector<int64_t> shape_for(SizeDraw& d, const Tensor& x) {
  if (d.tape().one_in(3)) return d.numbers("sizes", 0, 4);
  std::vector<int64_t> sizes;
  for (const int64_t n : x.sizes()) {
    if (d.tape().one_in(3)) sizes.push_back(d.number("at the front"));
    sizes.push_back(d.tape().one_in(3) ? -1 : n);
  }
  std::reverse(sizes.begin(), sizes.end());
  d.note("sizes", IntArrayRef(sizes));
  return sizes;
}

// A view of x's storage, which has `held` elements.
Right strided(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides, Wide first,
              Wide held) {
  if (sizes.size() != strides.size() || first < 0) return refused();
  bool none = false;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] < 0 || strides[d] < 0) return refused();
    none |= sizes[d] == 0;
  }
  Wide last = first;
  for (size_t d = 0; d < sizes.size(); ++d) {
    last += (Wide{sizes[d]} - 1) * strides[d];
    if (!none && last >= held) return refused();
  }
  return none || last < held ? one(wide(sizes)) : refused();
}
Wide held_by(const Tensor& x) { return static_cast<Wide>(x.storage_impl()->bytes / 4); }

// Two numbers for each dimension from the last on: what is put before and after it, or cut off.
Right padded(const Tensor& x, const std::vector<int64_t>& pad, int64_t least) {
  const size_t rank = static_cast<size_t>(x.dim());
  if (pad.size() % 2 != 0 || pad.size() / 2 > rank) return refused();
  WideShape shape = wide(x.sizes());
  for (size_t i = 0; i < pad.size(); i += 2) {
    Wide& n = shape[rank - 1 - i / 2];
    const Wide cut = -std::min<Wide>(pad[i], 0) - std::min<Wide>(pad[i + 1], 0);
    const bool none = pad[i] == 0 && pad[i + 1] == 0;
    if (cut > n) return refused();
    n += Wide{pad[i]} + pad[i + 1];
    if (!none && n < least) return refused();
  }
  return one(shape);
}
// The same where the border comes from what is inside: of one to three dimensions.
Right bordered(const Tensor& x, const std::vector<int64_t>& pad, bool reflect) {
  const auto dims = static_cast<int64_t>(pad.size() / 2);
  if (pad.size() % 2 != 0 || dims < 1 || dims > 3 || (x.dim() != dims + 1 && x.dim() != dims + 2))
    return refused();
  for (size_t i = 0; i < pad.size(); ++i) {
    const int64_t n = x.size(x.dim() - 1 - static_cast<int64_t>(i / 2));
    const bool both = pad[i] == 0 && pad[i ^ 1] == 0;
    if (!both && (n == 0 || (reflect && pad[i] >= n))) return refused();
  }
  return padded(x, pad, 1);
}
// Some of its last sizes, or 1 for them.
Right summed_to(const Tensor& x, const std::vector<int64_t>& sizes) {
  bool fits = true;
  for (size_t i = 1; i <= sizes.size(); ++i) {
    const int64_t to = sizes[sizes.size() - i];
    fits &= to == 1 || to == x.sizes()[x.sizes().size() - i];
  }
  return right_if(fits, wide(sizes));
}
Right flipped(const Tensor& x, const std::vector<int64_t>& dims) {
  std::vector<bool> seen(static_cast<size_t>(x.dim()) + 1);
  for (const int64_t dim : dims) {
    const auto at = place_of(dim, x.dim());
    if (!at || seen[*at]) return refused();
    seen[*at] = true;
  }
  return as(x);
}
Right resized(const std::vector<int64_t>& sizes) {
  return right_if(std::none_of(sizes.begin(), sizes.end(), [](int64_t n) { return n < 0; }),
                  wide(sizes));
}
// So many of x.
Right joined(const Tensor& x, int64_t count, int64_t dim) {
  if (count > 0 && x.dim() == 1 && x.numel() == 0) return one({0});  // takes part in any join
  const auto at = place_of(dim, x.dim());
  if (!at || x.dim() == 0 || count == 0) return refused();
  return with(wide(x.sizes()), *at, Wide{count} * x.sizes()[*at]);
}
Right stacked(const Tensor& x, int64_t count, int64_t dim) {
  const Right right = count > 0 ? unsqueezed(x, dim) : refused();
  return right ? with((*right)[0], *place_of(dim, x.dim() + 1), count) : right;
}
Right unflattened(const Tensor& x, int64_t dim, const std::vector<int64_t>& sizes) {
  const auto at = place_of(dim, x.dim());
  if (!at || x.dim() == 0 || sizes.empty()) return refused();
  const Right part = viewed(sizes, x.sizes()[*at]);
  if (!part) return part;
  WideShape shape = wide(x.sizes());
  const auto here = shape.begin() + static_cast<ptrdiff_t>(*at);
  shape.insert(shape.erase(here), (*part)[0].begin(), (*part)[0].end());
  return one(shape);
}
Right scattered(const Tensor& x, const std::vector<int64_t>& strides, int64_t extent,
                int64_t offset) {
  const std::vector<int64_t> sizes(strides.size(), extent);
  const bool repeats =
      !sizes.empty() && extent > 1 && std::count(strides.begin(), strides.end(), 0) > 0;
  return as(x, strided(sizes, strides, offset, held_by(x)).has_value() && !repeats);
}
Tensor scatter_into(const Tensor& x, const std::vector<int64_t>& strides, int64_t extent,
                    int64_t offset) {
  const std::vector<int64_t> sizes(strides.size(), extent);
  return as_strided_scatter(x, ones(sizes), sizes, strides, offset);
}
Tensor strided_view(const Tensor& x, const std::vector<int64_t>& sizes,
                    const std::vector<int64_t>& strides, std::optional<int64_t> at, bool in_place) {
  return in_place ? Tensor(x.detach().as_strided_(sizes, strides, at))
                  : as_strided(x, sizes, strides, at);
}
std::vector<Tensor> copies(const Tensor& x, int64_t count) {
  return std::vector<Tensor>(static_cast<size_t>(count), x);
}
// What it says of a dimension is what its lists say.
Tensor if_told(const Tensor& x, int64_t dim) {
  const size_t at = *place_of(dim, x.dim());
  return x.size(dim) != x.sizes()[at] || x.stride(dim) != x.strides()[at] ? x : ones({});
}

}  // namespace

#define BORDER(name, dims, reflect)                                                            \
  ROW(name, (Some<dims + 1, std::min(dims + 2, 4), 1> x, Numbers<2 * dims, 2 * dims> padding), \
      bordered(x, padding, reflect), name(x, padding))

std::vector<SizeRow> size_rows_of_views() {
  return {
      {"view",
       [](SizeDraw& d) {
         const Tensor x = d.tensor().contiguous();
         const std::vector<int64_t> sizes = shape_for(d, x);
         d.expect_view(viewed(sizes, x.numel()), [&] { return view(x, sizes); });
       }},
      {"reshape",
       [](SizeDraw& d) {
         const Tensor x = d.tensor();
         const std::vector<int64_t> sizes = shape_for(d, x);
         d.expect(viewed(sizes, x.numel()), [&] { return reshape(x, sizes); });
       }},
      ROW(flatten, (Any x, Dim<> start, Dim<> end), flattened(x, start, end),
          flatten(x, start, end)),
      {"unflatten",
       [](SizeDraw& d) {
         const Tensor x = d.tensor().contiguous();
         const int64_t dim = d.dim("dim", x.dim());
         std::vector<int64_t> sizes = d.numbers("sizes", 0, 3);
         const auto at = place_of(dim, x.dim());
         if (at && x.dim() > 0 && d.flag("that fit")) sizes = {1, x.sizes()[*at]};
         d.expect_view(unflattened(x, dim, sizes), [&] { return unflatten(x, dim, sizes); });
       }},
      VIEW(as_strided,
           (Any x, Numbers<0, 3> size, Numbers<0, 3> stride, Maybe<Number> offset, bool in_place),
           strided(size, stride, offset.value_or(x.storage_offset()), held_by(x)),
           strided_view(x, size, stride, offset, in_place)),
      ROW(as_strided_scatter,
          (Any x, Numbers<0, 3> strides, Within<0, 2> extent, Number storage_offset),
          scattered(x, strides, extent, storage_offset),
          scatter_into(x, strides, extent, storage_offset)),
      VIEW(set_, (Any x, Numbers<0, 3> size, Numbers<0, 3> stride, Number storage_offset),
           strided(size, stride.empty() ? contiguous_strides(size) : stride, storage_offset,
                   held_by(x)),
           zeros({2}).set_(x, storage_offset, size, stride)),
      {"sum_to_size",
       [](SizeDraw& d) {
         const Tensor x = d.tensor();
         std::vector<int64_t> sizes;
         for (int64_t k = d.note("from", d.tape().below(3)); k < x.dim(); ++k)
           sizes.push_back(d.tape().one_in(3) ? x.size(k) : d.number("size"));
         d.note("sizes", IntArrayRef(sizes));
         d.expect(summed_to(x, sizes), [&] { return x.sum_to_size(sizes); });
       }},
      VIEW(transpose, (Far<> x, Dim<> a, Dim<> b), swapped(x, a, b), transpose(x, a, b)),
      VIEW(swapaxes, (Far<> x, Dim<> a, Dim<> b), swapped(x, a, b), x.swapaxes(a, b)),
      VIEW(transpose_, (Any x, Dim<> a, Dim<> b), swapped(x, a, b), x.detach().transpose_(a, b)),
      VIEW(permute, (Far<> x, Dims dims), permuted(x, dims), permute(x, dims)),
      VIEW(movedim, (Far<> x, Dims from, Dims to, bool moveaxis), moved(x, from, to),
           from.size() == 1 && to.size() == 1 ? movedim(x, from[0], to[0])
           : moveaxis                         ? ramet::moveaxis(x, from, to)
                                              : movedim(x, from, to)),
      VIEW(squeeze, (Far<> x, Dims dims), squeezed(x, dims),
           dims.size() == 1 ? squeeze(x, dims[0]) : squeeze(x, dims)),
      VIEW(squeeze_, (Any x, Dims dims), squeezed(x, dims), x.detach().squeeze_(dims)),
      VIEW(unsqueeze, (Far<> x, Dim<1> dim), unsqueezed(x, dim), unsqueeze(x, dim)),
      VIEW(unsqueeze_, (Any x, Dim<1> dim), unsqueezed(x, dim), x.detach().unsqueeze_(dim)),
      {"expand",
       [](SizeDraw& d) {
         const Tensor x = d.view_source();
         std::vector<int64_t> sizes = d.numbers("more", 0, 2);
         for (const int64_t n : x.sizes()) sizes.push_back(n == 1 ? d.number("extent") : n);
         const bool other_name = d.flag("broadcast_to");
         d.expect_view(expanded(x, sizes),
                       [&] { return other_name ? broadcast_to(x, sizes) : expand(x, sizes); });
       }},
      ROW(repeat, (Any x, Numbers<0, 5> repeats), repeated(x, repeats), repeat(x, repeats)),
      ROW(constant_pad_nd, (Any x, Numbers<0, 5> pad), padded(x, pad, 0), constant_pad_nd(x, pad)),
      ROW(pad, (Any x, Numbers<0, 5> pad, bool reflect), bordered(x, pad, reflect),
          ramet::pad(x, pad, reflect ? "reflect" : "replicate")),
      BORDER(reflection_pad1d, 1, true),
      BORDER(reflection_pad2d, 2, true),
      BORDER(reflection_pad3d, 3, true),
      BORDER(replication_pad1d, 1, false),
      BORDER(replication_pad2d, 2, false),
      BORDER(replication_pad3d, 3, false),
      ROW(flip, (Any x, Dims dims), flipped(x, dims), flip(x, dims)),
      ROW(resize_, (Any x, Numbers<0, 4> size), resized(size), x.clone().resize_(size)),
      ROW(cat, (Far<> x, Within<0, 3> count, Dim<> dim, bool concat), joined(x, count, dim),
          concat ? ramet::concat(copies(x, count), dim) : cat(copies(x, count), dim)),
      ROW(stack, (Far<> x, Within<0, 3> count, Dim<1> dim), stacked(x, count, dim),
          stack(copies(x, count), dim)),
      ROW(stride, (Far<> x, Dim<> dim), right_if(x.dim() > 0 && kept(x, dim), {}), if_told(x, dim)),
  };
}

}  // namespace fuzz
}  // namespace ramet
