// DataLoader: after an exception, after an epoch left early, with a position of other data.
#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

#include "tests/nn/data/data_loader_sets.h"
#include "tests/nn/support.h"
#include "tests/runtime/thrown.h"

namespace ramet {
namespace {

using namespace data;

struct FailsAt : datasets::BatchDataset<FailsAt, Indices> {
  explicit FailsAt(size_t bad) : bad(bad) {}
  Indices get_batch(ArrayRef<size_t> request) override {
    if (request[0] == bad) throw std::runtime_error("unreadable");
    return request.vec();
  }
  std::optional<size_t> size() const override { return 6; }
  size_t bad;
};

TEST(DataLoaderRecovery, TheEpochGoesOnBehindAnException) {
  for (size_t workers : {0, 1, 3})
    for (size_t bad : {0, 2, 5}) {
      auto loader = make_data_loader<samplers::SequentialSampler>(
          FailsAt(bad), DataLoaderOptions(1).workers(workers));
      Indices got, expected;
      for (size_t i = 0; i < 6; ++i)
        if (i != bad) expected.push_back(i);
      int failures = 0;
      auto it = loader->begin();
      const auto end = loader->end();
      for (bool first = true;; first = false) {
        try {
          if (!first) ++it;
          if (it == end) break;
        } catch (const std::exception& e) {
          EXPECT_NE(std::string(e.what()).find("unreadable"), std::string::npos);
          ASSERT_LE(++failures, 1);
          if (first) got.push_back((*it)[0]);  // the first use failed: this is the second
          continue;
        }
        got.push_back((*it)[0]);
      }
      EXPECT_EQ(failures, 1);
      EXPECT_EQ(got, expected) << workers << " workers, batch " << bad;
    }
}

/// Slow; notices a reset() while it works.
struct Slow : datasets::StatefulDataset<Slow, size_t, size_t> {
  struct Shared {
    std::atomic<size_t> next{0};
    std::atomic<int> at_work{0}, disturbed{0};
  };
  std::optional<size_t> get_batch(size_t) override {
    ++s->at_work;
    const size_t n = s->next++;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    --s->at_work;
    if (n >= 6) return std::nullopt;
    return n;
  }
  std::optional<size_t> size() const override { return 6; }
  void reset() override {
    if (s->at_work) ++s->disturbed;
    s->next = 0;
  }
  void save(serialize::OutputArchive&) const override {}
  void load(serialize::InputArchive&) override {}
  std::shared_ptr<Shared> s = std::make_shared<Shared>();
};

struct ThrowsAtTwo : datasets::BatchDataset<ThrowsAtTwo, size_t> {
  explicit ThrowsAtTwo(Thrown what) : what(what) {}
  size_t get_batch(ArrayRef<size_t> request) override {
    if (request[0] == 2) throw_one(what, 7);
    return request[0];
  }
  std::optional<size_t> size() const override { return 4; }
  Thrown what;
};

TEST(DataLoaderRecovery, AnythingMayBeThrown) {
  for (size_t workers : {0, 1, 3})
    for (const Thrown what : kThrown) {
      auto loader = make_data_loader<samplers::SequentialSampler>(
          ThrowsAtTwo(what), DataLoaderOptions(1).workers(workers));
      auto it = loader->begin();
      ++it;
      std::exception_ptr thrown;
      try {
        ++it;
      } catch (const WorkerException& e) {
        EXPECT_GT(workers, 0u);
        thrown = e.original_exception;
        EXPECT_EQ(
            std::string(e.what()).find("not derived from std::exception") != std::string::npos,
            what == Thrown::kNoStandard);
      } catch (...) {
        EXPECT_EQ(workers, 0u);
        thrown = std::current_exception();
      }
      ASSERT_TRUE(thrown);
      int number = -1;
      EXPECT_EQ(thrown_by([&] { std::rethrow_exception(thrown); }, &number), what);
      if (what != Thrown::kNoMemory) { EXPECT_EQ(number, 7); }
      EXPECT_EQ(*++it, 3u);
    }
}

TEST(DataLoaderRecovery, AStatefulDatasetIsResetWhenNobodyUsesIt) {
  for (size_t workers : {1, 3}) {
    Slow dataset;
    auto loader = make_data_loader(dataset, DataLoaderOptions(1).workers(workers));
    for (int epoch = 0; epoch < 5; ++epoch) EXPECT_LT(*loader->begin(), 6u);  // left early
    Indices got;
    for (size_t n : *loader) got.push_back(n);
    std::sort(got.begin(), got.end());
    EXPECT_EQ(got, (Indices{0, 1, 2, 3, 4, 5})) << workers;
    EXPECT_EQ(dataset.s->disturbed, 0);
  }
}

TEST(DataLoaderRecovery, APositionOfOtherDataIsRefused) {
  const auto loader_of = [](size_t examples) {
    return make_data_loader<samplers::SequentialSampler>(Echo(examples), DataLoaderOptions(2));
  };
  auto small = loader_of(6), same = loader_of(6), large = loader_of(100);
  auto it = small->begin();
  *it;
  const std::string position = position_of(*small);
  set_position(*same, position);
  EXPECT_EQ(batches_of(*same), (std::vector<Indices>{{2, 3}, {4, 5}}));
  EXPECT_ERROR_TEXT(set_position(*large, position), "got 100 examples, expected 6");
  EXPECT_EQ(batches_of(*large).size(), 50u);  // as if nothing had happened
}

TEST(DataLoaderRecovery, APositionThatDoesNotFitChangesNothing) {
  const auto loader_of = [](bool drop_last) {
    return make_data_loader<samplers::RandomSampler>(Echo(5),
                                                     DataLoaderOptions(2).drop_last(drop_last));
  };
  auto loader = loader_of(true), other = loader_of(false);
  auto at = loader->begin(), there = other->begin();
  EXPECT_EQ((*at).size(), 2u);
  for (int i = 0; i < 2; ++i) ++there;  // before the third batch, which the other one drops
  EXPECT_EQ((*there).size(), 1u);
  const std::string before = position_of(*loader);
  EXPECT_ERROR_TEXT(set_position(*loader, position_of(*other)),
                    "the epoch ended after 2 batches, expected at least 3");
  EXPECT_EQ(position_of(*loader), before);
  ++at;  // goes on
  EXPECT_EQ((*at).size(), 2u);
}

/// Counts up to 5; its position is saved.
struct Counter : datasets::StatefulDataset<Counter, size_t, size_t> {
  std::optional<size_t> get_batch(size_t) override {
    return next < 5 ? std::optional<size_t>(next++) : std::nullopt;
  }
  std::optional<size_t> size() const override { return 5; }
  void reset() override { next = 0; }
  void save(serialize::OutputArchive& archive) const override {
    archive.write("next", IValue(static_cast<int64_t>(next)));
  }
  void load(serialize::InputArchive& archive) override {
    IValue value;
    archive.read("next", value);
    next = static_cast<size_t>(value.toInt());
  }
  size_t next = 0;
};

TEST(DataLoaderRecovery, AStatefulDatasetMayBeShared) {
  auto here = datasets::make_shared_dataset<Counter>(), there = here;
  auto loader = make_data_loader(here, DataLoaderOptions(1));
  auto it = loader->begin();
  ++it;
  EXPECT_EQ(*it, 1u);
  EXPECT_EQ(there->next, 2u);  // the same data
  const std::string position = position_of(*loader);
  auto other = make_data_loader(datasets::make_shared_dataset<Counter>(), DataLoaderOptions(1));
  set_position(*other, position);
  Indices got;
  for (size_t n : *other) got.push_back(n);
  EXPECT_EQ(got, (Indices{2, 3, 4}));
}

}  // namespace
}  // namespace ramet
