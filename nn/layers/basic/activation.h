// Activations: modules and nn::functional's functions of LibTorch's names.
#pragma once
#include <optional>
#include <string>

#include "nn/module/listed_module.h"

namespace ramet::nn {

// ---- options ------------------------------------------------------------------------------------

// Options that are one value convert from it: `ReLU(true)`.
#define RAMET_ONE_OPTION(Options, Type, name, value) \
  struct RAMET_API Options {                         \
    Options(Type name value) : name##_(name) {}      \
    RAMET_ARG(Type, name);                           \
  };
RAMET_ONE_OPTION(ReLUOptions, bool, inplace, = false)
RAMET_ONE_OPTION(ReLU6Options, bool, inplace, = false)
RAMET_ONE_OPTION(SELUOptions, bool, inplace, = false)
RAMET_ONE_OPTION(HardshrinkOptions, double, lambda, = 0.5)
RAMET_ONE_OPTION(SoftshrinkOptions, double, lambda, = 0.5)
RAMET_ONE_OPTION(GLUOptions, int64_t, dim, = -1)
RAMET_ONE_OPTION(SoftmaxOptions, int64_t, dim, )
RAMET_ONE_OPTION(SoftminOptions, int64_t, dim, )
RAMET_ONE_OPTION(LogSoftmaxOptions, int64_t, dim, )
#undef RAMET_ONE_OPTION

struct RAMET_API LeakyReLUOptions {
  RAMET_ARG(double, negative_slope) = 1e-2;
  RAMET_ARG(bool, inplace) = false;
};
struct RAMET_API ELUOptions {
  RAMET_ARG(double, alpha) = 1.0;
  RAMET_ARG(bool, inplace) = false;
};
struct RAMET_API CELUOptions {
  RAMET_ARG(double, alpha) = 1.0;
  RAMET_ARG(bool, inplace) = false;
};
struct RAMET_API GELUOptions {
  /// "none": by the error function; "tanh": its approximation.
  RAMET_ARG(std::string, approximate) = "none";
};
struct RAMET_API HardtanhOptions {
  RAMET_ARG(double, min_val) = -1.0;
  RAMET_ARG(double, max_val) = 1.0;
  RAMET_ARG(bool, inplace) = false;
};
struct RAMET_API SoftplusOptions {
  RAMET_ARG(double, beta) = 1.0;
  RAMET_ARG(double, threshold) = 20.0;
};
struct RAMET_API ThresholdOptions {
  ThresholdOptions(double threshold, double value) : threshold_(threshold), value_(value) {}
  RAMET_ARG(double, threshold);
  RAMET_ARG(double, value);
  RAMET_ARG(bool, inplace) = false;
};
struct RAMET_API RReLUOptions {
  RAMET_ARG(double, lower) = 1.0 / 8.0;
  RAMET_ARG(double, upper) = 1.0 / 3.0;
  RAMET_ARG(bool, inplace) = false;
};
struct RAMET_API PReLUOptions {
  /// 1, or the number of channels.
  RAMET_ARG(int64_t, num_parameters) = 1;
  /// The weight's initial value.
  RAMET_ARG(double, init) = 0.25;
};

// ---- modules ------------------------------------------------------------------------------------

// The function of the same name below says what it computes.

RAMET_LAYER(Tanh, void, Tensor forward(const Tensor& input);)
RAMET_LAYER(Sigmoid, void, Tensor forward(const Tensor& input);)
RAMET_LAYER(LogSigmoid, void, Tensor forward(const Tensor& input);)
RAMET_LAYER(SiLU, void, Tensor forward(const Tensor& input);)
RAMET_LAYER(Mish, void, Tensor forward(const Tensor& input);)
RAMET_LAYER(Softsign, void, Tensor forward(const Tensor& input);)
RAMET_LAYER(Tanhshrink, void, Tensor forward(const Tensor& input);)
/// Softmax over the channels of (N, C, H, W) or (C, H, W).
RAMET_LAYER(Softmax2d, void, Tensor forward(const Tensor& input);)
RAMET_LAYER(ReLU, ReLUOptions, Tensor forward(Tensor input);)
RAMET_LAYER(ReLU6, ReLU6Options, Tensor forward(Tensor input);)
/// x where x > 0, else negative_slope x.
RAMET_LAYER(LeakyReLU, LeakyReLUOptions, Tensor forward(Tensor input);)
RAMET_LAYER(ELU, ELUOptions, Tensor forward(Tensor input);)
RAMET_LAYER(SELU, SELUOptions, Tensor forward(Tensor input);)
RAMET_LAYER(CELU, CELUOptions, Tensor forward(Tensor input);)
RAMET_LAYER(GELU, GELUOptions, Tensor forward(const Tensor& input);)
RAMET_LAYER(GLU, GLUOptions, Tensor forward(const Tensor& input);)
RAMET_LAYER(Hardshrink, HardshrinkOptions, Tensor forward(const Tensor& input);)
RAMET_LAYER(Softshrink, SoftshrinkOptions, Tensor forward(const Tensor& input);)
RAMET_LAYER(Softplus, SoftplusOptions, Tensor forward(const Tensor& input);)
RAMET_LAYER(RReLU, RReLUOptions, Tensor forward(Tensor input);)
RAMET_LAYER(Softmax, SoftmaxOptions, Tensor forward(const Tensor& input);)
RAMET_LAYER(Softmin, SoftminOptions, Tensor forward(const Tensor& input);)
RAMET_LAYER(LogSoftmax, LogSoftmaxOptions, Tensor forward(const Tensor& input);)
RAMET_LAYER(Threshold, ThresholdOptions, ThresholdImpl(double threshold, double value);
            Tensor forward(Tensor input);)
/// An Error unless min_val < max_val.
RAMET_LAYER(Hardtanh, HardtanhOptions, explicit HardtanhImpl(const HardtanhOptions& options_ = {});
            void reset() override; Tensor forward(Tensor input);)
/// The slope below 0, `weight`, is a parameter: one, or one a channel (dimension 1).
RAMET_LAYER(PReLU, PReLUOptions, explicit PReLUImpl(const PReLUOptions& options_ = {});
            void reset() override; Tensor forward(const Tensor& input); Tensor weight;)

// ---- functions ----------------------------------------------------------------------------------

namespace functional {

using ReLUFuncOptions = ReLUOptions;
using ReLU6FuncOptions = ReLU6Options;
using LeakyReLUFuncOptions = LeakyReLUOptions;
using ELUFuncOptions = ELUOptions;
using SELUFuncOptions = SELUOptions;
using CELUFuncOptions = CELUOptions;
using GELUFuncOptions = GELUOptions;
using GLUFuncOptions = GLUOptions;
using HardshrinkFuncOptions = HardshrinkOptions;
using SoftshrinkFuncOptions = SoftshrinkOptions;
using HardtanhFuncOptions = HardtanhOptions;
using SoftplusFuncOptions = SoftplusOptions;
using ThresholdFuncOptions = ThresholdOptions;
struct RAMET_API RReLUFuncOptions {
  RAMET_ARG(double, lower) = 1.0 / 8.0;
  RAMET_ARG(double, upper) = 1.0 / 3.0;
  RAMET_ARG(bool, training) = false;
  RAMET_ARG(bool, inplace) = false;
};
// `dtype`: cast first.
#define RAMET_SOFT_OPTIONS(Options)                             \
  struct RAMET_API Options {                                    \
    Options(int64_t dim) : dim_(dim) {}                         \
    RAMET_ARG(int64_t, dim);                                    \
    RAMET_ARG(std::optional<ScalarType>, dtype) = std::nullopt; \
  };
RAMET_SOFT_OPTIONS(SoftmaxFuncOptions)
RAMET_SOFT_OPTIONS(SoftminFuncOptions)
RAMET_SOFT_OPTIONS(LogSoftmaxFuncOptions)
#undef RAMET_SOFT_OPTIONS
struct RAMET_API GumbelSoftmaxFuncOptions {
  RAMET_ARG(double, tau) = 1.0;
  RAMET_ARG(bool, hard) = false;
  RAMET_ARG(int, dim) = -1;
};

namespace detail {
RAMET_API Tensor relu(Tensor input, bool inplace);
RAMET_API Tensor leaky_relu(Tensor input, double negative_slope, bool inplace);
RAMET_API Tensor rrelu(Tensor input, double lower, double upper, bool training, bool inplace);
}  // namespace detail

// Of floating-point dtypes, unless it is said otherwise; differentiable to any order. Where
// `inplace`, the input is overwritten and its history goes on.

/// max(x, 0), of any dtype but bool
RAMET_API Tensor relu(Tensor input, const ReLUFuncOptions& options = {});
/// min(max(x, 0), 6), of any dtype but bool; the gradient passes strictly between
RAMET_API Tensor relu6(Tensor input, const ReLU6FuncOptions& options = {});
/// x where x > 0, else negative_slope x
RAMET_API Tensor leaky_relu(Tensor input, const LeakyReLUFuncOptions& options = {});
/// x where x > 0, else alpha (exp(x) - 1): Clevert et al. 2015
RAMET_API Tensor elu(Tensor input, const ELUFuncOptions& options = {});
/// 1.0507... elu(x) with alpha 1.6732...: Klambauer et al. 2017
RAMET_API Tensor selu(Tensor input, const SELUFuncOptions& options = {});
/// x where x > 0, else alpha (exp(x / alpha) - 1), alpha != 0: Barron 2017
RAMET_API Tensor celu(Tensor input, const CELUFuncOptions& options = {});
/// x times the normal distribution function of x: Hendrycks and Gimpel 2016
RAMET_API Tensor gelu(const Tensor& input, const GELUFuncOptions& options = {});
/// a sigmoid(b) of the halves a and b of dimension dim: Dauphin et al. 2016
RAMET_API Tensor glu(const Tensor& input, const GLUFuncOptions& options = {});
/// x sigmoid(x)
RAMET_API Tensor silu(const Tensor& input);
/// x tanh(log(1 + exp(x))): Misra 2019
RAMET_API Tensor mish(const Tensor& input);
/// log(1 + exp(beta x)) / beta; x itself where beta x > threshold.
RAMET_API Tensor softplus(const Tensor& input, const SoftplusFuncOptions& options = {});
/// -log(1 + exp(-x)), without overflow
RAMET_API Tensor logsigmoid(const Tensor& input);
/// x / (1 + |x|)
RAMET_API Tensor softsign(const Tensor& input);
/// x - tanh(x)
RAMET_API Tensor tanhshrink(const Tensor& input);
/// x where |x| > lambda, else 0
RAMET_API Tensor hardshrink(const Tensor& input, const HardshrinkFuncOptions& options = {});
/// x moved towards 0 by lambda >= 0, 0 where |x| <= lambda
RAMET_API Tensor softshrink(const Tensor& input, const SoftshrinkFuncOptions& options = {});
/// min(max(x, min_val), max_val), of any dtype but bool; the gradient passes strictly between
RAMET_API Tensor hardtanh(Tensor input, const HardtanhFuncOptions& options = {});
/// x where x > threshold, else value; of any dtype but bool
RAMET_API Tensor threshold(Tensor input, const ThresholdFuncOptions& options);
/// x where x > 0, else weight x; weight has one value, or one for each channel (dimension 1)
RAMET_API Tensor prelu(const Tensor& input, const Tensor& weight);
/// x where x > 0, else a x: in training a is uniform in [lower, upper) for each element, else their
/// middle: Xu et al. 2015
RAMET_API Tensor rrelu(Tensor input, const RReLUFuncOptions& options = {});
/// exp(x) divided by its sum along dim
RAMET_API Tensor softmax(const Tensor& input, const SoftmaxFuncOptions& options);
/// softmax(-x)
RAMET_API Tensor softmin(const Tensor& input, const SoftminFuncOptions& options);
/// The logarithm of softmax, computed without overflow.
RAMET_API Tensor log_softmax(const Tensor& input, const LogSoftmaxFuncOptions& options);
/// softmax((x + gumbel noise) / tau); `hard`: one-hot, with the gradient of the soft one: Jang et
/// al. 2016
RAMET_API Tensor gumbel_softmax(const Tensor& logits, const GumbelSoftmaxFuncOptions& options = {});

}  // namespace functional
}  // namespace ramet::nn
