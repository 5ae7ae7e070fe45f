#include <algorithm>

#include "autograd/grad_mode.h"
#include "autograd/graph/layout.h"
#include "autograd/graph/node.h"
#include "autograd/graph/strided_internal.h"
#include "autograd/graph/view.h"

namespace ramet {
namespace autograd {
namespace {

// The position of the last element, counted like the offset. REQUIRES: at least one element.
int64_t last_of(const Geometry& g) {
  int64_t last = g.offset;
  for (size_t d = 0; d < g.sizes.size(); ++d) last += (g.sizes[d] - 1) * g.strides[d];
  return last;
}
bool is_empty(const Geometry& g) {
  return std::find(g.sizes.begin(), g.sizes.end(), 0) != g.sizes.end();
}
// Zeros with the layout of `like`, so that a geometry relative to `like` is valid relative to the
// result. The memory between its elements is zero, too.
Tensor zeros_as(const Geometry& like, ScalarType dtype, Device device) {
  Tensor z(TensorBase::empty_strided(like.sizes, like.strides, dtype, device));
  if (!is_empty(like)) Tensor(z.view_impl({last_of(like) + 1}, {1}, 0)).zero_();
  return z;
}

// A dimension along which elements may overlap, as the windows of unfold do: the shorter of the two
// that overlap. -1 where surely none does.
int overlapping_dim(const Geometry& g) {
  std::vector<size_t> order;
  for (size_t d = 0; d < g.sizes.size(); ++d) {
    if (g.sizes[d] == 0) return -1;
    if (g.sizes[d] != 1) order.push_back(d);
  }
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return g.strides[a] < g.strides[b]; });
  int64_t reach = 0;
  size_t before = 0;
  for (size_t d : order) {
    if (g.strides[d] <= reach) return static_cast<int>(g.sizes[d] < g.sizes[before] ? d : before);
    reach += (g.sizes[d] - 1) * g.strides[d];
    before = d;
  }
  return -1;
}

// Does `at`, relative to base, reach memory before base's first element or after its last?
bool reaches_out(const Geometry& base, const Geometry& at) {
  if (is_empty(at)) return false;
  return is_empty(base) || at.offset < 0 || last_of(at) > last_of(base);
}

// Does it contain each element between its first and its last exactly once?
bool fills(const Geometry& g) {
  int64_t numel = 1;
  for (const int64_t n : g.sizes) numel *= n;
  return is_empty(g) || (overlapping_dim(g) < 0 && last_of(g) + 1 == numel);
}

// Adds v to the selected elements of `out`, one window after the other where they overlap.
void add_strided(const Tensor& out, const Tensor& v, Geometry at) {
  const int d = overlapping_dim(at);
  if (d < 0) {
    Tensor(out.view_impl(at.sizes, at.strides, at.offset)).add_(v);
    return;
  }
  const int64_t n = at.sizes[static_cast<size_t>(d)], stride = at.strides[static_cast<size_t>(d)];
  at.sizes.erase(at.sizes.begin() + d);
  at.strides.erase(at.strides.begin() + d);
  for (int64_t i = 0; i < n; ++i, at.offset += stride) add_strided(out, v.select(d, i), at);
}

// The adjoint of `gathered`: adds g's elements to zeros at the selected positions. Expanded (stride
// 0) dimensions are summed first. 16-bit sums are computed in float and rounded once.
Tensor scatter_strided(const Tensor& g, const Geometry& base, Geometry at) {
  std::vector<int64_t> expanded;
  for (size_t d = 0; d < at.sizes.size(); ++d) {
    if (at.strides[d] != 0 || at.sizes[d] <= 1) continue;  // no element: nothing is added
    expanded.push_back(static_cast<int64_t>(d));
    at.sizes[d] = 1;
  }
  const ScalarType t = g.scalar_type();
  const bool adds = overlapping_dim(at) >= 0, rounds = adds && compute_type(t) != t;
  // Do not round here what is rounded later.
  Tensor v = g;
  if (!expanded.empty())
    v = v.sum(OptionalIntArrayRef(expanded), /*keepdim=*/true,
              rounds ? std::optional<ScalarType>(compute_type(t)) : std::nullopt);
  Tensor out;
  {
    NoGradGuard off;
    out = zeros_as(base, t, g.device());
    if (!adds) {
      Tensor(out.view_impl(at.sizes, at.strides, at.offset)).copy_(v);
    } else {
      const Tensor sum = rounds ? zeros_as(base, compute_type(t), g.device()) : out;
      add_strided(sum, v, at);
      if (rounds) out.copy_(sum);
    }
  }
  if (!recording(v)) return out;
  return record("AsStridedScatterBackward0", {v}, std::move(out),
                saves_nothing([base, at, type = v.scalar_type()](const Node&, const Tensor& gg) {
                  return gathered(laid_out(gg, base), at).to(type);
                }));
}

// The gradient for x's geometry `base`, given the gradient g of a view `at` the same storage. Where
// base fills its memory and `at` stays inside it, g is scattered into x's layout. Otherwise g is
// scattered into all the memory that both reach, and x's elements are gathered from there.
Tensor look_gradient(const Tensor& g, const Geometry& base, const Geometry& at) {
  if (is_empty(at)) {
    const Geometry plain = {base.sizes, contiguous_strides(base.sizes), 0};
    return scatter_strided(g, plain, {at.sizes, at.strides, 0});
  }
  if (is_empty(base)) return g.reshape(-1).narrow(0, 0, 0).reshape(base.sizes);
  if (fills(base) && !reaches_out(base, at)) return scatter_strided(g, base, at);
  const int64_t first = std::min<int64_t>(at.offset, 0);
  const Geometry all = {{std::max(last_of(at), last_of(base)) - first + 1}, {1}, 0},
                 from = {at.sizes, at.strides, at.offset - first},
                 to = {base.sizes, base.strides, -first};
  const Tensor seen = gathered(scatter_strided(g, all, from), to);
  if (overlapping_dim(base) < 0) return seen;
  const Tensor times = [&] {
    const NoGradGuard off;
    return gathered(scatter_strided(g.new_ones(base.sizes), all, to), to);
  }();
  return seen.div(times);
}

}  // namespace

