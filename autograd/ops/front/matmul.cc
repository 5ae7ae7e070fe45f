#include "autograd/ops/matrix/matmul.h"

#include "autograd/ops/front/matmul_internal.h"
#include "autograd/ops/front/out_internal.h"
#include "autograd/ops/front/pointwise_internal.h"
#include "autograd/ops/make/copy.h"
#include "autograd/ops/reduce/reduce.h"
#include "autograd/ops/shape/view.h"
#include "kernels/matrix/linear_gelu.h"
#include "runtime/base/thread_pool.h"

using ramet::detail::tls;

namespace ramet {
namespace autograd {

// ---- running the kernel -------------------------------------------------------------------------

Matrix matrix_of(const Tensor& t, bool flip) {
  const int r = t->rank;
  const int64_t *n = t->sizes(), *s = t->strides();
  Matrix m{&t,       r == 3 ? n[0] : 1, n[r - 2], n[r - 1], r == 3 && n[0] > 1 ? s[0] : 0,
           s[r - 2], s[r - 1],          flip};
  if (flip) std::swap(m.rows, m.cols), std::swap(m.row, m.col);
  return m;
}

namespace {
// The kernel's tile reads rows or columns of adjacent elements.
bool readable(const Matrix& m) { return m.col == 1 || m.row == 1 || m.rows <= 1 || m.cols <= 1; }
[[gnu::cold, gnu::noinline]] Tensor row_major(const Tensor& t) {
  const Tensor dense(TensorBase::empty(t.sizes(), t.scalar_type(), t.device()));
  copy_values(dense, t);
  return dense;
}
Tensor flipped(const Tensor& t, bool flip) { return flip ? t.transpose(-2, -1) : t; }
}  // namespace

namespace {
// All but the workspace. `dense` keep the memory of copies.
kernels::MatmulArgs arguments(const Tensor& out, Matrix a, Matrix b, const ProductTerms& f,
                              Tensor (&dense)[2]) {
  if (RAMET_UNLIKELY(!readable(a))) dense[0] = row_major(*a.t), a = matrix_of(dense[0], a.flipped);
  if (RAMET_UNLIKELY(!readable(b))) dense[1] = row_major(*b.t), b = matrix_of(dense[1], b.flipped);
  const Matrix c = matrix_of(out);
  kernels::MatmulArgs args;
  args.a = a.t->ptr(), args.b = b.t->ptr(), args.c = out.ptr(),
  args.bias = f.bias ? f.bias->ptr() : nullptr;
  args.batch = c.batch, args.m = c.rows, args.n = c.cols, args.k = a.cols;
  args.a_batch = a.batch_stride, args.a_row = a.row, args.a_col = a.col;
  args.b_batch = b.batch_stride, args.b_row = b.row, args.b_col = b.col;
  args.c_batch = c.batch_stride, args.c_row = c.row;
  args.dtype = a.t->scalar_type(), args.relu = false;
  args.float_c = args.dtype != out.scalar_type();
  const bool integer = is_integral(args.dtype);
  args.alpha = integer ? 1 : f.alpha.toDouble(), args.beta = integer ? 0 : f.beta.toDouble();
  args.ialpha = integer ? f.alpha.toLong() : 1, args.ibeta = integer ? f.beta.toLong() : 0;
  args.workspace = nullptr;
  return args;
}
}  // namespace

void product_into(const Tensor& out, Matrix a, Matrix b, const ProductTerms& f) {
  Tensor dense[2];
  kernels::MatmulArgs args = arguments(out, a, b, f, dense);
  const Tensor work = scratch(kernels::matmul_workspace(args, max_parallel_slots()), out.device());
  args.workspace = pointer(work);
  kernels::matmul(out.stream(), args);
}

void fused_product_into(const kernels::Kernel<kernels::LinearGeluArgs>& kernel, const Tensor& out,
                        Matrix a, Matrix b, const FusedTerms& f) {
  Tensor dense[2];
  kernels::LinearGeluArgs args{
      arguments(out, a, b, {1, 0, f.bias.defined() ? &f.bias : nullptr}, dense),
      f.other.defined() ? f.other.ptr() : nullptr, f.sums.defined() ? f.sums.ptr() : nullptr};
  const Tensor work =
      scratch(kernels::matmul_workspace(args.product, max_parallel_slots()), out.device());
  args.product.workspace = pointer(work);
  kernel(out.stream(), args);
}

Tensor product(const Tensor& a, bool flip_a, const Tensor& b, bool flip_b, const ProductTerms& f) {
  const Matrix x = matrix_of(a, flip_a), y = matrix_of(b, flip_b);
  const int64_t sizes[] = {x.batch, x.rows, y.cols};
  const Tensor out = empty_of(a.dim() == 3 ? IntArrayRef(sizes) : IntArrayRef(sizes + 1, 2), a);
  product_into(out, x, y, f);
  return out;
}

// ---- checks -------------------------------------------------------------------------------------

void check_factors(const char* op, const Tensor& a, const Tensor& b) {
  check_defined(op, a);
  check_defined(op, b);
  check_same_device(op, a, b);
  RAMET_CHECK(a.scalar_type() == b.scalar_type(), op, "dtypes: got ", describe(a), " and ",
              describe(b), ", expected one dtype");
  if (RAMET_UNLIKELY(a.scalar_type() == kBool))
    throw NotImplementedError(detail::join("[", op, "] not implemented for bool: got ", describe(a),
                                           " and ", describe(b)));
}
void check_mm(const char* op, const Tensor& a, const Tensor& b) {
  check_factors(op, a, b);
  RAMET_CHECK(a.dim() == 2 && b.dim() == 2, op, "shapes: got ", describe(a), " and ", describe(b),
              ", expected two matrices");
  RAMET_CHECK(a->sizes()[1] == b->sizes()[0], op, "mat1 and mat2 shapes cannot be multiplied: got ",
              describe(a), " and ", describe(b), ", expected [m, k] and [k, n]");
}
void check_bmm(const char* op, const Tensor& a, const Tensor& b) {
  check_factors(op, a, b);
  RAMET_CHECK(a.dim() == 3 && b.dim() == 3, op, "batch1 must be a 3D tensor: got ", describe(a),
              " and ", describe(b), ", expected two of 3 dimensions");
  RAMET_CHECK(a->sizes()[0] == b->sizes()[0] && a->sizes()[2] == b->sizes()[1], op, "shapes: got ",
              describe(a), " and ", describe(b), ", expected [b, m, k] and [b, k, n]");
}

bool prepare_product(const char* op, const Tensor& out, IntArrayRef sizes, const Tensor& like,
                     bool inputs_record, std::initializer_list<const Tensor*> operands) {
  check_defined(op, out);
  RAMET_CHECK(out.scalar_type() == like.scalar_type(), op, "dtype of out: got ",
              short_name_of(out.scalar_type()), ", expected ", short_name_of(like.scalar_type()));
  RAMET_CHECK(out.device() == like.device(), op, "device of out: got ", out.device(), ", expected ",
              like.device());
  for (const Tensor* t : operands) check_out_operand(op, out, sizes, *t);
  prepare_out(op, out, sizes, like.scalar_type(), inputs_record);
  for (const Tensor* t : operands)
    if (t->may_overlap(out)) return true;
  return !out.raw_contiguous();
}

// ---- gradients ----------------------------------------------------------------------------------

Tensor product_gradient(const Node& self, int i, const Tensor& a, bool flip_a, const Tensor& b,
                        bool flip_b, const Scalar& alpha) {
  if (tls.grad_mode) {
    const Tensor x = flipped(a, flip_a), y = flipped(b, flip_b),
                 p = a.dim() == 3 ? bmm(x, y) : mm(x, y);
    return alpha.equal(1) ? p : p * alpha;
  }
  const Matrix x = matrix_of(a, flip_a), y = matrix_of(b, flip_b);
  const int64_t sizes[] = {x.batch, x.rows, y.cols};
  const Tensor out =
      self.output_for(i, a.dim() == 3 ? IntArrayRef(sizes) : IntArrayRef(sizes + 1, 2),
                      a.scalar_type(), a.device());
  product_into(out, x, y, {alpha, 0, nullptr});
  return out;
}

std::array<Tensor, 2> weight_and_bias_gradients(const Node& self, int i, const Tensor& g,
                                                const Tensor& x) {
  // What a GPU would have to copy first, and what is recorded, are two steps.
  const bool wanted = self.needs(i) && self.needs(i + 1);
  if (!wanted || tls.grad_mode || g.is_cpu() || item_size(g.scalar_type()) != 2 ||
      (g.size(1) > 1 && g->strides()[1] != 1))
    return {self.needs(i) ? product_gradient(self, i, g, true, x, false) : Tensor(),
            self.needs(i + 1) ? bias_gradient(self, i + 1, g) : Tensor()};
  const int64_t sizes[] = {g->sizes()[1], x->sizes()[1]};
  const Tensor weight = self.output_for(i, sizes, g.scalar_type(), g.device()),
               bias = self.output_for(i + 1, IntArrayRef(sizes, 1), g.scalar_type(), g.device());
  fused_product_into(kernels::product_row_sums, weight, matrix_of(g, true), matrix_of(x),
                     {{}, {}, bias});
  return {weight, bias};
}

Tensor bias_gradient(const Node& self, int i, const Tensor& g) {
  if (tls.grad_mode || (g.size(1) > 1 && g->strides()[1] != 1)) return g.sum(int64_t{0});
  const int64_t sizes[] = {g->sizes()[1]};
  const Tensor out = self.output_for(i, sizes, g.scalar_type(), g.device());
  kernels::sum_rows(g.stream(), {g.ptr(), out.ptr(), g->sizes()[0], sizes[0], g->strides()[0],
                                 g.scalar_type(), g.scalar_type()});
  return out;
}

}  // namespace autograd
}  // namespace ramet
