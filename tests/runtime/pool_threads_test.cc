#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "runtime/memory/pool.h"
#include "runtime/tensor/tensor_base.h"

namespace ramet {
namespace {

// These tests are about threads' own free lists, which a process with memory checks has not.
[[maybe_unused]] const int g_set = setenv("RAMET_DEBUG_MEMORY", "0", 1);

constexpr size_t kSizes[] = {1,    63,   64,   65,    256,   1000,    1024,           1025,
                             1088, 1089, 5000, 65536, 70000, 1 << 20, pool::kLargeMax};

struct Block {
  unsigned char* p;
  size_t bytes;
  unsigned char mark;
};
Block take(size_t bytes, unsigned char mark) {
  auto* p = static_cast<unsigned char*>(pool::allocate(bytes));
  std::memset(p, mark, bytes);
  return {p, bytes, mark};
}
bool give(const Block& b) {  // true: no other thread wrote here
  for (size_t i = 0; i<b.bytes; i += b.bytes> 4096 ? 997 : 1)
    if (b.p[i] != b.mark) return false;
  pool::deallocate(b.p, b.bytes);
  return true;
}

TEST(Pool, BlocksAreAlignedAndDisjoint) {
  std::vector<Block> blocks;
  std::mt19937 random(1);
  for (int i = 0; i < 4000; ++i) {
    if (blocks.empty() || random() % 3) {
      blocks.push_back(take(kSizes[random() % 12], static_cast<unsigned char>(random())));
      ASSERT_EQ(reinterpret_cast<uintptr_t>(blocks.back().p) % 64, 0u);
    } else {
      const size_t at = random() % blocks.size();
      ASSERT_TRUE(give(blocks[at]));
      blocks[at] = blocks.back();
      blocks.pop_back();
    }
  }
  for (const size_t bytes : kSizes) blocks.push_back(take(bytes, 7));
  for (const Block& b : blocks) ASSERT_TRUE(give(b));
}

TEST(Pool, ReusesWhatWasFreed) {
  if (pool::kPassThrough) GTEST_SKIP() << "under sanitizers every block comes from malloc";
  for (const size_t bytes : kSizes) {
    void* keep = pool::allocate(bytes);  // its slab stays open
    void* a = pool::allocate(bytes);
    pool::deallocate(a, bytes);
    void* b = pool::allocate(bytes);
    EXPECT_EQ(a, b) << bytes;
    pool::deallocate(b, bytes);
    pool::deallocate(keep, bytes);
  }
}

TEST(Pool, KeepsABoundedAmount) {
  if (pool::kPassThrough) GTEST_SKIP() << "under sanitizers every block comes from malloc";
  std::thread([] {
    std::vector<void*> blocks;
    for (int i = 0; i < 200000; ++i) blocks.push_back(pool::allocate(256));  // 51 MB
    for (void* p : blocks) pool::deallocate(p, 256);
    EXPECT_LE(pool::counts().spare, 32u);
    EXPECT_LE(pool::counts().slabs, 2u);
    blocks.clear();
    for (int i = 0; i < 40; ++i) blocks.push_back(pool::allocate(1 << 20));
    for (void* p : blocks) pool::deallocate(p, 1 << 20);
    EXPECT_LE(pool::counts().large_bytes, size_t{13} * (8 << 20));
    EXPECT_GE(pool::counts().large_bytes, size_t{1} << 20);
  }).join();
}

// A ring of threads: each frees what its neighbour allocated, all the time.
TEST(Pool, FreedOnOtherThreads) {
  constexpr int kThreads = 4, kRounds = 3000;
  struct Mailbox {
    std::atomic<Block*> slot{nullptr};
  } mail[kThreads];
  std::atomic<int> wrong{0}, running{kThreads};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      for (int i = 0; i < kRounds; ++i) {
        auto* block = new Block(take(kSizes[random() % 11], static_cast<unsigned char>(random())));
        if (Block* old = mail[(t + 1) % kThreads].slot.exchange(block)) {
          wrong += !give(*old);
          delete old;
        }
        if (Block* mine = mail[t].slot.exchange(nullptr)) {
          wrong += !give(*mine);
          delete mine;
        }
      }
      --running;
    });
  for (auto& t : threads) t.join();
  for (auto& m : mail)
    if (Block* left = m.slot) {
      wrong += !give(*left);
      delete left;
    }
  EXPECT_EQ(wrong, 0);
}

// What a thread allocated outlives it. It is freed while no thread owns the heap, or another one
// owns it by then.
TEST(Pool, OutlivesItsThread) {
  std::vector<Block> blocks;
  for (int round = 0; round < 20; ++round) {
    std::vector<Block> fresh;
    std::thread([&] {
      for (const size_t bytes : kSizes)
        fresh.push_back(take(bytes, static_cast<unsigned char>(round)));
    }).join();
    for (const Block& b : blocks) ASSERT_TRUE(give(b));
    blocks = fresh;
  }
  for (const Block& b : blocks) ASSERT_TRUE(give(b));
}

TEST(Pool, HeapsOfDeadThreadsAreUsedAgain) {
  if (pool::kPassThrough) GTEST_SKIP() << "under sanitizers there are no heaps";
  size_t heaps = 0;
  for (int i = 0; i < 50; ++i)
    std::thread([&] {
      pool::deallocate(pool::allocate(100), 100);
      if (i == 0) heaps = pool::counts().heaps;
      EXPECT_EQ(pool::counts().heaps, heaps);
    }).join();
}

// A thread-local object that is destroyed after the pool's own has given the heap up.
struct Late {
  std::vector<Block>* out = nullptr;
  ~Late() {
    if (out) out->push_back(take(100, 3)), give(take(2000, 4)), out->push_back(take(2000, 5));
  }
};
TEST(Pool, ServesThreadLocalDestructors) {
  std::vector<Block> late;
  std::thread([&] {
    thread_local Late object;  // constructed before the heap: destroyed after it
    object.out = &late;
    give(take(100, 1));
  }).join();
  ASSERT_EQ(late.size(), 2u);
  for (const Block& b : late) EXPECT_TRUE(give(b));
}

struct Static {
  TensorBase small, large;
  ~Static() {
    TensorBase again = TensorBase::empty({3}, kFloat, Device(kCPU, 0));
    TensorBase big = TensorBase::empty({1 << 21}, kFloat, Device(kCPU, 0));
    if (again.numel() != 3 || !small.defined()) std::_Exit(9);
  }
};
TEST(PoolDeathTest, ServesStaticDestructors) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        static Static object;  // constructed before anything of the library
        object.small = TensorBase::empty({3}, kFloat, Device(kCPU, 0));
        object.large = TensorBase::empty({1 << 21}, kFloat, Device(kCPU, 0));
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace ramet
