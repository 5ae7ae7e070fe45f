#include "nn/layers/sequence/embedding_bag.h"

#include "autograd/ops/layers/embedding_bag.h"
#include "autograd/ops/layers/embedding_bag_internal.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/shape/view.h"
#include "nn/layers/sequence/embedding_internal.h"
#include "nn/module/listed_module_internal.h"

namespace ramet::nn {

EmbeddingBagImpl::EmbeddingBagImpl(EmbeddingBagOptions options_) : ListedModule(options_) {
  EmbeddingBagImpl::reset();
}

void EmbeddingBagImpl::reset() { detail::reset_embedding(*this, "EmbeddingBag", "weight"); }
void EmbeddingBagImpl::reset_parameters() { detail::draw_embedding(*this); }

Tensor EmbeddingBagImpl::forward(const Tensor& input, const Tensor& offsets,
                                 const Tensor& per_sample_weights) {
  return functional::detail::embedding_bag(input, weight, offsets, options.max_norm(),
                                           options.norm_type(), options.scale_grad_by_freq(),
                                           options.mode(), options.sparse(), per_sample_weights,
                                           options.include_last_offset(), options.padding_idx());
}

EmbeddingBag EmbeddingBag::from_pretrained(const Tensor& embeddings,
                                           const EmbeddingBagFromPretrainedOptions& options) {
  RAMET_CHECK(embeddings.dim() == 2, "EmbeddingBag",
              "Embeddings parameter is expected to be 2-dimensional: got ", describe(embeddings));
  EmbeddingBag made(EmbeddingBagOptions(embeddings.size(0), embeddings.size(1))
                        ._weight(embeddings)
                        .max_norm(options.max_norm())
                        .norm_type(options.norm_type())
                        .scale_grad_by_freq(options.scale_grad_by_freq())
                        .mode(options.mode())
                        .sparse(options.sparse())
                        .include_last_offset(options.include_last_offset())
                        .padding_idx(options.padding_idx()));
  made->weight.set_requires_grad(!options.freeze());
  return made;
}

RAMET_DEFINE_FORWARD_DEFAULT_ARGS(EmbeddingBagImpl, {1, AnyValue(Tensor())},
                                  {2, AnyValue(Tensor())})

RAMET_FIELDS(EmbeddingBag, {"num_embeddings", &o.num_embeddings(), kCount},
             {"embedding_dim", &o.embedding_dim(), kCount}, {"max_norm", &o.max_norm(), kIfChanged},
             {"norm_type", &o.norm_type(), kIfChanged},
             {"scale_grad_by_freq", &o.scale_grad_by_freq(), kIfChanged},
             {"mode", &o.mode(), kIfChanged},
             {"include_last_offset", &o.include_last_offset(), kIfChanged},
             {"padding_idx", &o.padding_idx(), kIfChanged})

namespace functional {

Tensor detail::embedding_bag(const Tensor& input, const Tensor& weight, const Tensor& offsets,
                             std::optional<double> max_norm, double norm_type,
                             bool scale_grad_by_freq, EmbeddingBagMode mode, bool sparse,
                             const Tensor& per_sample_weights, bool include_last_offset,
                             std::optional<int64_t> padding_idx) {
  const char* op = "embedding_bag";
  for (const Tensor* t : {&input, &weight}) RAMET_CHECK(t->defined(), op, "undefined tensor");
  const Tensor& scale = per_sample_weights;
  RAMET_CHECK(!scale.defined() || input.sizes() == scale.sizes(), op, "If per_sample_weights (",
              scale.defined() ? scale.sizes() : IntArrayRef(),
              ") is not null, then it must have the same shape as the input (", input.sizes(), ")");
  RAMET_CHECK(input.dim() == 1 || input.dim() == 2, op,
              "input has to be 1D or 2D Tensor, but got Tensor of dimension ", input.dim());
  const bool matrix = input.dim() == 2;
  if (matrix)
    RAMET_CHECK(!offsets.defined(), op, "If input is 2D, then offsets has to be null, as input is ",
                "treated is a mini-batch of fixed length sequences. However, found offsets of ",
                "type Tensor");
  else
    RAMET_CHECK(offsets.defined() && offsets.dim() == 1, op,
                "offsets has to be a 1D Tensor but got ",
                offsets.defined() ? describe(offsets) : std::string("null"));
  const bool sums = holds_alternative<enumtype::kSum>(mode),
             maxima = holds_alternative<enumtype::kMax>(mode);
  RAMET_CHECK(!maxima || !scale_grad_by_freq, op,
              "max mode does not support scaling the gradient by the frequency");
  RAMET_CHECK(!maxima || !sparse, op, "max mode does not support sparse weights");
  RAMET_CHECK(sums || !scale.defined(), op, "per_sample_weights was not null. ",
              "per_sample_weights is only supported for mode='kSum' (got mode='",
              enumtype::get_enum_name(mode), "').");
  // Rows of a matrix; also of one without columns.
  const Tensor starts =
      matrix ? arange(input.size(0), TensorOptions(kLong).device(input.device())).mul(input.size(1))
             : offsets;
  const Tensor indices = matrix ? input.reshape(-1) : input,
               factors = scale.defined() ? scale.reshape(-1) : scale;
  const int64_t how = sums ? 0 : maxima ? 2 : 1;
  // The starts of a matrix's rows are not followed by the end of the last one.
  const bool last = include_last_offset && !matrix;
  if (max_norm) {
    // Before the weight is changed.
    autograd::check_embedding_bag(weight, indices, starts, how, sparse, factors, last, padding_idx);
    nn::detail::limit_rows(weight, input, *max_norm, norm_type);
  }
  return std::get<0>(ramet::embedding_bag(
      weight, indices, starts, scale_grad_by_freq, how, sparse,
      factors.defined() ? std::optional<Tensor>(factors) : std::nullopt, last, padding_idx));
}
Tensor embedding_bag(const Tensor& input, const Tensor& weight, const EmbeddingBagFuncOptions& o) {
  return detail::embedding_bag(input, weight, o.offsets(), o.max_norm(), o.norm_type(),
                               o.scale_grad_by_freq(), o.mode(), o.sparse(), o.per_sample_weights(),
                               o.include_last_offset(), o.padding_idx());
}

}  // namespace functional
}  // namespace ramet::nn