Tensor gathered(const Tensor& x, const Geometry& at) {
  return record_strided(x, Tensor(x.view_impl(at.sizes, at.strides, at.offset)), at.offset);
}

Tensor laid_out(const Tensor& g, const Geometry& like) {
  settle(g);
  return g.raw_strides() == IntArrayRef(like.strides) ? g : scatter_strided(g, like, like);
}

Tensor zero_at(const Tensor& g, const Geometry& at) {
  settle(g);
  Tensor out;
  {
    NoGradGuard off;
    out =
        Tensor(TensorBase::empty_strided(g.sizes(), g.raw_strides(), g.scalar_type(), g.device()));
    out.copy_(g);
    Tensor(out.view_impl(at.sizes, at.strides, at.offset)).zero_();
  }
  if (!recording(g)) return out;
  return record("ZeroAtBackward0", {g}, std::move(out),
                saves_nothing([at, layout = geometry_of(g, 0)](const Node&, const Tensor& gg) {
                  return zero_at(laid_out(gg, layout), at);
                }));
}

bool shown_by(const Tensor& x, const Tensor& v, int64_t offset) {
  Geometry base = geometry_of(x, 0);
  const Geometry at = geometry_of(v, offset);
  if (reaches_out(base, at)) return false;
  if (is_empty(at) || fills(base)) return true;
  for (size_t d = 0; d < base.sizes.size(); ++d)
    if (base.strides[d] == 0) base.sizes[d] = 1;
  if (overlapping_dim(base) >= 0) return false;
  // Express the offset and v's strides as steps along x's dimensions, the largest strides first
  // (one way of several). They lead to v's first element, and to the end of each of its dimensions.
  std::vector<size_t> order;
  for (size_t d = 0; d < base.sizes.size(); ++d)
    if (base.sizes[d] > 1) order.push_back(d);
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return base.strides[a] > base.strides[b]; });
  std::vector<int64_t> reached(base.sizes.size());
  const auto steps = [&](int64_t distance, int64_t times) {
    for (size_t d : order) {
      reached[d] += distance / base.strides[d] * times;
      distance %= base.strides[d];
    }
    return distance == 0 || times == 0;
  };
  bool inside = steps(at.offset, 1);
  for (size_t d = 0; d < at.sizes.size(); ++d) inside &= steps(at.strides[d], at.sizes[d] - 1);
  for (size_t d = 0; d < reached.size(); ++d) inside &= reached[d] < base.sizes[d];
  return inside;
}

Tensor record_strided(const Tensor& x, Tensor v, int64_t offset) {
  if (!recording(x)) return v;
  return record(
      "AsStridedBackward0", {x}, std::move(v),
      saves_nothing([base = geometry_of(x, 0), at = geometry_of(v, offset)](
                        const Node&, const Tensor& g) { return look_gradient(g, base, at); }));
}

}  // namespace autograd
}  // namespace ramet
