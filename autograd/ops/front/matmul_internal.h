// Code shared by matrix products: checks, running the kernel on matrices or their transposes, out
// forms, gradients. Private to autograd/ops.
#pragma once
#include "autograd/graph/view.h"
#include "autograd/ops/front/common_internal.h"
#include "autograd/ops/make/copy.h"
#include "autograd/ops/shape/view.h"
#include "kernels/matrix/linear_gelu.h"

namespace ramet {
namespace autograd {

// ---- checks -------------------------------------------------------------------------------------

/// An Error unless both are defined, on one device, and of one dtype that is not bool.
RAMET_API void check_factors(const char* op, const Tensor& a, const Tensor& b);
/// The same, and both must be matrices [m, k] and [k, n], or batches of them.
RAMET_API void check_mm(const char* op, const Tensor& a, const Tensor& b);
RAMET_API void check_bmm(const char* op, const Tensor& a, const Tensor& b);

// ---- running the kernel -------------------------------------------------------------------------

/// The last two dimensions of a tensor (and the first of three), or their transpose.
struct Matrix {
  const Tensor* t;
  int64_t batch, rows, cols, batch_stride, row, col;
  bool flipped;
};
RAMET_API Matrix matrix_of(const Tensor& t, bool flip = false);

struct ProductTerms {
  Scalar alpha = 1, beta = 0;
  const Tensor* bias = nullptr;  // contiguous, one value for each column
};

/// out = alpha * a b + beta * out + bias. Adds no history and raises no version. REQUIRES: out has
/// a dense last dimension and shares memory with no operand. Its dtype is that of a and b, or
/// float32 where they have 16 bits and there is no bias.
RAMET_API void product_into(const Tensor& out, Matrix a, Matrix b, const ProductTerms& f = {});

/// Operands of the kernels of kernels/matrix/linear_gelu.h; undefined ones are not there.
struct FusedTerms {
  Tensor bias, other, sums;
};
/// One of those kernels for matrices. Adds no history and raises no version. REQUIRES: `out`,
/// `other` and `sums` are dense, and share memory with no operand.
RAMET_API void fused_product_into(const kernels::Kernel<kernels::LinearGeluArgs>& kernel,
                                  const Tensor& out, Matrix a, Matrix b, const FusedTerms& f);

/// The product of two matrices, or batches, of the same rank, 2 or 3, each flipped on demand. A
/// fresh tensor without history.
RAMET_API Tensor product(const Tensor& a, bool flip_a, const Tensor& b, bool flip_b,
                         const ProductTerms& f = {});

inline Tensor empty_of(IntArrayRef sizes, const Tensor& like) {
  return Tensor(TensorBase::empty(sizes, like.scalar_type(), like.device()));
}

// ---- shapes -------------------------------------------------------------------------------------

inline int64_t product_of(IntArrayRef sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return n;
}
/// view(product). In no_grad mode the result is no view, so that its parts may be written later.
template <class View> Tensor viewed(Tensor product, const View& view) {
  Tensor out = view(product);
  if (GradMode::is_enabled()) return out;
  product = Tensor();  // only the view holds it now, and becomes its own tensor
  leave_lonely_base(out);
  return own(std::move(out));
}
inline Tensor shaped(Tensor product, IntArrayRef sizes) {
  return viewed(std::move(product), [&](const Tensor& x) { return x.reshape(sizes); });
}

// ---- out forms ----------------------------------------------------------------------------------

/// Prepares an out form: resizes `out`, and checks that it has the product's dtype. Returns true
/// where the result must be computed in another tensor first (no dense rows, or memory shared with
/// an operand).
RAMET_API bool prepare_product(const char* op, const Tensor& out, IntArrayRef sizes,
                               const Tensor& like, bool inputs_record,
                               std::initializer_list<const Tensor*> operands);

/// Calls run(out), or run(a fresh tensor) and copies the result.
template <class F> Tensor& product_out(const char* op, Tensor& out, bool elsewhere, const F& run) {
  if (elsewhere) {
    const Tensor fresh = empty_of(out.sizes(), out);
    run(fresh);
    copy_values(out, fresh);
  } else {
    run(out);
  }
  wrote(op, out);
  return out;
}

// ---- gradients ----------------------------------------------------------------------------------

/// Gradient i of `self` as alpha times a product. It is recorded under create_graph, else computed
/// directly into its destination.
RAMET_API Tensor product_gradient(const Node& self, int i, const Tensor& a, bool flip_a,
                                  const Tensor& b, bool flip_b, const Scalar& alpha = 1);

/// Gradient i of a bias [n]: the sum of the rows of g.
RAMET_API Tensor bias_gradient(const Node& self, int i, const Tensor& g);

/// Gradient i, of a weight [n, k], is g^T x. Gradient i + 1, of its bias, is the sum of the rows of
/// g. Only those that are wanted. A GPU has both in one product of 16-bit matrices.
RAMET_API std::array<Tensor, 2> weight_and_bias_gradients(const Node& self, int i, const Tensor& g,
                                                          const Tensor& x);

}  // namespace autograd
}  // namespace ramet
