// Movements of operands that are still being written.
#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <thread>

#include "parallel/move/counters.h"
#include "parallel/nodes/broadcast_reduce.h"
#include "parallel/nodes/scatter_gather.h"
#include "runtime/devices/devices.h"
#include "tests/parallel/support.h"

namespace ramet {
namespace {

using namespace testing;
using namespace parallel;

// t's values are written on its device's worker by `write`: a GPU's in the host's memory first.
template <class F> void write_later(const Tensor& t, F write) {
  t.storage_impl()->pending =
      devices::post(t.device(), [p = static_cast<float*>(t->data),
                                 n = static_cast<size_t>(t.numel()), to = t.device(), write] {
        if (to.is_cpu()) return write(p);
        std::vector<float> host(n);
        write(host.data());
        gpu::required("test", to).copy(p, to, host.data(), kHost, n * sizeof(float));
      });
}

TEST(ReduceAdd, SameBitsUnderDelays) {
  std::mt19937 random(12);
  const float v[] = {1e8f, 1.f, -1e8f, 1.f};
  for (int repeat = 0; repeat < 100; ++repeat) {
    for (const bool tree : {false, true}) {
      std::vector<Tensor> in;
      for (int k = 0; k < 4; ++k) {
        in.push_back(make({0}, kFloat, d(k)));
        write_later(in.back(), [value = v[k], us = random() % 300](float* p) {
          std::this_thread::sleep_for(std::chrono::microseconds(us));
          *p = value;
        });
      }
      ReduceOptions options;
      if (tree) options.order = ReduceOrder::tree(4);
      const Tensor sum = reduce_add(in, repeat % 2 ? kHost : d(repeat % 5), options);
      ASSERT_EQ(values(sum), Values{tree ? 0.0 : 1.0});
    }
  }
  devices::synchronize();
}

TEST(PendingMovement, ReturnsBeforeItsOperandIsReady) {
  Latch latch;
  const Tensor slow = make({0, 0}, kFloat, d(1)), ready = make({10, 20}, kFloat, d(0));
  write_later(slow, [&](float* p) {
    latch.wait();
    p[0] = 1;
    p[1] = 2;
  });
  reset_counters();
  const Tensor sum = reduce_add({ready, slow}, d(2));  // returns although the producer is blocked
  const auto copies = broadcast(sum, {d(3), kHost});   // and so does what depends on it
  const Tensor joined = gather({copies[0], copies[1], slow}, 0, d(0));
  const auto pieces = scatter(joined, {d(0), d(1), d(2)});
  EXPECT_EQ(counters().host_syncs, 0u);
  EXPECT_GE(counters().comm_queued, 4u);
  Event event;
  event.record(d(2));
  EXPECT_FALSE(event.query());
  latch.open();
  event.synchronize();  // everything queued on d2: the sum, and the piece of the last scatter
  EXPECT_EQ(counters().host_syncs, 0u);
  if (!kGpus) {  // without waiting any more
    EXPECT_EQ(static_cast<const float*>(sum->data)[0], 11);
    EXPECT_EQ(static_cast<const float*>(sum->data)[1], 22);
  }
  EXPECT_EQ(values(sum), (Values{11, 22}));
  EXPECT_EQ(values(joined), (Values{11, 22, 11, 22, 1, 2}));
  EXPECT_EQ(values(pieces[0]), (Values{11, 22}));
  EXPECT_EQ(values(pieces[2]), (Values{1, 2}));
  devices::synchronize();
}

TEST(PendingMovement, LaterWriterWaitsForReader) {
  Latch latch;
  const Tensor slow = make({0}, kFloat, d(1));
  write_later(slow, [&](float* p) {
    latch.wait();
    *p = 5;
  });
  const Tensor copy = broadcast(slow, d(2))[0];
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    latch.open();
  });
  slow.zero_();  // a host wait: for the producer and for the movement that reads it
  EXPECT_EQ(values(slow), Values{0});
  EXPECT_EQ(values(copy), Values{5});
  opener.join();
}

TEST(PendingMovement, ChainsThroughOneWorkerDoNotDeadlock) {
  // Every movement here is on one worker; the first waits for another device's task, the others for
  // the first.
  Latch latch;
  Tensor t = make({0}, kFloat, d(1));
  write_later(t, [&](float* p) {
    latch.wait();
    *p = 1;
  });
  std::vector<Tensor> chain = {broadcast(t, d(0))[0]};
  for (int i = 0; i < 20; ++i) chain.push_back(reduce_add({chain.back(), t}, i % 2 ? d(0) : d(1)));
  latch.open();
  EXPECT_EQ(values(chain.back()), Values{21});
  devices::synchronize();
}

TEST(PendingMovement, ResultMayDieBeforeItIsComplete) {
  Latch latch;
  Tensor t = make({0}, kFloat, d(1));
  write_later(t, [&](float* p) {
    latch.wait();
    *p = 1;
  });
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    latch.open();
  });
  {
    const Tensor gone = broadcast(t, d(2))[0];
    t = Tensor();
  }
  opener.join();
  devices::synchronize();
}

}  // namespace
}  // namespace ramet
