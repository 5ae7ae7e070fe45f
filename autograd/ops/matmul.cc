#include "autograd/ops/matmul.h"

#include "autograd/ops/arithmetic.h"
#include "autograd/ops/common.h"
#include "autograd/ops/copy.h"
#include "autograd/ops/pointwise_front.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/view.h"
#include "kernels/matmul.h"
#include "runtime/thread_pool.h"

namespace ramet {

using namespace autograd;

namespace {

// ---- running the kernel -------------------------------------------------------------------------

// The last two dimensions of a tensor (and the first of three), or their transpose.
struct Matrix {
  const Tensor* t;
  int64_t batch, rows, cols, batch_stride, row, col;
  bool flipped;
};
Matrix matrix(const Tensor& t, bool flip = false) {
  const int r = t->rank;
  const int64_t *n = t->sizes(), *s = t->strides();
  Matrix m{&t,       r == 3 ? n[0] : 1, n[r - 2], n[r - 1], r == 3 && n[0] > 1 ? s[0] : 0,
           s[r - 2], s[r - 1],          flip};
  if (flip) std::swap(m.rows, m.cols), std::swap(m.row, m.col);
  return m;
}
// The tile reads rows or columns of neighbours.
bool readable(const Matrix& m) { return m.col == 1 || m.row == 1 || m.rows <= 1 || m.cols <= 1; }
[[gnu::cold, gnu::noinline]] Tensor row_major(const Tensor& t) {
  const Tensor dense(TensorBase::empty(t.sizes(), t.scalar_type(), t.device()));
  copy_values(dense, t);
  return dense;
}

struct Factors {
  Scalar alpha = 1, beta = 0;
  const Tensor* bias = nullptr;  // contiguous, one value a column
};

// out = alpha * a b + beta * out + bias. Raw: no history, no version change. REQUIRES: out has a
// dense last dimension and shares memory with no operand.
void product_into(const Tensor& out, Matrix a, Matrix b, const Factors& f = {}) {
  Tensor dense_a, dense_b;
  if (RAMET_UNLIKELY(!readable(a))) dense_a = row_major(*a.t), a = matrix(dense_a, a.flipped);
  if (RAMET_UNLIKELY(!readable(b))) dense_b = row_major(*b.t), b = matrix(dense_b, b.flipped);
  const Matrix c = matrix(out);
  kernels::MatmulArgs args;
  args.a = a.t->ptr(), args.b = b.t->ptr(), args.c = out.ptr(),
  args.bias = f.bias ? f.bias->ptr() : nullptr;
  args.batch = c.batch, args.m = c.rows, args.n = c.cols, args.k = a.cols;
  args.a_batch = a.batch_stride, args.a_row = a.row, args.a_col = a.col;
  args.b_batch = b.batch_stride, args.b_row = b.row, args.b_col = b.col;
  args.c_batch = c.batch_stride, args.c_row = c.row;
  args.dtype = out.scalar_type(), args.relu = false;
  const bool integer = is_integral(args.dtype);
  args.alpha = integer ? 1 : f.alpha.toDouble(), args.beta = integer ? 0 : f.beta.toDouble();
  args.ialpha = integer ? f.alpha.toLong() : 1, args.ibeta = integer ? f.beta.toLong() : 0;
  args.workspace = nullptr;
  Tensor work;
  if (const int64_t bytes = kernels::matmul_workspace(args, max_parallel_slots()); bytes > 0) {
    work = Tensor(TensorBase::empty(bytes, kByte, out.device()));
    args.workspace = work.ptr();
  }
  kernels::matmul(out.stream(), args);
}

Tensor empty_of(IntArrayRef sizes, const Tensor& like) {
  return Tensor(TensorBase::empty(sizes, like.scalar_type(), like.device()));
}

// The product of (flipped) matrices of one rank, 2 or 3: fresh, no history.
Tensor product(const Tensor& a, bool flip_a, const Tensor& b, bool flip_b, const Factors& f = {}) {
  const Matrix x = matrix(a, flip_a), y = matrix(b, flip_b);
  const int64_t sizes[] = {x.batch, x.rows, y.cols};
  const Tensor out = empty_of(a.dim() == 3 ? IntArrayRef(sizes) : IntArrayRef(sizes + 1, 2), a);
  product_into(out, x, y, f);
  return out;
}

// ---- checks -------------------------------------------------------------------------------------

void check_operands(const char* op, const Tensor& a, const Tensor& b) {
  check_defined(op, a);
  check_defined(op, b);
  RAMET_CHECK(a->device == b->device, op,
              "Expected all tensors to be on the same device, but found at least two devices, ",
              a.device(), " and ", b.device(), "! Got ", describe(a), " and ", describe(b));
  RAMET_CHECK(a.scalar_type() == b.scalar_type(), op, "dtypes: got ", describe(a), " and ",
              describe(b), ", expected one dtype");
  if (RAMET_UNLIKELY(a.scalar_type() == kBool))
    throw NotImplementedError(detail::join("[", op, "] not implemented for bool: got ", describe(a),
                                           " and ", describe(b)));
}
void check_mm(const char* op, const Tensor& a, const Tensor& b) {
  check_operands(op, a, b);
  RAMET_CHECK(a.dim() == 2 && b.dim() == 2, op, "shapes: got ", describe(a), " and ", describe(b),
              ", expected two matrices");
  RAMET_CHECK(a->sizes()[1] == b->sizes()[0], op, "mat1 and mat2 shapes cannot be multiplied: got ",
              describe(a), " and ", describe(b), ", expected [m, k] and [k, n]");
}
void check_bmm(const char* op, const Tensor& a, const Tensor& b) {
  check_operands(op, a, b);
  RAMET_CHECK(a.dim() == 3 && b.dim() == 3, op, "batch1 must be a 3D tensor: got ", describe(a),
              " and ", describe(b), ", expected two of 3 dimensions");
  RAMET_CHECK(a->sizes()[0] == b->sizes()[0] && a->sizes()[2] == b->sizes()[1], op, "shapes: got ",
              describe(a), " and ", describe(b), ", expected [b, m, k] and [b, k, n]");
}
void check_number(const char* op, const char* name, const Scalar& v, ScalarType dtype) {
  RAMET_CHECK(!is_integral(dtype) || !v.isFloatingPoint(), op,
              "For integral input tensors, argument ", name,
              " must not be a floating point number: got ", v);
}

// An out form: resized, of the product's dtype. True: the result must be computed elsewhere first
// (no dense rows, or memory shared with an operand).
bool prepare(const char* op, const Tensor& out, IntArrayRef sizes, const Tensor& like,
             bool inputs_record, std::initializer_list<const Tensor*> operands) {
  check_defined(op, out);
  RAMET_CHECK(out.scalar_type() == like.scalar_type(), op, "dtype of out: got ",
              short_name_of(out.scalar_type()), ", expected ", short_name_of(like.scalar_type()));
  RAMET_CHECK(out.device() == like.device(), op, "device of out: got ", out.device(), ", expected ",
              like.device());
  prepare_out(op, out, sizes, like.scalar_type(), inputs_record);
  for (const Tensor* t : operands)
    if (t->storage_impl() == out.storage_impl()) return true;
  return !out.raw_contiguous();
}
template <class F> Tensor& into(const char* op, Tensor& out, bool elsewhere, const F& run) {
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

Tensor flipped(const Tensor& t, bool flip) { return flip ? t.transpose(-2, -1) : t; }

// Gradient i of `self` as alpha times a product: recorded under create_graph, else straight into
// its destination.
Tensor gradient(const Node& self, int i, const Tensor& a, bool flip_a, const Tensor& b, bool flip_b,
                const Scalar& alpha = 1) {
  if (tls.grad_mode) {
    const Tensor x = flipped(a, flip_a), y = flipped(b, flip_b),
                 p = a.dim() == 3 ? bmm(x, y) : mm(x, y);
    return alpha.equal(1) ? p : p * alpha;
  }
  const Matrix x = matrix(a, flip_a), y = matrix(b, flip_b);
  const int64_t sizes[] = {x.batch, x.rows, y.cols};
  const Tensor out =
      self.output_for(i, a.dim() == 3 ? IntArrayRef(sizes) : IntArrayRef(sizes + 1, 2),
                      a.scalar_type(), a.device());
  product_into(out, x, y, {alpha, 0, nullptr});
  return out;
}

// Gradient i of a bias [n]: the sum of the rows of g.
Tensor bias_gradient(const Node& self, int i, const Tensor& g) {
  if (tls.grad_mode || (g.size(1) > 1 && g->strides()[1] != 1)) return g.sum(int64_t{0});
  const int64_t sizes[] = {g->sizes()[1]};
  const Tensor out = self.output_for(i, sizes, g.scalar_type(), g.device());
  kernels::sum_rows(
      g.stream(), {g.ptr(), out.ptr(), g->sizes()[0], sizes[0], g->strides()[0], g.scalar_type()});
  return out;
}

}  // namespace

// ---- mm, bmm, mv, dot ---------------------------------------------------------------------------

Tensor mm(const Tensor& a, const Tensor& b) {
  check_mm("mm", a, b);
  Tensor out = product(a, false, b, false);
  if (!recording(a, b)) return out;
  return record("MmBackward0", {a, b}, std::move(out),
                [x = save_if(wants_grad(b), a), y = save_if(wants_grad(a), b)](const Node& self,
                                                                               const Tensor& g) {
                  return std::array<Tensor, 2>{
                      self.needs(0) ? gradient(self, 0, g, false, y.get(self), true) : Tensor(),
                      self.needs(1) ? gradient(self, 1, x.get(self), true, g, false) : Tensor()};
                });
}
Tensor& mm_out(Tensor& out, const Tensor& a, const Tensor& b) {
  check_mm("mm_out", a, b);
  const bool elsewhere =
      prepare("mm_out", out, {a.size(0), b.size(1)}, a, recording(a, b), {&a, &b});
  return into("mm_out", out, elsewhere,
              [&](const Tensor& o) { product_into(o, matrix(a), matrix(b)); });
}

Tensor bmm(const Tensor& a, const Tensor& b) {
  check_bmm("bmm", a, b);
  Tensor out = product(a, false, b, false);
  if (!recording(a, b)) return out;
  return record("BmmBackward0", {a, b}, std::move(out),
                [x = save_if(wants_grad(b), a), y = save_if(wants_grad(a), b)](const Node& self,
                                                                               const Tensor& g) {
                  return std::array<Tensor, 2>{
                      self.needs(0) ? gradient(self, 0, g, false, y.get(self), true) : Tensor(),
                      self.needs(1) ? gradient(self, 1, x.get(self), true, g, false) : Tensor()};
                });
}
Tensor& bmm_out(Tensor& out, const Tensor& a, const Tensor& b) {
  check_bmm("bmm_out", a, b);
  const bool elsewhere =
      prepare("bmm_out", out, {a.size(0), a.size(1), b.size(2)}, a, recording(a, b), {&a, &b});
  return into("bmm_out", out, elsewhere,
              [&](const Tensor& o) { product_into(o, matrix(a), matrix(b)); });
}

Tensor outer(const Tensor& a, const Tensor& b) {
  check_defined("outer", a);
  check_defined("outer", b);
  RAMET_CHECK(a.dim() == 1 && b.dim() == 1, "outer", "shapes: got ", describe(a), " and ",
              describe(b), ", expected two vectors");
  return a.unsqueeze(1) * b;
}

Tensor mv(const Tensor& a, const Tensor& v) {
  check_operands("mv", a, v);
  RAMET_CHECK(a.dim() == 2 && v.dim() == 1 && a->sizes()[1] == v->sizes()[0], "mv", "shapes: got ",
              describe(a), " and ", describe(v), ", expected [m, k] and [k]");
  const Tensor column(v.view_impl({v.size(0), 1}, {v->strides()[0], 1}, 0));
  Tensor out = empty_of(a.size(0), a);
  const Tensor as_column(out.view_impl({a.size(0), 1}, {1, 1}, 0));
  product_into(as_column, matrix(a), matrix(column));
  if (!recording(a, v)) return out;
  return record("MvBackward0", {a, v}, std::move(out),
                [x = save_if(wants_grad(v), a), y = save_if(wants_grad(a), v)](const Node& self,
                                                                               const Tensor& g) {
                  return std::array<Tensor, 2>{self.needs(0) ? outer(g, y.get(self)) : Tensor(),
                                               self.needs(1) ? mv(x.get(self).t(), g) : Tensor()};
                });
}

Tensor dot(const Tensor& a, const Tensor& b) {
  check_operands("dot", a, b);
  RAMET_CHECK(a.dim() == 1 && b.dim() == 1 && a.numel() == b.numel(), "dot", "shapes: got ",
              describe(a), " and ", describe(b), ", expected two vectors of one size");
  Tensor out = empty_of(IntArrayRef(), a);
  kernels::dot(a.stream(), {a.ptr(), b.ptr(), out.ptr(), a.numel(), a->strides()[0],
                            b->strides()[0], a.scalar_type()});
  if (!recording(a, b)) return out;
  return record("DotBackward0", {a, b}, std::move(out),
                [x = save_if(wants_grad(b), a), y = save_if(wants_grad(a), b)](const Node& self,
                                                                               const Tensor& g) {
                  return std::array<Tensor, 2>{self.needs(0) ? g * y.get(self) : Tensor(),
                                               self.needs(1) ? g * x.get(self) : Tensor()};
                });
}

// ---- addmm, baddbmm -----------------------------------------------------------------------------

namespace {

void check_self(const char* op, const Tensor& self, const Tensor& a, IntArrayRef sizes,
                const Scalar& beta, const Scalar& alpha) {
  check_operands(op, self, a);
  check_number(op, "beta", beta, a.scalar_type());
  check_number(op, "alpha", alpha, a.scalar_type());
  RAMET_CHECK(broadcast_sizes(op, self.sizes(), sizes) == sizes, op, "self: got ", describe(self),
              ", expected a shape that expands to ", sizes);
}

// out = beta * self + alpha * a b, out fresh or prepared.
void add_product_into(const Tensor& out, const Tensor& self, const Tensor& a, const Tensor& b,
                      const Scalar& beta, const Scalar& alpha) {
  const bool row = self.dim() <= 2 && self.numel() == out.size(-1) && self.dim() > 0 &&
                   self.size(-1) == out.size(-1);
  if (row && beta.equal(1) && self.raw_contiguous())
    return product_into(out, matrix(a), matrix(b), {alpha, 0, &self});
  if (!beta.equal(0)) copy_values(out, self.expand(out.sizes()));
  product_into(out, matrix(a), matrix(b), {alpha, beta, nullptr});
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
            self.needs(1) ? gradient(self, 1, g, false, y.get(self), true, alpha) : Tensor(),
            self.needs(2) ? gradient(self, 2, x.get(self), true, g, false, alpha) : Tensor()};
      });
}

}  // namespace

