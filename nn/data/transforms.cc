#include "nn/data/transforms.h"

#include <cstring>

#include "autograd/graph/node.h"
#include "autograd/ops/shape/cat.h"

namespace ramet {
namespace data {
namespace transforms {
namespace detail {

Tensor stack_examples(const std::vector<Tensor>& tensors) {
  RAMET_CHECK(!tensors.empty(), "stack", "expected a non-empty list of tensors");
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    RAMET_CHECK(t.defined(), "stack", "tensor ", i, ": got an undefined one");
    RAMET_CHECK(same_sizes(t, tensors[0]), "stack",
                "stack expects each tensor to be equal size, but got ", describe(tensors[0]),
                " at entry 0 and ", describe(t), " at entry ", i);
  }
  const Tensor& first = tensors[0];
  std::vector<int64_t> sizes = first.sizes().vec();
  sizes.insert(sizes.begin(), static_cast<int64_t>(tensors.size()));
  bool plain = first.is_cpu();
  for (const Tensor& t : tensors) {
    plain = plain && t->key() == first->key() && t.is_contiguous() && !autograd::recording(t);
  }
  if (!plain) return stack(tensors);
  Tensor out(TensorBase::empty(sizes, first.scalar_type(), first.device()));
  char* to = static_cast<char*>(out.data_ptr());
  const size_t bytes = first.nbytes();
  for (const Tensor& t : tensors) {
    if (bytes) std::memcpy(to, t.data_ptr(), bytes);
    to += bytes;
  }
  return out;
}

Tensor per_channel(ArrayRef<double> values) {
  Tensor t(TensorBase::empty({static_cast<int64_t>(values.size()), 1, 1}, kFloat, Device(kCPU, 0)));
  for (size_t i = 0; i < values.size(); ++i) t.data_ptr<float>()[i] = static_cast<float>(values[i]);
  return t;
}

}  // namespace detail
}  // namespace transforms
}  // namespace data
}  // namespace ramet
