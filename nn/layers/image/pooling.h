// MaxPool, AvgPool, AdaptiveAvgPool and AdaptiveMaxPool of 1 to 3 dimensions.
#pragma once
#include <tuple>

#include "nn/module/expanding_array.h"
#include "nn/module/listed_module.h"

namespace ramet::nn {

/// The options of MaxPool1d, MaxPool2d and MaxPool3d.
template <size_t D> struct RAMET_API MaxPoolOptions {
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
template <size_t D> struct RAMET_API AvgPoolOptions {
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
template <class output_size_t> struct RAMET_API AdaptiveAvgPoolOptions {
  AdaptiveAvgPoolOptions(output_size_t output_size) : output_size_(output_size) {}
  RAMET_ARG(output_size_t, output_size);
};
using AdaptiveAvgPool1dOptions = AdaptiveAvgPoolOptions<ExpandingArray<1>>;
using AdaptiveAvgPool2dOptions = AdaptiveAvgPoolOptions<ExpandingArrayWithOptionalElem<2>>;
using AdaptiveAvgPool3dOptions = AdaptiveAvgPoolOptions<ExpandingArrayWithOptionalElem<3>>;

/// The options of AdaptiveMaxPool1d, AdaptiveMaxPool2d and AdaptiveMaxPool3d: an extent of nullopt
/// is the input's.
template <class output_size_t> struct RAMET_API AdaptiveMaxPoolOptions {
  AdaptiveMaxPoolOptions(output_size_t output_size) : output_size_(output_size) {}
  RAMET_ARG(output_size_t, output_size);
};
using AdaptiveMaxPool1dOptions = AdaptiveMaxPoolOptions<ExpandingArray<1>>;
using AdaptiveMaxPool2dOptions = AdaptiveMaxPoolOptions<ExpandingArrayWithOptionalElem<2>>;
using AdaptiveMaxPool3dOptions = AdaptiveMaxPoolOptions<ExpandingArrayWithOptionalElem<3>>;

/// The maximum of each window: (N, C, ...) or (C, ...) with D spatial dimensions
/// (autograd/ops/layers/pool.h).
template <size_t D, class Derived>
class RAMET_API MaxPoolImpl : public detail::ListedModule<Derived, MaxPoolOptions<D>> {
 public:
  using detail::ListedModule<Derived, MaxPoolOptions<D>>::ListedModule;
  MaxPoolImpl(ExpandingArray<D> kernel_size) : MaxPoolImpl::ListedModule(kernel_size) {}
  Tensor forward(const Tensor& input);
  /// The maxima and, for each, its position in the input's last D dimensions (int64).
  std::tuple<Tensor, Tensor> forward_with_indices(const Tensor& input);
};

/// The mean of each window: (N, C, ...) or (C, ...) with D spatial dimensions
/// (autograd/ops/layers/pool.h).
template <size_t D, class Derived>
class RAMET_API AvgPoolImpl : public detail::ListedModule<Derived, AvgPoolOptions<D>> {
 public:
  using detail::ListedModule<Derived, AvgPoolOptions<D>>::ListedModule;
  AvgPoolImpl(ExpandingArray<D> kernel_size) : AvgPoolImpl::ListedModule(kernel_size) {}
  Tensor forward(const Tensor& input);
};

/// The mean of windows that give the output size: (N, C, ...) or (C, ...) with D spatial
/// dimensions.
template <size_t D, class output_size_t, class Derived>
class RAMET_API AdaptiveAvgPoolImpl
    : public detail::ListedModule<Derived, AdaptiveAvgPoolOptions<output_size_t>> {
 public:
  using detail::ListedModule<Derived, AdaptiveAvgPoolOptions<output_size_t>>::ListedModule;
  AdaptiveAvgPoolImpl(output_size_t output_size) : AdaptiveAvgPoolImpl::ListedModule(output_size) {}
  Tensor forward(const Tensor& input);
};

/// The maximum of windows that give the output size: (N, C, ...) or (C, ...) with D spatial
/// dimensions.
template <size_t D, class output_size_t, class Derived>
class RAMET_API AdaptiveMaxPoolImpl
    : public detail::ListedModule<Derived, AdaptiveMaxPoolOptions<output_size_t>> {
 public:
  using detail::ListedModule<Derived, AdaptiveMaxPoolOptions<output_size_t>>::ListedModule;
  AdaptiveMaxPoolImpl(output_size_t output_size) : AdaptiveMaxPoolImpl::ListedModule(output_size) {}
  Tensor forward(const Tensor& input);
  /// The maxima and, for each, its position in the input's last D dimensions (int64).
  std::tuple<Tensor, Tensor> forward_with_indices(const Tensor& input);
};

#define RAMET_POOLS(D, Size)                                                                    \
  RAMET_LAYER_FROM(MaxPool##D##d, MaxPool##D##dOptions, MaxPoolImpl, D)                         \
  RAMET_LAYER_FROM(AvgPool##D##d, AvgPool##D##dOptions, AvgPoolImpl, D)                         \
  RAMET_LAYER_FROM(AdaptiveAvgPool##D##d, AdaptiveAvgPool##D##dOptions, AdaptiveAvgPoolImpl, D, \
                   Size<D>)                                                                     \
  RAMET_LAYER_FROM(AdaptiveMaxPool##D##d, AdaptiveMaxPool##D##dOptions, AdaptiveMaxPoolImpl, D, \
                   Size<D>)
RAMET_POOLS(1, ExpandingArray)
RAMET_POOLS(2, ExpandingArrayWithOptionalElem)
RAMET_POOLS(3, ExpandingArrayWithOptionalElem)
#undef RAMET_POOLS

}  // namespace ramet::nn
