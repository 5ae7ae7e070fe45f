#include "autograd/ops/shape/pad.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "autograd/ops/front/out_internal.h"
#include "autograd/ops/index/gather_scatter.h"
#include "autograd/ops/make/copy.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/pointwise/arithmetic.h"
#include "autograd/ops/reduce/reduce.h"
#include "autograd/ops/shape/view.h"
#include "autograd/ops/shape/view_parts.h"

namespace ramet {

using namespace autograd;

namespace {

enum class Mode { kReflect, kReplicate, kCircular };

// The elements to add before and after dimension d; negative: to cut off. In the order of `pad`.
struct Side {
  int64_t dim, before, after;
};
using Sides = std::vector<Side>;

int64_t positive(int64_t n) { return std::max<int64_t>(n, 0); }

// All sides of `pad`. Checks that each resulting size fits in an int64 and is at least `least`, for
// sides that are not 0.
Sides checked_sides(const char* op, const Tensor& x, IntArrayRef pad, int64_t least) {
  check_defined(op, x);
  RAMET_CHECK(pad.size() % 2 == 0, op, "Padding length must be divisible by 2: got ", pad);
  const int64_t count = static_cast<int64_t>(pad.size() / 2);
  RAMET_CHECK(count <= x.dim(), op,
              "Padding length should be less than or equal to two times the input dimension but ",
              "got padding length ", pad.size(), " and input of dimension ", x.dim());
  Sides sides;
  for (int64_t i = 0; i < count; ++i) {
    const Side s{x.dim() - 1 - i, pad[static_cast<size_t>(2 * i)],
                 pad[static_cast<size_t>(2 * i + 1)]};
    const int64_t n = x.size(s.dim);
    if (s.before == 0 && s.after == 0) continue;
    using Wide = __int128;
    const Wide cut = -std::min<Wide>(s.before, 0) - std::min<Wide>(s.after, 0);
    const Wide size = Wide{n} + s.before + s.after;
    RAMET_CHECK(cut <= n && size >= least && size <= std::numeric_limits<int64_t>::max(), op,
                "The input size ", n, ", plus negative padding ", s.before, " and ", s.after,
                " resulted in an invalid output size. Check dimension ", s.dim, " of your input, ",
                x.sizes());
    sides.push_back(s);
  }
  return sides;
}

// x without the parts that negative numbers cut off: a view.
Tensor cropped(const Tensor& x, const Sides& sides) {
  Tensor y = x;
  for (const Side& s : sides) {
    const int64_t front = positive(-s.before);
    if (front != 0 || s.after < 0)
      y = y.narrow(s.dim, front, x.size(s.dim) - front - positive(-s.after));
  }
  return y;
}
// The inside of x, which has grown by the positive numbers: a view.
Tensor inside(const Tensor& x, const Sides& sides) {
  Tensor y = x;
  for (const Side& s : sides) {
    const int64_t front = positive(s.before);
    y = y.narrow(s.dim, front, x.size(s.dim) - front - positive(s.after));
  }
  return y;
}
std::vector<int64_t> grown_sizes(const Tensor& x, const Sides& sides) {
  std::vector<int64_t> sizes = x.sizes().vec();
  for (const Side& s : sides)
    sizes[static_cast<size_t>(s.dim)] += positive(s.before) + positive(s.after);
  return sizes;
}

// ---- borders filled from the inside -------------------------------------------------------------

// The border of one side, and the source of its numbers: two views of one tensor. They have one
// size, except that the source of `replicate` has one element in that dimension.
struct Border {
  Tensor border, source;
};

// The borders of a tensor that is larger than its inside along s.dim, by s.before and s.after (>=
// 0).
std::vector<Border> borders(const Tensor& whole, const Side& s, Mode mode) {
  const int64_t d = s.dim, end = whole.size(d) - s.after, n = end - s.before;
  std::vector<Border> list;
  const auto add = [&](int64_t at, int64_t length, int64_t from) {
    if (length > 0)
      list.push_back({whole.narrow(d, at, length),
                      whole.narrow(d, from, mode == Mode::kReplicate ? 1 : length)});
  };
  switch (mode) {
    case Mode::kReflect:
      add(0, s.before, s.before + 1);
      add(end, s.after, end - 1 - s.after);
      break;
    case Mode::kReplicate:
      add(0, s.before, s.before);
      add(end, s.after, end - 1);
      break;
    case Mode::kCircular:
      add(0, s.before, n);
      add(end, s.after, s.before);
      break;
  }
  return list;
}
// `whole` after sides 0..i: with their borders, without those of later sides.
Tensor until(const Tensor& whole, const Sides& sides, size_t i) {
  return inside(whole, Sides(sides.begin() + static_cast<ptrdiff_t>(i) + 1, sides.end()));
}

Tensor folded(const Tensor& whole, const Sides& sides, Mode mode);

// x with its borders; all numbers of `sides` are 0 or more.
Tensor extended(const Tensor& x, const Sides& sides, Mode mode) {
  Tensor out;
  {
    const NoGradGuard off;
    out = empty(grown_sizes(x, sides), x.options());
    inside(out, sides).copy_(x);
    for (size_t i = 0; i < sides.size(); ++i)
      for (const Border& b : borders(until(out, sides, i), sides[i], mode))
        b.border.copy_(mode == Mode::kReflect ? b.source.flip(sides[i].dim) : b.source);
  }
  if (!recording(x)) return out;
  return record("PadBackward0", {x}, std::move(out),
                saves_nothing([sides, mode](const Node&, const Tensor& g) {
                  return folded(g, sides, mode);
                }));
}
// The adjoint of extended(): adds the borders to their sources.
Tensor folded(const Tensor& whole, const Sides& sides, Mode mode) {
  Tensor out;
  {
    const NoGradGuard off;
    const Tensor sum = whole.clone();
    for (size_t i = sides.size(); i-- > 0;)
      for (Border& b : borders(until(sum, sides, i), sides[i], mode))
        b.source.add_(mode == Mode::kReflect     ? b.border.flip(sides[i].dim)
                      : mode == Mode::kReplicate ? b.border.sum(sides[i].dim, /*keepdim=*/true)
                                                 : b.border);
    out = inside(sum, sides).clone();
  }
  if (!recording(whole)) return out;
  return record("PadBackwardBackward0", {whole}, std::move(out),
                saves_nothing([sides, mode](const Node&, const Tensor& v) {
                  return extended(v, sides, mode);
                }));
}

// Checks LibTorch's rule of which dimensions are padded, and how far.
void check_borders(const char* op, const Tensor& x, const Sides& sides, size_t numbers, Mode mode) {
  const int64_t dims = static_cast<int64_t>(numbers / 2);
  RAMET_CHECK(dims >= 1 && dims <= 3 && (x.dim() == dims + 1 || x.dim() == dims + 2), op,
              "Padding size ", numbers, " is not supported for ", x.dim(), "D input tensor. ",
              "Supported combinations for non-constant padding: 2D or 3D input: padding size = 2 ",
              "(pads last dimension), 3D or 4D input: padding size = 4 (pads last 2 dimensions), ",
              "4D or 5D input: padding size = 6 (pads last 3 dimensions)");
  for (const Side& s : sides) {
    const int64_t n = x.size(s.dim), most = std::max(s.before, s.after);
    if (mode == Mode::kReflect)
      RAMET_CHECK(most < n, op,
                  "Padding size should be less than the corresponding input dimension, but got: ",
                  "padding (", s.before, ", ", s.after, ") at dimension ", s.dim, " of input ",
                  x.sizes());
    else if (mode == Mode::kReplicate)
      RAMET_CHECK(n > 0, op, "Expected non-zero dimensions to replicate from: got dimension ",
                  s.dim, " of input ", x.sizes());
    else
      RAMET_CHECK(most <= n - positive(-s.before) - positive(-s.after), op,
                  "Padding value causes wrapping around more than once: got padding (", s.before,
                  ", ", s.after, ") at dimension ", s.dim, " of input ", x.sizes());
  }
}

Tensor bordered(const char* op, const Tensor& x, IntArrayRef pad, Mode mode) {
  const Sides sides = checked_sides(op, x, pad, mode == Mode::kCircular ? 0 : 1);
  check_borders(op, x, sides, pad.size(), mode);
  Sides grow, cut;
  for (const Side& s : sides) {
    if (s.before > 0 || s.after > 0) grow.push_back({s.dim, positive(s.before), positive(s.after)});
    if (s.before < 0 || s.after < 0)
      cut.push_back({s.dim, std::min<int64_t>(s.before, 0), std::min<int64_t>(s.after, 0)});
  }
  // Borders use the parts that are cut off, except where they come from the other end.
  if (mode == Mode::kCircular) {
    const Tensor rest = cropped(x, cut);
    return grow.empty() ? rest.clone() : extended(rest, grow, mode);
  }
  const Tensor whole = grow.empty() ? x : extended(x, grow, mode);
  return cut.empty() && !grow.empty() ? whole : cropped(whole, cut).clone();
}

// bordered() for exactly this number of dimensions.
Tensor padded(const char* op, size_t dims, const Tensor& x, IntArrayRef pad, Mode mode) {
  RAMET_CHECK(pad.size() == 2 * dims, op, "padding size is expected to be ", 2 * dims,
              ", but got: ", pad.size());
  return bordered(op, x, pad, mode);
}

}  // namespace

Tensor constant_pad_nd(const Tensor& x, IntArrayRef pad, const Scalar& value) {
  const Sides sides = checked_sides("constant_pad_nd", x, pad, 0);
  const bool grows = std::any_of(sides.begin(), sides.end(),
                                 [](const Side& s) { return s.before > 0 || s.after > 0; });
  if (!grows) return cropped(x, sides).clone();
  Tensor out;
  {
    const NoGradGuard off;
    const Tensor rest = cropped(x, sides);
    out = full(grown_sizes(rest, sides), value, x.options());
    inside(out, sides).copy_(rest);
  }
  if (!recording(x)) return out;
  std::vector<int64_t> back(pad.begin(), pad.end());
  for (int64_t& n : back) n = -n;
  return record(
      "ConstantPadNdBackward0", {x}, std::move(out),
      saves_nothing([back](const Node&, const Tensor& g) { return constant_pad_nd(g, back); }));
}

Tensor pad(const Tensor& x, IntArrayRef pad, const std::string& mode, std::optional<double> value) {
  if (mode == "constant") return constant_pad_nd(x, pad, value.value_or(0));
  constexpr std::pair<const char*, Mode> kModes[] = {
      {"reflect", Mode::kReflect}, {"replicate", Mode::kReplicate}, {"circular", Mode::kCircular}};
  for (const auto& [name, which] : kModes) {
    if (mode != name) continue;
    RAMET_CHECK(value.value_or(0) == 0, "pad", "Padding mode \"", mode,
                "\" doesn't take in value argument: got ", *value);
    // The policies of the functions of one mode and number of dimensions.
    const bool casts = which == Mode::kReplicate || (which == Mode::kReflect && pad.size() <= 4);
    if (RAMET_LIKELY(!casts || ramet::detail::tls.autocast == 0))
      return bordered("pad", x, pad, which);
    return cast_call<Tensor>(
        "pad", CastPolicy::kFloat32, CastPolicy::kNone,
        [](const Tensor& t, IntArrayRef sides, Mode m) { return bordered("pad", t, sides, m); }, x,
        pad, which);
  }
  fail("pad", "Unrecognised padding mode ", mode,
       ": expected constant, reflect, replicate or circular");
}

#define RAMET_PAD(function, name, D, mode) \
  Tensor function(const Tensor& x, IntArrayRef p) { return padded(#name, D, x, p, mode); }
#define RAMET_CAST_PAD(name, D, mode) static RAMET_PAD(name##_body, name, D, mode)
RAMET_CAST_PAD(reflection_pad1d, 1, Mode::kReflect)
RAMET_CAST_PAD(reflection_pad2d, 2, Mode::kReflect)
RAMET_PAD(reflection_pad3d, reflection_pad3d, 3, Mode::kReflect)
RAMET_CAST_PAD(replication_pad1d, 1, Mode::kReplicate)
RAMET_CAST_PAD(replication_pad2d, 2, Mode::kReplicate)
RAMET_CAST_PAD(replication_pad3d, 3, Mode::kReplicate)
#undef RAMET_CAST_PAD
#undef RAMET_PAD

Tensor pad_sequence(TensorList sequences, bool batch_first, double padding_value,
                    std::string_view padding_side) {
  constexpr const char* kOp = "pad_sequence";
  RAMET_CHECK(!sequences.empty(), kOp, "received an empty list of sequences");
  RAMET_CHECK(padding_side == "left" || padding_side == "right", kOp,
              "Expected padding_side to be one of left or right, but got ",
              std::string(padding_side));
  int64_t longest = 0;
  for (const Tensor& s : sequences) {
    RAMET_CHECK(s.defined() && s.dim() >= 1 && sequences[0].defined() &&
                    s.sizes().slice(1) == sequences[0].sizes().slice(1),
                kOp, "got ", describe(s), " beside ", describe(sequences[0]),
                ", expected tensors alike but for the first size");
    longest = std::max(longest, s.size(0));
  }
  const Tensor& first = sequences[0];
  const auto count = static_cast<int64_t>(sequences.size());
  std::vector<int64_t> sizes = first.sizes().vec();
  sizes[0] = batch_first ? longest : count;
  sizes.insert(sizes.begin(), batch_first ? count : longest);
  const Tensor padded = full(sizes, padding_value, first.options());
  for (int64_t i = 0; i < count; ++i) {
    const Tensor& s = sequences[static_cast<size_t>(i)];
    const int64_t begin = padding_side == "left" ? longest - s.size(0) : 0;
    padded.select(batch_first ? 0 : 1, i).narrow(0, begin, s.size(0)).copy_(s);
  }
  return padded;
}

#include "autograd/forms/definitions.inc"
#include "autograd/ops/shape/pad.inc"

}  // namespace ramet
