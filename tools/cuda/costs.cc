// The time of each kind of event on the emulated GPU: one line each, best of several runs.
//
//   bazel run //tools/cuda:costs
//
// RAMET_EMULATED_WORKERS=1 gives the cost on one host thread, which is what compares between
// machines.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "runtime/cuda/gpu.h"
#include "tools/emulated_gpu/executor/grid.h"

namespace ramet {
namespace {

constexpr int kRuns = 5;

void require(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "costs: %s\n", cudaGetErrorString(error));
  std::exit(1);
}

__global__ void empty_kernel() {}

__global__ void barrier_kernel(int count) {
  for (int i = 0; i < count; ++i) __syncthreads();
}

__global__ void shuffle_kernel(float* x, int count) {
  float value = static_cast<float>(threadIdx.x);
  for (int i = 0; i < count; ++i) value += __shfl_xor_sync(0xffffffffu, value, 1);
  x[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

__global__ void increment_kernel(float* x, long count) {
  const long i = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) x[i] += 1.0f;
}

__global__ void add_kernel(const float4* a, const float4* b, float4* c, long count) {
  const long stride = static_cast<long>(gridDim.x) * blockDim.x;
  for (long i = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride)
    c[i] = make_float4(a[i].x + b[i].x, a[i].y + b[i].y, a[i].z + b[i].z, a[i].w + b[i].w);
}

struct Large {
  float* pointers[500];
};

__global__ void large_argument_kernel(const Large large) {
  large.pointers[0][blockIdx.x * blockDim.x + threadIdx.x] = 1.0f;
}

/// Prints the time of one of `events` events.
void row(const char* name, double events, const char* event, const std::function<void()>& run) {
  using Clock = std::chrono::steady_clock;
  double best = 1e9;
  uint64_t switches = 0;
  for (int i = 0; i < kRuns; ++i) {
    const uint64_t before = emulated::executor_counts().switches;
    const auto start = Clock::now();
    run();
    require(cudaDeviceSynchronize());
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
    switches = emulated::executor_counts().switches - before;
  }
  std::printf("%-34s %10.3f ms %10.1f ns/%s  (%llu switches)\n", name, best * 1e3,
              best * 1e9 / events, event, static_cast<unsigned long long>(switches));
}

void measure() {
  constexpr long kElements = 1 << 20;
  float *a = nullptr, *b = nullptr, *c = nullptr;
  for (float** memory : {&a, &b, &c}) {
    require(cudaMalloc(memory, kElements * sizeof(float)));
    require(cudaMemset(*memory, 0, kElements * sizeof(float)));
  }
  row("launch and wait", 1, "launch", [] { require(launch(empty_kernel, 1, 1, 0, nullptr)); });
  row("100 launches and a wait", 100, "launch", [] {
    for (int i = 0; i < 100; ++i) require(launch(empty_kernel, 1, 1, 0, nullptr));
  });
  row("4096 blocks of 256, nothing", 4096. * 256, "thread",
      [] { require(launch(empty_kernel, 4096, 256, 0, nullptr)); });
  row("64 blocks of 256, 20 barriers", 64. * 256 * 20, "barrier and thread",
      [] { require(launch(barrier_kernel, 64, 256, 0, nullptr, 20)); });
  row("64 blocks of 256, 20 shuffles", 64. * 256 * 20, "shuffle and lane",
      [&] { require(launch(shuffle_kernel, 64, 256, 0, nullptr, a, 20)); });
  row("4 KB of arguments, 64 blocks of 128", 64. * 128, "thread", [&] {
    Large large{};
    large.pointers[0] = a;
    require(launch(large_argument_kernel, 64, 128, 0, nullptr, large));
  });
  row("x += 1, 1M, an element a thread", kElements, "element",
      [&] { require(launch(increment_kernel, kElements / 256, 256, 0, nullptr, a, kElements)); });
  row("a + b, 1M, 16 bytes at a time", kElements, "element", [&] {
    require(launch(add_kernel, 512, 256, 0, nullptr, reinterpret_cast<const float4*>(a),
                   reinterpret_cast<const float4*>(b), reinterpret_cast<float4*>(c),
                   kElements / 4));
  });
}

}  // namespace
}  // namespace ramet

int main() {
  ramet::measure();
  return 0;
}
