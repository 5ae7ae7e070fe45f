// Flatten, Unflatten.
#pragma once
#include <vector>

#include "nn/module/arg.h"
#include "nn/module/cloneable.h"
#include "nn/module/module_holder.h"

namespace ramet::nn {

struct RAMET_API FlattenOptions {
  RAMET_ARG(int64_t, start_dim) = 1;
  RAMET_ARG(int64_t, end_dim) = -1;
};

/// Dimensions start_dim to end_dim become one.
class RAMET_API FlattenImpl : public Cloneable<FlattenImpl> {
 public:
  explicit FlattenImpl(const FlattenOptions& options_ = {}) : options(options_) {}
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input) {
    return input.flatten(options.start_dim(), options.end_dim());
  }

  FlattenOptions options;
};
extern template class Cloneable<FlattenImpl>;
RAMET_MODULE(Flatten);

struct RAMET_API UnflattenOptions {
  UnflattenOptions(int64_t dim, std::vector<int64_t> sizes) : dim_(dim), sizes_(std::move(sizes)) {}
  RAMET_ARG(int64_t, dim);
  RAMET_ARG(std::vector<int64_t>, sizes);
};

/// Dimension dim becomes those of `sizes`.
class RAMET_API UnflattenImpl : public Cloneable<UnflattenImpl> {
 public:
  UnflattenImpl(int64_t dim, std::vector<int64_t> sizes)
      : UnflattenImpl(UnflattenOptions(dim, std::move(sizes))) {}
  explicit UnflattenImpl(UnflattenOptions options_) : options(std::move(options_)) {}
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input) { return input.unflatten(options.dim(), options.sizes()); }

  UnflattenOptions options;
};
extern template class Cloneable<UnflattenImpl>;
RAMET_MODULE(Unflatten);

}  // namespace ramet::nn
