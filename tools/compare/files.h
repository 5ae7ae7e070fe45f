// The files of cases, cases_<name>.inc, and the arms they give. compare_ramet_<name>() is linked
// in; compare_torch_<name>() is searched by name in the peer.
#pragma once
#include "tools/compare/arm.h"

#define RAMET_COMPARE_FILES(X) \
  X(unary)                     \
  X(binary)                    \
  X(choice)                    \
  X(alias)                     \
  X(reduce)                    \
  X(shape)                     \
  X(rearrange)                 \
  X(index)                     \
  X(order)                     \
  X(index_writes)              \
  X(matrix)                    \
  X(linalg)                    \
  X(image)                     \
  X(sequence)                  \
  X(loss)                      \
  X(factory)                   \
  X(nn)                        \
  X(print)

extern "C" {
#define X(name) CompareArm compare_ramet_##name();
RAMET_COMPARE_FILES(X)
#undef X
}
