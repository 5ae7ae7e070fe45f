#include <algorithm>
#include <cstdlib>
#include <set>
#include <thread>
#include <tuple>
#include <vector>

#include "runtime/devices/devices.h"
#include "runtime/devices/generator.h"
#include "tests/runtime/expect_error.h"

namespace ramet {
namespace {

Device cpu_device(int k) { return Device(kCPU, static_cast<DeviceIndex>(k)); }
using Key = std::tuple<uint64_t, uint64_t, int64_t>;
Key key(PhiloxKey k) { return {k.seed, k.offset, k.base}; }
Key draw(IntArrayRef sizes, int device = 0) {
  return key(reserve_random(cpu_device(device), sizes));
}

TEST(Generator, OneOperationOneOffset) {
  Generator g(cpu_device(0), 5);
  EXPECT_EQ(key(g.reserve(1000)), Key(5, 0, 0));
  EXPECT_EQ(key(g.reserve(1)), Key(5, 1, 0));
  EXPECT_EQ(g.get_state(), (GeneratorState{5, 2}));
  g.set_current_seed(9);
  EXPECT_EQ(key(g.reserve(3, 3)), Key(9, 0, 0));
  EXPECT_EQ(g.current_seed(), 9u);
}

TEST(Generator, StateComesBack) {
  Generator g(cpu_device(1), 5);
  g.reserve(1);
  const GeneratorState state = g.get_state();
  const Key next = key(g.reserve(7));
  g.set_state(state);
  EXPECT_EQ(key(g.reserve(7)), next);
  EXPECT_EQ(g.device(), cpu_device(1));
}

TEST(Generator, HandlesShareClonesDoNot) {
  Generator g(cpu_device(0), 5), same = g, copy = g.clone();
  EXPECT_TRUE(same == g && copy != g);
  same.reserve(1);
  EXPECT_EQ(g.get_state().offset, 1u);
  EXPECT_EQ(copy.get_state(), (GeneratorState{5, 0}));
  EXPECT_FALSE(Generator().defined());
  EXPECT_ERROR(Generator().reserve(1), Error, "undefined Generator");
  EXPECT_ERROR(Generator(Device(kCUDA, 0)), Error, "cuda");
}

TEST(Generator, SeedsFromTheSystem) {
  Generator g(cpu_device(0), 1);
  g.reserve(1);
  const uint64_t a = g.seed();
  EXPECT_EQ(g.get_state(), (GeneratorState{a, 0}));
  EXPECT_NE(g.seed(), a);
}

// What the generators of a process start from that has set no seed.
TEST(Generator, AProgramWithoutASeed) {
  const char* const given = std::getenv("RAMET_SEED");
  const std::string before = given ? given : "";
  const auto starts = [](const char* variable) {
    if (variable) setenv("RAMET_SEED", variable, 1);
    else unsetenv("RAMET_SEED");
    return detail::seed_at_start();
  };
  // Each call reads the environment, or the system's entropy, again.
  EXPECT_EQ(starts("7"), 7u);
  EXPECT_EQ(starts("0"), 0u);
  EXPECT_EQ(starts("18446744073709551615"), UINT64_MAX);
  std::set<uint64_t> drawn;
  for (int i = 0; i < 20; ++i) drawn.insert(starts(nullptr)), drawn.insert(starts(""));
  EXPECT_EQ(drawn.size(), 40u);
  EXPECT_LT(*drawn.rbegin(), uint64_t{1} << 53);
  for (const char* bad : {"x", "-1", "1x", "18446744073709551616", " 1", "1.5"})
    EXPECT_ERROR(starts(bad), Error, "[RAMET_SEED] got \"" + std::string(bad) + "\"");
  setenv("RAMET_SEED", before.c_str(), 1);
}
// Tests set theirs (tools/bazel/test_seed.cc), and so a program's own seed counts more than the
// variable.
TEST(Generator, TestsStartFromOneSeed) {
  for (int d = 0; d < cpu_device_count(); ++d) {
    const GeneratorState state = default_generator(cpu_device(d)).get_state();
    if (state.offset == 0) { EXPECT_EQ(state.seed, kDefaultSeed); }
  }
}

TEST(Generator, DefaultsArePerDeviceFromOneSeed) {
  manual_seed(3);
  EXPECT_EQ(initial_seed(), 3u);
  EXPECT_EQ(draw({4}, 0), Key(3, 0, 0));
  EXPECT_EQ(draw({4}, 0), Key(3, 1, 0));
  EXPECT_EQ(draw({4}, 7), Key(3, 0, 0));
  EXPECT_TRUE(default_generator(kCPU) == default_generator(cpu_device(0)));
  EXPECT_TRUE(default_generator(cpu_device(1)) != default_generator(cpu_device(0)));
  Generator own(cpu_device(0), 8);
  EXPECT_EQ(key(reserve_random(cpu_device(0), {2, 3}, own)), Key(8, 0, 0));
  EXPECT_EQ(draw({}), Key(3, 2, 0));
}

TEST(Generator, AllStatesComeBack) {
  manual_seed(3);
  draw({4}, 2);
  const std::vector<GeneratorState> states = generator_states();
  ASSERT_EQ(states.size(), 16u);  // those of GPUs after the host's
  EXPECT_EQ(states[2], (GeneratorState{3, 1}));
  draw({4}, 2);
  draw({4}, 0);
  set_generator_states(states);
  EXPECT_EQ(generator_states(), states);
  EXPECT_EQ(draw({4}, 2), Key(3, 1, 0));
  EXPECT_ERROR(set_generator_states({{1, 2}}), Error, "states: got 1 of them, expected 8");
}

TEST(Generator, AProgramMayHoldItsMutex) {
  Generator g(kCPU, 1);
  const Generator same = g;
  EXPECT_EQ(&g.mutex(), &same.mutex());
  std::lock_guard<std::mutex> lock(g.mutex());
  g.set_current_seed(9);
  EXPECT_EQ(same.current_seed(), 9u);
  EXPECT_ERROR(Generator().mutex(), Error, "[Generator::mutex]");
}

TEST(Generator, CudaSeedsLeaveTheHostAlone) {
  const std::vector<GeneratorState> before = generator_states();
  const size_t cpus = before.size() - kMaxDevicesPerType;
  cuda::manual_seed_all(77);
  std::vector<GeneratorState> states = generator_states();
  for (size_t d = 0; d < states.size(); ++d)
    EXPECT_EQ(states[d], d < cpus ? before[d] : (GeneratorState{77, 0}));
  cuda::manual_seed(78);  // of the current one, where there is one
  if (cuda::is_available()) states[cpus].seed = 78;
  EXPECT_EQ(generator_states(), states);
  set_generator_states(before);
}

TEST(Generator, ThreadsNeverShareAnOffset) {
  manual_seed(1);
  std::vector<std::vector<uint64_t>> offsets(4);
  std::vector<std::thread> threads;
  for (auto& mine : offsets)
    threads.emplace_back([&mine] {
      for (int i = 0; i < 500; ++i) mine.push_back(std::get<1>(draw({2})));
    });
  for (auto& t : threads) t.join();
  std::set<uint64_t> all;
  for (auto& mine : offsets) {
    EXPECT_TRUE(std::is_sorted(mine.begin(), mine.end()));
    all.insert(mine.begin(), mine.end());
  }
  EXPECT_EQ(all.size(), 2000u);
  EXPECT_EQ(*all.rbegin(), 1999u);
}

// What one forward draws for sample s, element e: an operation over (batch, 3) and one over (batch,
// 2, 2), by global sample.
struct Drawn {
  std::vector<std::tuple<uint64_t, uint64_t, int64_t>>
      of_sample;  // every number: seed, offset, index
  GeneratorState after;
};
void forward(int64_t batch, std::vector<std::tuple<uint64_t, uint64_t, int64_t>>& numbers,
             int device) {
  for (const std::vector<int64_t>& sizes :
       {std::vector<int64_t>{batch, 3}, std::vector<int64_t>{batch, 2, 2}}) {
    const PhiloxKey k = reserve_random(cpu_device(device), sizes);
    int64_t n = 1;
    for (const int64_t s : sizes) n *= s;
    for (int64_t i = 0; i < n; ++i) numbers.emplace_back(k.seed, k.offset, k.base + i);
  }
}
Drawn data_parallel(int64_t batch, const std::vector<int64_t>& parts) {
  manual_seed(11);
  draw({1});  // something before
  Drawn d;
  if (parts.empty()) {  // the source itself
    forward(batch, d.of_sample, 0);
  } else {
    RandomRegion region(cpu_device(0));
    std::vector<std::vector<std::tuple<uint64_t, uint64_t, int64_t>>> of_part(parts.size());
    std::vector<std::thread> workers;
    int64_t from = 0;
    for (size_t p = 0; p < parts.size(); ++p) {
      ReplicaRandomRef random = region.shard(static_cast<int64_t>(p), from, parts[p]);
      from += parts[p];
      workers.emplace_back([&, p, random] {
        ReplicaRandomGuard guard(random);
        forward(parts[p], of_part[p], static_cast<int>(p));
      });
    }
    for (auto& w : workers) w.join();
    region.close();
    for (auto& part : of_part) d.of_sample.insert(d.of_sample.end(), part.begin(), part.end());
  }
  std::sort(d.of_sample.begin(), d.of_sample.end());
  d.after = default_generator(cpu_device(0)).get_state();
  return d;
}

TEST(RandomRegion, ReplicasDrawWhatOneDeviceDraws) {
  const Drawn one = data_parallel(10, {});
  EXPECT_EQ(one.after, (GeneratorState{11, 3}));
  for (const std::vector<int64_t>& parts :
       std::vector<std::vector<int64_t>>{{10}, {5, 5}, {3, 3, 3, 1}, {1, 9}}) {
    const Drawn many = data_parallel(10, parts);
    EXPECT_EQ(many.of_sample, one.of_sample) << parts.size();
    EXPECT_EQ(many.after, one.after);
    EXPECT_EQ(default_generator(cpu_device(1)).get_state(),
              (GeneratorState{11, 0}));  // the replicas' own are not touched
  }
  EXPECT_EQ(std::adjacent_find(one.of_sample.begin(), one.of_sample.end()), one.of_sample.end())
      << "a number was drawn twice";
}

TEST(RandomRegion, KeysByShardWhereDimensionZeroIsNotTheBatch) {
  manual_seed(2);
  RandomRegion region(cpu_device(0));
  std::set<Key> keys;
  for (int64_t shard = 0; shard < 4; ++shard) {
    ReplicaRandomGuard guard(region.shard(shard, shard * 8, 8));
    keys.insert(draw({5, 8}));
    keys.insert(draw({}));
    EXPECT_EQ(draw({8, 5}), Key(2, 2, shard * 40));
  }
  EXPECT_EQ(keys.size(), 8u);
  EXPECT_EQ(keys.count(Key(2, 0, 0)), 1u);  // shard 0 draws what the source alone would
  EXPECT_EQ(keys.count(Key(2, 1, int64_t{3} << 40)), 1u);
  ReplicaRandomGuard guard(region.shard(1, 8, -1));  // a batch cut along another dimension
  EXPECT_EQ(draw({8, 5}), Key(2, 0, int64_t{1} << 40));
}

TEST(RandomRegion, AdvancesByTheLongestShard) {
  manual_seed(2);
  {
    RandomRegion region(cpu_device(3));
    for (int64_t shard = 0; shard < 3; ++shard) {
      ReplicaRandomGuard guard(region.shard(shard, shard, 1));
      for (int64_t i = 0; i < shard * 2; ++i) draw({1});
    }
  }
  EXPECT_EQ(default_generator(cpu_device(3)).get_state(), (GeneratorState{2, 4}));
  EXPECT_EQ(default_generator(cpu_device(0)).get_state(), (GeneratorState{2, 0}));
  { RandomRegion nothing(cpu_device(3)); }
  EXPECT_EQ(default_generator(cpu_device(3)).get_state(), (GeneratorState{2, 4}));
}

TEST(RandomRegion, StrangersDrawOtherNumbers) {
  manual_seed(2);
  RandomRegion region(cpu_device(0));
  const Key mine = [&] {
    ReplicaRandomGuard guard(region.shard(0, 0, 4));
    return draw({4});
  }();
  const Key strangers = draw({4});  // from the same generator while the region is open
  EXPECT_NE(std::get<1>(mine), std::get<1>(strangers));
  region.close();
  EXPECT_GT(std::get<1>(draw({4})), std::get<1>(strangers));
}

TEST(RandomRegion, SeedingInsideWins) {
  manual_seed(2);
  {
    RandomRegion region(cpu_device(0));
    ReplicaRandomGuard guard(region.shard(0, 0, 4));
    draw({4});
    manual_seed(77);
  }
  EXPECT_EQ(default_generator(cpu_device(0)).get_state(), (GeneratorState{77, 0}));
}

TEST(RandomRegion, OwnGeneratorsAreNotKeyedBySample) {
  Generator own(cpu_device(0), 6);
  RandomRegion region(cpu_device(0));
  ReplicaRandomGuard guard(region.shard(1, 4, 4));
  EXPECT_EQ(key(own.reserve(8, 4)), Key(6, 0, 0));
  EXPECT_EQ(key(own.reserve(8, 4)), Key(6, 1, 0));
}

TEST(RandomRegion, Nests) {
  // Outer: 2 shards of 4 samples; each shard runs an inner forward over 2 shards of 2 samples,
  // between two draws of its own.
  const auto run = [](bool inner_regions) {
    manual_seed(4);
    std::vector<Key> numbers;
    const auto note = [&](int64_t batch) {
      const PhiloxKey k = reserve_random(cpu_device(0), {batch, 3});
      for (int64_t i = 0; i < batch * 3; ++i) numbers.push_back({k.seed, k.offset, k.base + i});
    };
    {
      RandomRegion outer(cpu_device(0));
      for (int64_t o = 0; o < 2; ++o) {
        ReplicaRandomGuard guard(outer.shard(o, o * 4, 4));
        note(4);
        if (inner_regions) {
          RandomRegion inner(cpu_device(o == 0 ? 0 : 5));
          for (int64_t i = 0; i < 2; ++i) {
            ReplicaRandomGuard inside(inner.shard(i, i * 2, 2));
            note(2);
          }
        } else {
          note(4);
        }
        note(4);
      }
    }
    std::sort(numbers.begin(), numbers.end());
    return std::pair(numbers, default_generator(cpu_device(0)).get_state().offset);
  };
  EXPECT_EQ(run(true), run(false));
  EXPECT_EQ(run(true).second, 3u);
}

TEST(RandomRegion, StateThatOutlivesItDrawsFromTheGenerator) {
  manual_seed(4);
  ReplicaRandomRef kept;
  {
    RandomRegion region(cpu_device(0));
    kept = region.shard(2, 8, 4);
    ReplicaRandomGuard guard(kept);
    draw({4});
  }
  ReplicaRandomGuard guard(kept);
  EXPECT_EQ(draw({4}), Key(4, 1, 0));
  EXPECT_EQ(draw({4}), Key(4, 2, 0));
  RandomRegion region(cpu_device(0));
  EXPECT_EQ(std::get<1>([&] {
              ReplicaRandomGuard inside(region.shard(0, 0, 4));
              return draw({4});
            }()),
            3u);
  region.close();
  EXPECT_ERROR(region.shard(0, 0, 4), Error, "closed region");
}

}  // namespace
}  // namespace ramet
