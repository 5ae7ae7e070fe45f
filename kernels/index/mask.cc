#include "kernels/index/mask.h"

#include "kernels/copy/chunk.h"
#include "kernels/simd/lanes.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

template <class U> void mask_move_as(const MaskMoveArgs& a) {
  const uint8_t* mask = static_cast<const uint8_t*>(a.mask);
  U *dense = static_cast<U*>(a.dense), *packed = static_cast<U*>(a.packed);
  run_tasks(ceil_div(a.n, kMaskBlock), a.n * (a.bytes + 1), [&](int64_t b, int) {
    U* p = packed + a.offsets[b];
    const int64_t end = imin(a.n, (b + 1) * kMaskBlock);
    for (int64_t i = b * kMaskBlock; i < end; ++i) {
      if (!mask[i]) continue;
      if (a.scatter) dense[i] = *p++;
      else *p++ = dense[i];
    }
  });
}

}  // namespace

void mask_count(const MaskCountArgs& a) {
  const uint8_t* mask = static_cast<const uint8_t*>(a.mask);
  const int64_t blocks = ceil_div(a.n, kMaskBlock);
  run_tasks(ceil_div(blocks, 16), a.n, [&](int64_t task, int) {
    for (int64_t b = task * 16; b < imin(blocks, (task + 1) * 16); ++b) {
      int64_t count = 0;
      for (int64_t i = b * kMaskBlock; i < imin(a.n, (b + 1) * kMaskBlock); ++i)
        count += mask[i] != 0;
      a.offsets[b + 1] = count;
    }
  });
  a.offsets[0] = 0;
  for (int64_t b = 0; b < blocks; ++b) a.offsets[b + 1] += a.offsets[b];
}

void mask_move(const MaskMoveArgs& a) {
  switch (a.bytes) {
    case 1: return mask_move_as<uint8_t>(a);
    case 2: return mask_move_as<uint16_t>(a);
    case 4: return mask_move_as<uint32_t>(a);
    default: return mask_move_as<uint64_t>(a);
  }
}

void nonzero_positions(const NonzeroArgs& a) {
  const uint8_t* mask = static_cast<const uint8_t*>(a.mask);
  const int64_t n = product(a.sizes, a.rank);
  run_tasks(ceil_div(n, kMaskBlock), n, [&](int64_t b, int) {
    int64_t* p = a.out + a.offsets[b] * a.rank;
    const int64_t end = imin(n, (b + 1) * kMaskBlock);
    for (int64_t i = b * kMaskBlock; i < end; ++i) {
      if (!mask[i]) continue;
      int64_t rest = i;
      for (int d = a.rank - 1; d > 0; --d) {
        p[d] = rest % a.sizes[d];
        rest /= a.sizes[d];
      }
      if (a.rank > 0) p[0] = rest;
      p += a.rank;
    }
  });
}

}  // namespace ramet::kernels::RAMET_VARIANT
