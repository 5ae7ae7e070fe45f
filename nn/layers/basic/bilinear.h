// Bilinear.
#pragma once
#include "nn/module/listed_module.h"

namespace ramet::nn {

struct RAMET_API BilinearOptions {
  BilinearOptions(int64_t in1_features, int64_t in2_features, int64_t out_features)
      : in1_features_(in1_features), in2_features_(in2_features), out_features_(out_features) {}
  RAMET_ARG(int64_t, in1_features);
  RAMET_ARG(int64_t, in2_features);
  RAMET_ARG(int64_t, out_features);
  RAMET_ARG(bool, bias) = true;
};

/// x1^T W_k x2 + bias_k of the last dimension of both inputs, for each of out_features k. Weight
/// (out, in1, in2) and bias (out) start uniform within 1 / sqrt(in1_features).
class RAMET_API BilinearImpl : public detail::ListedModule<BilinearImpl, BilinearOptions> {
 public:
  BilinearImpl(int64_t in1_features, int64_t in2_features, int64_t out_features)
      : BilinearImpl(BilinearOptions(in1_features, in2_features, out_features)) {}
  explicit BilinearImpl(const BilinearOptions& options_);
  void reset() override;
  void reset_parameters();
  Tensor forward(const Tensor& input1, const Tensor& input2);

  /// (out_features, in1_features, in2_features), and (out_features) or undefined.
  Tensor weight, bias;
};
RAMET_LISTED_MODULE(Bilinear, BilinearOptions)

namespace functional {

/// bilinear of autograd/ops/layers/bilinear.h.
RAMET_API Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight,
                          const Tensor& bias = Tensor());

}  // namespace functional
}  // namespace ramet::nn
