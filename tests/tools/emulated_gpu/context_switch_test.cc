// Both implementations of the switch, on any processor that has both.
#include "tools/emulated_gpu/executor/context_switch.h"

#include <gtest/gtest.h>

#include <vector>

namespace ramet::emulated {
namespace {

template <class T> class ContextSwitch : public ::testing::Test {};

#if defined(RAMET_EMULATED_FAST_SWITCH)
using Contexts = ::testing::Types<FastContext, PortableContext>;
#else
using Contexts = ::testing::Types<PortableContext>;
#endif
TYPED_TEST_SUITE(ContextSwitch, Contexts);

template <class T> struct PingPong {
  T main, fiber;
  std::vector<int> trace;
  double sum = 0;

  static void run(void* self) { static_cast<PingPong*>(self)->loop(); }
  // The locals live in registers and on the fiber's stack: both must survive.
  [[noreturn]] void loop() {
    int round = 0;
    double local = 0.5;
    for (;;) {
      volatile char large[4000];  // a frame that reaches far down the stack
      large[round] = 1;
      trace.push_back(round);
      sum += local;
      local *= 2;
      ++round;
      T::switch_to(fiber, main);
      if (large[round - 1] != 1) sum = -1;
    }
  }
};

// A sanitizer would have to know of the switches; fiber.h reports them for the executor.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RAMET_SWITCHES_UNTOLD 1
#else
#define RAMET_SWITCHES_UNTOLD 0
#endif

TYPED_TEST(ContextSwitch, KeepsRegistersAndStacks) {
  if (RAMET_SWITCHES_UNTOLD) GTEST_SKIP() << "sanitizers must be told of switches (fiber.h)";
  std::vector<char> stack(64 << 10);
  PingPong<TypeParam> game;
  for (int start = 0; start < 2; ++start) {  // preparing again starts from the beginning
    game.trace.clear();
    game.sum = 0;
    game.fiber.prepare(stack.data(), stack.size(), &PingPong<TypeParam>::run, &game);
    double expected = 0, local = 0.5;
    for (int i = 0; i < 50; ++i) {
      TypeParam::switch_to(game.main, game.fiber);
      expected += local;
      local *= 2;
      ASSERT_EQ(game.trace.size(), size_t(i + 1));
      ASSERT_EQ(game.trace.back(), i);
      ASSERT_EQ(game.sum, expected);
    }
  }
}

}  // namespace
}  // namespace ramet::emulated
