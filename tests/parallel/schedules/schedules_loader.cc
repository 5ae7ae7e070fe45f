#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <sstream>
#include <thread>

#include "nn/data/dataloader.h"
#include "nn/data/datasets.h"
#include "runtime/devices/generator.h"
#include "tests/parallel/schedules/schedules.h"

namespace ramet {
namespace testing {
namespace {

using namespace data;
using Row = std::vector<uint64_t>;

// How long a worker takes for each batch; all workers read it from here.
struct Pace {
  std::atomic<uint32_t> state{0};
  void pause() {
    const uint32_t r = state.fetch_add(0x9E3779B9u) * 2654435761u >> 12;
    if (r % 3 != 0) std::this_thread::sleep_for(std::chrono::microseconds(r / 64 % 300));
  }
};

// A batch is its request and the random numbers that it drew; one sample cannot be read.
struct Drawn : datasets::BatchDataset<Drawn, Row> {
  Drawn(size_t size, size_t bad, std::shared_ptr<Pace> pace)
      : size_(size), bad_(bad), pace_(std::move(pace)) {}
  Row get_batch(ArrayRef<size_t> request) override {
    pace_->pause();
    Row row(request.begin(), request.end());
    Generator g = default_generator(Device(kCPU, 0));
    const PhiloxKey key = g.reserve(3);
    row.insert(row.end(), {key.seed, key.offset});
    for (size_t sample : request)
      RAMET_CHECK(sample != bad_, "Drawn", "sample ", sample, " is bad");
    pace_->pause();
    return row;
  }
  std::optional<size_t> size() const override { return size_; }
  size_t size_, bad_;
  std::shared_ptr<Pace> pace_;
};

struct Script {
  uint64_t seed;
  size_t size, bad, batch;
  bool drop_last;
  size_t leave_after;  // of the first epoch
};

// Two epochs, the first one left early: batches and errors as text.
std::vector<std::string> read(const Script& s, size_t workers, size_t max_jobs, uint32_t pace) {
  manual_seed(s.seed);
  const auto shared = std::make_shared<Pace>();
  shared->state = pace;
  auto options = DataLoaderOptions(s.batch).workers(workers).drop_last(s.drop_last);
  if (workers > 0) options.max_jobs(max_jobs);
  auto loader = make_data_loader(Drawn(s.size, s.bad, shared), options);
  std::vector<std::string> out;
  for (int epoch = 0; epoch < 2; ++epoch) {
    size_t taken = 0;
    const auto note = [&](Row row) {
      std::ostringstream text;
      for (uint64_t v : row) text << v << " ";
      out.push_back(text.str());
      return epoch == 0 && ++taken > s.leave_after;
    };
    try {
      for (auto& row : *loader)
        if (note(row)) break;
    } catch (const std::exception& e) {
      // With workers the text has a preface.
      const std::string text = e.what();
      out.push_back(text.substr(text.find("[Drawn]")));
    }
    out.push_back("end");
  }
  out.push_back(std::to_string(default_generator(Device(kCPU, 0)).reserve(1).offset));
  return out;
}

}  // namespace

void check_loaders(std::mt19937& random) {
  Script s;
  s.seed = random();
  s.size = random() % 30;
  s.bad = random() % 60;  // half of the sets are whole
  s.batch = 1 + random() % 5;
  s.drop_last = random() % 2;
  s.leave_after = random() % 12;
  const std::vector<std::string> expected = read(s, 0, 0, 0);
  for (int repeat = 0; repeat < 4; ++repeat) {
    const size_t workers = 1 + random() % 4, max_jobs = 1 + random() % 6;
    EXPECT_EQ(read(s, workers, max_jobs, static_cast<uint32_t>(random())), expected)
        << workers << " workers, " << max_jobs << " jobs";
  }
}

}  // namespace testing
}  // namespace ramet
