#include "autograd/ops/front/sort_front.h"

#include "kernels/index/sort.h"

namespace ramet {
namespace autograd {

Tensor sorted_positions(const Tensor& keys, int bits) {
  const int64_t rows = keys.size(0), n = keys.size(1);
  const Tensor positions(TensorBase::empty({rows, n}, kLong, keys.device()));
  const TensorBase workspace =
      TensorBase::empty({kernels::sort_workspace(rows, n)}, kByte, keys.device());
  if (keys.numel())
    kernels::sort_pairs(keys.stream(),
                        {static_cast<uint64_t*>(keys.ptr()), static_cast<int64_t*>(positions.ptr()),
                         rows, n, bits, workspace.ptr()});
  return positions;
}

}  // namespace autograd
}  // namespace ramet
