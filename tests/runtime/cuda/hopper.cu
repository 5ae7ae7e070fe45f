#include "runtime/cuda/ptx_hopper.h"
#include "tests/runtime/cuda/hopper.h"

namespace ramet::testing {
namespace {

using cuda::TensorMap;

// "Matrix Descriptor Format" of the PTX ISA. Address, leading and stride offsets are in units of 16
// bytes, at bits 0, 16 and 32. 1 at bit 62 is the swizzle of 128 bytes.
static_assert(ptx::tile_operand(0x12340) == 0x4000004000011234u);
static_assert(ptx::tile_operand(0x400, 0x4000) == 0x4000004004000040u);
static_assert(ptx::tile_operand(0x1040400) == ptx::tile_operand(0x400));  // of a cluster's window

template <class T> __device__ T& tiles() {
  auto* memory = dynamic_shared<unsigned char>();
  return *reinterpret_cast<T*>(
      memory + (ptx::kTileAlignment - ptx::shared_address(memory) % ptx::kTileAlignment));
}
template <class T> constexpr size_t bytes_of() { return sizeof(T) + ptx::kTileAlignment; }

struct OneTile {
  uint16_t at[256 * 64];
  uint64_t full;
};

__global__ void tile_kernel(const __grid_constant__ TensorMap map, int column, int row, int head,
                            int batch, int rows, uint16_t* out) {
#if RAMET_HOPPER_CODE
  OneTile& tile = tiles<OneTile>();
  if (threadIdx.x == 0) {
    ptx::barrier_init(&tile.full, 1);
    ptx::barriers_ready();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::barrier_expect(&tile.full, static_cast<unsigned>(rows) * 128);
    ptx::tile_copy(tile.at, map, column, row, head, batch, &tile.full);
  }
  ptx::barrier_wait(&tile.full, 0);
  for (int i = static_cast<int>(threadIdx.x); i < rows * 64; i += 128) out[i] = tile.at[i];
#endif
}

template <int kColumns> struct Operands {
  uint16_t a[64][64], b[128][64], c[kColumns / 64][128][64];
  uint64_t full, again;
};

template <int kColumns, HopperForgotten forgotten>
__global__ void __launch_bounds__(128)
    products_kernel(const __grid_constant__ TensorMap a_map,
                    const __grid_constant__ TensorMap b_map,
                    const __grid_constant__ TensorMap c_map, float* ab, float* abc) {
#if RAMET_HOPPER_CODE
  auto& shared = tiles<Operands<kColumns>>();
  const bool first = threadIdx.x == 0;
  if (first) {
    ptx::barrier_init(&shared.full, 1);
    ptx::barrier_init(&shared.again, 1);
    ptx::barriers_ready();
  }
  __syncthreads();
  if (first) {
    ptx::barrier_expect(&shared.full, sizeof(shared.a) + sizeof(shared.b) + sizeof(shared.c));
    ptx::tile_copy(shared.a, a_map, 0, 0, 0, 0, &shared.full);
    ptx::tile_copy(shared.b, b_map, 0, 0, 0, 0, &shared.full);
    for (int i = 0; i < kColumns / 64; ++i)
      ptx::tile_copy(shared.c[i], c_map, i * 64, 0, 0, 0, &shared.full);
  }
  if (forgotten != HopperForgotten::Arrival) ptx::barrier_wait(&shared.full, 0);
  float d[16][4], e[kColumns / 8][4] = {};
  if (forgotten != HopperForgotten::Fence) ptx::wgmma_fence();
#pragma unroll
  for (unsigned k = 0; k < 4; ++k) {
    const uint64_t left = ptx::tile_operand(ptx::shared_address(shared.a) + k * 32),
                   right = ptx::tile_operand(ptx::shared_address(shared.b) + k * 32);
    if (k == 0) ptx::wgmma_tiles<true, false>(d, left, right);
    else ptx::wgmma_tiles<true, true>(d, left, right);
  }
  ptx::wgmma_commit();
  // The tile is overwritten before it is known that no thread still reads it.
  if (forgotten == HopperForgotten::Use && first) {
    ptx::barrier_expect(&shared.again, sizeof(shared.b));
    ptx::tile_copy(shared.b, b_map, 0, 1, 0, 0, &shared.again);
  }
  if (forgotten != HopperForgotten::Wait) ptx::wgmma_wait<0>();
  ptx::done(d);
  if (forgotten == HopperForgotten::Use) ptx::barrier_wait(&shared.again, 0);
  const int lane = static_cast<int>(threadIdx.x) % 32,
            row = static_cast<int>(threadIdx.x) / 32 * 16 + lane / 4, column = lane % 4 * 2;
  unsigned p[8][4];
#pragma unroll
  for (int j = 0; j < 16; ++j) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float x = d[j][half * 2], y = d[j][half * 2 + 1];
      ab[(row + half * 8) * 128 + j * 8 + column] = x;
      ab[(row + half * 8) * 128 + j * 8 + column + 1] = y;
      const __nv_bfloat162 both = __floats2bfloat162_rn(x, y);
      memcpy(&p[j / 2][j % 2 * 2 + half], &both, sizeof both);
    }
  }
  ptx::wgmma_fence();
#pragma unroll
  for (unsigned j = 0; j < 8; ++j)
    ptx::wgmma_rows<true>(
        e, p[j], ptx::tile_operand(ptx::shared_address(shared.c) + j * 2048, sizeof(shared.c[0])));
  ptx::wgmma_commit();
  ptx::wgmma_wait<0>();
  ptx::done(e);
#pragma unroll
  for (int j = 0; j < kColumns / 8; ++j) {
#pragma unroll
    for (int i = 0; i < 4; ++i)
      abc[(row + i / 2 * 8) * kColumns + j * 8 + column + i % 2] = e[j][i];
  }
#endif
}

