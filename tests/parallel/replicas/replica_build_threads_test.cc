// Replicas are made while other threads work: clone() is the user's code, which may wait for them.
#include <chrono>
#include <functional>
#include <future>
#include <thread>

#include "autograd/autograd.h"
#include "runtime/devices/generator.h"
#include "tests/parallel/replicas/replica_set.h"

namespace ramet {
namespace {

using namespace testing;
using namespace nn::parallel;

// Its reset() makes a call, but not in the constructor.
struct CallsImpl : nn::Cloneable<CallsImpl> {
  explicit CallsImpl(std::function<void()> f) : call(std::make_shared<Call>()) {
    CallsImpl::reset();
    call->f = std::move(f);
  }
  void reset() override {
    part = register_module("part", Stack());
    if (call->f) call->f();
  }
  struct Call {
    std::function<void()> f;
  };
  std::shared_ptr<Call> call;
  Stack part{nullptr};
};
RAMET_MODULE(Calls);

TEST(ReplicaBuild, ThatWaitsForAnotherThreadsReplicas) {
  Stack other;
  std::promise<void> made;
  std::future<void> all_made = made.get_future();
  std::thread there;
  Calls m([&] {
    there = std::thread([&] {
      const ReplicaSet set(other.ptr(), many(2));
      made.set_value();
    });
    EXPECT_EQ(all_made.wait_for(std::chrono::seconds(60)), std::future_status::ready);
  });
  const ReplicaSet set(m.ptr(), many(1));
  there.join();
}

TEST(ReplicaBuild, OfAPartInTheMiddle) {
  int made = 0;
  const Stack* part = nullptr;
  Calls m([&] { made += ReplicaSet(part->ptr(), many(2)).size(); });
  part = &m->part;
  ReplicaSet set(m.ptr(), many(3));
  EXPECT_EQ(made, 3 * 2);
  set.refresh();
  expect_equal_to_source(set);
}

// What another thread draws at the same time stays drawn; the replicas draw nothing, whatever
// reset() does.
TEST(ReplicaBuild, DrawsAndSeeds) {
  const auto draw = [] { return rand({1}).item<float>(); };
  manual_seed(7);
  Generator numbers = default_generator(kCPU);
  int calls = 0;
  Calls m([&] {
    ++calls;
    draw();
    std::thread(draw).join();
  });
  const uint64_t before = numbers.get_state().offset;
  const ReplicaSet set(m.ptr(), many(3));
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(numbers.get_state().offset, before + 3) << "the other threads' draws";

  Calls seeds([&] { manual_seed(1); });
  const std::vector<GeneratorState> states = generator_states();
  const ReplicaSet more(seeds.ptr(), many(2));
  EXPECT_EQ(generator_states(), states);
}

}  // namespace
}  // namespace ramet
