// DataLoader: batches, order, workers, exceptions, timeouts, leaving early, resuming.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <set>
#include <thread>

#include "autograd/grad_mode.h"
#include "nn/data/gather_dataset.h"
#include "nn/data/transforms.h"
#include "runtime/devices/generator.h"
#include "tests/nn/data/data_loader_sets.h"
#include "tests/nn/support.h"

namespace ramet {
namespace {

using namespace data;
using std::chrono::milliseconds;

TEST(DataLoader, DeliversEverythingInOrderForAnyNumberOfWorkers) {
  for (size_t workers : {0, 1, 2, 5}) {
    auto loader = make_data_loader<samplers::SequentialSampler>(
        Echo(10), DataLoaderOptions(4).workers(workers));
    const std::vector<Indices> expected = {{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9}};
    EXPECT_EQ(batches_of(*loader), expected) << workers;
    EXPECT_EQ(batches_of(*loader), expected) << "again, with " << workers;
    auto whole = make_data_loader<samplers::SequentialSampler>(
        Echo(10), DataLoaderOptions(4).workers(workers).drop_last(true));
    EXPECT_EQ(batches_of(*whole).size(), 2u);
    auto empty = make_data_loader<samplers::SequentialSampler>(
        Echo(0), DataLoaderOptions(4).workers(workers));
    EXPECT_TRUE(batches_of(*empty).empty());
  }
}

TEST(DataLoader, RandomByDefaultAndFixedByTheSeed) {
  manual_seed(9);
  auto a = make_data_loader(Echo(50), DataLoaderOptions(8));
  const auto first = batches_of(*a), second = batches_of(*a);
  EXPECT_NE(first, second);
  manual_seed(9);
  auto b = make_data_loader(Echo(50), DataLoaderOptions(8).workers(3));
  EXPECT_EQ(batches_of(*b), first);
  EXPECT_EQ(batches_of(*b), second);
  Indices all = flat(first);
  std::sort(all.begin(), all.end());
  for (size_t i = 0; i < 50; ++i) EXPECT_EQ(all[i], i);
}

TEST(DataLoader, OptionsAndTheirDefaults) {
  auto loader = make_data_loader(Echo(), DataLoaderOptions().workers(3).timeout(milliseconds(500)));
  EXPECT_EQ(loader->options().batch_size, 1u);
  EXPECT_EQ(loader->options().max_jobs, 6u);
  EXPECT_EQ(loader->options().timeout.value(), milliseconds(500));
  EXPECT_TRUE(loader->options().enforce_ordering);
  EXPECT_FALSE(loader->options().drop_last);
  EXPECT_THROW(make_data_loader(Echo(), DataLoaderOptions(0)), Error);
  EXPECT_THROW(make_data_loader(Echo(), DataLoaderOptions(1).workers(1).max_jobs(0)), Error);
}

TEST(DataLoader, IteratorsOfLibTorch) {
  auto loader = make_data_loader<samplers::SequentialSampler>(Echo(2), DataLoaderOptions(1));
  auto it = loader->begin(), end = loader->end();
  EXPECT_TRUE(it != end);
  EXPECT_EQ(it->front(), 0u);
  EXPECT_EQ((*it).front(), 0u);
  ++it;
  EXPECT_EQ(it->front(), 1u);
  ++it;
  EXPECT_TRUE(it == end);
  EXPECT_ERROR_TEXT(++it, "past the end");
  EXPECT_ERROR_TEXT(*it, "past the end");
  EXPECT_ERROR_TEXT(++end, "past-the-end");
  EXPECT_ERROR_TEXT(*end, "past-the-end");
}

TEST(DataLoader, AnEpochMayBeLeftEarly) {
  for (size_t workers : {0, 2}) {
    auto loader = make_data_loader<samplers::SequentialSampler>(
        Echo(100), DataLoaderOptions(1).workers(workers));
    auto old = loader->begin();
    EXPECT_EQ(old->front(), 0u);
    for (int round = 0; round < 20; ++round) {
      size_t expected = 0;
      for (auto& batch : *loader) {
        EXPECT_EQ(batch.front(), expected++);
        if (expected == 5) break;
      }
    }
    EXPECT_ERROR_TEXT(++old, "a new iteration");
  }
}

// With two workers, the first batch waits until the other worker has begun its second one, and so
// has handed over its first. Where order is not kept, it also waits until a batch was taken. So
// only a loader that keeps order delivers 0 first.
struct Race {
  std::atomic<int> begun{0};
  std::atomic<bool> taken{false};
};
struct Overtaken : datasets::BatchDataset<Overtaken, size_t> {
  explicit Overtaken(std::shared_ptr<Race> race) : race_(std::move(race)) {}
  size_t get_batch(ArrayRef<size_t> request) override {
    if (request[0] == 0) {
      while (race_->begun < 2 || !race_->taken) std::this_thread::yield();
    } else {
      ++race_->begun;
    }
    return request[0];
  }
  std::optional<size_t> size() const override { return 4; }
  std::shared_ptr<Race> race_;
};

TEST(DataLoader, OrderIsKeptOrNot) {
  for (bool ordered : {true, false}) {
    const auto race = std::make_shared<Race>();
    race->taken = ordered;
    auto loader = make_data_loader<samplers::SequentialSampler>(
        Overtaken(race), DataLoaderOptions(1).workers(2).enforce_ordering(ordered));
    Indices got;
    for (size_t batch : *loader) {
      got.push_back(batch);
      race->taken = true;
    }
    if (ordered) {
      EXPECT_EQ(got, (Indices{0, 1, 2, 3}));
    } else {
      EXPECT_NE(got[0], 0u);
      std::sort(got.begin(), got.end());
      EXPECT_EQ(got, (Indices{0, 1, 2, 3}));
    }
  }
}

struct Failing : datasets::BatchDataset<Failing, size_t> {
  size_t get_batch(ArrayRef<size_t> request) override {
    RAMET_CHECK(request[0] != 2, "Failing", "sample two is bad");
    return request[0];
  }
  std::optional<size_t> size() const override { return 5; }
};

TEST(DataLoader, ExceptionsReachTheConsumerInTheirPlace) {
  for (size_t workers : {1, 3}) {
    auto loader = make_data_loader<samplers::SequentialSampler>(
        Failing(), DataLoaderOptions(1).workers(workers));
    for (int round = 0; round < 2; ++round) {
      auto it = loader->begin();
      EXPECT_EQ(*it, 0u);
      EXPECT_EQ(*++it, 1u);
      try {
        ++it;
        FAIL() << "expected an exception";
      } catch (const WorkerException& e) {
        EXPECT_STREQ(e.what(),
                     "Caught exception in DataLoader worker thread. Original message: [Failing] "
                     "sample two is bad");
        EXPECT_THROW(std::rethrow_exception(e.original_exception), Error);
      }
    }
  }
  auto direct = make_data_loader<samplers::SequentialSampler>(Failing(), DataLoaderOptions(1));
  auto it = direct->begin();
  ++it;
  EXPECT_THROW(++it, Error) << "without workers, the exception itself";
}

struct Stuck : datasets::BatchDataset<Stuck, size_t> {
  explicit Stuck(std::shared_ptr<std::atomic<bool>> go) : go_(std::move(go)) {}
  size_t get_batch(ArrayRef<size_t> request) override {
    while (!*go_) std::this_thread::yield();
    return request[0];
  }
  std::optional<size_t> size() const override { return 2; }
  std::shared_ptr<std::atomic<bool>> go_;
};

TEST(DataLoader, TimesOut) {
  auto go = std::make_shared<std::atomic<bool>>(false);
  auto loader = make_data_loader<samplers::SequentialSampler>(
      Stuck(go), DataLoaderOptions(1).workers(1).timeout(milliseconds(5)));
  EXPECT_EQ(
      error_of([&] { *loader->begin(); }),
      "[DataLoader] Timeout in DataLoader queue while waiting for next batch (timeout was 5 ms)");
  *go = true;
}

TEST(DataLoader, NeverMoreThanMaxJobsAhead) {
  auto count = std::make_shared<std::atomic<int>>(0);
  struct Counting : datasets::BatchDataset<Counting, size_t> {
    explicit Counting(std::shared_ptr<std::atomic<int>> c) : count(std::move(c)) {}
    size_t get_batch(ArrayRef<size_t> request) override { return ++*count, request[0]; }
    std::optional<size_t> size() const override { return 50; }
    std::shared_ptr<std::atomic<int>> count;
  };
  auto loader = make_data_loader<samplers::SequentialSampler>(
      Counting(count), DataLoaderOptions(1).workers(2).max_jobs(3));
  int taken = 0;
  for (size_t batch : *loader) {
    EXPECT_EQ(batch, static_cast<size_t>(taken++));
    EXPECT_LE(count->load(), taken + 3);
  }
  EXPECT_EQ(taken, 50);
}

TEST(DataLoader, DatasetsThatCannotBeCopied) {
  struct Unique : datasets::BatchDataset<Unique, size_t> {
    std::unique_ptr<size_t> value = std::make_unique<size_t>(7);
    size_t get_batch(ArrayRef<size_t>) override { return *value; }
    std::optional<size_t> size() const override { return 1; }
  };
  for (size_t workers : {0, 1}) {
    auto loader = make_data_loader(Unique(), samplers::SequentialSampler(1),
                                   DataLoaderOptions(1).workers(workers));
    EXPECT_EQ(*loader->begin(), 7u);
  }
  EXPECT_THROW(
      make_data_loader(Unique(), samplers::SequentialSampler(1), DataLoaderOptions(1).workers(2)),
      Error);
}

TEST(DataLoader, StatefulDatasetsEndTheEpochThemselves) {
  for (size_t workers : {0, 1, 3}) {
    auto loader = make_data_loader(Countdown(9), DataLoaderOptions(1).workers(workers));
    for (int epoch = 0; epoch < 2; ++epoch) {
      std::set<size_t> got;
      for (size_t batch : *loader) got.insert(batch);
      EXPECT_EQ(got.size(), 9u) << workers;
    }
  }
  auto mapped = make_data_loader(
      Countdown(3).map(transforms::BatchLambda<size_t, size_t>([](size_t n) { return n * n; })),
      DataLoaderOptions(1));
  Indices got;
  for (size_t batch : *mapped) got.push_back(batch);
  EXPECT_EQ(got, (Indices{9, 4, 1}));
}

TEST(DataLoader, WorkersHaveTheCallersGradMode) {
  struct Mode : datasets::BatchDataset<Mode, bool> {
    bool get_batch(ArrayRef<size_t>) override { return GradMode::is_enabled(); }
    std::optional<size_t> size() const override { return 1; }
  };
  auto loader = make_data_loader(Mode(), DataLoaderOptions(1).workers(1));
  EXPECT_TRUE(*loader->begin());
  NoGradGuard no_grad;
  EXPECT_FALSE(*loader->begin());
}

// Augmentation: what a batch draws depends on the seed, the epoch and the batch.
struct Drawing : datasets::BatchDataset<Drawing, std::vector<uint64_t>> {
  std::vector<uint64_t> get_batch(ArrayRef<size_t> request) override {
    Generator g = default_generator(Device(kCPU, 0));
    const PhiloxKey a = g.reserve(1), b = g.reserve(1);
    return {request[0], a.seed, a.offset, b.offset};
  }
  std::optional<size_t> size() const override { return 12; }
};
TEST(DataLoader, RandomNumbersDoNotDependOnTheWorkers) {
  std::vector<std::vector<std::vector<uint64_t>>> runs;
  std::vector<GeneratorState> after;
  for (size_t workers : {0, 1, 4}) {
    manual_seed(4);
    auto loader = make_data_loader<samplers::SequentialSampler>(
        Drawing(), DataLoaderOptions(1).workers(workers));
    std::vector<std::vector<uint64_t>> drawn;
    for (int epoch = 0; epoch < 2; ++epoch)
      for (auto& batch : *loader) drawn.push_back(batch);
    runs.push_back(drawn);
    after.push_back(default_generator(Device(kCPU, 0)).get_state());
  }
  EXPECT_EQ(runs[0], runs[1]);
  EXPECT_EQ(runs[0], runs[2]);
  EXPECT_EQ(after[0], after[1]);
  EXPECT_EQ(after[0], after[2]);
  std::set<std::vector<uint64_t>> keys;
  for (const auto& b : runs[0]) {
    keys.insert({b[1], b[2]});
    keys.insert({b[1], b[3]});
  }
  EXPECT_EQ(keys.size(), 48u) << "no two operations draw the same numbers";
}

TEST(DataLoader, ResumesInTheMiddleOfAnEpoch) {
  for (size_t workers : {0, 1, 3}) {
    for (size_t stop : {0, 1, 4, 7, 8}) {  // 7 batches: 50 samples by 8
      manual_seed(11);
      const DataLoaderOptions options = DataLoaderOptions(8).workers(workers);
      auto a = make_data_loader(Echo(50), options);
      batches_of(*a);  // an epoch before
      std::vector<Indices> rest;
      std::string saved;
      GeneratorState random{};
      size_t taken = 0;
      const auto save_at_stop = [&] {
        if (taken != stop) return;
        saved = position_of(*a);
        random = default_generator(Device(kCPU, 0)).get_state();
      };
      save_at_stop();
      for (auto& batch : *a) {
        if (taken >= stop) rest.push_back(batch);
        ++taken;
        save_at_stop();
      }
      if (stop == 8) taken = 8, save_at_stop();
      const auto next = batches_of(*a);

      manual_seed(77);  // another program
      auto b = make_data_loader(Echo(50), options);
      set_position(*b, saved);
      default_generator(Device(kCPU, 0)).set_state(random);
      if (stop < 8) {  // 8: after the epoch's end, so the next begin() starts the next one
        EXPECT_EQ(batches_of(*b), rest) << workers << " workers, " << stop << " batches";
      }
      EXPECT_EQ(batches_of(*b), next) << "and the epoch after";
    }
  }
}

TEST(DataLoader, ResumeChecksWhatItIsGiven) {
  auto a = make_data_loader(Echo(50), DataLoaderOptions(8));
  auto it = a->begin();
  ++it;
  const std::string saved = position_of(*a);
  auto b = make_data_loader(Echo(50), DataLoaderOptions(4));
  EXPECT_ERROR_TEXT(set_position(*b, saved), "batch_size: got 4, expected 8");
  auto c = make_data_loader(Echo(50), DataLoaderOptions(8).workers(2).enforce_ordering(false));
  EXPECT_ERROR_TEXT(position_of(*c), "no fixed order");
  auto d = make_data_loader(Countdown(5), DataLoaderOptions(1));
  Indices got;
  for (size_t batch : *d) {
    got.push_back(batch);
    if (got.size() == 2) break;
  }
  auto e = make_data_loader(Countdown(5), DataLoaderOptions(1));
  set_position(*e, position_of(*d));
  for (size_t batch : *e) got.push_back(batch);
  EXPECT_EQ(got, (Indices{5, 4, 3, 2, 1}));
}

TEST(DataLoader, DestroyedInTheMiddleAndJoined) {
  for (int i = 0; i < 20; ++i) {
    auto loader = make_data_loader(Echo(1000), DataLoaderOptions(1).workers(3));
    auto it = loader->begin();
    if (i % 2) ++it;
    if (i % 4 == 3) {
      loader->join();
      EXPECT_THROW(loader->begin(), Error);
    }
  }
}

// It has none of the workers, so nothing may wait for them.
TEST(DataLoader, AChildOfForkIsTold) {
  auto loader =
      make_data_loader<samplers::SequentialSampler>(Echo(10), DataLoaderOptions(2).workers(2));
  auto at = loader->begin();
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    const auto told = [](const auto& f) {
      try {
        f();
      } catch (const Error& e) { return std::strstr(e.what(), "[fork]") != nullptr; }
      return false;
    };
    const bool good = told([&] { ++at; }) && told([&] { loader->begin(); });
    loader.reset();
    ::_exit(good ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  size_t batches = 0;
  for (; at != loader->end(); ++at) ++batches;
  EXPECT_EQ(batches, 5u);
}

TEST(DataLoader, WholeBatchesMadeAhead) {
  std::vector<uint8_t> bytes(1000 * 6);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i / 6 % 256);
  Tensor rows(TensorBase::empty({1000, 1, 2, 3}, kByte, Device(kCPU, 0))),
      targets(TensorBase::empty({1000}, kLong, Device(kCPU, 0)));
  std::memcpy(rows.data_ptr(), bytes.data(), bytes.size());
  for (int64_t i = 0; i < 1000; ++i) targets.data_ptr<int64_t>()[i] = i;
  auto loader = make_data_loader(datasets::GatherDataset(rows, targets),
                                 DataLoaderOptions(64).workers(1).max_jobs(1));
  int64_t seen = 0;
  for (Example<>& batch : *loader) {
    for (int64_t i = 0; i < batch.target.numel(); ++i, ++seen) {
      const float expected = static_cast<float>(batch.target.data_ptr<int64_t>()[i] % 256) / 255.0f;
      EXPECT_EQ(batch.data.data_ptr<float>()[i * 6 + 5], expected);
    }
  }
  EXPECT_EQ(seen, 1000);
}

}  // namespace
}  // namespace ramet
