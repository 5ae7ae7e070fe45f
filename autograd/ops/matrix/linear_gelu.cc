#include "autograd/ops/matrix/linear_gelu.h"

#include "autograd/ops/front/matmul_internal.h"
#include "autograd/ops/matrix/matmul.h"
#include "autograd/ops/pointwise/activation.h"
#include "autograd/ops/reduce/reduce.h"

using ramet::detail::tls;

namespace ramet {

using namespace autograd;

namespace {

constexpr const char* kOp = "linear_gelu_linear";

void check_layer(const Tensor& x, const char* of, int64_t in, const Tensor& w, const Tensor& b) {
  check_factors(kOp, x, w);
  check_factors(kOp, x, b);
  RAMET_CHECK(w.dim() == 2 && w.size(1) == in && b.dim() == 1 && b.size(0) == w.size(0), kOp,
              "shapes of the ", of, " layer: got weight ", describe(w), " and bias ", describe(b),
              ", expected [out, ", in, "] and [out]");
}

// What a backward pass needs of the operands and the values between the products.
struct SavedMlp {
  Saved x, w1, b1, w2, z, h;
};

// The gradients as recorded operations, so that they have derivatives.
std::array<Tensor, 5> recorded_gradients(const Node& self, const SavedMlp& s, const Tensor& g) {
  const Tensor x = s.x.get(self), w1 = s.w1.get(self), w2 = s.w2.get(self);
  const Tensor z = linear(x, w1, s.b1.get(self));
  Tensor dz;
  if (self.needs(0) || self.needs(1) || self.needs(2)) dz = gelu_backward(g.mm(w2), z, "tanh");
  return {self.needs(0) ? dz.mm(w1) : Tensor(), self.needs(1) ? dz.t().mm(x) : Tensor(),
          self.needs(2) ? dz.sum(int64_t{0}) : Tensor(),
          self.needs(3) ? g.t().mm(gelu(z, "tanh")) : Tensor(),
          self.needs(4) ? g.sum(int64_t{0}) : Tensor()};
}

std::array<Tensor, 5> gradients(const Node& self, const SavedMlp& s, const Tensor& g) {
  if (tls.grad_mode) return recorded_gradients(self, s, g);
  std::array<Tensor, 5> d;
  auto [dw2, db2] =
      weight_and_bias_gradients(self, 3, g, self.needs(3) ? s.h.get(self) : Tensor());
  d[3] = std::move(dw2), d[4] = std::move(db2);
  if (!self.needs(0) && !self.needs(1) && !self.needs(2)) return d;
  const Tensor z = s.z.get(self), dz = empty_of(z.sizes(), z);
  if (self.needs(2)) {
    const int64_t hidden[] = {z.size(1)};
    d[2] = self.output_for(2, hidden, g.scalar_type(), g.device());
  }
  fused_product_into(kernels::product_gelu_backward, dz, matrix_of(g), matrix_of(s.w2.get(self)),
                     {{}, z, d[2]});
  if (self.needs(0)) d[0] = product_gradient(self, 0, dz, false, s.w1.get(self), false);
  if (self.needs(1)) d[1] = product_gradient(self, 1, dz, true, s.x.get(self), false);
  return d;
}

}  // namespace

static Tensor linear_gelu_linear_body(const Tensor& x, const Tensor& w1, const Tensor& b1,
                                      const Tensor& w2, const Tensor& b2) {
  check_defined(kOp, x);
  RAMET_CHECK(is_floating(x.scalar_type()), kOp, "dtype: got ", describe(x),
              ", expected a floating one");
  RAMET_CHECK(x.dim() >= 1, kOp, "input: got ", describe(x), ", expected [..., in]");
  check_layer(x, "first", x.size(-1), w1, b1);
  check_layer(x, "second", w1.size(0), w2, b2);
  if (x.dim() != 2) {
    std::vector<int64_t> sizes = x.sizes().vec();
    sizes.back() = w2.size(0);
    const int64_t rows = product_of(x.sizes().slice(0, sizes.size() - 1));
    return shaped(linear_gelu_linear_body(x.reshape({rows, x.size(-1)}), w1, b1, w2, b2), sizes);
  }
  const int64_t sizes[] = {x.size(0), w1.size(0)};
  const Tensor z = empty_of(sizes, x), h = empty_of(sizes, x), bias = b2.contiguous();
  fused_product_into(kernels::product_gelu, h, matrix_of(x), matrix_of(w1, true),
                     {b1.contiguous(), z, {}});
  Tensor out = product(h, false, w2, true, {1, 0, &bias});
  if (!recording(x, w1, b1, w2, b2)) return out;
  return record(
      "LinearGeluLinearBackward0", {x, w1, b1, w2, b2}, std::move(out),
      [s = SavedMlp{save(x), save(w1), save(b1), save(w2), save(z), save_if(wants_grad(w2), h)}](
          const Node& self, const Tensor& g) { return gradients(self, s, g); });
}

#include "autograd/forms/definitions.inc"
#include "autograd/ops/matrix/linear_gelu.inc"

}  // namespace ramet
