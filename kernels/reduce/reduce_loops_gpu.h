// What the loops of reductions share on a GPU. reduce.cu has those for any type and layout.
// reduce_rows.cu has those for dense rows of the common types. For .cu files only.
#pragma once
#include "kernels/reduce/joins_gpu.h"
// clang-format off: the first decides what the others mean
#include "kernels/reduce/reduce_gpu.h"
#include "kernels/reduce/reduce_gpu_plan.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {

/// The positions of the elements of a reduction.
struct Plan {
  ReduceArgs a;
  Offsets<1> kept, reduced;
  bool packed;  // a sequence is dense, and packs of it can be read at once
};

template <class Kind> using StateOf = typename Kind::State;

/// Kind::join, as the joins of joins_gpu.h call it.
template <class Kind> __device__ __forceinline__ auto joining(const ReduceArgs& a) {
  return [&a](const StateOf<Kind>& x, const StateOf<Kind>& y) { return Kind::join(a, x, y); };
}

template <class T, class Kind>
__device__ __forceinline__ void put(const ReduceArgs& a, const StateOf<Kind>& state, int64_t output,
                                    int64_t part) {
  if (a.segments > 1) {
    static_cast<StateOf<Kind>*>(a.workspace)[output * a.segments + part] = state;
    return;
  }
  const T value = Kind::result(a, state, output);
  if (a.out) store_element(a.out, a.out_dtype, output, value);
}

/// Starts the kernel for this storage type and operation (reduce_rows.cu) and returns true, if
/// there is one for dense rows like these. It adds in the order of sequences_kernel.
bool start_typed_rows(const Plan& p, const ReduceGrid& grid, Stream where);
/// The same for sums and means of the columns of a matrix. It needs no workspace.
bool start_typed_columns(const ReduceArgs& a, Stream where);

}  // namespace ramet::kernels::RAMET_VARIANT
