// MaxPool, AvgPool, AdaptiveAvgPool and AdaptiveMaxPool of 1 to 3 dimensions.
#pragma once
#include <tuple>

#include "nn/module/arg.h"
#include "nn/module/cloneable.h"
#include "nn/module/expanding_array.h"
#include "nn/module/module_holder.h"

namespace ramet::nn {

/// The options of MaxPool1d, MaxPool2d and MaxPool3d.
template <size_t D> struct MaxPoolOptions {
  MaxPoolOptions(ExpandingArray<D> kernel_size) : kernel_size_(kernel_size), stride_(kernel_size) {}
  RAMET_ARG(ExpandingArray<D>, kernel_size);
  RAMET_ARG(ExpandingArray<D>, stride);  // as the kernel, if not given
  RAMET_ARG(ExpandingArray<D>, padding) = 0;
  RAMET_ARG(ExpandingArray<D>, dilation) = 1;
  RAMET_ARG(bool, ceil_mode) = false;
};
using MaxPool1dOptions = MaxPoolOptions<1>;
using MaxPool2dOptions = MaxPoolOptions<2>;
using MaxPool3dOptions = MaxPoolOptions<3>;

/// The options of AvgPool1d, AvgPool2d and AvgPool3d.
template <size_t D> struct AvgPoolOptions {
  AvgPoolOptions(ExpandingArray<D> kernel_size) : kernel_size_(kernel_size), stride_(kernel_size) {}
  RAMET_ARG(ExpandingArray<D>, kernel_size);
  RAMET_ARG(ExpandingArray<D>, stride);  // as the kernel, if not given
  RAMET_ARG(ExpandingArray<D>, padding) = 0;
  RAMET_ARG(bool, ceil_mode) = false;
  RAMET_ARG(bool, count_include_pad) = true;
  RAMET_ARG(std::optional<int64_t>, divisor_override) = std::nullopt;
};
using AvgPool1dOptions = AvgPoolOptions<1>;
using AvgPool2dOptions = AvgPoolOptions<2>;
using AvgPool3dOptions = AvgPoolOptions<3>;

/// The options of AdaptiveAvgPool1d, AdaptiveAvgPool2d and AdaptiveAvgPool3d: an extent of nullopt
/// is the input's.
template <class output_size_t> struct AdaptiveAvgPoolOptions {
  AdaptiveAvgPoolOptions(output_size_t output_size) : output_size_(output_size) {}
  RAMET_ARG(output_size_t, output_size);
};
using AdaptiveAvgPool1dOptions = AdaptiveAvgPoolOptions<ExpandingArray<1>>;
using AdaptiveAvgPool2dOptions = AdaptiveAvgPoolOptions<ExpandingArrayWithOptionalElem<2>>;
using AdaptiveAvgPool3dOptions = AdaptiveAvgPoolOptions<ExpandingArrayWithOptionalElem<3>>;

/// The options of AdaptiveMaxPool1d, AdaptiveMaxPool2d and AdaptiveMaxPool3d: an extent of nullopt
/// is the input's.
template <class output_size_t> struct AdaptiveMaxPoolOptions {
  AdaptiveMaxPoolOptions(output_size_t output_size) : output_size_(output_size) {}
  RAMET_ARG(output_size_t, output_size);
};
using AdaptiveMaxPool1dOptions = AdaptiveMaxPoolOptions<ExpandingArray<1>>;
using AdaptiveMaxPool2dOptions = AdaptiveMaxPoolOptions<ExpandingArrayWithOptionalElem<2>>;
using AdaptiveMaxPool3dOptions = AdaptiveMaxPoolOptions<ExpandingArrayWithOptionalElem<3>>;

/// The maximum of each window: (N, C, ...) or (C, ...) with D spatial dimensions
/// (autograd/ops/layers/pool.h).
template <size_t D, class Derived> class RAMET_API MaxPoolImpl : public Cloneable<Derived> {
 public:
  MaxPoolImpl(ExpandingArray<D> kernel_size) : MaxPoolImpl(MaxPoolOptions<D>(kernel_size)) {}
  explicit MaxPoolImpl(const MaxPoolOptions<D>& options_) : options(options_) {}
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;

  MaxPoolOptions<D> options;
};

class RAMET_API MaxPool1dImpl : public MaxPoolImpl<1, MaxPool1dImpl> {
 public:
  using MaxPoolImpl::MaxPoolImpl;
  Tensor forward(const Tensor& input);
  /// The maxima and, for each, its position along the last dimension (int64).
  std::tuple<Tensor, Tensor> forward_with_indices(const Tensor& input);
};
extern template class Cloneable<MaxPool1dImpl>;
RAMET_MODULE(MaxPool1d);

class RAMET_API MaxPool2dImpl : public MaxPoolImpl<2, MaxPool2dImpl> {
 public:
  using MaxPoolImpl::MaxPoolImpl;
  Tensor forward(const Tensor& input);
  /// The maxima and, for each, its position in the input's H x W plane (int64).
  std::tuple<Tensor, Tensor> forward_with_indices(const Tensor& input);
};
extern template class Cloneable<MaxPool2dImpl>;
RAMET_MODULE(MaxPool2d);

class RAMET_API MaxPool3dImpl : public MaxPoolImpl<3, MaxPool3dImpl> {
 public:
  using MaxPoolImpl::MaxPoolImpl;
  Tensor forward(const Tensor& input);
  /// The maxima and, for each, its position in the input's D x H x W volume (int64).
  std::tuple<Tensor, Tensor> forward_with_indices(const Tensor& input);
};
extern template class Cloneable<MaxPool3dImpl>;
RAMET_MODULE(MaxPool3d);

/// The mean of each window: (N, C, ...) or (C, ...) with D spatial dimensions
/// (autograd/ops/layers/pool.h).
template <size_t D, class Derived> class RAMET_API AvgPoolImpl : public Cloneable<Derived> {
 public:
  AvgPoolImpl(ExpandingArray<D> kernel_size) : AvgPoolImpl(AvgPoolOptions<D>(kernel_size)) {}
  explicit AvgPoolImpl(const AvgPoolOptions<D>& options_) : options(options_) {}
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;

  AvgPoolOptions<D> options;
};

class RAMET_API AvgPool1dImpl : public AvgPoolImpl<1, AvgPool1dImpl> {
 public:
  using AvgPoolImpl::AvgPoolImpl;
  Tensor forward(const Tensor& input);
};
extern template class Cloneable<AvgPool1dImpl>;
RAMET_MODULE(AvgPool1d);

class RAMET_API AvgPool2dImpl : public AvgPoolImpl<2, AvgPool2dImpl> {
 public:
  using AvgPoolImpl::AvgPoolImpl;
  Tensor forward(const Tensor& input);
};
extern template class Cloneable<AvgPool2dImpl>;
RAMET_MODULE(AvgPool2d);

class RAMET_API AvgPool3dImpl : public AvgPoolImpl<3, AvgPool3dImpl> {
 public:
  using AvgPoolImpl::AvgPoolImpl;
  Tensor forward(const Tensor& input);
};
extern template class Cloneable<AvgPool3dImpl>;
RAMET_MODULE(AvgPool3d);

/// The mean of windows that give the output size: (N, C, ...) or (C, ...) with D spatial
/// dimensions.
template <size_t D, class output_size_t, class Derived>
class RAMET_API AdaptiveAvgPoolImpl : public Cloneable<Derived> {
 public:
  AdaptiveAvgPoolImpl(output_size_t output_size)
      : AdaptiveAvgPoolImpl(AdaptiveAvgPoolOptions<output_size_t>(output_size)) {}
  explicit AdaptiveAvgPoolImpl(const AdaptiveAvgPoolOptions<output_size_t>& options_)
      : options(options_) {}
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;

