#include "autograd/ops/layers/im2col.h"

#include <algorithm>
#include <array>

#include "autograd/graph/view.h"
#include "autograd/ops/front/common_internal.h"
#include "autograd/ops/front/out_internal.h"
#include "autograd/ops/make/copy.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/pointwise/arithmetic.h"
#include "autograd/ops/shape/pad.h"
#include "autograd/ops/shape/view.h"
#include "runtime/base/checked_size.h"

namespace ramet {

using namespace autograd;

namespace {

using Pair = std::array<int64_t, 2>;
using Int128 = __int128;

// "(2, 3)"
std::string text(const Pair& p) { return detail::join("(", p[0], ", ", p[1], ")"); }

Pair pair(const char* op, const char* name, IntArrayRef list) {
  RAMET_CHECK(list.size() == 2, op, "It is expected ", name, " equals to 2, but got size ",
              list.size());
  return {list[0], list[1]};
}
void check_least(const char* op, const char* name, const char* number, const Pair& p,
                 int64_t least) {
  RAMET_CHECK(
      p[0] >= least && p[1] >= least, op, name,
      least ? " should be greater than zero, but got " : " should be non-negative, but got ",
      number, "_height: ", p[0], " ", number, "_width: ", p[1]);
}

// Blocks of an image of n x c planes.
struct Blocks {
  int64_t n, c;
  Pair image, kernel, dilation, padding, stride, count;
  bool batched;

