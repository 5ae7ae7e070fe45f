// Dropout, Dropout2d, Dropout3d, AlphaDropout, FeatureAlphaDropout.
#pragma once
#include "nn/module/arg.h"
#include "nn/module/cloneable.h"
#include "nn/module/module_holder.h"

namespace ramet::nn {

struct RAMET_API DropoutOptions {
  DropoutOptions(double p = 0.5) : p_(p) {}
  RAMET_ARG(double, p) = 0.5;
  RAMET_ARG(bool, inplace) = false;
};
using Dropout2dOptions = DropoutOptions;
using Dropout3dOptions = DropoutOptions;
using AlphaDropoutOptions = DropoutOptions;
using FeatureAlphaDropoutOptions = DropoutOptions;

/// What the modules of dropout share: their options.
template <class Derived> class DropoutImplBase : public Cloneable<Derived> {
 public:
  explicit DropoutImplBase(double p) : DropoutImplBase(DropoutOptions(p)) {}
  /// An Error unless 0 <= p <= 1.
  explicit DropoutImplBase(const DropoutOptions& options_ = {}) : options(options_) {
    DropoutImplBase::reset();
  }
  void reset() override {
    RAMET_CHECK(options.p() >= 0 && options.p() <= 1, "Dropout",
                "dropout probability has to be between 0 and 1, but got ", options.p());
  }

  DropoutOptions options;
};

/// In training, zeroes elements with probability p and multiplies the others by 1 / (1 - p).
/// Identity in evaluation.
class RAMET_API DropoutImpl : public DropoutImplBase<DropoutImpl> {
 public:
  using DropoutImplBase::DropoutImplBase;
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(Tensor input);
};
extern template class Cloneable<DropoutImpl>;
RAMET_MODULE(Dropout);

/// The same for whole channels: (N, C, H, W). An input without 4 dimensions gets a batch of 1, so
/// (C, H, W) works too.
class RAMET_API Dropout2dImpl : public DropoutImplBase<Dropout2dImpl> {
 public:
  using DropoutImplBase::DropoutImplBase;
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(Tensor input);
};
extern template class Cloneable<Dropout2dImpl>;
RAMET_MODULE(Dropout2d);

/// The same for volumes: (N, C, D, H, W). An input without 5 dimensions gets a batch of 1.
class RAMET_API Dropout3dImpl : public DropoutImplBase<Dropout3dImpl> {
 public:
  using DropoutImplBase::DropoutImplBase;
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(Tensor input);
};
extern template class Cloneable<Dropout3dImpl>;
RAMET_MODULE(Dropout3d);

/// Keeps mean 0 and variance 1 (autograd/ops/random/dropout.h). As in LibTorch, the module ignores
/// `inplace`, except when it prints itself.
class RAMET_API AlphaDropoutImpl : public DropoutImplBase<AlphaDropoutImpl> {
 public:
  using DropoutImplBase::DropoutImplBase;
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input);
};
extern template class Cloneable<AlphaDropoutImpl>;
RAMET_MODULE(AlphaDropout);

/// The same for whole channels.
class RAMET_API FeatureAlphaDropoutImpl : public DropoutImplBase<FeatureAlphaDropoutImpl> {
 public:
  using DropoutImplBase::DropoutImplBase;
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input);
};
extern template class Cloneable<FeatureAlphaDropoutImpl>;
RAMET_MODULE(FeatureAlphaDropout);

}  // namespace ramet::nn
