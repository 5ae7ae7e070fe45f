#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "runtime/memory/arena_internal.h"

namespace ramet {
namespace {

using detail::Arena;

constexpr size_t kMega = size_t{1} << 20, kGiga = size_t{1} << 30;

struct Block {
  unsigned char* at;
  size_t bytes;
  unsigned char mark;
};
Block take(Arena& arena, size_t bytes, unsigned char mark) {
  auto* at = static_cast<unsigned char*>(arena.allocate(bytes));
  EXPECT_NE(at, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(at) % 64, 0u);
  for (size_t i = 0; i < bytes; i += 4096) at[i] = mark;
  at[bytes - 1] = mark;
  return {at, bytes, mark};
}
void give(Arena& arena, const Block& b) {
  bool whole = b.at[b.bytes - 1] == b.mark;
  for (size_t i = 0; i < b.bytes; i += 4096) whole = whole && b.at[i] == b.mark;
  EXPECT_TRUE(whole) << "another block lies in this one";
  arena.free(b.at, b.bytes);
}

// Blocks of drawn sizes, in any order: they do not overlap, and what is kept stays within its
// bound.
TEST(Arena, BlocksLieApartAndLittleIsKept) {
  Arena arena(64 * kGiga);
  std::mt19937 random(1);
  std::vector<Block> blocks;
  size_t most = 0;
  for (int i = 0; i < 1000; ++i) {
    if (blocks.size() < 4 || (blocks.size() < 20 && random() % 2)) {
      blocks.push_back(
          take(arena, 1 + random() % (12 * kMega), static_cast<unsigned char>(random())));
    } else {
      const size_t at = random() % blocks.size();
      give(arena, blocks[at]);
      blocks[at] = blocks.back();
      blocks.pop_back();
    }
    const Arena::Counts c = arena.counts();
    size_t used = 0;
    for (const Block& b : blocks) used += (b.bytes + 16383) / 16384 * 16384;
    ASSERT_EQ(c.used, used);
    most = std::max(most, used);
    ASSERT_LE(c.used + c.kept, most + most / 8 + 8 * kMega);  // parts of huge pages stay
  }
  arena.release(0);  // while blocks are in use
  EXPECT_EQ(arena.counts().kept, 0u);
  for (const Block& b : blocks) give(arena, b);
  EXPECT_EQ(arena.counts().used, 0u);
  arena.release(0);
  EXPECT_EQ(arena.counts().kept, 0u);
}

TEST(Arena, WhatIsFreedServesOtherSizes) {
  Arena arena(64 * kGiga);
  void* const whole = arena.allocate(64 * kMega);
  arena.free(whole, 64 * kMega);
  const size_t asked = arena.counts().asked;
  std::vector<void*> parts;
  for (int i = 0; i < 8; ++i) parts.push_back(arena.allocate(8 * kMega));  // cut from it
  for (const int i : {3, 0, 7, 1, 5, 2, 6, 4}) arena.free(parts[static_cast<size_t>(i)], 8 * kMega);
  EXPECT_EQ(arena.allocate(64 * kMega), whole);  // joined again
  EXPECT_EQ(arena.counts().asked, asked);
  EXPECT_EQ(arena.counts().returned, 0u);
  arena.free(whole, 64 * kMega);
}

// Sizes just above a multiple of the pages: the rest of one range is the start of the next.
TEST(Arena, EqualBlocksLieTogether) {
  Arena arena(64 * kGiga);
  std::vector<void*> blocks;
  for (int i = 0; i < 20; ++i) blocks.push_back(arena.allocate(8 * kMega + 64));
  const Arena::Counts before = arena.counts();
  for (int i = 0; i < 100; ++i) {
    arena.free(blocks.back(), 8 * kMega + 64);
    blocks.back() = arena.allocate(8 * kMega + 64);
  }
  EXPECT_EQ(arena.counts().asked, before.asked);
  EXPECT_EQ(arena.counts().returned, before.returned);
  for (void* p : blocks) arena.free(p, 8 * kMega + 64);
}

// The steps of a training: the second one and all later ones ask the system for nothing.
TEST(Arena, ASteadyStateAsksForNothing) {
  Arena arena(64 * kGiga);
  std::mt19937 random(7);
  std::vector<size_t> sizes;
  for (int i = 0; i < 60; ++i) sizes.push_back(5 * kMega + random() % (40 * kMega));
  std::vector<void*> weights;
  for (int i = 0; i < 10; ++i) weights.push_back(arena.allocate(16 * kMega));
  Arena::Counts second;
  for (int step = 0; step < 20; ++step) {
    std::vector<void*> kept;
    for (const size_t n : sizes) {  // forward: a result stays, the workspace goes
      void* const workspace = arena.allocate(n / 2);
      kept.push_back(arena.allocate(n));
      arena.free(workspace, n / 2);
    }
    for (size_t i = sizes.size(); i-- > 0;) {  // backward
      void* const gradient = arena.allocate(sizes[i]);
      arena.free(kept[i], sizes[i]);
      arena.free(gradient, sizes[i]);
    }
    if (step == 1) second = arena.counts();
  }
  EXPECT_EQ(arena.counts().asked, second.asked);
  EXPECT_EQ(arena.counts().returned, second.returned);
  for (void* w : weights) arena.free(w, 16 * kMega);
}

// Nothing here is touched, so that it takes no memory.
TEST(Arena, KeepsNoMoreThanIsInUse) {
  Arena arena(12 * kGiga);
  std::vector<void*> model, rest;
  for (int i = 0; i < 6; ++i) model.push_back(arena.allocate(kGiga / 2));
  for (int i = 0; i < 9; ++i) rest.push_back(arena.allocate(kGiga / 2));
  for (void* p : rest) arena.free(p, kGiga / 2);
  EXPECT_LE(arena.counts().kept, 3 * kGiga);  // as much as is in use
  EXPECT_GE(arena.counts().kept, 5 * kGiga / 2);
  for (void* p : model) arena.free(p, kGiga / 2);
  EXPECT_LE(arena.counts().kept, 3 * kGiga / 2);  // an eighth of what may be used
  EXPECT_GE(arena.counts().kept, kGiga);
}

TEST(Arena, ForgetsAnOldPeak) {
  Arena arena(64 * kGiga);
  void* const large = arena.allocate(600 * kMega);
  arena.free(large, 600 * kMega);
  EXPECT_GE(arena.counts().kept, 500 * kMega);
  for (int i = 0; i < 3 << 14; ++i) arena.free(arena.allocate(5 * kMega), 5 * kMega);
  EXPECT_LE(arena.counts().kept, 16 * kMega);
}

TEST(Arena, KeepsAPartOfASmallMachine) {
  Arena arena(256 * kMega);
  std::vector<void*> blocks;
  for (int i = 0; i < 20; ++i) blocks.push_back(arena.allocate(10 * kMega));
  for (int i = 0; i < 18; ++i) arena.free(blocks[static_cast<size_t>(i)], 10 * kMega);
  EXPECT_LE(arena.counts().kept, 32 * kMega);  // an eighth
  for (int i = 18; i < 20; ++i) arena.free(blocks[static_cast<size_t>(i)], 10 * kMega);
  EXPECT_LE(arena.counts().kept, 32 * kMega);
  blocks.clear();
  for (int i = 0; i < 18; ++i) blocks.push_back(arena.allocate(10 * kMega));
  arena.free(blocks.back(), 10 * kMega);
  blocks.pop_back();
  EXPECT_LE(arena.counts().used + arena.counts().kept, 192 * kMega);  // three quarters
  for (void* p : blocks) arena.free(p, 10 * kMega);
}

TEST(Arena, KeepsToALimit) {
  Arena arena(64 * kGiga);
  void* const a = arena.allocate(40 * kMega);
  void* const b = arena.allocate(40 * kMega);
  arena.free(a, 40 * kMega);
  EXPECT_GE(arena.counts().kept, 36 * kMega);
  arena.set_limit(60 * kMega);
  EXPECT_LE(arena.counts().used + arena.counts().kept, 60 * kMega);
  arena.set_limit(10 * kMega);  // less than is in use already
  EXPECT_LE(arena.counts().kept, 4 * kMega);
  arena.set_limit(0);
  arena.free(b, 40 * kMega);
}

// Another thread gives free ranges back at the same time.
TEST(Arena, SharedByThreads) {
  Arena arena(64 * kGiga);
  std::atomic<int> running{3}, wrong{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      std::vector<Block> blocks;
      for (int i = 0; i < 200; ++i) {
        const size_t bytes = 1 + random() % (3 * kMega);
        auto* at = static_cast<unsigned char*>(arena.allocate(bytes));
        at[0] = at[bytes - 1] = static_cast<unsigned char>(t);
        blocks.push_back({at, bytes, static_cast<unsigned char>(t)});
        if (blocks.size() < 5) continue;
        const Block gone = blocks[random() % 5];
        std::erase_if(blocks, [&](const Block& b) { return b.at == gone.at; });
        wrong += gone.at[0] != gone.mark || gone.at[gone.bytes - 1] != gone.mark;
        arena.free(gone.at, gone.bytes);
      }
      for (const Block& b : blocks) arena.free(b.at, b.bytes);
      --running;
    });
  while (running > 0) {
    arena.release(kMega);
    std::this_thread::yield();
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(arena.counts().used, 0u);
}

TEST(Arena, RefusesWhatTheSystemHasNot) {
  Arena arena(64 * kGiga);
  void* const a = arena.allocate(8 * kMega);
  EXPECT_EQ(arena.allocate(size_t{1} << 47), nullptr);
  void* const b = arena.allocate(8 * kMega);
  EXPECT_NE(b, nullptr);
  arena.free(a, 8 * kMega);
  arena.free(b, 8 * kMega);
}

}  // namespace
}  // namespace ramet