  // How many elements of the padded image a block spans in dimension d.
  Int128 reach(size_t d) const { return Int128{dilation[d]} * (kernel[d] - 1) + 1; }
  Int128 blocks(size_t d) const {
    const Int128 room = Int128{image[d]} + Int128{padding[d]} * 2 - reach(d);
    return room < 0 ? -((-room + stride[d] - 1) / stride[d]) + 1 : room / stride[d] + 1;
  }
  // The blocks for which element `tap` is in the image: the first, their number, and the tap's
  // position in the first.
  struct Range {
    int64_t from, count, at;
  };
  Range range(size_t d, int64_t tap) const {
    const Int128 shift = Int128{dilation[d]} * tap - padding[d];
    const Int128 from = shift < 0 ? (-shift + stride[d] - 1) / stride[d] : 0,
                 last = shift < image[d] ? (image[d] - 1 - shift) / stride[d] : -1,
                 end = std::min<Int128>(last + 1, count[d]);
    if (end <= from) return {0, 0, 0};
    return {static_cast<int64_t>(from), static_cast<int64_t>(end - from),
            static_cast<int64_t>(from * stride[d] + shift)};
  }
  bool padded() const { return padding[0] > 0 || padding[1] > 0; }
  bool overlap() const { return stride[0] < reach(0) || stride[1] < reach(1); }
};

Blocks checked(const char* op, IntArrayRef kernel, IntArrayRef dilation, IntArrayRef padding,
               IntArrayRef stride) {
  Blocks b{};
  b.kernel = pair(op, "kernel_size", kernel), b.dilation = pair(op, "dilation", dilation);
  b.padding = pair(op, "padding", padding), b.stride = pair(op, "stride", stride);
  check_least(op, "kernel size", "kernel", b.kernel, 1);
  check_least(op, "dilation", "dilation", b.dilation, 1);
  check_least(op, "padding", "pad", b.padding, 0);
  check_least(op, "stride", "stride", b.stride, 1);
  return b;
}
void check_type(const char* op, const Tensor& x) {
  if (!is_floating(x.scalar_type()) && x.scalar_type() != kBool)
    throw NotImplementedError(detail::join("[", op, "] not implemented for '",
                                           name_of(x.scalar_type()), "': got ", describe(x)));
}

// The stride between positions that are `apart` elements of a dimension from each other. For a
// single position it is not read, and could exceed an int64.
int64_t step(int64_t places, int64_t apart, int64_t stride) {
  return places > 1 ? apart * stride : 0;
}
// The blocks of a dense image that has no padding: [n, c, kh, kw, rows, columns].
Tensor blocks_of(const Tensor& x, const Blocks& b, int64_t h, int64_t w) {
  return make_view(
      x, {b.n, b.c, b.kernel[0], b.kernel[1], b.count[0], b.count[1]},
      {b.c * h * w, h * w, step(b.kernel[0], b.dilation[0], w), step(b.kernel[1], b.dilation[1], 1),
       step(b.count[0], b.stride[0], w), step(b.count[1], b.stride[1], 1)},
      0);
}
std::vector<int64_t> shaped(const Blocks& b, std::vector<int64_t> sizes) {
  if (b.batched) sizes.insert(sizes.begin(), b.n);
  return sizes;
}

Tensor columns(const Tensor& x, const Blocks& b);

// The whole image, in which the blocks are added up. Recorded as one operation.
Tensor image(const Tensor& cols, const Blocks& b) {
  const ScalarType t = cols.scalar_type(), wide = is_narrow(t) ? kFloat : t;
  Tensor out;
  {
    const NoGradGuard off;
    const int64_t h = b.image[0], w = b.image[1];
    const Tensor from = cols.shallow().contiguous().to(wide).view(
        {b.n, b.c, b.kernel[0], b.kernel[1], b.count[0], b.count[1]});
    out = zeros({b.n, b.c, h, w}, TensorOptions(wide).device(cols.device()));
    if (out.numel() > 0 && !b.padded() && !b.overlap()) {
      blocks_of(out, b, h, w).copy_(from);
    } else if (out.numel() > 0) {
      for (int64_t i = 0; i < b.kernel[0]; ++i)
        for (int64_t j = 0; j < b.kernel[1]; ++j) {
          const Blocks::Range y = b.range(0, i), x = b.range(1, j);
          if (y.count == 0 || x.count == 0) continue;
          make_view(
              out, {b.n, b.c, y.count, x.count},
              {b.c * h * w, h * w, step(y.count, b.stride[0], w), step(x.count, b.stride[1], 1)},
              y.at * w + x.at)
              .add_(from.select(2, i)
                        .select(2, j)
                        .narrow(2, y.from, y.count)
                        .narrow(3, x.from, x.count));
        }
    }
    out = own(out.to(t).view(shaped(b, {b.c, h, w})));
  }
  if (!recording(cols)) return out;
  return record("Col2ImBackward0", {cols}, std::move(out),
                [b](const Node&, const Tensor& g) { return columns(g, b); });
}
Tensor columns(const Tensor& x, const Blocks& b) {
  const auto sizes = shaped(b, {b.c * b.kernel[0] * b.kernel[1], b.count[0] * b.count[1]});
  Tensor out;
  if (b.n == 0) {
    out = Tensor(TensorBase::empty(sizes, x.scalar_type(), x.device()));
  } else {
    const NoGradGuard off;
    Tensor whole = x.shallow();
    Pair extent = b.image;
    if (b.padded()) {
      // Pad to the extent that blocks cover, and no more.
      std::vector<int64_t> pad;
      for (const size_t d : {1, 0}) {
        // A block may end before the image begins.
        extent[d] =
            std::max(b.padding[d],
                     static_cast<int64_t>((b.count[d] - 1) * Int128{b.stride[d]} + b.reach(d)));
        pad.insert(pad.end(), {b.padding[d], extent[d] - b.image[d] - b.padding[d]});
      }
      whole = constant_pad_nd(whole, pad);
    }
    out = own(blocks_of(whole.contiguous(), b, extent[0], extent[1])
                  .clone(MemoryFormat::Contiguous)
                  .view(sizes));
  }
  if (!recording(x)) return out;
  return record("Im2ColBackward0", {x}, std::move(out),
                [b](const Node&, const Tensor& g) { return image(g, b); });
}

}  // namespace

Tensor im2col(const Tensor& x, IntArrayRef kernel, IntArrayRef dilation, IntArrayRef padding,
              IntArrayRef stride) {
  const char* op = "im2col";
  check_defined(op, x);
  Blocks b = checked(op, kernel, dilation, padding, stride);
  b.batched = x.dim() == 4;
  RAMET_CHECK((x.dim() == 3 || x.dim() == 4) && x.size(-3) > 0 && x.size(-2) > 0 && x.size(-1) > 0,
              op, "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other ",
              "non-zero dimensions for input, but got: ", x.sizes());
  check_type(op, x);
  b.n = b.batched ? x.size(0) : 1, b.c = x.size(-3), b.image = {x.size(-2), x.size(-1)};
  const Int128 rows = b.blocks(0), across = b.blocks(1);
  RAMET_CHECK(rows >= 1 && across >= 1 && rows <= INT64_MAX && across <= INT64_MAX, op,
              "Given input with spatial size ", text(b.image), ", kernel_size=", text(b.kernel),
              ", dilation=", text(b.dilation), ", padding=", text(b.padding),
              ", calculated shape of the array of sliding blocks as (", static_cast<int64_t>(rows),
              ", ", static_cast<int64_t>(across), "), but its components must be at least one.");
  b.count = {static_cast<int64_t>(rows), static_cast<int64_t>(across)};
  checked_mul(op, "blocks", b.count[0], b.count[1]);
  checked_mul(op, "rows", b.c, checked_mul(op, "kernel_size", b.kernel[0], b.kernel[1]));
  for (const size_t d : {0, 1})
    checked_add(op, "padding", checked_mul(op, "padding", b.padding[d], 2), b.image[d]);
  return columns(x, b);
}

Tensor col2im(const Tensor& x, IntArrayRef output_size, IntArrayRef kernel, IntArrayRef dilation,
              IntArrayRef padding, IntArrayRef stride) {
  const char* op = "col2im";
  check_defined(op, x);
  const Pair size = pair(op, "output_size", output_size);
  Blocks b = checked(op, kernel, dilation, padding, stride);
  b.image = size;
  b.batched = x.dim() == 3;
  RAMET_CHECK((x.dim() == 2 || x.dim() == 3) && x.size(-2) > 0 && x.size(-1) > 0, op,
              "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and ",
              "non-zero dimensions for input, but got: ", x.sizes());
  check_type(op, x);
  const int64_t per = checked_mul(op, "kernel_size", b.kernel[0], b.kernel[1]), rows = x.size(-2);
  RAMET_CHECK(rows % per == 0, op, "Expected size of input's dimension 1 to be divisible by the ",
              "product of kernel_size, but got input.size(1)=", rows,
              " and kernel_size=", text(b.kernel), ".");
  const Int128 down = b.blocks(0), across = b.blocks(1);
  RAMET_CHECK(size[0] >= 1 && size[1] >= 1 && down >= 1 && across >= 1 && down <= x.size(-1) &&
                  across * down == x.size(-1),
              op, "Given output_size=", text(size), ", kernel_size=", text(b.kernel),
              ", dilation=", text(b.dilation), ", padding=", text(b.padding),
              ", stride=", text(b.stride),
              ", expected size of input's dimension 2 to match the calculated number of sliding ",
              "blocks ", static_cast<int64_t>(down), " * ", static_cast<int64_t>(across), " = ",
              static_cast<int64_t>(down * across), ", but got input.size(2)=", x.size(-1), ".");
  b.n = b.batched ? x.size(0) : 1, b.c = rows / per;
  b.count = {static_cast<int64_t>(down), static_cast<int64_t>(across)};
  return image(x, b);
}

#include "autograd/forms/definitions.inc"
#include "autograd/ops/layers/im2col.inc"

}  // namespace ramet
