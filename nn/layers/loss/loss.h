// Loss modules. `reduction` is kMean (default), kSum or kNone.
#pragma once
#include <optional>

#include "nn/module/arg.h"
#include "nn/module/cloneable.h"
#include "nn/module/enum.h"
#include "nn/module/module_holder.h"

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
class RAMET_API L1LossImpl : public Cloneable<L1LossImpl> {
 public:
  explicit L1LossImpl(L1LossOptions options_ = {});
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input, const Tensor& target);
  L1LossOptions options;
};
extern template class Cloneable<L1LossImpl>;
RAMET_MODULE(L1Loss);

/// (x - y)^2
class RAMET_API MSELossImpl : public Cloneable<MSELossImpl> {
 public:
  explicit MSELossImpl(MSELossOptions options_ = {});
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input, const Tensor& target);
  MSELossOptions options;
};
extern template class Cloneable<MSELossImpl>;
RAMET_MODULE(MSELoss);

/// d^2 / (2 beta) where d = |x - y| < beta, else d - beta / 2; beta is 1 if not given.
class RAMET_API SmoothL1LossImpl : public Cloneable<SmoothL1LossImpl> {
 public:
  explicit SmoothL1LossImpl(SmoothL1LossOptions options = {});
  SmoothL1LossImpl(SmoothL1LossOptions options, double beta);
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input, const Tensor& target);
  SmoothL1LossOptions options;
};
extern template class Cloneable<SmoothL1LossImpl>;
RAMET_MODULE(SmoothL1Loss);

/// -(y log x + (1 - y) log(1 - x)), both logarithms at least -100
class RAMET_API BCELossImpl : public Cloneable<BCELossImpl> {
 public:
  explicit BCELossImpl(BCELossOptions options_ = {});
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input, const Tensor& target);
  BCELossOptions options;
};
extern template class Cloneable<BCELossImpl>;
RAMET_MODULE(BCELoss);

/// BCELoss of sigmoid(x), computed without overflow. `weight` and `pos_weight` become buffers.
class RAMET_API BCEWithLogitsLossImpl : public Cloneable<BCEWithLogitsLossImpl> {
 public:
  explicit BCEWithLogitsLossImpl(BCEWithLogitsLossOptions options_ = {});
  void reset() override;
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input, const Tensor& target);
  BCEWithLogitsLossOptions options;
  Tensor weight, pos_weight;
};
extern template class Cloneable<BCEWithLogitsLossImpl>;
RAMET_MODULE(BCEWithLogitsLoss);

/// -weight[y] x[y] of log-probabilities x: (N, C, *), classes y: (N, *). The mean is weighted;
/// `weight` becomes a buffer.
class RAMET_API NLLLossImpl : public Cloneable<NLLLossImpl> {
 public:
  explicit NLLLossImpl(NLLLossOptions options_ = {});
  void reset() override;
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input, const Tensor& target);
  NLLLossOptions options;
  Tensor weight;
};
extern template class Cloneable<NLLLossImpl>;
RAMET_MODULE(NLLLoss);

/// NLLLoss of log_softmax(x). The target is classes or, with the input's shape, probabilities.
/// `weight` becomes a buffer.
class RAMET_API CrossEntropyLossImpl : public Cloneable<CrossEntropyLossImpl> {
 public:
  explicit CrossEntropyLossImpl(CrossEntropyLossOptions options_ = {});
  void reset() override;
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input, const Tensor& target);
  CrossEntropyLossOptions options;
  Tensor weight;
};
extern template class Cloneable<CrossEntropyLossImpl>;
RAMET_MODULE(CrossEntropyLoss);

}  // namespace ramet::nn