Tensor addmm(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta,
             const Scalar& alpha) {
  check_mm("addmm", a, b);
  return add_product("addmm", "AddmmBackward0", self, a, b, {a.size(0), b.size(1)}, beta, alpha);
}
Tensor baddbmm(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta,
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
      prepare("addmm_out", out, sizes, a, recording(self, a, b), {&self, &a, &b});
  return into("addmm_out", out, elsewhere,
              [&](const Tensor& o) { add_product_into(o, self, a, b, beta, alpha); });
}
Tensor& baddbmm_out(Tensor& out, const Tensor& self, const Tensor& a, const Tensor& b,
                    const Scalar& beta, const Scalar& alpha) {
  check_bmm("baddbmm_out", a, b);
  const int64_t sizes[] = {a.size(0), a.size(1), b.size(2)};
  check_self("baddbmm_out", self, a, sizes, beta, alpha);
  const bool elsewhere =
      prepare("baddbmm_out", out, sizes, a, recording(self, a, b), {&self, &a, &b});
  return into("baddbmm_out", out, elsewhere,
              [&](const Tensor& o) { add_product_into(o, self, a, b, beta, alpha); });
}

// ---- matmul -------------------------------------------------------------------------------------

namespace {
int64_t product_of(IntArrayRef sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return n;
}
}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) {
  check_operands("matmul", a, b);
  RAMET_CHECK(a.dim() > 0 && b.dim() > 0, "matmul",
              "both arguments to matmul need to be at least 1D: got ", describe(a), " and ",
              describe(b));
  RAMET_CHECK(a.size(-1) == b.size(b.dim() == 1 ? 0 : -2), "matmul", "shapes: got ", describe(a),
              " and ", describe(b), ", expected the last dimension of the first to be the ",
              b.dim() == 1 ? "only" : "last but one", " of the second");
  if (b.dim() == 1) {
    if (a.dim() == 1) return dot(a, b);
    if (a.dim() == 2) return mv(a, b);
    const IntArrayRef lead = a.sizes().slice(0, static_cast<size_t>(a.dim() - 1));
    return mv(a.reshape({product_of(lead), a.size(-1)}), b).reshape(lead);
  }
  if (a.dim() == 1) {
    if (b.dim() == 2) return mm(a.unsqueeze(0), b).squeeze(0);
    return matmul(a.unsqueeze(0), b).squeeze(-2);
  }
  if (a.dim() == 2 && b.dim() == 2) return mm(a, b);
  if (b.dim() == 2) {  // the leading dimensions are rows
    std::vector<int64_t> sizes = a.sizes().vec();
    sizes.back() = b.size(1);
    return mm(a.reshape({product_of(a.sizes().slice(0, sizes.size() - 1)), a.size(-1)}), b)
        .reshape(sizes);
  }
  const IntArrayRef lead_a = a.sizes().slice(0, static_cast<size_t>(a.dim() - 2)),
                    lead_b = b.sizes().slice(0, static_cast<size_t>(b.dim() - 2));
  const std::vector<int64_t> lead = broadcast_sizes("matmul", lead_a, lead_b);
  const int64_t batch = product_of(lead);
  const auto batched = [&](const Tensor& t) {
    std::vector<int64_t> sizes = lead;
    sizes.insert(sizes.end(), {t.size(-2), t.size(-1)});
    return t.expand(sizes).reshape({batch, t.size(-2), t.size(-1)});
  };
  std::vector<int64_t> sizes = lead;
  sizes.insert(sizes.end(), {a.size(-2), b.size(-1)});
  return bmm(batched(a), batched(b)).reshape(sizes);
}
Tensor& matmul_out(Tensor& out, const Tensor& a, const Tensor& b) {
  RAMET_CHECK(!recording(a, b), "matmul_out",
              "functions with out=... arguments don't support automatic differentiation, but one "
              "of the arguments requires grad.");
  const Tensor result = matmul(a, b);
  prepare("matmul_out", out, result.sizes(), result, false, {});
  copy_values(out, result);
  wrote("matmul_out", out);
  return out;
}