  AdaptiveAvgPoolOptions<output_size_t> options;
};

class RAMET_API AdaptiveAvgPool1dImpl
    : public AdaptiveAvgPoolImpl<1, ExpandingArray<1>, AdaptiveAvgPool1dImpl> {
 public:
  using AdaptiveAvgPoolImpl::AdaptiveAvgPoolImpl;
  Tensor forward(const Tensor& input);
};
extern template class Cloneable<AdaptiveAvgPool1dImpl>;
RAMET_MODULE(AdaptiveAvgPool1d);

class RAMET_API AdaptiveAvgPool2dImpl
    : public AdaptiveAvgPoolImpl<2, ExpandingArrayWithOptionalElem<2>, AdaptiveAvgPool2dImpl> {
 public:
  using AdaptiveAvgPoolImpl::AdaptiveAvgPoolImpl;
  Tensor forward(const Tensor& input);
};
extern template class Cloneable<AdaptiveAvgPool2dImpl>;
RAMET_MODULE(AdaptiveAvgPool2d);

class RAMET_API AdaptiveAvgPool3dImpl
    : public AdaptiveAvgPoolImpl<3, ExpandingArrayWithOptionalElem<3>, AdaptiveAvgPool3dImpl> {
 public:
  using AdaptiveAvgPoolImpl::AdaptiveAvgPoolImpl;
  Tensor forward(const Tensor& input);
};
extern template class Cloneable<AdaptiveAvgPool3dImpl>;
RAMET_MODULE(AdaptiveAvgPool3d);

/// The maximum of windows that give the output size: (N, C, ...) or (C, ...) with D spatial
/// dimensions.
template <size_t D, class output_size_t, class Derived>
class RAMET_API AdaptiveMaxPoolImpl : public Cloneable<Derived> {
 public:
  AdaptiveMaxPoolImpl(output_size_t output_size)
      : AdaptiveMaxPoolImpl(AdaptiveMaxPoolOptions<output_size_t>(output_size)) {}
  explicit AdaptiveMaxPoolImpl(const AdaptiveMaxPoolOptions<output_size_t>& options_)
      : options(options_) {}
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input);
  /// The maxima and, for each, its position in the input's last D dimensions (int64).
  std::tuple<Tensor, Tensor> forward_with_indices(const Tensor& input);

