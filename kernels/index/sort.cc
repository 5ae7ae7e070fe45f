#include "kernels/index/sort.h"

#include <cstring>

#include "kernels/util.h"
#include "runtime/base/thread_pool.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

constexpr int kBits = 8;
constexpr int kDigits = 1 << kBits;

// Moves the pairs by one digit. False, and nothing moved, if all have the same digit.
bool pass(const uint64_t* keys, const int64_t* values, uint64_t* to_keys, int64_t* to_values,
          int64_t n, int shift) {
  int64_t next[kDigits] = {};
  for (int64_t i = 0; i < n; ++i) ++next[(keys[i] >> shift) % kDigits];
  if (next[(keys[0] >> shift) % kDigits] == n) return false;
  int64_t sum = 0;
  for (int64_t& at : next) {
    const int64_t count = at;
    at = sum;
    sum += count;
  }
  for (int64_t i = 0; i < n; ++i) {
    const int64_t to = next[(keys[i] >> shift) % kDigits]++;
    to_keys[to] = keys[i];
    to_values[to] = values[i];
  }
  return true;
}

// A count of digits does not pay for so few.
constexpr int64_t kFew = 32;
void insert_row(uint64_t* keys, int64_t* values, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t key = keys[i];
    int64_t j = i;
    for (; j > 0 && keys[j - 1] > key; --j) keys[j] = keys[j - 1], values[j] = values[j - 1];
    keys[j] = key, values[j] = i;
  }
}

void sort_row(uint64_t* keys, int64_t* values, uint64_t* other_keys, int64_t* other_values,
              int64_t n, int bits) {
  if (n <= kFew) return insert_row(keys, values, n);
  for (int64_t i = 0; i < n; ++i) values[i] = i;
  uint64_t* k[2] = {keys, other_keys};
  int64_t* v[2] = {values, other_values};
  int now = 0;
  for (int shift = 0; shift < bits; shift += kBits)
    now ^= pass(k[now], v[now], k[!now], v[!now], n, shift);
  if (now == 0) return;
  std::memcpy(keys, other_keys, static_cast<size_t>(n) * sizeof *keys);
  std::memcpy(values, other_values, static_cast<size_t>(n) * sizeof *values);
}

}  // namespace

void sort_pairs(const SortArgs& a) {
  if (a.n == 0) return;
  auto* other_keys = static_cast<uint64_t*>(a.workspace);
  auto* other_values = reinterpret_cast<int64_t*>(other_keys + a.rows * a.n);
  const auto row = [&](int64_t r, int) {
    const int64_t at = r * a.n;
    sort_row(a.keys + at, a.values + at, other_keys + at, other_values + at, a.n, a.bits);
  };
  if (a.rows * a.n * 64 < parallel_grain())
    for (int64_t r = 0; r < a.rows; ++r) row(r, 0);
  else parallel_tasks(a.rows, row);
}

}  // namespace ramet::kernels::RAMET_VARIANT
