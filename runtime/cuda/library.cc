#include "runtime/cuda/library.h"

#include "runtime/base/logging.h"
#include "runtime/cuda/caching_allocator.h"
#include "runtime/cuda/check.h"
#include "runtime/cuda/copies.h"
#include "runtime/cuda/device_list.h"
#include "runtime/cuda/device_state.h"
#include "runtime/cuda/events.h"
#include "runtime/cuda/graphs.h"
#include "runtime/cuda/host_copies.h"
#include "runtime/cuda/kept_memory.h"
#include "runtime/cuda/nccl.h"
#include "runtime/devices/gpu_sums.h"
#include "runtime/tensor/pinned.h"

namespace ramet {
namespace cuda {
namespace {

static_assert(gpu::kCompute == static_cast<uint32_t>(Queue::kCompute) &&
              gpu::kCommunication == static_cast<uint32_t>(Queue::kCommunication));

class Cards final : public gpu::Library {
 public:
  int device_count() override { return static_cast<int>(device_list().cards.size()); }
  std::string why_none() override { return device_list().why_none; }
  void* allocate(size_t bytes, int device) override {
    return caching_allocator(device).allocate(bytes);
  }
  void free(void* memory, size_t, int device) noexcept override {
    caching_allocator(device).free(memory);
  }
  void copy(void* to, Device to_device, const void* from, Device from_device,
            size_t bytes) override {
    cuda::copy("copy", to, to_device, from, from_device, bytes);
  }
  void copy_after(gpu::Event& earlier, void* to, Device to_device, const void* from,
                  Device from_device, size_t bytes) override {
    cuda::copy_after("copy", static_cast<CardEvent&>(earlier), to, to_device, from, from_device,
                     bytes);
  }
  bool reaches(int device, int owner) override { return direct_access(owner, device); }
  void order(Stream earlier, Stream later) override {
    constexpr const char* kOp = "order";
    const auto queue = [](Stream s) { return static_cast<Queue>(s.id); };
    const int from = earlier.device.index(), to = later.device.index();
    DeviceState& state = device_state(from, kOp);
    if (from == to) state.order(queue(earlier), queue(later), kOp);
    else order_across(kOp, state, queue(earlier), device_state(to, kOp), queue(later));
  }
  // A device without work needs no wait.
  void wait(int device) override {
    if (DeviceState* state = existing_state(device)) state->wait("synchronize");
  }
  void raise_faults(int device) override {
    if (DeviceState* state = existing_state(device)) state->raise_fault();
  }
  CUstream_st* current_stream(int device) override {
    constexpr const char* kOp = "current_stream";
    DeviceState& state = device_state(device, kOp);
    use_card(kOp, state);
    return state.stream(Queue::kCompute, kOp);
  }
  gpu::DataFault fault(int device, const gpu::DataCheck& check) override {
    return device_state(device, check.op).fault(check);
  }
  std::unique_ptr<gpu::Event> event(int device, bool timing) override {
    return make_event(device, timing);
  }
  std::unique_ptr<gpu::Graph> graph(int device, const std::function<void()>& queue) override {
    return make_graph(device, queue);
  }
  MemoryStats memory_stats(int device) override { return caching_allocator(device).stats(); }
  void reset_peak_memory_stats(int device) override { caching_allocator(device).reset_peak(); }
  void set_memory_limit(int device, size_t bytes) override {
    caching_allocator(device).set_limit(bytes);
  }
  void empty_cache() override {
    empty_all_caches();
    gpu::host_copies()->empty_cache();
  }
  gpu::Capacity capacity(int device) override {
    constexpr const char* kOp = "capacity";
    cudaDeviceProp properties;
    RAMET_CUDA(kOp, device, cudaGetDeviceProperties(&properties, device_state(device, kOp).card));
    return {properties.totalGlobalMem, properties.multiProcessorCount};
  }
  int card(int device) override {
    return RAMET_GPU_EMULATED ? -1 : device_list().cards[static_cast<size_t>(device)];
  }
};

}  // namespace

void shutdown() {
  for (int k = 0; k < kMaxDevicesPerType; ++k) {
    DeviceState* state = existing_state(k);
    if (!state) continue;
    try {
      state->synchronize("shutdown");
    } catch (const Error& e) { log(LogLevel::Warning, e.what()); }  // no caller asked for it
    state->forget_faults();
  }
  destroy_communicators();
  destroy_buffers();
  forget_copies();
  destroy_allocators();
  forget_kept_memory();
  destroy_states();
  forget_device_list();
}

}  // namespace cuda

void gpu::sum_in_any_order(const char* op, const void* const* in, const int* devices, int count,
                           void* out, int root, int64_t n, ScalarType dtype) {
  cuda::nccl_sum(op, in, devices, count, out, root, n, dtype);
}
bool gpu::can_sum_in_any_order(const char* op, const int* devices, int count, ScalarType dtype) {
  return cuda::nccl_can_sum(op, devices, count, dtype);
}

gpu::Library* gpu::linked() {
  static cuda::Cards cards;
  return &cards;
}

}  // namespace ramet
