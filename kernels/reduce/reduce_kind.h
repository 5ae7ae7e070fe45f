// The parts of one kind of reduction, for the loops in reduce.cc.
#pragma once
#include "kernels/copy/chunk.h"
#include "kernels/reduce/reduce.h"
#include "kernels/simd/lanes.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

constexpr int64_t kTile = 64;  // columns that are added together
constexpr int64_t kWide =
    512;  // of a sum: long rows, eight at a time, suit the hardware's prefetching
constexpr int64_t kBatch = 512;  // outputs finished together
static_assert(kBatch >= kReduceColumns && kWide == kReduceColumns && kReduceColumns % kTile == 0 &&
              kReduceRows % 8 == 0);

// The parts of one kind of reduction. Elements and states are untyped here. So the loops below are
// compiled once, not once for each compute type and operation. A state takes at most kReducePartial
// bytes.
struct Kind {
  int64_t bytes, element;  // of a state; of the compute type
  int64_t tile;            // the most columns at once
  void (*init)(void* states, int64_t n);
  // Adds x[0, n), the elements from position `first` on.
  void (*block)(void* state, const void* x, int64_t n, int64_t first, double p);
  // The same for w <= `tile` columns at once: rows[r][c] is element first + r of column c.
  void (*columns)(void* states, const void* const* rows, int64_t count, int64_t w, int64_t first,
                  double p);
  void (*merge)(void* into, const void* from, int64_t n);
  // The elements as the compute type, in place or in `buffer`.
  const void* (*read)(const void* p, ScalarType t, int64_t stride, int64_t n, void* buffer);
  // Copies the elements to `buffer`.
  void (*copy)(const void* p, ScalarType t, int64_t stride, int64_t n, void* buffer);
  // Turns states into results, n <= kBatch, from output `first` on.
  void (*finish)(const ReduceArgs& a, const void* states, int64_t n, int64_t first);
};
template <class T>
const void* read_as(const void* p, ScalarType t, int64_t stride, int64_t n, void* buffer) {
  return chunk_in(p, t, stride, n, static_cast<T*>(buffer));
}
template <class T>
void copy_as(const void* p, ScalarType t, int64_t stride, int64_t n, void* buffer) {
  load_chunk(p, t, stride, n, static_cast<T*>(buffer));
}
template <class T> void finish(const ReduceArgs& a, const void* states, int64_t n, int64_t first);
template <class T, class State, class What>
constexpr Kind kKindOf{sizeof(State), sizeof(T),   What::kColumns, What::init, What::block,
                       What::columns, What::merge, read_as<T>,     copy_as<T>, finish<T>};

template <class T> RAMET_INLINE bool is_nan(T x) {
  if constexpr (T(0.5) != T(0)) return !(x == x);
  else return false;
}
template <class T> constexpr T kLowest = T(-__builtin_inf());
template <> constexpr int64_t kLowest<int64_t> = INT64_MIN;
template <class T> constexpr T kHighest = T(__builtin_inf());
template <> constexpr int64_t kHighest<int64_t> = INT64_MAX;

}  // namespace
}  // namespace ramet::kernels::RAMET_VARIANT
