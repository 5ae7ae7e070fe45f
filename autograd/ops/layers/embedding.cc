#include "autograd/ops/layers/embedding.h"

#include "autograd/ops/front/common_internal.h"
#include "autograd/ops/front/index_internal.h"
#include "autograd/ops/front/out_internal.h"
#include "autograd/ops/index/gather_scatter.h"
#include "autograd/ops/make/copy.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/shape/view.h"

namespace ramet {

using namespace autograd;
using kernels::IndexMode;

namespace {

// 1 / number of times each index occurs, [indices, 1]; 0 for the padding row.
Tensor frequency_scale(const Tensor& flat, int64_t rows, int64_t padding, bool by_freq,
                       const Tensor& like) {
  const NoGradGuard constants;
  const Tensor one = ones({flat.numel()}, TensorOptions(kDouble).device(like.device()));
  Tensor scale = one;
  if (by_freq) {
    const Tensor count = zeros({rows}, one.options()).index_add_(0, flat, one);
    scale = count.index_select(0, flat).reciprocal();
  }
  if (padding >= 0) scale = scale.masked_fill(flat.eq(padding), 0);
  return scale.unsqueeze(1).to(like.scalar_type());
}

// The gradient of weight [rows, cols] from that of the result.
Tensor embedding_backward(const Tensor& g, const Tensor& indices, int64_t rows, int64_t cols,
                          int64_t padding, bool by_freq) {
  const Tensor flat = indices.reshape(-1);
  const ScalarType t = g.scalar_type(), sum_type = by_freq ? compute_type(t) : t;
  const std::optional<int64_t> skipped =
      padding < 0 ? std::nullopt : std::optional<int64_t>(padding);
  Tensor out;
  {
    const NoGradGuard off;
    Tensor parts = g.shallow().reshape({flat.numel(), cols}).to(sum_type);
    if (by_freq) parts = parts.mul(frequency_scale(flat, rows, padding, true, parts));
    out = Tensor(TensorBase::empty({rows, cols}, sum_type, g.device()));
    fill_values(out, 0);
    select_loop(IndexMode::kAdd, out, 0, flat, parts, skipped);
    out = out.to(t);
  }
  if (!recording(g)) return out;
  return record(
      "EmbeddingDenseBackwardBackward0", {g}, std::move(out),
      [rows, padding, by_freq, m = Meta(g), at = save(indices)](const Node& self, const Tensor& v) {
        const Tensor flat = at.get(self).reshape(-1), picked = v.index_select(0, flat);
        const Tensor scaled = padding >= 0 || by_freq
                                  ? picked.mul(frequency_scale(flat, rows, padding, by_freq, v))
                                  : picked;
        return scaled.reshape(m.shape());
      });
}

}  // namespace

Tensor embedding(const Tensor& weight, const Tensor& indices_, int64_t padding_idx,
                 bool scale_grad_by_freq, bool sparse) {
  check_defined("embedding", weight);
  check_defined("embedding", indices_);
  RAMET_CHECK(weight.dim() == 2, "embedding", "'weight' must be 2-D: got ", describe(weight));
  check_same_device("embedding", weight, indices_);
  if (sparse)
    throw NotImplementedError(
        "[embedding] sparse gradients are not implemented: got sparse = true");
  const int64_t rows = weight.size(0), cols = weight.size(1);
  // -1, LibTorch's "no padding row", names no row; nor do other negative numbers here.
  RAMET_CHECK(padding_idx < rows, "embedding", "padding_idx: got ", padding_idx,
              ", expected less than ", rows);
  const Tensor indices = index_as_long("embedding", indices_).contiguous();
  check_indices("embedding", indices, 0, rows, "rows of weight");
  std::vector<int64_t> sizes = indices.sizes().vec();
  sizes.push_back(cols);
  Tensor out(TensorBase::empty(sizes, weight.scalar_type(), weight.device()));
  {
    const NoGradGuard off;
    select_loop(IndexMode::kGet, weight.shallow(), 0, indices.reshape(-1),
                out.reshape({indices.numel(), cols}));
  }
  if (!recording(weight)) return out;
  return record("EmbeddingBackward0", {weight}, std::move(out),
                [rows, cols, padding_idx, scale_grad_by_freq, at = save(indices)](const Node& self,
                                                                                  const Tensor& g) {
                  return embedding_backward(g, at.get(self), rows, cols, padding_idx,
                                            scale_grad_by_freq);
                },
                [&](Arguments& to) { to("indices", indices); });
}

Tensor& embedding_out(Tensor& out, const Tensor& weight, const Tensor& indices, int64_t padding_idx,
                      bool scale_grad_by_freq, bool sparse) {
  return out_form(
      kSame, "embedding_out", out,
      [&] { return embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse); }, weight);
}

}  // namespace ramet
