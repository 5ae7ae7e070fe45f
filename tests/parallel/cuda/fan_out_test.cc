// One GPU's tensors for several others: none waits for another one.
#include <gtest/gtest.h>

#include <chrono>

#include "autograd/grad_mode.h"
#include "autograd/ops/make/copy.h"
#include "parallel/move/comm.h"
#include "parallel/replicas/replica_set.h"
#include "runtime/devices/devices.h"
#include "tests/parallel/cuda/gpu_models.h"
#include "tests/runtime/cuda/gate.h"

namespace ramet::testing {
namespace {

// Does what the device was given end within ten seconds?
bool ends(Device device) {
  Event end;
  end.record(device);
  const auto late = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!end.query() && std::chrono::steady_clock::now() < late) std::this_thread::yield();
  return end.query();
}

// While cuda:1 is busy, `copies` (from cuda:0) are made on cuda:2, and cuda:0 waits for both.
template <class F> void expect_side_by_side(const F& copies) {
  Gate gate;
  queue(1, Gate::wait, &gate);
  copies();
  EXPECT_TRUE(ends(gpu(2)));
  EXPECT_FALSE(gate.passed);
  Event home;
  home.record(gpu(0));
  EXPECT_FALSE(home.query()) << "what cuda:1 has still to read may be written";
  gate.open = true;
  EXPECT_TRUE(ends(gpu(0)));
}

emulated::Settings three() {
  emulated::Settings settings = gpu_settings(3);
  settings.streams = emulated::StreamMode::Async;
  return settings;
}

TEST(FanOut, Broadcast) {
  RAMET_SKIP_IF_ONE_AT_A_TIME();
  const Gpus all(three());
  for (const size_t count : {1, 3}) {
    std::vector<Tensor> tensors;
    for (size_t i = 0; i < count; ++i)
      tensors.push_back(counting({70 + static_cast<int64_t>(i)}, kFloat).to(gpu(0)));
    std::vector<std::vector<Tensor>> rows;
    (void)parallel::broadcast_coalesced(tensors, gpus(3));  // peers are tried at their first use
    expect_side_by_side([&] { rows = parallel::broadcast_coalesced(tensors, gpus(3)); });
    for (const auto& row : rows)
      for (size_t i = 0; i < count; ++i) EXPECT_EQ(values(row[i]), values(tensors[i]));
  }
}

void expect_three_rows(const Tensor& x, const Values& expected) {
  const auto rows = parallel::comm::broadcast_coalesced({x, x}, gpus(3));
  for (const auto& row : rows)
    for (const Tensor& t : row) EXPECT_EQ(values(t), expected);
}

// The source is being written: by a copy without a wait, and by a task of its device.
TEST(FanOut, OfWhatIsStillComing) {
  for (const auto mode : {emulated::StreamMode::Async, emulated::StreamMode::Lazy}) {
    emulated::Settings settings = three();
    settings.streams = mode;
    const Gpus all(settings);
    const Tensor x = counting({500}, kFloat), pinned = x.pin_memory();
    expect_three_rows(x.to(TensorOptions(gpu(0))), values(x));  // peers are tried
    expect_three_rows(pinned.to(TensorOptions(gpu(0)), /*non_blocking=*/true), values(x));

    const Tensor y = zeros({500}, TensorOptions(gpu(0)));
    const auto write = [y] {
      const devices::OperandsReady ready;  // it does not wait for itself
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      autograd::fill_values(y, 7);
    };
    y.storage_impl()->pending = devices::post(gpu(0), write);
    expect_three_rows(y, values(full({500}, 7)));
  }
}

TEST(FanOut, Replicas) {
  RAMET_SKIP_IF_ONE_AT_A_TIME();
  const Gpus all(three());
  SmallConv m(/*norm_and_dropout=*/false);
  set_parameters(*m, 70);
  m->to(gpu(0));
  nn::parallel::ReplicaSet set(m.ptr(), gpus(3));
  set.refresh();
  {
    const NoGradGuard off;
    for (Tensor& p : m->parameters()) p.add_(1);
  }
  expect_side_by_side([&] { set.refresh(); });
  for (int k = 1; k < 3; ++k)
    EXPECT_EQ(all_values(set.replica<SmallConvImpl>(k).parameters()), all_values(m->parameters()));
}

}  // namespace
}  // namespace ramet::testing