// ---- linear -------------------------------------------------------------------------------------

Tensor linear(const Tensor& x, const Tensor& w, const std::optional<Tensor>& maybe_bias) {
  static const Tensor none;
  const Tensor& bias = maybe_bias ? *maybe_bias : none;
  check_operands("linear", x, w);
  if (bias.defined()) check_operands("linear", x, bias);
  RAMET_CHECK(x.dim() >= 1 && (w.dim() == 2 || w.dim() == 1) && x.size(-1) == w.size(-1), "linear",
              "shapes: got input ", describe(x), " and weight ", describe(w),
              ", expected [..., in] and [out, in]");
  if (w.dim() == 1 || x.dim() == 1 ||
      (bias.defined() &&
       (bias.dim() != 1 || bias.size(0) != w.size(0) || !bias.raw_contiguous()))) {
    const Tensor y = matmul(x, w.t());
    return bias.defined() ? y + bias : y;
  }
  if (x.dim() != 2) {
    std::vector<int64_t> sizes = x.sizes().vec();
    sizes.back() = w.size(0);
    return linear(x.reshape({product_of(x.sizes().slice(0, sizes.size() - 1)), x.size(-1)}), w,
                  bias)
        .reshape(sizes);
  }
  const bool with_bias = bias.defined();
  Tensor out = product(x, false, w, true, {1, 0, with_bias ? &bias : nullptr});
  if (!with_bias) {
    if (!recording(x, w)) return out;
    return record("LinearBackward0", {x, w}, std::move(out),
                  [sx = save_if(wants_grad(w), x), sw = save_if(wants_grad(x), w)](
                      const Node& self, const Tensor& g) {
                    return std::array<Tensor, 2>{
                        self.needs(0) ? gradient(self, 0, g, false, sw.get(self), false) : Tensor(),
                        self.needs(1) ? gradient(self, 1, g, true, sx.get(self), false) : Tensor()};
                  });
  }
  if (!recording(x, w, bias)) return out;
  return record("LinearBackward0", {x, w, bias}, std::move(out),
                [sx = save_if(wants_grad(w), x), sw = save_if(wants_grad(x), w)](const Node& self,
                                                                                 const Tensor& g) {
                  return std::array<Tensor, 3>{
                      self.needs(0) ? gradient(self, 0, g, false, sw.get(self), false) : Tensor(),
                      self.needs(1) ? gradient(self, 1, g, true, sx.get(self), false) : Tensor(),
                      self.needs(2) ? bias_gradient(self, 2, g) : Tensor()};
                });
}

