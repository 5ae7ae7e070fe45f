// Copies: bounds, directions, and when host memory is read and written.
#include <algorithm>
#include <numeric>

#include "tests/tools/emulated_gpu/emulated_devices.h"

namespace ramet::testing {
namespace {

std::vector<int> counting(size_t count, int first = 0) {
  std::vector<int> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

/// Pinned host memory with an owner.
struct Pinned {
  explicit Pinned(size_t count) {
    EXPECT_CUDA(cudaMallocHost(&data, count * sizeof(int)), cudaSuccess);
  }
  ~Pinned() { (void)cudaFreeHost(data); }
  int* data = nullptr;
};

emulated::Settings lazy() {
  emulated::Settings s = test_settings();
  s.streams = emulated::StreamMode::Lazy;
  return s;
}

TEST(EmulatedCopies, BoundsAreChecked) {
  Devices devices;
  DeviceArray<int> x(counting(64));
  std::vector<int> host(100);
  EXPECT_CUDA(cudaMemcpy(host.data(), x, 65 * 4, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_CUDA(cudaMemcpy(host.data(), x + 1, 64 * 4, cudaMemcpyDeviceToHost),
              cudaErrorInvalidValue);
  EXPECT_CUDA(cudaMemcpy(x + 60, host.data(), 5 * 4, cudaMemcpyHostToDevice),
              cudaErrorInvalidValue);
  EXPECT_CUDA(cudaMemset(x, 0, 64 * 4 + 1), cudaErrorInvalidValue);
  EXPECT_CUDA(cudaMemset(host.data(), 0, 4), cudaErrorInvalidValue);
  EXPECT_CUDA(cudaMemcpy(x + 60, host.data(), 4 * 4, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_CUDA(cudaMemcpy(host.data(), x, 0, cudaMemcpyDeviceToHost), cudaSuccess);
}

TEST(EmulatedCopies, DirectionsAreChecked) {
  Devices devices;
  DeviceArray<int> x(counting(8)), y{8};
  int host[8] = {};
  EXPECT_CUDA(cudaMemcpy(host, host, 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_CUDA(cudaMemcpy(host, host, 4, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_CUDA(cudaMemcpy(x, y, 4, cudaMemcpyHostToDevice), cudaErrorInvalidMemcpyDirection);
  EXPECT_CUDA(cudaMemcpy(x, host, 4, cudaMemcpyHostToHost), cudaErrorInvalidMemcpyDirection);
  EXPECT_CUDA(cudaMemcpy(y, x, 32, cudaMemcpyDefault), cudaSuccess);
  EXPECT_CUDA(cudaMemcpy(host, y, 32, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(std::vector<int>(host, host + 8), counting(8));
}

TEST(EmulatedCopies, BetweenDevices) {
  Devices devices;
  DeviceArray<int> x(counting(100, 5));
  ASSERT_CUDA(cudaSetDevice(1), cudaSuccess);
  DeviceArray<int> y{100};
  EXPECT_CUDA(cudaMemcpyPeer(y, 1, x, 0, 400), cudaSuccess);
  EXPECT_EQ(y.host(), counting(100, 5));
  EXPECT_CUDA(cudaMemcpyPeer(y, 0, x, 0, 400), cudaErrorInvalidValue);  // y is on 1
  EXPECT_CUDA(cudaMemcpyPeerAsync(y, 1, x, 1, 400), cudaErrorInvalidValue);
}

// A link that claims to work and does not.
TEST(EmulatedCopies, BetweenDevicesThatOnlySayTheyCan) {
  emulated::Settings s = test_settings();
  s.devices = 3;
  s.broken_peers = {{0, 1}};
  Devices devices(s);
  int can = 0;
  EXPECT_CUDA(cudaDeviceCanAccessPeer(&can, 0, 1), cudaSuccess);
  EXPECT_EQ(can, 1);
  DeviceArray<int> x(counting(10)), beside{10};
  EXPECT_CUDA(cudaMemcpy(beside, x, 40, cudaMemcpyDeviceToDevice), cudaSuccess);
  EXPECT_EQ(beside.host(), counting(10));
  for (const int device : {1, 2}) {
    ASSERT_CUDA(cudaSetDevice(device), cudaSuccess);
    DeviceArray<int> y{10};
    EXPECT_CUDA(cudaMemcpyPeer(y, device, x, 0, 40), cudaSuccess);
    EXPECT_EQ(y.host() == counting(10), device == 2);
  }
}

// A pageable source may be changed as soon as the call has returned, a pinned one may not: its copy
// runs later. Lazy streams run it as late as they can.
TEST(EmulatedCopies, SourcesAreStagedOrReadLate) {
  Devices devices(lazy());
  const cudaStream_t stream = new_stream();
  DeviceArray<int> x{4}, y{4};
  std::vector<int> pageable = {1, 2, 3, 4};
  Pinned pinned(4);
  std::iota(pinned.data, pinned.data + 4, 1);
  ASSERT_CUDA(cudaMemcpyAsync(x, pageable.data(), 16, cudaMemcpyHostToDevice, stream), cudaSuccess);
  ASSERT_CUDA(cudaMemcpyAsync(y, pinned.data, 16, cudaMemcpyHostToDevice, stream), cudaSuccess);
  pageable[0] = pinned.data[0] = 99;
  ASSERT_CUDA(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(x.host(), (std::vector<int>{1, 2, 3, 4}));
  EXPECT_EQ(y.host(), (std::vector<int>{99, 2, 3, 4}));
}

// A pageable target is written when the call returns, a pinned one when the stream gets there.
TEST(EmulatedCopies, TargetsAreWaitedForOrWrittenLate) {
  Devices devices(lazy());
  const cudaStream_t stream = new_stream();
  DeviceArray<int> x(counting(4, 1));
  std::vector<int> pageable(4);
  Pinned pinned(4);
  pinned.data[3] = -1;
  ASSERT_CUDA(cudaMemcpyAsync(pinned.data, x, 16, cudaMemcpyDeviceToHost, stream), cudaSuccess);
  EXPECT_EQ(pinned.data[3], -1);
  ASSERT_CUDA(cudaMemcpyAsync(pageable.data(), x, 16, cudaMemcpyDeviceToHost, stream), cudaSuccess);
  EXPECT_EQ(pageable, counting(4, 1));
  EXPECT_EQ(pinned.data[3], 4);  // it was queued before
}

TEST(EmulatedCopies, PointersKnowWhatTheyAre) {
  Devices devices;
  ASSERT_CUDA(cudaSetDevice(1), cudaSuccess);
  DeviceArray<int> x{8};
  Pinned pinned(8);
  int local = 0;
  std::vector<char> registered(1000);
  cudaPointerAttributes a;
  EXPECT_CUDA(cudaPointerGetAttributes(&a, x + 7), cudaSuccess);
  EXPECT_EQ(a.type, cudaMemoryTypeDevice);
  EXPECT_EQ(a.device, 1);
  EXPECT_EQ(a.devicePointer, x + 7);
  EXPECT_EQ(a.hostPointer, nullptr);
  EXPECT_CUDA(cudaPointerGetAttributes(&a, pinned.data + 7), cudaSuccess);
  EXPECT_EQ(a.type, cudaMemoryTypeHost);
  EXPECT_EQ(a.hostPointer, pinned.data + 7);
  EXPECT_CUDA(cudaPointerGetAttributes(&a, &local), cudaSuccess);
  EXPECT_EQ(a.type, cudaMemoryTypeUnregistered);
  EXPECT_CUDA(cudaHostRegister(registered.data(), 1000, 0), cudaSuccess);
  EXPECT_CUDA(cudaHostRegister(registered.data() + 999, 10, 0),
              cudaErrorHostMemoryAlreadyRegistered);
  EXPECT_CUDA(cudaPointerGetAttributes(&a, registered.data() + 999), cudaSuccess);
  EXPECT_EQ(a.type, cudaMemoryTypeHost);
  EXPECT_CUDA(cudaHostUnregister(registered.data()), cudaSuccess);
  EXPECT_CUDA(cudaHostUnregister(registered.data()), cudaErrorHostMemoryNotRegistered);
  EXPECT_CUDA(cudaFreeHost(&local), cudaErrorInvalidValue);
}

TEST(EmulatedCopies, StreamOrderedMemory) {
  Devices devices(lazy());
  const cudaStream_t stream = new_stream();
  size_t before = 0, after = 0, total = 0;
  ASSERT_CUDA(cudaMemGetInfo(&before, &total), cudaSuccess);
  void* memory = nullptr;
  ASSERT_CUDA(cudaMallocAsync(&memory, 4096, stream), cudaSuccess);
  ASSERT_CUDA(cudaMemsetAsync(memory, 1, 4096, stream), cudaSuccess);
  ASSERT_CUDA(cudaFreeAsync(memory, stream), cudaSuccess);
  ASSERT_CUDA(cudaMemGetInfo(&after, &total), cudaSuccess);
  EXPECT_EQ(after, before - 4096);  // the stream has not come to it
  ASSERT_CUDA(cudaStreamSynchronize(stream), cudaSuccess);
  ASSERT_CUDA(cudaMemGetInfo(&after, &total), cudaSuccess);
  EXPECT_EQ(after, before);
}

/// Milliseconds between two events.
float between(cudaEvent_t a, cudaEvent_t b) {
  float milliseconds = -1;
  EXPECT_CUDA(cudaEventElapsedTime(&milliseconds, a, b), cudaSuccess);
  return milliseconds;
}

cudaEvent_t recorded(cudaStream_t stream) {
  cudaEvent_t event = nullptr;
  EXPECT_CUDA(cudaEventCreate(&event), cudaSuccess);
  EXPECT_CUDA(cudaEventRecord(event, stream), cudaSuccess);
  return event;
}

cudaEvent_t recorded_now(cudaStream_t stream) {
  const cudaEvent_t event = recorded(stream);
  EXPECT_CUDA(cudaEventSynchronize(event), cudaSuccess);
  return event;
}

// Note [Emulated time] of timeline.h: exact, on any machine.
TEST(EmulatedTime, IsThatOfTheLinks) {
  for (Schedule schedule : schedules()) {
    schedule.settings.host_gbps = 1;
    schedule.settings.peer_gbps = 10;
    Devices devices(schedule.settings);
    const size_t count = 250000, bytes = count * 4;  // 1 ms to the host, 0.1 ms to a peer
    DeviceArray<int> x{count}, z{count}, v{count}, w{count};
    ASSERT_CUDA(cudaSetDevice(1), cudaSuccess);
    DeviceArray<int> y{count};
    ASSERT_CUDA(cudaSetDevice(0), cudaSuccess);
    Pinned host(2 * count);
    const cudaStream_t a = new_stream(), b = new_stream(), c = new_stream(), d = new_stream();
    const cudaEvent_t start = recorded(a);
    // Two over one link in one direction take turns; the schedule decides which is first.
    ASSERT_CUDA(cudaMemcpyAsync(x, host.data, bytes, cudaMemcpyHostToDevice, a), cudaSuccess);
    ASSERT_CUDA(cudaMemcpyAsync(z, host.data, bytes, cudaMemcpyHostToDevice, b), cudaSuccess);
    const cudaEvent_t one = recorded(a), other = recorded(b);
    // The other direction and another link: concurrently with the two, on streams of their own.
    ASSERT_CUDA(cudaMemcpyAsync(host.data + count, v, bytes, cudaMemcpyDeviceToHost, c),
                cudaSuccess);
    ASSERT_CUDA(cudaMemcpyPeerAsync(y, 1, w, 0, bytes, d), cudaSuccess);
    const cudaEvent_t back = recorded(c), across = recorded(d);
    // Kernels and fills take no time; a wait takes its stream to where the event is.
    ASSERT_CUDA(cudaMemsetAsync(w, 0, bytes, d), cudaSuccess);
    ASSERT_CUDA(cudaStreamWaitEvent(d, back), cudaSuccess);
    const cudaEvent_t after = recorded(d);
    ASSERT_CUDA(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_FLOAT_EQ(std::min(between(start, one), between(start, other)), 1.0f) << schedule.name;
    EXPECT_FLOAT_EQ(std::max(between(start, one), between(start, other)), 2.0f) << schedule.name;
    EXPECT_FLOAT_EQ(between(start, back), 1.0f) << schedule.name;
    EXPECT_FLOAT_EQ(between(start, across), 0.1f) << schedule.name;
    EXPECT_FLOAT_EQ(between(start, after), 1.0f) << schedule.name;
    // The host has waited for all of it: what comes now starts then.
    EXPECT_FLOAT_EQ(between(start, recorded_now(a)), 2.0f) << schedule.name;
  }
}

}  // namespace
}  // namespace ramet::testing
