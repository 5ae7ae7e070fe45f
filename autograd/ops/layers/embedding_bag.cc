#include "autograd/ops/layers/embedding_bag.h"

#include "autograd/ops/front/index_internal.h"
#include "autograd/ops/front/out_internal.h"
#include "autograd/ops/index/gather_scatter.h"
#include "autograd/ops/index/index_put.h"
#include "autograd/ops/index/mask.h"
#include "autograd/ops/layers/embedding_bag_internal.h"
#include "autograd/ops/make/copy.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/pointwise/arithmetic.h"
#include "autograd/ops/pointwise/comparison.h"
#include "autograd/ops/pointwise/unary.h"
#include "autograd/ops/pointwise/where.h"
#include "autograd/ops/reduce/reduce.h"
#include "autograd/ops/shape/cat.h"
#include "autograd/ops/shape/view.h"
#include "kernels/index/embedding_bag.h"

namespace ramet {

using namespace autograd;
using kernels::BagMode;

namespace {

constexpr const char* kOp = "embedding_bag";

struct Bags {
  int64_t rows, cols, bags, padding;  // -1: no padding
  BagMode mode;
  bool by_freq;
  bool open;  // are there indices after the last bag?
};

// The bag of each index; `bags` for indices after the end of the last bag.
Tensor bag_of(const Tensor& offsets, int64_t total) {
  const NoGradGuard off;
  const Tensor begun = zeros({total + 1}, offsets.options())
                           .index_add_(0, offsets, ones({offsets.size(0)}, offsets.options()));
  return begun.cumsum(0).narrow(0, 0, total).sub(1);
}

// The gradient of each named row, without its own weight. Differentiable in g.
Tensor parts_of(const Bags& b, const Tensor& g, const Tensor& bag) {
  return g.index_select(0, b.open ? bag.clamp_max(b.bags - 1) : bag);
}
// 1 for indices that count, 0 for others; in the type t.
Tensor counted(const Bags& b, const Tensor& indices, const Tensor& bag, ScalarType t) {
  const NoGradGuard off;
  Tensor there = bag.lt(b.bags);
  if (b.padding >= 0) there = there.logical_and(indices.ne(b.padding));
  return there.to(t);
}

// Composed of operations that record history.
Tensor weight_gradient(const Bags& b, const Tensor& g, const Tensor& indices_, const Tensor& bag_,
                       const Tensor& counts, const Tensor& places, const Tensor& scale) {
  const ScalarType t = g.scalar_type(), wide = compute_type(t);
  const std::vector<int64_t> sizes{b.rows, b.cols};
  const Tensor gw = g.to(wide);
  if (b.mode == BagMode::kMax) {
    // Empty bags name no row.
    if (b.rows == 0) return zeros(sizes, TensorOptions(t).device(g.device()));
    const Tensor full = counts.gt(0).to(wide).unsqueeze(1);
    return scatter_zeros(sizes, 0, places, gw.mul(full)).to(t);
  }
  // Where there are no bags, no index counts.
  const Tensor indices = b.bags > 0 ? indices_ : indices_.narrow(0, 0, 0),
               bag = bag_.narrow(0, 0, indices.size(0));
  Tensor share = gw;  // the gradient of each bag, for one index
  if (b.mode == BagMode::kMean)
    share = gw.mul(counts.clamp_min(1).to(wide).reciprocal().unsqueeze(1));
  if (b.padding < 0 && !b.open && !b.by_freq && !scale.defined())
    return index_add_zeros(sizes, 0, indices, parts_of(b, share, bag)).to(t);
  Tensor factor = counted(b, indices, bag, wide);
  {
    const NoGradGuard off;
    if (b.by_freq) {
      const Tensor often = zeros({b.rows}, indices.options())
                               .index_add_(0, indices, ones({indices.size(0)}, indices.options()));
      factor = factor.div(often.index_select(0, indices).to(wide));
    }
  }
  if (scale.defined()) factor = factor.mul(scale.narrow(0, 0, indices.size(0)).to(wide));
  const Tensor parts = parts_of(b, share, bag).mul(factor.unsqueeze(1));
  return index_add_zeros(sizes, 0, indices, parts).to(t);
}
Tensor scale_gradient(const Bags& b, const Tensor& g, const Tensor& weight, const Tensor& indices,
                      const Tensor& bag, ScalarType t) {
  const ScalarType wide = compute_type(t);
  if (b.bags == 0 && indices.size(0) > 0)
    return zeros({indices.size(0)}, TensorOptions(t).device(g.device()));
  return parts_of(b, g.to(wide), bag)
      .mul(weight.index_select(0, indices).to(wide))
      .sum(1)
      .mul(counted(b, indices, bag, wide))
      .to(t);
}

void check_types(const Tensor& weight, const Tensor& indices, const Tensor& offsets,
                 const Tensor& scale) {
  if (!is_floating(weight.scalar_type()))
    throw NotImplementedError(detail::join("[", kOp, "] not implemented for '",
                                           name_of(weight.scalar_type()), "': got ",
                                           describe(weight)));
  RAMET_CHECK(weight.dim() == 2, kOp, "weight has to be a 2D Tensor, but got Tensor of dimension ",
              weight.dim());
  RAMET_CHECK(indices.dim() == 1 || indices.dim() == 2, kOp,
              "input has to be a 1D or 2D Tensor, but got Tensor of dimension ", indices.dim());
  RAMET_CHECK(offsets.dim() == 1, kOp,
              "offsets has to be a 1D Tensor, but got Tensor of dimension ", offsets.dim());
  check_same_device(kOp, weight, indices, "indices");
  check_same_device(kOp, weight, offsets, "offsets");
  if (!scale.defined()) return;
  check_same_device(kOp, weight, scale, "per_sample_weights");
  RAMET_CHECK(scale.scalar_type() == weight.scalar_type(), kOp, "Expected weight and ",
              "per_sample_weights to have the same type, but got ", describe(weight), " and ",
              describe(scale));
  RAMET_CHECK(scale.dim() == 1 && scale.numel() == indices.numel(), kOp, "per_sample_weights: got ",
              describe(scale), " for indices of ", indices.sizes(),
              ", expected a weight for each index");
}

// Checks the values of offsets. For a GPU's tensor it reports an error later.
void check_offsets(const Tensor& offsets, int64_t total) {
  const NoGradGuard off;
  const int64_t n = offsets.size(0);
  if (n == 0) return;
  check_indices(kOp, offsets.narrow(0, 0, 1), 0, 1,
                "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start "
                "from position 0");
  check_indices(kOp, offsets.narrow(0, n - 1, 1), 0, total + 1,
                "offsets[-1] can not be greater than input's length");
  if (n == 1) return;
  const Tensor before = cat({offsets.narrow(0, 0, 1), offsets.narrow(0, 0, n - 1)});
  report_unless(kOp, offsets.ge(before), offsets, "offsets have to ascend");
}

// Indices and offsets in the kernel's form, and the padding row or -1.
struct Checked {
  Tensor indices, offsets;
  int64_t padding;
};
Checked checked(const Tensor& weight, const Tensor& indices_, const Tensor& offsets_, int64_t mode,
                bool sparse, const Tensor& scale, bool include_last_offset,
                std::optional<int64_t> padding_idx) {
  for (const Tensor* t : {&weight, &indices_, &offsets_}) check_defined(kOp, *t);
  check_types(weight, indices_, offsets_, scale);
  RAMET_CHECK(mode >= 0 && mode <= 2, kOp, "`mode` must be sum, mean, or max: got ", mode,
              ", expected 0, 1 or 2");
  RAMET_CHECK(mode == 0 || !scale.defined(), kOp,
              "per_sample_weights only supported with mode='sum'");
  if (sparse)
    throw NotImplementedError(
        "[embedding_bag] sparse gradients are not implemented: got sparse = true");
  const int64_t rows = weight.size(0);
  RAMET_CHECK(!include_last_offset || offsets_.size(0) > 0, kOp,
              "include_last_offset: number of offset should be at least 1");
  int64_t padding = padding_idx.value_or(-1);
  if (padding_idx) {
    RAMET_CHECK(padding >= -rows && padding < rows, kOp,
                "padding_idx must be within the number of embeddings, ", -rows, " through ",
                rows - 1, ", but got ", padding);
    if (padding < 0) padding += rows;
  }
  Checked c{index_as_long(kOp, indices_).contiguous().reshape(-1),
            index_as_long(kOp, offsets_).contiguous(), padding};
  check_offsets(c.offsets, c.indices.size(0));
  check_indices(kOp, c.indices, 0, rows, "rows of weight");
  return c;
}

}  // namespace

void autograd::check_embedding_bag(const Tensor& weight, const Tensor& indices,
                                   const Tensor& offsets, int64_t mode, bool sparse,
                                   const Tensor& per_sample_weights, bool include_last_offset,
                                   std::optional<int64_t> padding_idx) {
  checked(weight, indices, offsets, mode, sparse, per_sample_weights, include_last_offset,
          padding_idx);
}

std::tuple<Tensor, Tensor, Tensor, Tensor> embedding_bag(
    const Tensor& weight, const Tensor& indices_, const Tensor& offsets_, bool scale_grad_by_freq,
    int64_t mode, bool sparse, const std::optional<Tensor>& per_sample_weights,
    bool include_last_offset, std::optional<int64_t> padding_idx) {
  const Tensor scale = per_sample_weights.value_or(Tensor());
  const auto [indices, offsets, padding] =
      checked(weight, indices_, offsets_, mode, sparse, scale, include_last_offset, padding_idx);
  const int64_t rows = weight.size(0), cols = weight.size(1), given = offsets.size(0),
                total = indices.size(0), bags = given - include_last_offset;
  const Bags b{rows,        cols, bags, padding, static_cast<BagMode>(mode), scale_grad_by_freq,
               given > bags};

  const Device device = weight.device();
  const ScalarType t = weight.scalar_type();
  Tensor y(TensorBase::empty({bags, cols}, t, device)), counts, places, bag;
  {
    const NoGradGuard off;
    const TensorOptions longs = TensorOptions(kLong).device(device);
    const bool keeps = b.mode != BagMode::kSum, named = keeps || padding_idx;
    bag = named ? bag_of(offsets, total) : empty({0}, longs);
    counts = keeps ? Tensor(TensorBase::empty(bags, kLong, device)) : zeros({bags}, longs);
    if (b.mode == BagMode::kMax) places = Tensor(TensorBase::empty({bags, cols}, kLong, device));
    const Tensor w = weight.shallow().contiguous(),
                 s = scale.defined() ? scale.shallow().to(compute_type(t)).contiguous() : scale;
    if (bags > 0)
      kernels::embedding_bag(
          weight.stream(), {w.ptr(), static_cast<const int64_t*>(indices.ptr()),
                            static_cast<const int64_t*>(offsets.ptr()), pointer(s), y.ptr(),
                            static_cast<int64_t*>(pointer(places)),
                            static_cast<int64_t*>(keeps ? counts.ptr() : nullptr), rows, cols, bags,
                            given, total, padding, b.mode, t});
  }
  const Tensor rest = places.defined() ? places : counts;
  if (!recording(weight, scale)) return {y, bag, counts, rest};
  Tensor out =
      record("EmbeddingBagBackward0", {weight, scale}, std::move(y),
             [b, at = save(indices), begin = save(offsets), kept = save(bag), n = save(counts),
              from = save_if(places.defined(), places), w = save_if(recording(scale), weight),
              sw = save_if(scale.defined(), scale)](const Node& self, const Tensor& g) {
               const Tensor indices = at.get(self), scale = sw.get(self);
               Tensor bag = kept.get(self);
               if (bag.size(0) < indices.size(0)) bag = bag_of(begin.get(self), indices.size(0));
               std::array<Tensor, 2> r;
               if (self.needs(0))
                 r[0] = weight_gradient(b, g, indices, bag, n.get(self), from.get(self), scale);
               if (self.needs(1))
                 r[1] = scale_gradient(b, g, w.get(self), indices, bag, scale.scalar_type());
               return r;
             });
  return {out, bag, counts, rest};
}
std::tuple<Tensor, Tensor, Tensor, Tensor> embedding_bag(
    const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool scale_grad_by_freq,
    int64_t mode, bool sparse, const std::optional<Tensor>& per_sample_weights,
    bool include_last_offset) {
  return embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse,
                       per_sample_weights, include_last_offset, std::nullopt);
}

