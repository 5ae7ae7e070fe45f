#include "autograd/ops/matrix/addmm.h"

#include "autograd/ops/front/matmul_internal.h"
#include "autograd/ops/front/out_internal.h"
#include "autograd/ops/pointwise/arithmetic.h"
#include "autograd/ops/shape/view.h"

namespace ramet {

using namespace autograd;

namespace {

void check_number(const char* op, const char* name, const Scalar& v, ScalarType dtype) {
  RAMET_CHECK(!is_integral(dtype) || !v.isFloatingPoint(), op,
              "For integral input tensors, argument ", name,
              " must not be a floating point number: got ", v);
}

void check_self(const char* op, const Tensor& self, const Tensor& a, IntArrayRef sizes,
                const Scalar& beta, const Scalar& alpha) {
  check_factors(op, self, a);
  check_number(op, "beta", beta, a.scalar_type());
  check_number(op, "alpha", alpha, a.scalar_type());
  RAMET_CHECK(broadcast_sizes(op, self.sizes(), sizes) == sizes, op, "self: got ", describe(self),
              ", expected a shape that expands to ", sizes);
}

// out = beta * self + alpha * a b; `out` is fresh or prepared.
void add_product_into(const Tensor& out, const Tensor& self, const Tensor& a, const Tensor& b,
                      const Scalar& beta, const Scalar& alpha) {
  const bool row = self.dim() <= 2 && self.numel() == out.size(-1) && self.dim() > 0 &&
                   self.size(-1) == out.size(-1);
  if (row && beta.equal(1) && self.raw_contiguous())
    return product_into(out, matrix_of(a), matrix_of(b), {alpha, 0, &self});
  if (!beta.equal(0)) copy_values(out, self.expand(out.sizes()));
  product_into(out, matrix_of(a), matrix_of(b), {alpha, beta, nullptr});
}

Tensor add_product(const char* op, const char* node, const Tensor& self, const Tensor& a,
                   const Tensor& b, IntArrayRef sizes, const Scalar& beta, const Scalar& alpha) {
  check_self(op, self, a, sizes, beta, alpha);
  Tensor out = empty_of(sizes, a);
  {
    const NoGradGuard off;
    add_product_into(out, self, a, b, beta, alpha);
  }
  if (!recording(self, a, b)) return out;
  return record(
      node, {self, a, b}, std::move(out),
      [meta = Meta(self), x = save_if(wants_grad(b), a), y = save_if(wants_grad(a), b), beta,
       alpha](const Node& self, const Tensor& g) {
        return std::array<Tensor, 3>{
            self.needs(0) ? meta.reduce(beta.equal(1) ? g : g * beta) : Tensor(),
            self.needs(1) ? product_gradient(self, 1, g, false, y.get(self), true, alpha)
                          : Tensor(),
            self.needs(2) ? product_gradient(self, 2, x.get(self), true, g, false, alpha)
                          : Tensor()};
      },
      [&](Arguments& to) { to("beta", beta), to("alpha", alpha); });
}

}  // namespace

static Tensor addmm_body(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta,
                         const Scalar& alpha) {
  check_mm("addmm", a, b);
  return add_product("addmm", "AddmmBackward0", self, a, b, {a.size(0), b.size(1)}, beta, alpha);
}
static Tensor baddbmm_body(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta,
                           const Scalar& alpha) {
  check_bmm("baddbmm", a, b);
  return add_product("baddbmm", "BaddbmmBackward0", self, a, b, {a.size(0), a.size(1), b.size(2)},
                     beta, alpha);
}
Tensor& addmm_out(Tensor& out, const Tensor& self, const Tensor& a, const Tensor& b,
                  const Scalar& beta, const Scalar& alpha) {
  check_mm("addmm_out", a, b);
  const int64_t sizes[] = {a.size(0), b.size(1)};
  check_self("addmm_out", self, a, sizes, beta, alpha);
  const bool elsewhere =
      prepare_product("addmm_out", out, sizes, a, recording(self, a, b), {&self, &a, &b});
  return product_out("addmm_out", out, elsewhere,
                     [&](const Tensor& o) { add_product_into(o, self, a, b, beta, alpha); });
}
Tensor& baddbmm_out(Tensor& out, const Tensor& self, const Tensor& a, const Tensor& b,
                    const Scalar& beta, const Scalar& alpha) {
  check_bmm("baddbmm_out", a, b);
  const int64_t sizes[] = {a.size(0), a.size(1), b.size(2)};
  check_self("baddbmm_out", self, a, sizes, beta, alpha);
  const bool elsewhere =
      prepare_product("baddbmm_out", out, sizes, a, recording(self, a, b), {&self, &a, &b});
  return product_out("baddbmm_out", out, elsewhere,
                     [&](const Tensor& o) { add_product_into(o, self, a, b, beta, alpha); });
}

// ---- methods ------------------------------------------------------------------------------------

Tensor& Tensor::addmm_(const Tensor& a, const Tensor& b, const Scalar& beta,
                       const Scalar& alpha) const {
  check_mm("addmm_", a, b);
  RAMET_CHECK(dim() == 2 && size(0) == a.size(0) && size(1) == b.size(1), "addmm_", "self: got ",
              describe(*this), ", expected the product's shape [", a.size(0), ", ", b.size(1), "]");
  check_inplace("addmm_", *this, a, b);
  const bool history = recording(*this, a, b);
  Saved x = save_if(history && wants_grad(b), a), y = save_if(history && wants_grad(a), b);
  {
    const NoGradGuard off;
    copy_values(*this, addmm_body(*this, a, b, beta, alpha));
  }
  wrote("addmm_", *this);
  if (history)
    record_inplace(
        "AddmmBackward0", {*this, a, b}, *this,
        [x = std::move(x), y = std::move(y), beta, alpha](const Node& self, const Tensor& g) {
          return std::array<Tensor, 3>{
              self.needs(0) ? g * beta : Tensor(),
              self.needs(1) ? product_gradient(self, 1, g, false, y.get(self), true, alpha)
                            : Tensor(),
              self.needs(2) ? product_gradient(self, 2, x.get(self), true, g, false, alpha)
                            : Tensor()};
        },
        [&](Arguments& to) { to("beta", beta), to("alpha", alpha); });
  return as_mutable(*this);
}

#include "autograd/forms/definitions.inc"
#include "autograd/ops/matrix/addmm.inc"

}  // namespace ramet
