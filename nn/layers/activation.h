// ReLU, LeakyReLU, GELU, Tanh, Sigmoid, Softmax, LogSoftmax.
#pragma once
#include <optional>
#include <string>

#include "nn/module/arg.h"
#include "nn/module/cloneable.h"
#include "nn/module/module_holder.h"

namespace ramet::nn {

struct RAMET_API ReLUOptions {
  ReLUOptions(bool inplace = false) : inplace_(inplace) {}
  RAMET_ARG(bool, inplace);
};

/// max(x, 0)
class RAMET_API ReLUImpl : public Cloneable<ReLUImpl> {
 public:
  explicit ReLUImpl(const ReLUOptions& options_ = {}) : options(options_) {}
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(Tensor input);

  ReLUOptions options;
};
extern template class Cloneable<ReLUImpl>;
RAMET_MODULE(ReLU);

struct RAMET_API LeakyReLUOptions {
  RAMET_ARG(double, negative_slope) = 1e-2;
  RAMET_ARG(bool, inplace) = false;
};

/// x where x > 0, else negative_slope x
class RAMET_API LeakyReLUImpl : public Cloneable<LeakyReLUImpl> {
 public:
  explicit LeakyReLUImpl(const LeakyReLUOptions& options_ = {}) : options(options_) {}
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(Tensor input);

  LeakyReLUOptions options;
};
extern template class Cloneable<LeakyReLUImpl>;
RAMET_MODULE(LeakyReLU);

struct RAMET_API GELUOptions {
  /// "none": by the error function; "tanh": its approximation.
  RAMET_ARG(std::string, approximate) = "none";
};

/// x times the normal distribution function of x: Hendrycks and Gimpel 2016.
class RAMET_API GELUImpl : public Cloneable<GELUImpl> {
 public:
  explicit GELUImpl(GELUOptions options_ = {}) : options(std::move(options_)) {}
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input);

  GELUOptions options;
};
extern template class Cloneable<GELUImpl>;
RAMET_MODULE(GELU);

class RAMET_API TanhImpl : public Cloneable<TanhImpl> {
 public:
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input) { return input.tanh(); }
};
extern template class Cloneable<TanhImpl>;
RAMET_MODULE(Tanh);

/// 1 / (1 + exp(-x))
class RAMET_API SigmoidImpl : public Cloneable<SigmoidImpl> {
 public:
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input) { return input.sigmoid(); }
};
extern template class Cloneable<SigmoidImpl>;
RAMET_MODULE(Sigmoid);

struct RAMET_API SoftmaxOptions {
  SoftmaxOptions(int64_t dim) : dim_(dim) {}
  RAMET_ARG(int64_t, dim);
};

/// exp(x) divided by its sum along dim
class RAMET_API SoftmaxImpl : public Cloneable<SoftmaxImpl> {
 public:
  explicit SoftmaxImpl(int64_t dim) : SoftmaxImpl(SoftmaxOptions(dim)) {}
  explicit SoftmaxImpl(const SoftmaxOptions& options_) : options(options_) {}
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input) { return input.softmax(options.dim()); }

  SoftmaxOptions options;
};
extern template class Cloneable<SoftmaxImpl>;
RAMET_MODULE(Softmax);

struct RAMET_API LogSoftmaxOptions {
  LogSoftmaxOptions(int64_t dim) : dim_(dim) {}
  RAMET_ARG(int64_t, dim);
};

/// The logarithm of Softmax, computed without overflow.
class RAMET_API LogSoftmaxImpl : public Cloneable<LogSoftmaxImpl> {
 public:
  explicit LogSoftmaxImpl(int64_t dim) : LogSoftmaxImpl(LogSoftmaxOptions(dim)) {}
  explicit LogSoftmaxImpl(const LogSoftmaxOptions& options_) : options(options_) {}
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input) { return input.log_softmax(options.dim()); }

  LogSoftmaxOptions options;
};
extern template class Cloneable<LogSoftmaxImpl>;
RAMET_MODULE(LogSoftmax);

}  // namespace ramet::nn
