// Limits on gradients.
#pragma once
#include <initializer_list>
#include <utility>
#include <vector>

#include "autograd/tensor.h"

namespace ramet::nn::utils {

/// Scales all gradients by min(1, max_norm / (norm + 1e-6)) and returns norm, the norm_type-norm of
/// all of them as one vector. Parameters without a gradient are skipped. With `error_if_nonfinite`
/// a norm that is infinite or NaN is an Error, before anything is scaled. The 2-norm is summed in
/// double, in the order of the list. The host waits for a GPU's result after it has queued the
/// scaling (with `error_if_nonfinite` before). So it cannot be captured, `[clip_grad_norm_] not
/// capturable`, and is wrong for a loop that must not wait. Use get_total_norm and
/// clip_grads_with_norm_ there, which do the same on the device.
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

/// The norm_type-norm of all tensors as one vector: PyTorch's torch.nn.utils.get_total_norm.
/// Returns a 0-dim float64 tensor on the first tensor's device (without tensors: 0 on the CPU). The
/// norm of order 0 is the number of tensors. Without `error_if_nonfinite` the host does not wait.
RAMET_API Tensor get_total_norm(const std::vector<Tensor>& tensors, double norm_type = 2.0,
                                bool error_if_nonfinite = false);
/// Scales all gradients by min(1, max_norm / (total_norm + 1e-6)): PyTorch's
/// torch.nn.utils.clip_grads_with_norm_. total_norm has one element; the host does not read it.
RAMET_API void clip_grads_with_norm_(const std::vector<Tensor>& parameters, double max_norm,
                                     const Tensor& total_norm);

/// Puts each element of the gradients into [-clip_value, clip_value].
RAMET_API void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value);
inline void clip_grad_value_(std::initializer_list<Tensor> parameters, double clip_value) {
  clip_grad_value_(std::vector<Tensor>(parameters), clip_value);
}
inline void clip_grad_value_(Tensor parameter, double clip_value) {
  clip_grad_value_(std::vector<Tensor>{std::move(parameter)}, clip_value);
}

}  // namespace ramet::nn::utils
