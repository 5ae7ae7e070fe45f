// The instructions of runtime/cuda/ptx_hopper.h on the host. Their contracts are in that file.
//
// Note [Late and early]: asynchronous work happens as late as it may, and its targets are NaN until
// then. A bulk copy arrives when a thread waits for its barrier. A product reads its operands, in
// registers or in shared memory, and writes its sums when a thread waits for its group. Three
// errors show as NaN in every run: a tile reused too early, an operand changed too early, a sum
// used too early. hopper.cc does this work and reports nothing to the checker, because the barriers
// that order these accesses are unknown to it.
#pragma once
#include <cstring>

#include "tools/emulated_gpu/executor/synchronize.h"

namespace ramet::emulated {

/// Fills a map's 128 bytes: four extents in elements, three strides in bytes, the tile's extents.
void encode_tensor_map(void* map, const void* data, const uint64_t extents[4],
                       const uint64_t strides[3], const uint32_t tile[4]);

/// The object's address in shared memory. Dynamic memory begins at an odd multiple of 128 here,
/// because CUDA promises no more.
unsigned shared_address(const void* memory);

void phase_init(uint64_t* barrier, unsigned count);
void phase_arrive(uint64_t* barrier, unsigned bytes, const char* file, int line);
void phase_wait(uint64_t* barrier, unsigned parity, const char* file, int line);
void bulk_copy(void* target, const void* map, const int at[4], uint64_t* barrier, const char* file,
               int line);

/// d, of `fragments` fragments, += a b (with `fresh`: =). a is in registers or, where that is null,
/// at `a_tile`. In the first case b's rows are the depth.
struct WarpgroupProduct {
  float* d;
  int fragments;
  const unsigned* a;
  uint64_t a_tile, b_tile;
  bool fresh, bfloat;
};
void product_fence();
void product_issue(const WarpgroupProduct& product, const char* file, int line);
void product_commit();
void product_wait(int pending, const char* file, int line);

}  // namespace ramet::emulated

namespace ramet::ptx {

inline unsigned shared_address(const void* memory) { return emulated::shared_address(memory); }

inline void barrier_init(uint64_t* barrier, unsigned count) {
  emulated::phase_init(barrier, count);
}
inline void barriers_ready() {}
inline void barrier_arrive(uint64_t* barrier, RAMET_EMULATED_CALLER) {
  emulated::phase_arrive(barrier, 0, RAMET_EMULATED_AT);
}
inline void barrier_expect(uint64_t* barrier, unsigned bytes, RAMET_EMULATED_CALLER) {
  emulated::phase_arrive(barrier, bytes, RAMET_EMULATED_AT);
}
inline void barrier_wait(uint64_t* barrier, unsigned parity, RAMET_EMULATED_CALLER) {
  emulated::phase_wait(barrier, parity, RAMET_EMULATED_AT);
}
template <class Map>
void tile_copy(void* target, const Map& map, int column, int row, int head, int batch,
               uint64_t* barrier, RAMET_EMULATED_CALLER) {
  const int at[4] = {column, row, head, batch};
  emulated::bulk_copy(target, &map, at, barrier, RAMET_EMULATED_AT);
}

// Registers are not counted here, but the warp has to be together.
template <int count> void fewer_registers(RAMET_EMULATED_CALLER) {
  static_assert(count >= 24 && count <= 256 && count % 8 == 0);
  emulated::warp_rendezvous(0xffffffffu, nullptr, nullptr, RAMET_EMULATED_AT);
}
template <int count> void more_registers(RAMET_EMULATED_CALLER) {
  fewer_registers<count>(RAMET_EMULATED_AT);
}

inline void wgmma_fence() { emulated::product_fence(); }
inline void wgmma_commit() { emulated::product_commit(); }
template <int pending> void wgmma_wait(RAMET_EMULATED_CALLER) {
  emulated::product_wait(pending, RAMET_EMULATED_AT);
}
template <int kFragments> void done(float (&)[kFragments][4]) {}
inline unsigned here(unsigned x) { return x; }

template <bool bfloat, bool add>
void wgmma_tiles(float (&d)[16][4], uint64_t a, uint64_t b, RAMET_EMULATED_CALLER) {
  emulated::product_issue({d[0], 16, nullptr, a, b, !add, bfloat}, RAMET_EMULATED_AT);
}
template <bool bfloat, int kFragments>
void wgmma_rows(float (&d)[kFragments][4], const unsigned (&a)[4], uint64_t b,
                RAMET_EMULATED_CALLER) {
  emulated::product_issue({d[0], kFragments, a, 0, b, false, bfloat}, RAMET_EMULATED_AT);
}

}  // namespace ramet::ptx
