// The pointwise operations, and a reference for each in references.h.
#pragma once
#include <gtest/gtest.h>

#include "kernels/pointwise/pointwise.h"
#include "tests/kernels/pointwise/references.h"

#define RAMET_ROWS ramet::kernels::pointwise_reference::rows
#include "kernels/pointwise/rows/activation.h"
#include "kernels/pointwise/rows/arithmetic.h"
#include "kernels/pointwise/rows/choice.h"
#include "kernels/pointwise/rows/compare.h"
#include "kernels/pointwise/rows/fused.h"
#include "kernels/pointwise/rows/pair.h"
#include "kernels/pointwise/rows/unary.h"

namespace ramet::kernels::pointwise_reference {

using references::Reference, references::references, references::rounds_to_float;
using R = references::R;

struct Op {
  const char* name;
  const Kernel<PointwiseArgs>* dense;
  const Kernel<PointwiseStridedArgs>* strided;
  int operands, types;
  bool truth;
};
inline const Op kOps[] = {
#define RAMET_X(name, Row) \
  {#name,                  \
   &name,                  \
   &name##_strided,        \
   rows::Row::kOperands,   \
   rows::Row::kTypes,      \
   rows::Row::kResult == PointwiseResult::kTruth},
    RAMET_POINTWISE_OPS(RAMET_X)
#undef RAMET_X
};
inline const Op& op_named(const std::string& name) {
  for (const Op& op : kOps)
    if (name == op.name) return op;
  ADD_FAILURE() << "no operation " << name;
  return kOps[0];
}

}  // namespace ramet::kernels::pointwise_reference
