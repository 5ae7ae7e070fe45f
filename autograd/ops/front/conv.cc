#include "autograd/ops/front/conv_internal.h"

#include <algorithm>

namespace ramet {
namespace autograd {

namespace {

using Int128 = __int128;  // products of two int64

Int128 floor_div(Int128 a, Int128 b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }
Int128 ceil_div(Int128 a, Int128 b) { return -floor_div(-a, b); }

struct Range {
  Int128 first, last;
  bool empty() const { return first > last; }
  bool single() const { return first == last; }
};
Range both(const Range& a, const Range& b) {
  return {std::max(a.first, b.first), std::min(a.last, b.last)};
}

Int128 seen(const ConvAxis& a, Int128 output, Int128 tap) {
  return output * a.stride - a.pad + tap * a.dilation;
}
// The outputs that read an input through some of the taps, as a range from the first to the last.
// taps_of() is the same for taps of some outputs.
Range outputs_of(const ConvAxis& a, const Range& taps) {
  return {ceil_div(-seen(a, 0, taps.last), a.stride),
          floor_div(a.in - 1 - seen(a, 0, taps.first), a.stride)};
}
Range taps_of(const ConvAxis& a, const Range& outputs) {
  return {ceil_div(-seen(a, outputs.last, 0), a.dilation),
          floor_div(a.in - 1 - seen(a, outputs.first, 0), a.dilation)};
}

void add(const ConvAxis& a, const Range& outputs, const Range& taps, std::vector<ConvPart>& to) {
  if (outputs.empty() || taps.empty()) return;
  const Int128 first = seen(a, outputs.first, taps.first), last = seen(a, outputs.last, taps.last),
               begin = std::max<Int128>(first, 0), end = std::min<Int128>(last, a.in - 1);
  const auto narrow = [](Int128 x) { return static_cast<int64_t>(x); };
  to.push_back(ConvPart{{narrow(end - begin + 1), narrow(outputs.last - outputs.first + 1),
                         narrow(taps.last - taps.first + 1), outputs.single() ? 1 : a.stride,
                         narrow(begin - first), taps.single() ? 1 : a.dilation},
                        narrow(begin),
                        narrow(outputs.first),
                        narrow(taps.first)});
}

std::vector<ConvPart> parts_of(const ConvAxis& a) {
  std::vector<ConvPart> parts;
  Range outputs{0, a.out - 1}, taps = both({0, a.taps - 1}, taps_of(a, outputs));
  if (taps.empty()) return parts;
  outputs = both(outputs, outputs_of(a, taps));
  const int64_t far = std::max(a.in, kConvNear);
  if (a.dilation > far) {
    for (Int128 r = taps.first; r <= taps.last; ++r)
      add(a, both(outputs, outputs_of(a, {r, r})), {r, r}, parts);
  } else if (a.stride > far) {
    for (Int128 i = outputs.first; i <= outputs.last; ++i)
      add(a, {i, i}, both(taps, taps_of(a, {i, i})), parts);
  } else {
    add(a, outputs, taps, parts);
  }
  return parts;
}

Tensor window(const Tensor& t, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  const bool whole = t.size(2) == rows && t.size(3) == columns;
  return whole ? t : t.narrow(2, row, rows).narrow(3, column, columns);
}

}  // namespace

kernels::Conv2dShape ConvParts::shape(const kernels::Conv2dShape& s) const {
  const ConvAxis &r = row.axis, &c = column.axis;
  return {s.n,    s.ci,     r.in,     c.in,  s.co,  r.out,      c.out,      r.taps,
          c.taps, r.stride, c.stride, r.pad, c.pad, r.dilation, c.dilation, s.groups};
}
Tensor ConvParts::of_input(const Tensor& t) const {
  return window(t, row.input, row.axis.in, column.input, column.axis.in);
}
Tensor ConvParts::of_output(const Tensor& t) const {
  return window(t, row.output, row.axis.out, column.output, column.axis.out);
}
Tensor ConvParts::of_weight(const Tensor& t) const {
  return window(t, row.tap, row.axis.taps, column.tap, column.axis.taps);
}

std::vector<ConvParts> conv_parts(const kernels::Conv2dShape& s) {
  std::vector<ConvParts> parts;
  if (s.n == 0) return parts;
  const auto columns = parts_of({s.w, s.ow, s.kw, s.sw, s.pw, s.dw});
  for (const ConvPart& row : parts_of({s.h, s.oh, s.kh, s.sh, s.ph, s.dh}))
    for (const ConvPart& column : columns) parts.push_back({row, column});
  return parts;
}

}  // namespace autograd
}  // namespace ramet
