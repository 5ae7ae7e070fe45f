// Derivatives of fused backward functions through compositions. Private to autograd/ops.
#pragma once
#include <algorithm>
#include <array>
#include <functional>
#include <utility>
#include <vector>

#include "autograd/ops/front/common.h"

namespace ramet {
namespace autograd {

/// The gradients of sum(f(inputs) . v) with respect to the inputs that `self` needs (others stay
/// undefined), where f is the same function as the fused operation that made `self`, written with
/// differentiable operations. While gradients of gradients are recorded, the results depend on the
/// inputs; so a fused operation is differentiable to any order, and only its first derivative needs
/// a kernel.
RAMET_API std::vector<Tensor> composed_gradients(
    const Node& self, const std::function<Tensor(const std::vector<Tensor>&)>& f,
    std::vector<Tensor> inputs, const Tensor& v);

/// record() of a fused operation that computed `out` from `inputs` (some may be undefined) as the
/// composition `f`, which is given a list of them, would: the gradients are f's.
template <class F, class... T>
Tensor record_composed(const char* name, Tensor&& out, F f, const T&... inputs) {
  return record(name, {inputs...}, std::move(out),
                [f = std::move(f), saved = std::array{save_if(inputs.defined(), inputs)...}](
                    const Node& self, const Tensor& v) {
                  std::vector<Tensor> in;
                  in.reserve(saved.size());
                  for (const Saved& s : saved) in.push_back(s.get(self));
                  std::vector<Tensor> found =
                      composed_gradients(self, std::cref(f), std::move(in), v);
                  std::array<Tensor, sizeof...(T)> r;
                  std::move(found.begin(), found.end(), r.begin());
                  return r;
                });
}

}  // namespace autograd
}  // namespace ramet
