#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "autograd/ops.h"
#include "nn/formats/onnx/examples_internal.h"

namespace ramet::formats {

Tensor other_whole_numbers(const Tensor& example, int64_t more) {
  const Tensor x = example.to(kLong);
  const bool is_bool = example.scalar_type() == kBool;
  const int64_t low = is_bool ? 0 : x.min().item<int64_t>();
  const int64_t range = is_bool ? 2 : x.max().item<int64_t>() - low + 1 + more;
  // Each is moved along the range by a step of its own, which is not the range itself.
  const Tensor step = (arange(x.numel(), TensorOptions(kLong)) * 7 + 3)
                          .remainder(std::max<int64_t>(range - 1, 1))
                          .add(1)
                          .view(x.sizes())
                          .to(x.device());
  return ((x - low + step).remainder(range) + low).to(example.scalar_type());
}

Tensor other_numbers(const Tensor& example, double phase) {
  double low = example.min().to(kDouble).item<double>();
  double high = example.max().to(kDouble).item<double>();
  if (!std::isfinite(high - low)) low = high = 0;
  if (!(high - low > 1e-6)) low -= 1, high += 1;
  // Multiples of the inverse of the golden ratio, without their whole parts.
  Tensor t = arange(example.numel(), TensorOptions(kDouble)) * 0.61803398874989484820 + phase;
  t = (t - t.floor()) * (high - low) + low;
  return t.view(example.sizes()).to(example.device(), example.scalar_type()).clone();
}

std::vector<Tensor> probe(const std::vector<Tensor>& inputs, double value) {
  std::vector<Tensor> out;
  bool integers = false, changed = false;
  for (const Tensor& x : inputs) {
    const bool floating = x.is_floating_point();
    std::vector<int64_t> dims;
    for (int64_t d = 0; d < x.dim(); ++d) dims.push_back(d);
    out.push_back(floating ? full_like(x, value) : x.dim() == 0 ? x.clone() : x.flip(dims));
    integers = integers || !floating;
    changed = changed || (!floating && !same_bits(x, out.back()));
  }
  return integers && !changed ? std::vector<Tensor>() : out;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes()) return false;
  const Tensor x = a.detach().to(Device(kCPU, 0)).contiguous(),
               y = b.detach().to(Device(kCPU, 0)).contiguous();
  return x.nbytes() == 0 || std::memcmp(x.data_ptr(), y.data_ptr(), x.nbytes()) == 0;
}

std::pair<int64_t, int64_t> batches(const nn::Module& module, const std::vector<Tensor>& inputs,
                                    const std::optional<int64_t>& batch_dim) {
  if (!batch_dim || inputs.empty()) return {0, 0};
  std::set<int64_t> taken;
  for (const Tensor& x : inputs)
    for (int64_t d = 0; x.defined() && d < x.dim(); ++d)
      if (d != wrap_dim("export_onnx", *batch_dim, x.dim())) taken.insert(x.size(d));
  for (const auto& list : {module.named_parameters(), module.named_buffers()})
    for (const auto& item : list)
      if (item.value().defined())
        for (const int64_t n : item.value().sizes()) taken.insert(n);
  std::vector<int64_t> free;
  const Tensor& x = inputs[0];
  const int64_t own = x.defined() ? x.size(*batch_dim) : 1;
  if (own > 1 && !taken.count(own)) free.push_back(own);
  for (const int64_t prime : {3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67})
    if (!taken.count(prime) && prime != own) free.push_back(prime);
  free.insert(free.end(), {71, 73});
  return {free[0], free[1]};
}

}  // namespace ramet::formats