  AdaptiveMaxPoolOptions<output_size_t> options;
};

#define RAMET_ADAPTIVE_MAX_POOL(D, ...)                                                 \
  class RAMET_API AdaptiveMaxPool##D##dImpl                                             \
      : public AdaptiveMaxPoolImpl<D, __VA_ARGS__, AdaptiveMaxPool##D##dImpl> {         \
   public:                                                                              \
    using AdaptiveMaxPoolImpl::AdaptiveMaxPoolImpl;                                     \
  };                                                                                    \
  extern template class AdaptiveMaxPoolImpl<D, __VA_ARGS__, AdaptiveMaxPool##D##dImpl>; \
  extern template class Cloneable<AdaptiveMaxPool##D##dImpl>;                           \
  RAMET_MODULE(AdaptiveMaxPool##D##d);
RAMET_ADAPTIVE_MAX_POOL(1, ExpandingArray<1>)
RAMET_ADAPTIVE_MAX_POOL(2, ExpandingArrayWithOptionalElem<2>)
RAMET_ADAPTIVE_MAX_POOL(3, ExpandingArrayWithOptionalElem<3>)
#undef RAMET_ADAPTIVE_MAX_POOL

extern template class MaxPoolImpl<1, MaxPool1dImpl>;
extern template class MaxPoolImpl<2, MaxPool2dImpl>;
extern template class MaxPoolImpl<3, MaxPool3dImpl>;
extern template class AvgPoolImpl<1, AvgPool1dImpl>;
extern template class AvgPoolImpl<2, AvgPool2dImpl>;
extern template class AvgPoolImpl<3, AvgPool3dImpl>;
extern template class AdaptiveAvgPoolImpl<1, ExpandingArray<1>, AdaptiveAvgPool1dImpl>;
extern template class AdaptiveAvgPoolImpl<2, ExpandingArrayWithOptionalElem<2>,
                                          AdaptiveAvgPool2dImpl>;
extern template class AdaptiveAvgPoolImpl<3, ExpandingArrayWithOptionalElem<3>,
                                          AdaptiveAvgPool3dImpl>;

}  // namespace ramet::nn