template <int kColumns, HopperForgotten forgotten>
cudaError_t products(const TensorMap& a, const TensorMap& b, const TensorMap& c, float* ab,
                     float* abc, cudaStream_t stream) {
  constexpr size_t kBytes = bytes_of<Operands<kColumns>>();
  auto* kernel = products_kernel<kColumns, forgotten>;
  if (const cudaError_t error = cudaFuncSetAttribute(
          kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(kBytes)))
    return error;
  return launch(kernel, 1, 128, kBytes, stream, a, b, c, ab, abc);
}

}  // namespace

cudaError_t hopper_tile(const TensorMap& map, const int (&at)[4], int rows, uint16_t* out,
                        cudaStream_t stream) {
  return launch(tile_kernel, 1, 128, bytes_of<OneTile>(), stream, map, at[0], at[1], at[2], at[3],
                rows, out);
}

cudaError_t hopper_products(HopperForgotten forgotten, const TensorMap& a, const TensorMap& b,
                            const TensorMap& c, int columns, float* ab, float* abc,
                            cudaStream_t stream) {
  using F = HopperForgotten;
  const auto call = [&](auto* narrow, auto* wide) {
    return columns == 64 ? narrow(a, b, c, ab, abc, stream) : wide(a, b, c, ab, abc, stream);
  };
  switch (forgotten) {
    case F::Nothing: return call(products<64, F::Nothing>, products<128, F::Nothing>);
#if RAMET_GPU_EMULATED
    case F::Arrival: return call(products<64, F::Arrival>, products<128, F::Arrival>);
    case F::Wait: return call(products<64, F::Wait>, products<128, F::Wait>);
    case F::Fence: return call(products<64, F::Fence>, products<128, F::Fence>);
    case F::Use: return call(products<64, F::Use>, products<128, F::Use>);
#endif
    default: return cudaErrorInvalidValue;
  }
}

}  // namespace ramet::testing
