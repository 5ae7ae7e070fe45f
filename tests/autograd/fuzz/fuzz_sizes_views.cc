// Rows of random sizes: other shapes of a whole tensor, and what joins or repeats.
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
  if (dims < 1 || dims > 3 || (x.dim() != dims + 1 && x.dim() != dims + 2)) return refused();
  for (size_t i = 0; i < pad.size(); ++i) {
    const int64_t n = x.size(x.dim() - 1 - static_cast<int64_t>(i / 2));
    const bool both = pad[i] == 0 && pad[i ^ 1] == 0;
    if (!both && (n == 0 || (reflect && pad[i] >= n))) return refused();
  }
  return padded(x, pad, 1);
}
template <class Call>
SizeRow of_pad(const char* name, int64_t dims, bool reflect, const Call& call) {
  return {name, [=](SizeDraw& d) {
            const Tensor x = d.tensor(dims + 1, std::min<int64_t>(dims + 2, 4), 1);
            const std::vector<int64_t> pad = d.numbers("padding", 2 * dims, 2 * dims);
            d.expect(bordered(x, pad, reflect), [&] { return call(x, pad); });
          }};
}

}  // namespace

std::vector<SizeRow> size_rows_of_views() {
  using X = const Tensor&;
  using N = const std::vector<int64_t>&;
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
      {"flatten",
       [](SizeDraw& d) {
         const Tensor x = d.tensor();
         const int64_t start = d.dim("start", x.dim()), end = d.dim("end", x.dim());
         d.expect(flattened(x, start, end), [&] { return flatten(x, start, end); });
       }},
      {"unflatten",
       [](SizeDraw& d) {
         const Tensor x = d.tensor().contiguous();
         const int64_t dim = d.dim("dim", x.dim());
         std::vector<int64_t> sizes = d.numbers("sizes", 0, 3);
         const auto at = place_of(dim, x.dim());
         if (at && x.dim() > 0 && d.flag("that fit")) sizes = {1, x.sizes()[*at]};
         Right right = refused();
         if (at && x.dim() > 0 && !sizes.empty()) {
           right = viewed(sizes, x.sizes()[*at]);
           if (right) {
             WideShape shape = wide(x.sizes());
             const auto here = shape.begin() + static_cast<ptrdiff_t>(*at);
             shape.insert(shape.erase(here), (*right)[0].begin(), (*right)[0].end());
             right = one(shape);
           }
         }
         d.expect_view(right, [&] { return unflatten(x, dim, sizes); });
       }},
      {"as_strided",
       [](SizeDraw& d) {
         const Tensor x = d.tensor();
         const std::vector<int64_t> sizes = d.numbers("size", 0, 3),
                                    strides = d.numbers("stride", 0, 3);
         const bool given = d.flag("with offset"), in_place = d.flag("in place");
         const int64_t offset = given ? d.number("storage_offset") : x.storage_offset();
         d.expect_view(strided(sizes, strides, offset, held_by(x)), [&] {
           const auto at = given ? std::optional<int64_t>(offset) : std::nullopt;
           return in_place ? Tensor(x.detach().as_strided_(sizes, strides, at))
                           : as_strided(x, sizes, strides, at);
         });
       }},
      {"as_strided_scatter",
       [](SizeDraw& d) {
         const Tensor x = d.tensor();
         const std::vector<int64_t> strides = d.numbers("stride", 0, 3);
         const std::vector<int64_t> sizes(strides.size(), d.note("extent", d.tape().below(3)));
         const int64_t offset = d.number("storage_offset");
         const bool repeats =
             !sizes.empty() && sizes[0] > 1 && std::count(strides.begin(), strides.end(), 0) > 0;
         const bool fits = strided(sizes, strides, offset, held_by(x)).has_value() && !repeats;
         d.expect(fits ? one(wide(x.sizes())) : refused(),
                  [&] { return as_strided_scatter(x, ones(sizes), sizes, strides, offset); });
       }},
      {"set_",
       [](SizeDraw& d) {
         const Tensor x = d.tensor();
         const std::vector<int64_t> sizes = d.numbers("size", 0, 3),
                                    strides = d.numbers("stride", 0, 3);
         const int64_t offset = d.number("storage_offset");
         d.expect_view(strided(sizes, strides.empty() ? contiguous_strides(sizes) : strides, offset,
                               held_by(x)),
                       [&] { return Tensor(zeros({2}).set_(x, offset, sizes, strides)); });
       }},
      {"sum_to_size",
       [](SizeDraw& d) {
         const Tensor x = d.tensor();
         std::vector<int64_t> sizes;
         for (int64_t k = d.note("from", d.tape().below(3)); k < x.dim(); ++k)
           sizes.push_back(d.tape().one_in(3) ? x.size(k) : d.number("size"));
         d.note("sizes", IntArrayRef(sizes));
         bool fits = true;
         for (size_t i = 1; i <= sizes.size(); ++i) {
           const int64_t to = sizes[sizes.size() - i];
           fits &= to == 1 || to == x.sizes()[x.sizes().size() - i];
         }
         d.expect(fits ? one(wide(sizes)) : refused(), [&] { return x.sum_to_size(sizes); });
       }},
      {"transpose",
       [](SizeDraw& d) {
         const int64_t how = d.note("how", d.tape().below(3));
         const Tensor x = how == 2 ? d.tensor() : d.view_source();
         const int64_t a = d.dim("dim0", x.dim()), b = d.dim("dim1", x.dim());
         d.expect_view(swapped(x, a, b), [&] {
           return how == 0   ? transpose(x, a, b)
                  : how == 1 ? x.swapaxes(a, b)
                             : Tensor(x.detach().transpose_(a, b));
         });
       }},
      {"permute",
       [](SizeDraw& d) {
         const Tensor x = d.view_source();
         const std::vector<int64_t> dims = d.dims("dims", x.dim());
         d.expect_view(permuted(x, dims), [&] { return permute(x, dims); });
       }},
      {"movedim",
       [](SizeDraw& d) {
         const Tensor x = d.view_source();
         const std::vector<int64_t> from = d.dims("source", x.dim()),
                                    to = d.dims("destination", x.dim());
         const bool other_name = d.flag("moveaxis");
         d.expect_view(moved(x, from, to), [&] {
           if (from.size() == 1 && to.size() == 1) return movedim(x, from[0], to[0]);
           return other_name ? moveaxis(x, from, to) : movedim(x, from, to);
         });
       }},
      {"squeeze",
       [](SizeDraw& d) {
         const bool in_place = d.flag("in place");
         const Tensor x = in_place ? d.tensor() : d.view_source();
         const std::vector<int64_t> dims = d.dims("dims", x.dim());
         d.expect_view(squeezed(x, dims), [&] {
           if (in_place) return Tensor(x.detach().squeeze_(dims));
           return dims.size() == 1 ? squeeze(x, dims[0]) : squeeze(x, dims);
         });
       }},
      {"unsqueeze",
       [](SizeDraw& d) {
         const bool in_place = d.flag("in place");
         const Tensor x = in_place ? d.tensor() : d.view_source();
         const int64_t dim = d.dim("dim", x.dim() + 1);
         d.expect_view(unsqueezed(x, dim), [&] {
           return in_place ? Tensor(x.detach().unsqueeze_(dim)) : unsqueeze(x, dim);
         });
       }},
      {"expand",
       [](SizeDraw& d) {
         const Tensor x = d.view_source();
         std::vector<int64_t> sizes = d.numbers("more", 0, 2);
         for (const int64_t n : x.sizes()) sizes.push_back(n == 1 ? d.number("extent") : n);
         const bool other_name = d.flag("broadcast_to");
         d.expect_view(expanded(x, sizes),
                       [&] { return other_name ? broadcast_to(x, sizes) : expand(x, sizes); });
       }},
      {"repeat",
       [](SizeDraw& d) {
         const Tensor x = d.tensor();
         const std::vector<int64_t> times = d.numbers("repeats", 0, 5);
         d.expect(repeated(x, times), [&] { return repeat(x, times); });
       }},
      {"constant_pad_nd",
       [](SizeDraw& d) {
         const Tensor x = d.tensor();
         const std::vector<int64_t> pad = d.numbers("pad", 0, 5);
         d.expect(padded(x, pad, 0), [&] { return constant_pad_nd(x, pad); });
       }},
      {"pad",
       [](SizeDraw& d) {
         const Tensor x = d.tensor();
         const std::vector<int64_t> pad = d.numbers("pad", 0, 5);
         const bool reflect = d.flag("reflect");
         d.expect(bordered(x, pad, reflect),
                  [&] { return ramet::pad(x, pad, reflect ? "reflect" : "replicate"); });
       }},
      of_pad("reflection_pad1d", 1, true, [](X x, N pad) { return reflection_pad1d(x, pad); }),
      of_pad("reflection_pad2d", 2, true, [](X x, N pad) { return reflection_pad2d(x, pad); }),
      of_pad("reflection_pad3d", 3, true, [](X x, N pad) { return reflection_pad3d(x, pad); }),
      of_pad("replication_pad1d", 1, false, [](X x, N pad) { return replication_pad1d(x, pad); }),
      of_pad("replication_pad2d", 2, false, [](X x, N pad) { return replication_pad2d(x, pad); }),
      of_pad("replication_pad3d", 3, false, [](X x, N pad) { return replication_pad3d(x, pad); }),
      {"flip",
       [](SizeDraw& d) {
         const Tensor x = d.tensor();
         const std::vector<int64_t> dims = d.dims("dims", x.dim());
         std::vector<bool> seen(static_cast<size_t>(x.dim()) + 1);
         Right right = one(wide(x.sizes()));
         for (const int64_t dim : dims) {
           const auto at = place_of(dim, x.dim());
           if (!at || seen[*at]) right = refused();
           else seen[*at] = true;
         }
         d.expect(right, [&] { return flip(x, dims); });
       }},
      {"resize_",
       [](SizeDraw& d) {
         const Tensor x = d.tensor().clone();
         const std::vector<int64_t> sizes = d.numbers("size", 0, 4);
         const bool fine =
             std::none_of(sizes.begin(), sizes.end(), [](int64_t n) { return n < 0; });
         d.expect(fine ? one(wide(sizes)) : refused(), [&] { return Tensor(x.resize_(sizes)); });
       }},
      {"cat",
       [](SizeDraw& d) {
         const Tensor x = d.view_source();
         const int64_t count = d.note("count", d.tape().below(4)), dim = d.dim("dim", x.dim());
         const bool other_name = d.flag("concat");
         const auto at = place_of(dim, x.dim());
         Right right = refused();
         const bool nothing = x.dim() == 1 && x.numel() == 0;  // takes part in any join
         if (nothing && count > 0) right = one({0});
         else if (at && x.dim() > 0 && count > 0)
           right = with(wide(x.sizes()), *at, Wide{count} * x.sizes()[*at]);
         const std::vector<Tensor> list(static_cast<size_t>(count), x);
         d.expect(right, [&] { return other_name ? concat(list, dim) : cat(list, dim); });
       }},
      {"stack",
       [](SizeDraw& d) {
         const Tensor x = d.view_source();
         const int64_t count = d.note("count", d.tape().below(4)), dim = d.dim("dim", x.dim() + 1);
         const auto at = place_of(dim, x.dim() + 1);
         Right right = refused();
         if (at && count > 0) {
           WideShape shape = wide(x.sizes());
           shape.insert(shape.begin() + static_cast<ptrdiff_t>(*at), count);
           right = one(shape);
         }
         const std::vector<Tensor> list(static_cast<size_t>(count), x);
         d.expect(right, [&] { return stack(list, dim); });
       }},
      {"stride",
       [](SizeDraw& d) {
         const Tensor x = d.view_source();
         const int64_t dim = d.dim("d", x.dim());
         const auto at = x.dim() > 0 ? place_of(dim, x.dim()) : std::nullopt;
         d.expect(at ? one({}) : refused(), [&] {
           if (x.size(dim) != x.sizes()[*at] || x.stride(dim) != x.strides()[*at]) return x;
           return ones({});
         });
       }},
  };
}

}  // namespace fuzz
}  // namespace ramet
