#include "kernels/index/order.h"

#include "kernels/index/order_key.h"
#include "kernels/simd/lanes.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

// ---- pairs of key and position ------------------------------------------------------------------

using Narrow = uint64_t;  // the key's 32 bits above the 32 bits of the position
struct Wide {
  uint64_t position, key;
};

RAMET_INLINE bool less(Narrow a, Narrow b) { return a < b; }
RAMET_INLINE bool less(const Wide& a, const Wide& b) {
  return a.key != b.key ? a.key < b.key : a.position < b.position;
}
RAMET_INLINE uint64_t key_of(Narrow p) { return p >> 32; }
RAMET_INLINE uint64_t key_of(const Wide& p) { return p.key; }
RAMET_INLINE int64_t position_of(Narrow p) { return static_cast<int64_t>(p & 0xffffffff); }
RAMET_INLINE int64_t position_of(const Wide& p) { return static_cast<int64_t>(p.position); }
RAMET_INLINE void set(Narrow& p, uint64_t key, int64_t position) {
  p = key << 32 | static_cast<uint64_t>(position);
}
RAMET_INLINE void set(Wide& p, uint64_t key, int64_t position) {
  p = {static_cast<uint64_t>(position), key};
}
// Digits of 8 bits; the lower half are those of the position.
constexpr int kBits = 8, kDigits = 1 << kBits;
RAMET_INLINE uint64_t digit(Narrow p, int d) { return p >> (kBits * d) & (kDigits - 1); }
RAMET_INLINE uint64_t digit(const Wide& p, int d) {
  return (d < 8 ? p.position >> (kBits * d) : p.key >> (kBits * (d - 8))) & (kDigits - 1);
}
template <class P> constexpr int kOfPosition = sizeof(P) / 2;

// A count of digits does not pay for so few.
constexpr int64_t kFew = 48;
template <class P> void sort_few(P* p, int64_t n) {
  for (int64_t i = 1; i < n; ++i) {
    const P x = p[i];
    int64_t j = i;
    for (; j > 0 && less(x, p[j - 1]); --j) p[j] = p[j - 1];
    p[j] = x;
  }
}

// Sorts by digits [first, end); the pairs are sorted by the others already. Returns the result's
// place.
template <class P> [[gnu::noinline]] P* sort_all(P* p, P* other, int64_t n, int first, int end) {
  if (n <= kFew) return sort_few(p, n), p;
  int64_t counts[sizeof(P)][kDigits];
  for (int d = first; d < end; ++d)
    for (int64_t& c : counts[d]) c = 0;
  for (int64_t i = 0; i < n; ++i)
    for (int d = first; d < end; ++d) ++counts[d][digit(p[i], d)];
  for (int d = first; d < end; ++d) {
    int64_t* next = counts[d];
    if (next[digit(p[0], d)] == n) continue;
    int64_t sum = 0;
    for (int k = 0; k < kDigits; ++k) {
      const int64_t count = next[k];
      next[k] = sum;
      sum += count;
    }
    for (int64_t i = 0; i < n; ++i) other[next[digit(p[i], d)]++] = p[i];
    P* const from = p;
    p = other, other = from;
  }
  return p;
}

// Puts pair number `rank` of the order at p[rank], and the pairs before it, in any order, before
// it. Later pairs are lost. Works digit by digit: pairs with a smaller digit are done, those with
// the same one stay, in `other`.
template <class P> [[gnu::noinline]] void select(P* p, P* other, int64_t n, int64_t rank, int end) {
  const P* from = p;
  int64_t left = n, done = 0;
  for (int d = end - 1; d >= 0 && left > kFew; --d) {
    int64_t counts[kDigits] = {}, before = done;
    for (int64_t i = 0; i < left; ++i) ++counts[digit(from[i], d)];
    uint64_t same = 0;
    while (before + counts[same] <= rank) before += counts[same++];
    if (counts[same] == left) continue;
    int64_t stay = 0;
    for (int64_t i = 0; i < left; ++i) {
      const P x = from[i];
      const uint64_t own = digit(x, d);
      p[done] = x;
      done += own < same;
      other[stay] = x;
      stay += own == same;
    }
    from = other, left = stay;
  }
  if (from == p) return sort_few(p, n);
  sort_few(other, left);
  for (int64_t i = done; i <= rank; ++i) p[i] = other[i - done];
}

// ---- lines --------------------------------------------------------------------------------------

template <class U> struct Line {
  const U* in;
  U* values;
  int64_t* positions;
  int64_t stride, n;
  OrderKeys<U> keys;

  RAMET_INLINE void put(int64_t result, uint64_t key, int64_t position) const {
    const U k = static_cast<U>(key);
    if (values) values[result * stride] = keys.one(k) ? keys.element(k) : in[position * stride];
    if (positions) positions[result * stride] = position;
  }
};

template <class P, class U> void all_pairs(const Line<U>& line, P* p) {
  if (line.stride == 1)
    for (int64_t i = 0; i < line.n; ++i) set(p[i], line.keys.of(line.in[i]), i);
  else
    for (int64_t i = 0; i < line.n; ++i) set(p[i], line.keys.of(line.in[i * line.stride]), i);
}

