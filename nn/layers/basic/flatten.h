// Flatten, Unflatten.
#pragma once
#include <vector>

#include "nn/module/listed_module.h"

namespace ramet::nn {

struct RAMET_API FlattenOptions {
  RAMET_ARG(int64_t, start_dim) = 1;
  RAMET_ARG(int64_t, end_dim) = -1;
};

/// Dimensions start_dim to end_dim become one.
RAMET_LAYER(
    Flatten, FlattenOptions, Tensor forward(const Tensor& input) {
      return input.flatten(options.start_dim(), options.end_dim());
    })

struct RAMET_API UnflattenOptions {
  UnflattenOptions(int64_t dim, std::vector<int64_t> sizes) : dim_(dim), sizes_(std::move(sizes)) {}
  RAMET_ARG(int64_t, dim);
  RAMET_ARG(std::vector<int64_t>, sizes);
};

/// Dimension dim becomes those of `sizes`.
class RAMET_API UnflattenImpl : public detail::ListedModule<UnflattenImpl, UnflattenOptions> {
 public:
  UnflattenImpl(int64_t dim, std::vector<int64_t> sizes)
      : UnflattenImpl(UnflattenOptions(dim, std::move(sizes))) {}
  explicit UnflattenImpl(const UnflattenOptions& options_) : ListedModule(options_) {}
  Tensor forward(const Tensor& input) { return input.unflatten(options.dim(), options.sizes()); }
};
RAMET_LISTED_MODULE(Unflatten, UnflattenOptions)

}  // namespace ramet::nn
