// Limits on gradients.
#pragma once
#include <initializer_list>
#include <vector>

#include "autograd/tensor.h"

namespace ramet::nn::utils {

/// Scales all gradients by min(1, max_norm / (norm + 1e-6)), where norm is the norm_type-norm of
/// them all taken as one vector; returns that norm. Parameters without a gradient are skipped. With
/// `error_if_nonfinite` a norm that is infinite or NaN is an Error. The 2-norm is summed in double,
/// in the order of the list.
RAMET_API double clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm,
                                 double norm_type = 2.0, bool error_if_nonfinite = false);
inline double clip_grad_norm_(std::initializer_list<Tensor> parameters, double max_norm,
                              double norm_type = 2.0, bool error_if_nonfinite = false) {
  return clip_grad_norm_(std::vector<Tensor>(parameters), max_norm, norm_type, error_if_nonfinite);
}
inline double clip_grad_norm_(Tensor parameter, double max_norm, double norm_type = 2.0,
                              bool error_if_nonfinite = false) {
  return clip_grad_norm_(std::vector<Tensor>{std::move(parameter)}, max_norm, norm_type,
                         error_if_nonfinite);
}

/// Puts each element of the gradients into [-clip_value, clip_value].
RAMET_API void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value);
inline void clip_grad_value_(std::initializer_list<Tensor> parameters, double clip_value) {
  clip_grad_value_(std::vector<Tensor>(parameters), clip_value);
}
inline void clip_grad_value_(Tensor parameter, double clip_value) {
  clip_grad_value_(std::vector<Tensor>{std::move(parameter)}, clip_value);
}

}  // namespace ramet::nn::utils
