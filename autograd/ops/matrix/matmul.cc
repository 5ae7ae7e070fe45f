#include "autograd/ops/matrix/matmul.h"

#include "autograd/ops/front/matmul_internal.h"
#include "autograd/ops/front/out_internal.h"
#include "autograd/ops/pointwise/arithmetic.h"
#include "autograd/ops/shape/view.h"
#include "kernels/matrix/matmul.h"

namespace ramet {

using namespace autograd;

// ---- mm, bmm, mv, dot ---------------------------------------------------------------------------

namespace {
Tensor recorded_product(const char* node, const Tensor& a, const Tensor& b) {
  Tensor out = product(a, false, b, false);
  if (!recording(a, b)) return out;
  return record(
      node, {a, b}, std::move(out),
      [x = save_if(wants_grad(b), a), y = save_if(wants_grad(a), b)](const Node& self,
                                                                     const Tensor& g) {
        return std::array<Tensor, 2>{
            self.needs(0) ? product_gradient(self, 0, g, false, y.get(self), true) : Tensor(),
            self.needs(1) ? product_gradient(self, 1, x.get(self), true, g, false) : Tensor()};
      });
}
Tensor& product_form(const char* op, Tensor& out, const Tensor& a, const Tensor& b,
                     IntArrayRef sizes) {
  const bool elsewhere = prepare_product(op, out, sizes, a, recording(a, b), {&a, &b});
  return product_out(op, out, elsewhere,
                     [&](const Tensor& o) { product_into(o, matrix_of(a), matrix_of(b)); });
}
}  // namespace

static Tensor mm_body(const Tensor& a, const Tensor& b) {
  check_mm("mm", a, b);
  return recorded_product("MmBackward0", a, b);
}
Tensor& mm_out(Tensor& out, const Tensor& a, const Tensor& b) {
  check_mm("mm_out", a, b);
  return product_form("mm_out", out, a, b, {a.size(0), b.size(1)});
}

static Tensor bmm_body(const Tensor& a, const Tensor& b) {
  check_bmm("bmm", a, b);
  return recorded_product("BmmBackward0", a, b);
}
Tensor& bmm_out(Tensor& out, const Tensor& a, const Tensor& b) {
  check_bmm("bmm_out", a, b);
  return product_form("bmm_out", out, a, b, {a.size(0), a.size(1), b.size(2)});
}

Tensor outer(const Tensor& a, const Tensor& b) {
  check_defined("outer", a);
  check_defined("outer", b);
  RAMET_CHECK(a.dim() == 1 && b.dim() == 1, "outer", "shapes: got ", describe(a), " and ",
              describe(b), ", expected two vectors");
  return a.unsqueeze(1) * b;
}

static Tensor mv_body(const Tensor& a, const Tensor& v) {
  check_factors("mv", a, v);
  RAMET_CHECK(a.dim() == 2 && v.dim() == 1 && a->sizes()[1] == v->sizes()[0], "mv", "shapes: got ",
              describe(a), " and ", describe(v), ", expected [m, k] and [k]");
  const Tensor column(v.view_impl({v.size(0), 1}, {v->strides()[0], 1}, 0));
  Tensor out = empty_of(a.size(0), a);
  const Tensor as_column(out.view_impl({a.size(0), 1}, {1, 1}, 0));
  product_into(as_column, matrix_of(a), matrix_of(column));
  if (!recording(a, v)) return out;
  return record("MvBackward0", {a, v}, std::move(out),
                [x = save_if(wants_grad(v), a), y = save_if(wants_grad(a), v)](const Node& self,
                                                                               const Tensor& g) {
                  return std::array<Tensor, 2>{self.needs(0) ? outer(g, y.get(self)) : Tensor(),
                                               self.needs(1) ? mv(x.get(self).t(), g) : Tensor()};
                });
}

static Tensor dot_body(const Tensor& a, const Tensor& b) {
  check_factors("dot", a, b);
  RAMET_CHECK(a.dim() == 1 && b.dim() == 1 && a.numel() == b.numel(), "dot", "shapes: got ",
              describe(a), " and ", describe(b), ", expected two vectors of one size");
  Tensor out = empty_of(IntArrayRef(), a);
  const Tensor workspace = scratch(a.is_cpu() ? 0 : kernels::dot_workspace(a.numel()), a.device());
  kernels::dot(a.stream(), {a.ptr(), b.ptr(), out.ptr(), a.numel(), a->strides()[0],
                            b->strides()[0], a.scalar_type(), pointer(workspace)});
  if (!recording(a, b)) return out;
  return record("DotBackward0", {a, b}, std::move(out),
                [x = save_if(wants_grad(b), a), y = save_if(wants_grad(a), b)](const Node& self,
                                                                               const Tensor& g) {
                  return std::array<Tensor, 2>{self.needs(0) ? g * y.get(self) : Tensor(),
                                               self.needs(1) ? g * x.get(self) : Tensor()};
                });
}

// ---- matmul -------------------------------------------------------------------------------------

static Tensor matmul_body(const Tensor& a, const Tensor& b) {
  check_factors("matmul", a, b);
  RAMET_CHECK(a.dim() > 0 && b.dim() > 0, "matmul",
              "both arguments to matmul need to be at least 1D: got ", describe(a), " and ",
              describe(b));
  RAMET_CHECK(a.size(-1) == b.size(b.dim() == 1 ? 0 : -2), "matmul", "shapes: got ", describe(a),
              " and ", describe(b), ", expected the last dimension of the first to be the ",
              b.dim() == 1 ? "only" : "last but one", " of the second");
  if (b.dim() == 1) {
    if (a.dim() == 1) return dot_body(a, b);
    if (a.dim() == 2) return mv_body(a, b);
    const IntArrayRef lead = a.sizes().slice(0, static_cast<size_t>(a.dim() - 1));
    return shaped(mv_body(a.reshape({product_of(lead), a.size(-1)}), b), lead);
  }
  if (a.dim() == 1) {
    const Tensor row = a.unsqueeze(0);
    return viewed(b.dim() == 2 ? mm_body(row, b) : matmul_body(row, b),
                  [](const Tensor& x) { return x.squeeze(-2); });
  }
  if (a.dim() == 2 && b.dim() == 2) return mm_body(a, b);
  if (b.dim() == 2) {  // the leading dimensions are rows
    std::vector<int64_t> sizes = a.sizes().vec();
    sizes.back() = b.size(1);
    return shaped(
        mm_body(a.reshape({product_of(a.sizes().slice(0, sizes.size() - 1)), a.size(-1)}), b),
        sizes);
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
  return shaped(bmm_body(batched(a), batched(b)), sizes);
}
Tensor& matmul_out(Tensor& out, const Tensor& a, const Tensor& b) {
  RAMET_CHECK(!recording(a, b), "matmul_out",
              "functions with out=... arguments don't support automatic differentiation, but one "
              "of the arguments requires grad.");
  const NoAutocast uncast;
  const Tensor result = matmul_body(a, b);
  prepare_product("matmul_out", out, result.sizes(), result, false, {});
  copy_values(out, result);
  wrote("matmul_out", out);
  return out;
}

// ---- linear -------------------------------------------------------------------------------------

static Tensor linear_body(const Tensor& x, const Tensor& w,
                          const std::optional<Tensor>& maybe_bias) {
  static const Tensor none;
  const Tensor& bias = maybe_bias ? *maybe_bias : none;
  check_factors("linear", x, w);
  if (bias.defined()) check_factors("linear", x, bias);
  RAMET_CHECK(x.dim() >= 1 && (w.dim() == 2 || w.dim() == 1) && x.size(-1) == w.size(-1), "linear",
              "shapes: got input ", describe(x), " and weight ", describe(w),
              ", expected [..., in] and [out, in]");
  if (w.dim() == 1 || x.dim() == 1 ||
      (bias.defined() &&
       (bias.dim() != 1 || bias.size(0) != w.size(0) || !bias.raw_contiguous()))) {
    if (!bias.defined()) return matmul(x, w.t());
    std::vector<int64_t> sizes(x.sizes().begin(), x.sizes().end() - 1);
    if (w.dim() == 2) sizes.push_back(w.size(0));
    RAMET_CHECK(broadcast_sizes("linear", sizes, bias.sizes()) == sizes, "linear", "bias: got ",
                describe(bias), ", expected one that broadcasts to ", IntArrayRef(sizes));
    return matmul(x, w.t()) + bias;
  }
  if (x.dim() != 2) {
    std::vector<int64_t> sizes = x.sizes().vec();
    sizes.back() = w.size(0);
    return shaped(
        linear(x.reshape({product_of(x.sizes().slice(0, sizes.size() - 1)), x.size(-1)}), w, bias),
        sizes);
  }
  const bool with_bias = bias.defined();
  Tensor out = product(x, false, w, true, {1, 0, with_bias ? &bias : nullptr});
  if (!with_bias) {
    if (!recording(x, w)) return out;
    return record(
        "LinearBackward0", {x, w}, std::move(out),
        [sx = save_if(wants_grad(w), x), sw = save_if(wants_grad(x), w)](const Node& self,
                                                                         const Tensor& g) {
          return std::array<Tensor, 2>{
              self.needs(0) ? product_gradient(self, 0, g, false, sw.get(self), false) : Tensor(),
              self.needs(1) ? product_gradient(self, 1, g, true, sx.get(self), false) : Tensor()};
        });
  }
  if (!recording(x, w, bias)) return out;
  return record("LinearBackward0", {x, w, bias}, std::move(out),
                [sx = save_if(wants_grad(w), x), sw = save_if(wants_grad(x), w)](const Node& self,
                                                                                 const Tensor& g) {
                  Tensor dx;
                  if (self.needs(0)) dx = product_gradient(self, 0, g, false, sw.get(self), false);
                  auto [dw, db] = weight_and_bias_gradients(
                      self, 1, g, self.needs(1) ? sx.get(self) : Tensor());
                  return std::array<Tensor, 3>{std::move(dx), std::move(dw), std::move(db)};
                });
}

namespace {
struct Factors : OutRule {
  template <class... T>
  void check(const char* op, const Tensor&, const Tensor& a, const Tensor& b, const T&...) const {
    check_factors(op, a, b);
  }
};
constexpr Factors kFactors{{OutType::kSame}};
}  // namespace

#include "autograd/forms/definitions.inc"
#include "autograd/ops/matrix/matmul.inc"

}  // namespace ramet
