// Reductions through memory that processes of one host share, compared with the same by messages.
// This process starts no thread, so that its children may.
#include "parallel/distributed/wire/shared_memory_internal.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "autograd/ops.h"
#include "tests/error_text.h"
#include "tests/parallel/distributed/groups.h"
#include "tests/parallel/distributed/processes.h"

namespace ramet::distributed {
namespace {

constexpr int64_t kSmall = 1000, kMiddle = 70001, kLarge = 600001;  // floats

Tensor numbers_of(int rank, int64_t n) {
  manual_seed(static_cast<uint64_t>(rank));
  return randn({n});
}

// What hinders a rank: its environment, and what it does once the group is made.
struct Hindered {
  int rank = -1;  // -1: no rank
  bool switched_off = false;
  std::function<void()> then = [] {};
};

// Sums of `ranks` processes, bit for bit in their documented order, and which way bytes went.
void expect_sums(int ranks, bool shared, const Hindered& hindered) {
  SCOPED_TRACE(std::to_string(ranks) + " ranks, shared: " + std::to_string(shared));
  Ranks processes;
  processes.start(ranks, [=](int rank, const std::string& url, Shared&) {
    const bool off = hindered.switched_off && (hindered.rank < 0 || hindered.rank == rank);
    setenv("RAMET_SHARED_MEMORY", off ? "0" : "1", 1);
    const auto group = init_process_group(url, within(seconds(60)));
    if (rank == hindered.rank) hindered.then();
    int64_t given = 0;
    // Growing, the same again, smaller: a block that another rank still reads is not written.
    for (const int64_t n : {kSmall, kMiddle, kLarge, kLarge, kMiddle, kLarge})
      for (const bool tree : {false, true}) {
        std::vector<Tensor> all;
        for (int r = 0; r < ranks; ++r) all.push_back(numbers_of(r, n));
        Tensor t = all[static_cast<size_t>(rank)].clone();
        CollectiveOptions o;
        if (tree) o.order = ReduceOrder::tree(4);
        group->all_reduce(t, o).wait();
        if (!same_bits(t, summed(all, tree))) return 1;
        if (n > kSmall) given += 4 * n;
      }
    if (group->shared_bytes() != (shared ? static_cast<uint64_t>(given) : 0)) return 2;
    const uint64_t small = 2 * 4 * kSmall * static_cast<uint64_t>(ranks - 1);
    // By the other way: every number goes to another rank at least once.
    if (shared ? group->wire_bytes() > small + 4096 : group->wire_bytes() < small + 4 * kLarge)
      return 3;
    group->reset_wire_bytes();
    if (group->shared_bytes() + group->wire_bytes() != 0) return 4;
    group->barrier().wait();
    return 0;
  });
  for (int i = 0; i < ranks; ++i) EXPECT_EQ(processes.finish(i), 0) << "rank " << i;
}

TEST(SharedMemory, SumsAreTheSameEitherWay) {
  for (const int ranks : {2, 3, 4}) {
    expect_sums(ranks, true, {});
    expect_sums(ranks, false, {.switched_off = true});
  }
}

TEST(SharedMemory, OneRankThatCannotIsEnough) {
  expect_sums(3, false, {.rank = 1, .switched_off = true});
  // No memory for a block.
  expect_sums(3, false, {.rank = 2, .then = [] {
                           const rlimit none{1 << 16, 1 << 16};
                           setrlimit(RLIMIT_FSIZE, &none);
                         }});
  // It may not read the others' memory, nor they its memory.
  expect_sums(3, false, {.rank = 1, .then = [] {
                           if (geteuid() == 0 && setuid(65534) != 0) std::abort();
                           prctl(PR_SET_DUMPABLE, 0);
                         }});
}

// Sizes of blocks are rounded up, to 2 MiB: by one byte, too.
TEST(SharedMemory, OneByteMoreThanABlock) {
  Ranks ranks;
  ranks.start(2, [](int rank, const std::string& url, Shared&) {
    const auto group = init_process_group(url, within(seconds(60)));
    const int64_t n = (int64_t{2} << 20) + 1;
    Tensor t = full({n}, rank + 1, kByte);
    group->all_reduce(t).wait();
    const bool right = t.equal(full({n}, 3, kByte)) && group->shared_bytes() == uint64_t(n);
    group->barrier().wait();
    return right ? 0 : 1;
  });
  for (int i = 0; i < 2; ++i) EXPECT_EQ(ranks.finish(i), 0) << "rank " << i;
}

// Blocks that grow once, and then must not.
TEST(SharedMemory, KeepsWhatItHasWhereMoreIsRefused) {
  Ranks ranks;
  ranks.start(2, [](int rank, const std::string& url, Shared&) {
    const auto group = init_process_group(url, within(seconds(60)));
    const auto sum = [&](int64_t n) {
      Tensor t = full({n}, rank + 1.0);
      group->all_reduce(t).wait();
      return t.equal(full({n}, 3.0));
    };
    if (!sum(kMiddle)) return 1;
    const rlimit none{1 << 16, 1 << 16};
    if (rank == 1) setrlimit(RLIMIT_FSIZE, &none);
    if (!sum(kLarge) || !sum(kMiddle) || !sum(kLarge)) return 2;
    const bool right = group->shared_bytes() == 2 * 4 * kMiddle;
    group->barrier().wait();
    return right ? 0 : 3;
  });
  for (int i = 0; i < 2; ++i) EXPECT_EQ(ranks.finish(i), 0);
}

// Members that only some ranks have, one that no rank has, other types and operations.
TEST(SharedMemory, MembersAndOtherReductions) {
  Ranks ranks;
  ranks.start(3, [](int rank, const std::string& url, Shared&) {
    const auto group = init_process_group(url, within(seconds(60)));
    std::vector<Tensor> members;
    for (int i = 0; i < 3; ++i) members.push_back(full({40000 + i}, 10.0 * i + rank));
    group->all_reduce_members(members, {}, {true, rank != 1, false}).wait();
    if (!members[0].equal(full({40000}, 3.0)) || !members[1].equal(full({40001}, 22.0)) ||
        !members[2].equal(full({40002}, 20.0 + rank)))
      return 1;
    const Tensor mine = full({100000}, rank + 2.0, kDouble);
    for (const auto& [op, result] : {std::pair{ReduceOp::product, 24.0},
                                     {ReduceOp::min, 2.0},
                                     {ReduceOp::max, 4.0},
                                     {ReduceOp::average, 3.0}}) {
      Tensor t = mine.clone();
      group->all_reduce(t, op).wait();
      if (!t.equal(full({100000}, result, kDouble))) return 2;
    }
    const bool right = group->shared_bytes() >= 4u * 120000 + 4 * 800000;
    group->barrier().wait();
    return right ? 0 : 3;
  });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ranks.finish(i), 0);
}

// Ranks that disagree, and one that does not come: tensors stay as they were.
TEST(SharedMemory, FailuresLeaveTensorsAlone) {
  Ranks ranks;
  ranks.start(2, [](int rank, const std::string& url, Shared& shared) {
    const auto first = init_process_group(url, within(seconds(60)));
    const auto second = first->subgroup({0, 1}, within(seconds(60)));
    const Tensor mine = full({kLarge}, rank + 1.0);
    Tensor t = mine.clone();
    first->all_reduce(t).wait();
    second->all_reduce(t).wait();
    if (!t.equal(full({kLarge}, 6.0)) || second->shared_bytes() == 0) return 1;
    t.copy_(mine);
    try {
      first->all_reduce(t, rank == 0 ? ReduceOp::sum : ReduceOp::max).wait();
      return 2;
    } catch (const CommMismatch&) {}
    if (!t.equal(mine)) return 3;
    if (rank == 1) return Ranks::wait_until([&] { return shared.done == 1; }) ? 0 : 6;
    second->set_timeout(seconds(2));
    try {
      second->all_reduce(t).wait();
      return 4;
    } catch (const CommTimeout& e) {
      if (e.ranks() != std::vector<int>{1}) return 5;
    }
    shared.done = 1;
    return t.equal(mine) ? 0 : 7;
  });
  for (int i = 0; i < 2; ++i) EXPECT_EQ(ranks.finish(i), 0);
}

// Descriptors of blocks are closed, whichever way it went.
TEST(SharedMemory, LeavesNoDescriptors) {
  Ranks ranks;
  ranks.start(2, [](int rank, const std::string& url, Shared&) {
    const auto group = init_process_group(url, within(seconds(60)));
    group->barrier().wait();
    const auto open_ones = [] {
      int blocks = 0;
      for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code gone;
        blocks += contains(std::filesystem::read_symlink(entry, gone).string(), "memfd:ramet");
      }
      return blocks;
    };
    Tensor t = ones({kLarge});
    group->all_reduce(t).wait();
    if (group->shared_bytes() == 0 || open_ones() != 0) return 1;
    const rlimit none{1 << 16, 1 << 16};
    if (rank == 1) setrlimit(RLIMIT_FSIZE, &none);
    Tensor more = ones({3 * kLarge});
    group->all_reduce(more).wait();
    const bool right = open_ones() == 0;
    group->barrier().wait();
    return right ? 0 : 2;
  });
  for (int i = 0; i < 2; ++i) EXPECT_EQ(ranks.finish(i), 0);
}

