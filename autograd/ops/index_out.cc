// Out forms of reading and writing at named positions.
#include "autograd/ops/front/out_front.h"
#include "autograd/ops/index.h"

namespace ramet {

using namespace autograd;

namespace {
// `call` gives a fresh result of self's dtype (int64 for positions).
template <class F, class... Others>
Tensor& same_type_out(const char* op, Tensor& out, const F& call, const Tensor& self,
                      const Others&... others) {
  check_defined(op, self);
  (check_defined(op, others), ...);
  return computed_out(op, out, operands_record(self, others...), OutType::kSame, call);
}
}  // namespace

Tensor& gather_out(Tensor& out, const Tensor& self, int64_t dim, const Tensor& index,
                   bool sparse_grad) {
  return same_type_out(
      "gather_out", out, [&] { return gather(self, dim, index, sparse_grad); }, self);
}
Tensor& scatter_out(Tensor& out, const Tensor& self, int64_t dim, const Tensor& index,
                    const Tensor& src) {
  return same_type_out(
      "scatter_out", out, [&] { return scatter(self, dim, index, src); }, self, src);
}
Tensor& scatter_out(Tensor& out, const Tensor& self, int64_t dim, const Tensor& index,
                    const Scalar& value) {
  return same_type_out(
      "scatter_out", out, [&] { return scatter(self, dim, index, value); }, self);
}
Tensor& scatter_add_out(Tensor& out, const Tensor& self, int64_t dim, const Tensor& index,
                        const Tensor& src) {
  return same_type_out(
      "scatter_add_out", out, [&] { return scatter_add(self, dim, index, src); }, self, src);
}
Tensor& index_select_out(Tensor& out, const Tensor& self, int64_t dim, const Tensor& index) {
  return same_type_out(
      "index_select_out", out, [&] { return index_select(self, dim, index); }, self);
}
Tensor& index_add_out(Tensor& out, const Tensor& self, int64_t dim, const Tensor& index,
                      const Tensor& source, const Scalar& alpha) {
  return same_type_out(
      "index_add_out", out, [&] { return index_add(self, dim, index, source, alpha); }, self,
      source);
}
Tensor& take_out(Tensor& out, const Tensor& self, const Tensor& index) {
  return same_type_out(
      "take_out", out, [&] { return take(self, index); }, self);
}
Tensor& masked_fill_out(Tensor& out, const Tensor& self, const Tensor& mask, const Scalar& value) {
  return same_type_out(
      "masked_fill_out", out, [&] { return masked_fill(self, mask, value); }, self);
}
Tensor& masked_fill_out(Tensor& out, const Tensor& self, const Tensor& mask, const Tensor& value) {
  return same_type_out(
      "masked_fill_out", out, [&] { return masked_fill(self, mask, value); }, self, value);
}
Tensor& masked_select_out(Tensor& out, const Tensor& self, const Tensor& mask) {
  return same_type_out(
      "masked_select_out", out, [&] { return masked_select(self, mask); }, self);
}
Tensor& nonzero_out(Tensor& out, const Tensor& self) {
  check_defined("nonzero_out", self);
  return computed_out("nonzero_out", out, false, OutType::kSame, [&] { return nonzero(self); });
}

}  // namespace ramet