// ---- methods ------------------------------------------------------------------------------------

Tensor Tensor::mm(const Tensor& o) const { return ramet::mm(*this, o); }
Tensor Tensor::bmm(const Tensor& o) const { return ramet::bmm(*this, o); }
Tensor Tensor::mv(const Tensor& v) const { return ramet::mv(*this, v); }
Tensor Tensor::dot(const Tensor& o) const { return ramet::dot(*this, o); }
Tensor Tensor::matmul(const Tensor& o) const { return ramet::matmul(*this, o); }
Tensor Tensor::addmm(const Tensor& a, const Tensor& b, const Scalar& beta,
                     const Scalar& alpha) const {
  return ramet::addmm(*this, a, b, beta, alpha);
}
Tensor& Tensor::addmm_(const Tensor& a, const Tensor& b, const Scalar& beta,
                       const Scalar& alpha) const {
  check_mm("addmm_", a, b);
  RAMET_CHECK(dim() == 2 && size(0) == a.size(0) && size(1) == b.size(1), "addmm_", "self: got ",
              describe(*this), ", expected the product's shape [", a.size(0), ", ", b.size(1), "]");
  check_inplace("addmm_", *this);
  const bool history = recording(*this, a, b);
  Saved x = save_if(history && wants_grad(b), a), y = save_if(history && wants_grad(a), b);
  {
    const NoGradGuard off;
    copy_values(*this, ramet::addmm(*this, a, b, beta, alpha));
  }
  wrote("addmm_", *this);
  if (history)
    record_inplace(
        "AddmmBackward0", {*this, a, b}, *this,
        [x = std::move(x), y = std::move(y), beta, alpha](const Node& self, const Tensor& g) {
          return std::array<Tensor, 3>{
              self.needs(0) ? g * beta : Tensor(),
              self.needs(1) ? gradient(self, 1, g, false, y.get(self), true, alpha) : Tensor(),
              self.needs(2) ? gradient(self, 2, x.get(self), true, g, false, alpha) : Tensor()};
        });
  return as_mutable(*this);
}

}  // namespace ramet
