// Code shared by matrix products: checks, running the kernel on matrices or their transposes, out
// forms, gradients. Private to autograd/ops.
#pragma once
#include "autograd/ops/front/common_internal.h"
#include "autograd/ops/make/copy.h"

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
/// a dense last dimension and shares memory with no operand.
RAMET_API void product_into(const Tensor& out, Matrix a, Matrix b, const ProductTerms& f = {});

/// The product of two matrices, or batches, of the same rank, 2 or 3, each flipped on demand. A
/// fresh tensor without history.
RAMET_API Tensor product(const Tensor& a, bool flip_a, const Tensor& b, bool flip_b,
                         const ProductTerms& f = {});

inline Tensor empty_of(IntArrayRef sizes, const Tensor& like) {
  return Tensor(TensorBase::empty(sizes, like.scalar_type(), like.device()));
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

}  // namespace autograd
}  // namespace ramet
