// Derivatives of fused backward functions through compositions. Private to autograd/ops.
#pragma once
#include <algorithm>
#include <array>
#include <functional>
#include <utility>
#include <vector>

#include "autograd/ops/front/common_internal.h"

namespace ramet {
namespace autograd {

/// Computes the gradients of sum(f(inputs) . v) with respect to the inputs that `self` needs;
/// others stay undefined. f is the same function as the fused operation that made `self`, written
/// with differentiable operations. While gradients of gradients are recorded, the results depend on
/// the inputs. So a fused operation is differentiable to any order, and only its first derivative
/// needs a kernel.
RAMET_API std::vector<Tensor> composed_gradients(
    const Node& self, const std::function<Tensor(const std::vector<Tensor>&)>& f,
    std::vector<Tensor> inputs, const Tensor& v);

using ListFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;
/// The same for a function with several results, with gradients v (undefined: no gradient).
/// Computes the gradients of the inputs that are true in `needed`; with `again` they are
/// differentiable.
RAMET_API std::vector<Tensor> composed_gradients(const std::vector<bool>& needed,
                                                 const ListFunction& f, std::vector<Tensor> inputs,
                                                 const std::vector<Tensor>& v, bool again);

/// record() of a fused operation that computed `out` from `inputs` (some may be undefined). The
/// composition `f`, which takes a list of the inputs, defines the gradients.
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

/// Adds history to the defined ones of `results`, one slot each. f gets the gradients of the
/// results (undefined: no gradient), and writes a gradient for each input where self.needs(i).
using ResultsBackward =
    std::function<void(const Node& self, const std::vector<Tensor>& v, std::vector<Tensor>& grads)>;
RAMET_API void record_results(const char* name, ArrayRef<Tensor> inputs,
                              std::vector<Tensor>& results, ResultsBackward f,
                              AddArguments arguments = {});

/// record_results() of a fused operation that computed `results` from `inputs` (some of each may be
/// undefined). The composition `f` defines the gradients.
RAMET_API void record_composed_results(const char* name, std::vector<Tensor>& results,
                                       ListFunction f, const std::vector<Tensor>& inputs);

}  // namespace autograd
}  // namespace ramet
