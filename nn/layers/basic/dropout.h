// Dropout, Dropout2d, Dropout3d, AlphaDropout, FeatureAlphaDropout.
#pragma once
#include "nn/module/listed_module.h"

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
template <class Derived>
class DropoutImplBase : public detail::ListedModule<Derived, DropoutOptions> {
 public:
  using detail::ListedModule<Derived, DropoutOptions>::options;
  explicit DropoutImplBase(double p) : DropoutImplBase(DropoutOptions(p)) {}
  /// An Error unless 0 <= p <= 1.
  explicit DropoutImplBase(const DropoutOptions& options_ = {})
      : DropoutImplBase::ListedModule(options_) {
    DropoutImplBase::reset();
  }
  void reset() override {
    RAMET_CHECK(options.p() >= 0 && options.p() <= 1, "Dropout",
                "dropout probability has to be between 0 and 1, but got ", options.p());
  }
};

/// In training, zeroes elements with probability p and multiplies the others by 1 / (1 - p).
/// Identity in evaluation.
class RAMET_API DropoutImpl : public DropoutImplBase<DropoutImpl> {
 public:
  using DropoutImplBase::DropoutImplBase;
  Tensor forward(Tensor input);
};
RAMET_LISTED_MODULE(Dropout, DropoutOptions)

/// The same for whole channels: (N, C, H, W). An input without 4 dimensions gets a batch of 1, so
/// (C, H, W) works too.
class RAMET_API Dropout2dImpl : public DropoutImplBase<Dropout2dImpl> {
 public:
  using DropoutImplBase::DropoutImplBase;
  Tensor forward(Tensor input);
};
RAMET_LISTED_MODULE(Dropout2d, DropoutOptions)

/// The same for volumes: (N, C, D, H, W). An input without 5 dimensions gets a batch of 1.
class RAMET_API Dropout3dImpl : public DropoutImplBase<Dropout3dImpl> {
 public:
  using DropoutImplBase::DropoutImplBase;
  Tensor forward(Tensor input);
};
RAMET_LISTED_MODULE(Dropout3d, DropoutOptions)

/// Keeps mean 0 and variance 1 (autograd/ops/random/dropout.h). As in LibTorch, the module ignores
/// `inplace`, except when it prints itself.
class RAMET_API AlphaDropoutImpl : public DropoutImplBase<AlphaDropoutImpl> {
 public:
  using DropoutImplBase::DropoutImplBase;
  Tensor forward(const Tensor& input);
};
RAMET_LISTED_MODULE(AlphaDropout, DropoutOptions)

/// The same for whole channels.
class RAMET_API FeatureAlphaDropoutImpl : public DropoutImplBase<FeatureAlphaDropoutImpl> {
 public:
  using DropoutImplBase::DropoutImplBase;
  Tensor forward(const Tensor& input);
};
RAMET_LISTED_MODULE(FeatureAlphaDropout, DropoutOptions)

}  // namespace ramet::nn