TEST(SharedMemory, OnlyTheBlockThatWasOfferedIsOpened) {
  const auto own = detail::OwnBlock::make(5000);
  ASSERT_TRUE(own);
  own->memory.at()[detail::SharedMemory::kHead + 4999] = 7;
  {
    const auto seen = detail::open_block(own->offer);
    ASSERT_TRUE(seen);
    EXPECT_EQ(seen->at()[detail::SharedMemory::kHead + 4999], 7);
    own->memory.at()[detail::SharedMemory::kHead] = 9;
    EXPECT_EQ(seen->at()[detail::SharedMemory::kHead], 9);
  }
  const auto refused = [&](const auto& change) {
    detail::BlockOffer offer = own->offer;
    change(offer);
    return !detail::open_block(offer);
  };
  EXPECT_TRUE(refused([](auto& o) { ++o.number[1]; }));
  EXPECT_TRUE(refused([](auto& o) { o.bytes += 4096; }));
  EXPECT_TRUE(refused([](auto& o) { o.bytes = 0; }));
  EXPECT_TRUE(refused([](auto& o) { o.descriptor = STDIN_FILENO; }));
  EXPECT_TRUE(refused([](auto& o) { o.pid = getppid(); }));
  EXPECT_TRUE(refused([](auto& o) { o.pid = 1 << 30; }));
  // Something of that name which is not what its owner said.
  const auto other = detail::OwnBlock::make(5000);
  ASSERT_TRUE(other);
  std::memset(other->memory.at(), 0, 16);
  EXPECT_FALSE(detail::open_block(other->offer));
}

TEST(SharedMemory, TheSwitchIsZeroOrOne) {
  setenv("RAMET_SHARED_MEMORY", "off", 1);
  EXPECT_ERROR_TEXT(make_local_groups(1), "RAMET_SHARED_MEMORY: got \"off\"");
  setenv("RAMET_SHARED_MEMORY", "0", 1);
  EXPECT_FALSE(detail::shared_memory_wanted());
  unsetenv("RAMET_SHARED_MEMORY");
  EXPECT_TRUE(detail::shared_memory_wanted());
}

}  // namespace
}  // namespace ramet::distributed