namespace {

void check_renorm(const char* op, const Tensor& x, const Tensor& indices) {
  check_defined(op, x);
  check_defined(op, indices);
  RAMET_CHECK(x.dim() == 2, op, "Expected 2-dimensional tensor, but got ", x.dim(),
              "-dimensional tensor for argument #1 'self'");
  RAMET_CHECK(is_floating(x.scalar_type()), op, "self: got ", describe(x),
              ", expected a floating-point type");
  check_same_device(op, x, indices, "indices");
}

}  // namespace

Tensor& embedding_renorm_(Tensor& self, const Tensor& indices_, double max_norm, double norm_type) {
  const char* op = "embedding_renorm_";
  check_renorm(op, self, indices_);
  check_inplace(op, self);
  if (recording(self))
    throw NotImplementedError(
        "[embedding_renorm_] the derivative is not implemented: got a tensor that wants a "
        "gradient");
  const NoGradGuard off;
  const Tensor indices = index_as_long(op, indices_).contiguous().reshape(-1);
  check_indices(op, indices, 0, self.size(0), "rows of self");
  const ScalarType t = self.scalar_type();
  const Tensor rows = self.index_select(0, indices).to(compute_type(t)),
               norms = rows.norm(norm_type, 1, /*keepdim=*/true);
  // A row that is named twice is written twice, with the same values.
  const Tensor limited = rows.mul(norms.add(1e-7).reciprocal().mul(max_norm));
  ramet::index_put_(self, {indices}, where(norms.gt(max_norm), limited, rows).to(t));
  return self;
}
Tensor embedding_renorm(const Tensor& self, const Tensor& indices, double max_norm,
                        double norm_type) {
  check_renorm("embedding_renorm", self, indices);
  const NoGradGuard off;
  Tensor copy = self.clone();
  embedding_renorm_(copy, indices, max_norm, norm_type);
  return copy;
}
Tensor& embedding_renorm_out(Tensor& out, const Tensor& self, const Tensor& indices,
                             double max_norm, double norm_type) {
  return out_form(
      kSame, "embedding_renorm_out", out,
      [&] { return embedding_renorm(self, indices, max_norm, norm_type); }, self);
}

}  // namespace ramet
