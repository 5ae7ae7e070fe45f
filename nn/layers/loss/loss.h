// Loss modules. `reduction` is kMean (default), kSum or kNone.
#pragma once
#include <optional>

#include "nn/module/enum.h"
#include "nn/module/listed_module.h"

namespace ramet::nn {

namespace detail {
using reduction_t = OneOf<enumtype::kNone, enumtype::kMean, enumtype::kSum>;
}  // namespace detail

// Options that are a reduction alone convert from one: `MSELoss(kSum)`.
#define RAMET_REDUCTION_CONSTRUCTORS(Options)                   \
  Options() = default;                                          \
  Options(enumtype::kNone reduction) : reduction_(reduction) {} \
  Options(enumtype::kMean reduction) : reduction_(reduction) {} \
  Options(enumtype::kSum reduction) : reduction_(reduction) {}

struct RAMET_API L1LossOptions {
  using reduction_t = detail::reduction_t;
  RAMET_REDUCTION_CONSTRUCTORS(L1LossOptions)
  RAMET_ARG(reduction_t, reduction) = kMean;
};
struct RAMET_API MSELossOptions {
  using reduction_t = detail::reduction_t;
  RAMET_REDUCTION_CONSTRUCTORS(MSELossOptions)
  RAMET_ARG(reduction_t, reduction) = kMean;
};
struct RAMET_API SmoothL1LossOptions {
  using reduction_t = detail::reduction_t;
  RAMET_REDUCTION_CONSTRUCTORS(SmoothL1LossOptions)
  RAMET_ARG(reduction_t, reduction) = kMean;
  RAMET_ARG(std::optional<double>, beta) = std::nullopt;
};
struct RAMET_API BCELossOptions {
  using reduction_t = detail::reduction_t;
  RAMET_ARG(Tensor, weight);
  RAMET_ARG(reduction_t, reduction) = kMean;
};
struct RAMET_API BCEWithLogitsLossOptions {
  using reduction_t = detail::reduction_t;
  RAMET_ARG(Tensor, weight);
  RAMET_ARG(reduction_t, reduction) = kMean;
  RAMET_ARG(Tensor, pos_weight);
};
struct RAMET_API NLLLossOptions {
  using reduction_t = detail::reduction_t;
  /// Per class.
  RAMET_ARG(Tensor, weight);
  RAMET_ARG(int64_t, ignore_index) = -100;
  RAMET_ARG(reduction_t, reduction) = kMean;
};
struct RAMET_API CrossEntropyLossOptions {
  using reduction_t = detail::reduction_t;
  RAMET_ARG(Tensor, weight);
  RAMET_ARG(int64_t, ignore_index) = -100;
  RAMET_ARG(reduction_t, reduction) = kMean;
  RAMET_ARG(double, label_smoothing) = 0.0;
};
#undef RAMET_REDUCTION_CONSTRUCTORS

/// |x - y|
RAMET_LAYER(L1Loss, L1LossOptions, Tensor forward(const Tensor& input, const Tensor& target);)

/// (x - y)^2
RAMET_LAYER(MSELoss, MSELossOptions, Tensor forward(const Tensor& input, const Tensor& target);)

/// d^2 / (2 beta) where d = |x - y| < beta, else d - beta / 2; beta is 1 if not given.
RAMET_LAYER(SmoothL1Loss, SmoothL1LossOptions,
            SmoothL1LossImpl(SmoothL1LossOptions options, double beta);
            Tensor forward(const Tensor& input, const Tensor& target);)

/// -(y log x + (1 - y) log(1 - x)), both logarithms at least -100
RAMET_LAYER(BCELoss, BCELossOptions, Tensor forward(const Tensor& input, const Tensor& target);)

/// BCELoss of sigmoid(x), computed without overflow. `weight` and `pos_weight` become buffers.
RAMET_LAYER(BCEWithLogitsLoss, BCEWithLogitsLossOptions,
            explicit BCEWithLogitsLossImpl(const BCEWithLogitsLossOptions& options_ = {});
            void reset() override; Tensor forward(const Tensor& input, const Tensor& target);
            Tensor weight, pos_weight;)

/// -weight[y] x[y] of log-probabilities x: (N, C, *), classes y: (N, *). The mean is weighted;
/// `weight` becomes a buffer.
RAMET_LAYER(NLLLoss, NLLLossOptions, explicit NLLLossImpl(const NLLLossOptions& options_ = {});
            void reset() override; Tensor forward(const Tensor& input, const Tensor& target);
            Tensor weight;)

/// NLLLoss of log_softmax(x). The target is classes or, with the input's shape, probabilities.
/// `weight` becomes a buffer.
RAMET_LAYER(CrossEntropyLoss, CrossEntropyLossOptions,
            explicit CrossEntropyLossImpl(const CrossEntropyLossOptions& options_ = {});
            void reset() override; Tensor forward(const Tensor& input, const Tensor& target);
            Tensor weight;)

}  // namespace ramet::nn
