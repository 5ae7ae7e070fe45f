// Operations that order elements: sorts, the first of an order, medians and modes along an axis.
#pragma once
#include "kernels/index/sort.h"
#include "kernels/kernel.h"

namespace ramet {
namespace kernels {

/// The elements of an ordered line that are the result.
enum class OrderPick : uint8_t {
  kFirst,      // the first `count`, in order
  kOne,        // only number `count`, from 0
  kMedian,     // the lower median; the first NaN if there is one
  kNanMedian,  // the lower median of all but NaNs; the first NaN if there is nothing else
  kMode,       // the smallest of the most frequent, at its last position; NaNs are all different
};

/// Orders each line of the middle axis of a dense outer x n x inner block. NaNs are the largest; 0
/// and -0 are equal, and so are all NaNs. Equal elements keep their order, with `descending` too,
/// so there is one correct result. values and positions (of elements in their line) are dense outer
/// x results x inner; each may be null. `results` is `count` for kFirst and 1 otherwise. Elements
/// are sorted as unsigned numbers by their digits (sort.h). If only the first of many are wanted,
/// elements that cannot be among them are removed first. REQUIRES: count <= n for kFirst, count < n
/// for kOne, n > 0 for the others.
struct OrderArgs {
  const void* in;
  void* values;
  int64_t* positions;
  int64_t outer, n, inner, count;
  ScalarType dtype;
  OrderPick pick;
  bool descending;
  int32_t slots;    // max_parallel_slots()
  void* workspace;  // order_workspace() bytes
};
RAMET_KERNEL(order_lines, OrderArgs);

/// Results of a line.
[[gnu::always_inline]] constexpr int64_t order_results(const OrderArgs& a) {
  return a.pick == OrderPick::kFirst ? a.count : 1;
}

/// The number of pairs of key and position that a CPU keeps: those of a line, or those that may
/// still be among the first. Pairs are 8 bytes if keys and positions have at most 32 bits, else 16.
[[gnu::always_inline]] constexpr int64_t order_room(const OrderArgs& a) {
  const int64_t few = 4 * a.count > 192 ? 4 * a.count : 192;
  return a.pick == OrderPick::kFirst && few < a.n ? few : a.n;
}
[[gnu::always_inline]] constexpr bool order_packs(const OrderArgs& a) {
  return a.dtype != ScalarType::Long && a.dtype != ScalarType::Double && a.n < int64_t{1} << 32;
}
/// Tasks of a CPU, and lines of one.
[[gnu::always_inline]] constexpr int64_t order_lines_at_once(const OrderArgs& a) {
  return a.n < 16384 ? 16384 / (a.n > 1 ? a.n : 1) : 1;
}
[[gnu::always_inline]] constexpr int64_t order_tasks(const OrderArgs& a) {
  const int64_t each = order_lines_at_once(a);
  return (a.outer * a.inner + each - 1) / each;
}
/// Does a GPU count, for each element of a line, the elements before it?
[[gnu::always_inline]] constexpr bool order_counts(const OrderArgs& a) { return a.n <= 512; }
/// On a CPU: the pairs twice, for each task or slot, of whichever there are fewer. On a GPU: keys
/// and positions of all elements, if it needs them, and the workspace of the sort.
[[gnu::always_inline]] constexpr int64_t order_workspace(const OrderArgs& a, bool cpu) {
  const int64_t lines = a.outer * a.inner, tasks = order_tasks(a);
  if (!cpu && order_counts(a)) return a.pick == OrderPick::kMode ? 16 * lines * a.n : 0;
  if (!cpu) return 16 * lines * a.n + sort_workspace(lines, a.n);
  return (tasks < a.slots ? tasks : a.slots) * 2 * order_room(a) * (order_packs(a) ? 8 : 16);
}

}  // namespace kernels
}  // namespace ramet
