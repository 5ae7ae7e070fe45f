// What a kernel call reads, writes and computes, as far as its arguments show it.
#pragma once
#include <cstdint>

#include "runtime/observe/kernel_call.h"

namespace ramet {
namespace see {

struct KernelCost {
  int64_t bytes = -1;  // of its operands, each counted once; -1: not known
  int64_t flops = -1;  // a product and an addition are two
};
/// Of products of matrices, convolutions, pointwise kernels and copies.
KernelCost cost_of(const KernelCall& call);

}  // namespace see
}  // namespace ramet
