// Conditions under which a draw may show one of the deliberate differences of known.h.
#pragma once
#include "tools/compare/draw.h"

namespace {

inline bool same_sizes(const Tensor& a, const Tensor& b) {
  return a.sizes().vec() == b.sizes().vec();
}
/// A number below 0 combined with a tensor of uint8.
inline void beside_uint8(Draw& d, const Tensor& x, const Scalar& s) {
  if (x.scalar_type() == api::kByte && s.toDouble() < 0) d.known("negative uint8");
}
/// A tensor of one number that may be below 0, combined with one of uint8 that gives the result's
/// dtype.
inline void beside_uint8(Draw& d, const Tensor& a, const Tensor& b) {
  const auto one = [](const Tensor& x, const Tensor& number) {
    return x.scalar_type() == api::kByte && x.dim() > 0 && number.dim() == 0 &&
           !floating(number.scalar_type()) && number.scalar_type() != api::kByte &&
           number.scalar_type() != api::kBool;
  };
  if (one(a, b) || one(b, a)) d.known("negative uint8");
}
/// Strides that LibTorch takes for channels last although, at extents of 1, they are others.
inline bool odd_channels_last(const Tensor& x) {
  if (x.dim() != 4 || x.numel() == 0) return false;
  const int64_t n = x.size(1) * x.size(2) * x.size(3);
  const int64_t want[] = {n, 1, x.size(1) * x.size(3), x.size(1)};
  bool fits = true, same = true;
  for (int64_t k = 0; k < 4; ++k) {
    fits = fits && (x.size(k) == 1 || x.stride(k) == want[k]);
    same = same && x.stride(k) == want[k];
  }
  return fits && !same;
}
/// An image or its cotangent may have such strides: it has an extent of 1 that they could skip.
inline bool may_be_odd(const Tensor& x) {
  if (x.dim() != 4) return false;
  return x.size(0) == 1 || x.size(2) == 1 || x.size(3) == 1;
}
/// What the gradients of a normalisation depend on in LibTorch in addition to its formula.
inline void normalises(Draw& d, const Tensor& x, const Opt<Tensor>& weight,
                       const Opt<Tensor>& bias) {
  if (weight && !weight->is_contiguous()) d.known("strided affine");
  if (may_be_odd(x)) d.known("odd channels last");
  if (bias && bias->requires_grad() && d.inputs().size() == 1) d.known("bias alone");
}
/// A pair of one loss: see known.h.
inline void compares(Draw& d, const Tensor& x, const Tensor& y, int64_t reduction) {
  if (reduction == 1 && !same_sizes(x, y)) d.known("mean of broadcast");
}
/// Is there memory between the elements that no element uses?
inline bool has_gaps(const Tensor& x) {
  int64_t room = 1;
  for (int64_t k = 0; k < x.dim(); ++k) room += (x.size(k) - 1) * x.stride(k);
  return x.numel() > 0 && room != x.numel();
}
/// How strongly rounding errors determine the numbers of a normalisation. Where the numbers of one
/// group (all dimensions but `rows`) lie close together, they are divided by their small distance.
inline double alike_slack(const Tensor& x, const Sizes& rows) {
  if (!floating(x.scalar_type()) || x.numel() == 0) return 1;
  Sizes dims;
  for (int64_t k = 0; k < x.dim(); ++k)
    if (std::find(rows.begin(), rows.end(), k) == rows.end()) dims.push_back(k);
  if (dims.empty()) return 1;
  const Tensor var = api::var(x.detach().to(api::kDouble), dims, false);
  // To the second derivative the distance enters in its third power; eps is 1e-5 or more.
  return std::max(1., std::pow(var.min().item<double>() + 1e-5, -1.5) / 100);
}
/// Does a number lie so near an inner edge of equal bins that rounding decides on the side?
inline bool beside_edge(const Tensor& x, double low, double high, int64_t bins) {
  if (x.numel() == 0 || bins < 1) return false;
  const Tensor y = x.detach().to(api::kDouble).reshape({-1});
  if (low == high) low = y.min().item<double>(), high = y.max().item<double>();
  if (low == high) low -= .5, high += .5;
  const Tensor at = y.sub(low).mul(static_cast<double>(bins)).div(high - low);
  const double eps = x.scalar_type() == api::kDouble ? 1e-13
                     : bytes_of(x.scalar_type()) > 2 ? 1e-5
                                                     : 8. / 128;
  return at.sub(at.round()).abs().lt(eps * static_cast<double>(bins)).any().item<bool>();
}
inline bool has_nan(const Tensor& x) {
  return floating(x.scalar_type()) && api::isnan(x.detach()).any().item<bool>();
}

}  // namespace