// The first `count` pairs in order, where 0 < count and there is space for `room` pairs. Elements
// are read in blocks. An element is skipped if more than `count` elements found before precede it.
template <class P, class U>
P* first_pairs(const Line<U>& line, int64_t count, int64_t room, P* p, P* other) {
  constexpr int64_t kBlock = 64;
  constexpr int kEnd = kOfPosition<P> + static_cast<int>(sizeof(U));
  int64_t have = 0;
  bool bounded = false, mixed = false;
  U bound = 0;
  if (count == line.n) all_pairs(line, p), have = count;
  else
    for (int64_t i = 0; i < line.n; i += kBlock) {
      const int64_t m = imin(kBlock, line.n - i);
      U keys[kBlock];
      if (line.stride == 1 && m == kBlock)
        for (int64_t j = 0; j < kBlock; ++j) keys[j] = line.keys.of(line.in[i + j]);
      else
        for (int64_t j = 0; j < m; ++j) keys[j] = line.keys.of(line.in[(i + j) * line.stride]);
      if (bounded) {
        for (int64_t j = m; j < kBlock; ++j) keys[j] = bound;
        U least = keys[0];
        for (int64_t j = 1; j < kBlock; ++j) least = keys[j] < least ? keys[j] : least;
        if (least >= bound) continue;
        for (int64_t j = 0; j < m; ++j)
          if (keys[j] < bound) set(p[have++], keys[j], i + j);
      } else {
        for (int64_t j = 0; j < m; ++j) set(p[have + j], keys[j], i + j);
        have += m;
      }
      if (have + kBlock > room && have > count) {
        select(p, other, have, count - 1, kEnd);
        bound = static_cast<U>(key_of(p[count - 1]));
        have = count, bounded = mixed = true;
      }
    }
  if (have > count) select(p, other, have, count - 1, kEnd), mixed = true;
  return sort_all(p, other, count, mixed ? 0 : kOfPosition<P>, kEnd);
}

template <class P, class U>
void pick_line(const OrderArgs& a, const Line<U>& line, P* p, P* other) {
  constexpr int kEnd = kOfPosition<P> + static_cast<int>(sizeof(U));
  const auto put = [&](int64_t result, const P& x) { line.put(result, key_of(x), position_of(x)); };
  if (a.pick == OrderPick::kFirst) {
    const P* first = first_pairs(line, a.count, order_room(a), p, other);
    for (int64_t i = 0; i < a.count; ++i) put(i, first[i]);
    return;
  }
  all_pairs(line, p);
  if (a.pick != OrderPick::kMode) {
    int64_t rank = a.count, nans = 0;
    if (a.pick != OrderPick::kOne) {
      for (int64_t i = 0; i < a.n; ++i) nans += line.keys.nan(static_cast<U>(key_of(p[i])));
      rank = median_place(a.n, nans, a.pick == OrderPick::kNanMedian);
    }
    select(p, other, a.n, rank, kEnd);
    return put(0, p[rank]);
  }
  const P* sorted = sort_all(p, other, a.n, kOfPosition<P>, kEnd);
  int64_t best = 0, most = 0;
  for (int64_t i = 0, begin = 0; i < a.n; ++i) {
    const uint64_t key = key_of(sorted[i]);
    if (i + 1 < a.n && key_of(sorted[i + 1]) == key && !line.keys.nan(static_cast<U>(key)))
      continue;
    if (i + 1 - begin > most) best = i, most = i + 1 - begin;
    begin = i + 1;
  }
  put(0, sorted[best]);
}

template <class P, class U> void order_as(const OrderArgs& a) {
  const int64_t lines = a.outer * a.inner, each = order_lines_at_once(a), tasks = order_tasks(a),
                room = order_room(a), results = order_results(a);
  const OrderKeys<U> keys(a.dtype, a.descending);
  run_tasks(tasks, lines * a.n * 32, [&](int64_t task, int slot) {
    P* p = static_cast<P*>(a.workspace) + (tasks < a.slots ? task : slot) * 2 * room;
    for (int64_t i = task * each; i < imin(lines, (task + 1) * each); ++i) {
      const int64_t o = i / a.inner, at = i % a.inner, out = o * results * a.inner + at;
      pick_line(a,
                Line<U>{static_cast<const U*>(a.in) + o * a.n * a.inner + at,
                        a.values ? static_cast<U*>(a.values) + out : nullptr,
                        a.positions ? a.positions + out : nullptr, a.inner, a.n, keys},
                p, p + room);
    }
  });
}

}  // namespace

void order_lines(const OrderArgs& a) {
  if (a.outer * a.inner * a.n == 0 || order_results(a) == 0) return;
  const bool packs = order_packs(a);
  switch (bytes_of(a.dtype)) {
    case 1: return packs ? order_as<Narrow, uint8_t>(a) : order_as<Wide, uint8_t>(a);
    case 2: return packs ? order_as<Narrow, uint16_t>(a) : order_as<Wide, uint16_t>(a);
    case 4: return packs ? order_as<Narrow, uint32_t>(a) : order_as<Wide, uint32_t>(a);
    default: return order_as<Wide, uint64_t>(a);
  }
}

}  // namespace ramet::kernels::RAMET_VARIANT
