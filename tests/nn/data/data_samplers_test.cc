// Samplers: what they give, that orders are permutations fixed by the seed, and that positions
// survive a save.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <sstream>

#include "nn/data/samplers.h"
#include "nn/serialize/archive.h"
#include "runtime/devices/generator.h"

namespace ramet {
namespace {

using namespace data::samplers;
using Indices = std::vector<size_t>;

template <class S> Indices drain(S& sampler, size_t batch) {
  Indices all;
  while (auto next = sampler.next(batch)) all.insert(all.end(), next->begin(), next->end());
  return all;
}
Indices counted(size_t n) {
  Indices all(n);
  std::iota(all.begin(), all.end(), size_t{0});
  return all;
}
Indices sorted(Indices v) {
  std::sort(v.begin(), v.end());
  return v;
}
template <class S> void copy_position(const S& from, S& to) {
  serialize::OutputArchive direct;
  direct << from;
  std::ostringstream text;
  direct.save_to(text);
  std::istringstream back(text.str());
  serialize::InputArchive in;
  in.load_from(back);
  in >> to;
}

TEST(Samplers, SequentialGivesAllWithAShortLastBatch) {
  SequentialSampler s(10);
  EXPECT_EQ(s.next(4).value(), (Indices{0, 1, 2, 3}));
  EXPECT_EQ(s.index(), 4u);
  EXPECT_EQ(s.next(4).value(), (Indices{4, 5, 6, 7}));
  EXPECT_EQ(s.next(4).value(), (Indices{8, 9}));
  EXPECT_FALSE(s.next(4));
  s.reset();
  EXPECT_EQ(s.next(3).value(), (Indices{0, 1, 2}));
  s.reset(2);
  EXPECT_EQ(drain(s, 5), (Indices{0, 1}));
}

TEST(Samplers, RandomIsAPermutationFixedByTheSeed) {
  for (size_t n : {0, 1, 2, 3, 17, 1000}) {
    manual_seed(5);
    RandomSampler a(static_cast<int64_t>(n));
    const Indices first = drain(a, 7);
    EXPECT_EQ(sorted(first), counted(n));
    a.reset();
    const Indices second = drain(a, 3);
    EXPECT_EQ(sorted(second), counted(n));
    if (n > 10) {
      EXPECT_NE(first, second);
      EXPECT_NE(first, counted(n));
    }
    manual_seed(5);
    RandomSampler b(static_cast<int64_t>(n));
    EXPECT_EQ(drain(b, 1), first);
  }
}

// Every order of 4 equally often: chi-square with 23 degrees of freedom, 99.99 % of fair shuffles
// are below 56.
TEST(Samplers, RandomOrdersAreUniform) {
  manual_seed(1);
  RandomSampler s(4);
  std::map<Indices, int> seen;
  const int draws = 4800;
  for (int i = 0; i < draws; ++i) {
    s.reset();
    ++seen[drain(s, 4)];
  }
  EXPECT_EQ(seen.size(), 24u);
  double chi = 0;
  for (const auto& [order, n] : seen)
    chi += (n - draws / 24.0) * (n - draws / 24.0) / (draws / 24.0);
  EXPECT_LT(chi, 56.0);
  EXPECT_GT(chi, 5.0) << "suspiciously even";
}

TEST(Samplers, ResetMayChangeTheSize) {
  RandomSampler s(5);
  s.reset(8);
  EXPECT_EQ(sorted(drain(s, 3)), counted(8));
  s.reset();
  EXPECT_EQ(sorted(drain(s, 3)), counted(8));
}

TEST(Samplers, PositionsAreSavedAndLoaded) {
  for (Dtype dtype : {kInt64, kInt32}) {
    manual_seed(3);
    RandomSampler a(20, dtype);
    a.next(7);
    RandomSampler b(20);
    copy_position(a, b);
    EXPECT_EQ(b.index(), 7u);
    EXPECT_EQ(drain(b, 4), drain(a, 4));
  }
  SequentialSampler c(9), d(9);
  c.next(4);
  copy_position(c, d);
  EXPECT_EQ(drain(d, 2), (Indices{4, 5, 6, 7, 8}));
  DistributedRandomSampler e(30, 2, 1), f(30, 2, 1);
  e.set_epoch(3);
  e.reset();
  e.next(4);
  copy_position(e, f);
  EXPECT_EQ(f.epoch(), 3u);
  EXPECT_EQ(drain(f, 5), drain(e, 5));
  StreamSampler g(10), h(10);
  g.next(6);
  copy_position(g, h);
  EXPECT_EQ(h.next(6)->size(), 4u);
}

TEST(Samplers, DamagedPositionsAreErrors) {
  RandomSampler a(4);
  serialize::OutputArchive out;
  out.write("index", IValue(int64_t{9}));
  Tensor order(TensorBase::empty({4}, kLong, Device(kCPU, 0)));
  for (int64_t i = 0; i < 4; ++i) order.data_ptr<int64_t>()[i] = i;
  out.write("indices", order);
  std::ostringstream text;
  out.save_to(text);
  serialize::InputArchive in;
  in.load_from(text.str().data(), text.str().size());
  EXPECT_THROW(a.load(in), Error);
  order.data_ptr<int64_t>()[3] = 0;  // one index twice
  out.write("index", IValue(int64_t{0}));
  text.str("");
  out.save_to(text);
  in.load_from(text.str().data(), text.str().size());
  EXPECT_THROW(a.load(in), Error);
  EXPECT_EQ(sorted(drain(a, 4)), counted(4)) << "a failed load changes nothing";
}

template <class S>
std::vector<Indices> parts(size_t size, size_t replicas, bool duplicates, size_t epoch) {
  std::vector<Indices> all;
  for (size_t rank = 0; rank < replicas; ++rank) {
    S s(size, replicas, rank, duplicates);
    s.set_epoch(epoch);
    s.reset();
    all.push_back(drain(s, 3));
  }
  return all;
}
template <class S> void check_distribution() {
  for (size_t size : {1, 7, 10, 12}) {
    for (size_t replicas : {1, 2, 3, 5}) {
      const auto with = parts<S>(size, replicas, true, 0);
      std::set<size_t> covered;
      for (const Indices& p : with) {
        EXPECT_EQ(p.size(), (size + replicas - 1) / replicas);
        covered.insert(p.begin(), p.end());
      }
      EXPECT_EQ(covered.size(), size) << "everything is covered";
      const auto without = parts<S>(size, replicas, false, 0);
      Indices all;
      for (const Indices& p : without) {
        EXPECT_EQ(p.size(), size / replicas);
        all.insert(all.end(), p.begin(), p.end());
      }
      EXPECT_EQ(std::set<size_t>(all.begin(), all.end()).size(), all.size()) << "nothing twice";
    }
  }
}

TEST(Samplers, DistributedPartsCoverOrAreDisjoint) {
  check_distribution<DistributedRandomSampler>();
  check_distribution<DistributedSequentialSampler>();
}

TEST(Samplers, DistributedRandomDependsOnTheEpochAlone) {
  manual_seed(1);
  const auto a = parts<DistributedRandomSampler>(50, 2, true, 0);
  manual_seed(2);
  EXPECT_EQ(parts<DistributedRandomSampler>(50, 2, true, 0), a);
  EXPECT_NE(parts<DistributedRandomSampler>(50, 2, true, 1), a);
  const auto sequential = parts<DistributedSequentialSampler>(6, 2, true, 4);
  EXPECT_EQ(sequential[1], (Indices{3, 4, 5}));
}

// Parts that do not divide the set repeat some indices. A random order is shuffled first and then
// continued, so that over many epochs each index is repeated as often as another. LibTorch adds
// 0, 1, ... before it shuffles, and an index beyond the set where there are more than twice as many
// parts as examples.
TEST(Samplers, NoIndexIsRepeatedMoreThanOthers) {
  struct Case {
    size_t size, replicas;
  };
  for (const Case c : {Case{10, 4}, Case{3, 8}, Case{5, 7}, Case{7, 2}}) {
    const size_t count = (c.size + c.replicas - 1) / c.replicas, all = count * c.replicas;
    constexpr size_t kEpochs = 2000;
    std::vector<double> given(c.size);
    for (size_t epoch = 0; epoch < kEpochs; ++epoch) {
      std::vector<size_t> now(c.size);
      for (const Indices& part : parts<DistributedRandomSampler>(c.size, c.replicas, true, epoch)) {
        ASSERT_EQ(part.size(), count);
        for (const size_t i : part) {
          ASSERT_LT(i, c.size);
          ++now[i], ++given[i];
        }
      }
      for (const size_t n : now) {  // all of them, and none much more often than another
        ASSERT_GE(n, all / c.size);
        ASSERT_LE(n, (all + c.size - 1) / c.size);
      }
    }
    // An index is among the repeated ones of an epoch with probability p: five deviations.
    const double p = static_cast<double>(all % c.size) / static_cast<double>(c.size),
                 mean = kEpochs * (static_cast<double>(all / c.size) + p),
                 deviation = std::sqrt(kEpochs * p * (1 - p));
    for (const double n : given) EXPECT_NEAR(n, mean, 5 * deviation + 1e-9) << c.size;
  }
  // In order the first ones are repeated, as by LibTorch.
  EXPECT_EQ(parts<DistributedSequentialSampler>(3, 8, true, 0),
            (std::vector<Indices>{{0}, {1}, {2}, {0}, {1}, {2}, {0}, {1}}));
}

TEST(Samplers, WrongArgumentsAreErrors) {
  EXPECT_THROW(RandomSampler(-1), Error);
  EXPECT_THROW(RandomSampler(3, kFloat), Error);
  EXPECT_THROW(DistributedRandomSampler(3, 0, 0), Error);
  EXPECT_THROW(DistributedSequentialSampler(3, 2, 2), Error);
}

TEST(Samplers, StreamAsksForSizes) {
  StreamSampler s(10);
  EXPECT_EQ(static_cast<size_t>(*s.next(4)), 4u);
  EXPECT_EQ(s.next(4)->size(), 4u);
  EXPECT_EQ(s.next(4)->size(), 2u);
  EXPECT_FALSE(s.next(4));
  s.reset(3);
  EXPECT_EQ(s.next(4)->size(), 3u);
}

// The formulas are right at the ends of size_t, and lists that no memory holds are an Error.
TEST(Samplers, SizesDoNotWrap) {
  const size_t most = SIZE_MAX;
  DistributedSequentialSampler last(most, most, most - 1), of_two(most, 2, 1);
  EXPECT_EQ(*last.next(5), Indices{most - 1});
  EXPECT_EQ((*of_two.next(1))[0], size_t{1} << 63);
  DistributedSequentialSampler many(3, most, most - 1);  // one each, from 0 again and again
  EXPECT_EQ(many.next(5)->size(), 1u);
  SequentialSampler all(most);
  EXPECT_EQ(*all.next(2), (Indices{0, 1}));
  EXPECT_THROW(all.next(most), OutOfMemoryError);
  EXPECT_EQ(*all.next(2), (Indices{2, 3}));
  EXPECT_THROW(RandomSampler(INT64_MAX), OutOfMemoryError);
  EXPECT_THROW(DistributedRandomSampler(most, 2), OutOfMemoryError);
}

}  // namespace
}  // namespace ramet
