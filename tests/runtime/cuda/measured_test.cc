// Choices between two ways by a table of measurements.
#include "runtime/cuda/measured.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <latch>
#include <sstream>
#include <thread>
#include <utility>

#include "runtime/cuda/device_state.h"
#include "runtime/cuda/graphs.h"
#include "tests/runtime/cuda/gpus.h"

namespace ramet::testing {
namespace {

class Measurements : public ::testing::Test {
 protected:
  Measurements() {
    const char* base = std::getenv("TEST_TMPDIR");
    path_ = std::string(base ? base : "/tmp") + "/measured_" + std::to_string(::getpid());
  }
  ~Measurements() override {
    cuda::set_measurements("");
    std::remove(path_.c_str());
  }
  std::string text() const {
    std::ostringstream out;
    out << std::ifstream(path_).rdbuf();
    return out.str();
  }
  void write(const std::string& text) const { std::ofstream(path_) << text; }

  const Gpus gpus_{gpu_settings(1)};
  std::string path_;
};

struct Sleeper {
  int ms;
  int calls = 0;
  cuda::Way way() {
    return {[](void* self) {
              auto& s = *static_cast<Sleeper*>(self);
              ++s.calls;
              std::this_thread::sleep_for(std::chrono::milliseconds(s.ms));
            },
            this};
  }
};

bool chosen(Sleeper& first, Sleeper& second, bool estimate, int64_t size) {
  const int64_t shape[] = {3, size};
  return cuda::second_is_quicker({"an_op", 0, kFloat, shape, 2}, estimate, first.way(),
                                 second.way());
}

// In a process of its own, which has not asked yet.
TEST_F(Measurements, TheProgramGoesBeforeTheEnvironment) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto expect_exit = [this](bool says, const char* expected) {
    const auto body = [&] {
      setenv("RAMET_CUDA_MEASUREMENTS", path_.c_str(), 1);
      if (says) cuda::set_measurements("");
      std::fputs(cuda::has_measurements() ? "some" : "none", stderr);
      std::exit(0);
    };
    EXPECT_EXIT(body(), ::testing::ExitedWithCode(0), expected);
  };
  expect_exit(true, "none");
  expect_exit(false, "some");
}

TEST_F(Measurements, NoneIsAnEstimate) {
  Sleeper slow{5}, quick{0};
  EXPECT_FALSE(cuda::has_measurements());
  EXPECT_FALSE(chosen(slow, quick, false, 1));
  EXPECT_TRUE(chosen(quick, slow, true, 1));
  EXPECT_EQ(slow.calls + quick.calls, 0);
}

TEST_F(Measurements, AreMadeOnceAndKept) {
  cuda::set_measurements(path_);
  EXPECT_TRUE(cuda::has_measurements());
  const uint64_t before = cuda::measurements_made();
  Sleeper slow{20}, quick{0};
  EXPECT_TRUE(chosen(slow, quick, false, 1));
  EXPECT_FALSE(chosen(quick, slow, true, 2));
  EXPECT_EQ(cuda::measurements_made(), before + 2);
  const int calls = slow.calls + quick.calls;
  EXPECT_TRUE(chosen(slow, quick, false, 1));
  EXPECT_FALSE(chosen(quick, slow, true, 2));
  EXPECT_EQ(slow.calls + quick.calls, calls);
  // As a new process finds it.
  const std::string kept = text();
  EXPECT_NE(kept.find("an_op float32 3 1\t"), std::string::npos) << kept;
  cuda::set_measurements("");
  EXPECT_FALSE(chosen(slow, quick, false, 1));
  cuda::set_measurements(path_);
  EXPECT_EQ(text(), kept);
  EXPECT_TRUE(chosen(slow, quick, false, 1));
  EXPECT_EQ(cuda::measurements_made(), before + 2);
}

// Two processes with one file: the first one's times are both's.
TEST_F(Measurements, OfAnotherProcessStand) {
  cuda::set_measurements(path_);
  Sleeper slow{20}, quick{0};
  EXPECT_TRUE(chosen(slow, quick, false, 1));
  const std::string mine = text();
  cuda::set_measurements(path_ + "_other");
  EXPECT_FALSE(chosen(quick, slow, false, 1));
  cuda::set_measurements(path_ + "_other");
  // What the first process does while this one measures.
  struct Meanwhile {
    std::string path, text;
    Sleeper* with;
  } meanwhile{path_ + "_other", mine, &quick};
  const int64_t shape[] = {3, 9};
  std::string line = mine.substr(mine.find('\n') + 1);
  line.replace(line.find("3 1\t"), 4, "3 9\t");
  meanwhile.text = "ramet measurements 1\n" + line;
  const cuda::Way writes{[](void* with) {
                           const auto& m = *static_cast<Meanwhile*>(with);
                           std::ofstream(m.path) << m.text;
                           m.with->way().queue(m.with);
                         },
                         &meanwhile};
  // This one finds the first way quicker, the other one did not.
  EXPECT_TRUE(cuda::second_is_quicker({"an_op", 0, kFloat, shape, 2}, false, writes, slow.way()));
  std::remove((path_ + "_other").c_str());
}

// Ranks that are threads: what one measures may wait for a collective that the other begins later.
TEST_F(Measurements, ThreadsThatWaitForEachOther) {
  cuda::set_measurements(path_);
  std::latch both(2);
  std::atomic<int> met{0};
  const auto measure = [&](int64_t size) {
    struct Waits {
      std::latch& both;
      bool here = false, met = false;
    } waits{both};
    const cuda::Way way{
        [](void* self) {
          auto& w = *static_cast<Waits*>(self);
          if (std::exchange(w.here, true)) return;
          w.both.count_down();
          const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
          while (!(w.met = w.both.try_wait()) && std::chrono::steady_clock::now() < until)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        },
        &waits};
    Sleeper quick{0};
    const int64_t shape[] = {5, size};
    cuda::second_is_quicker({"an_op", 0, kFloat, shape, 2}, false, way, quick.way());
    met += waits.met;
  };
  std::thread other([&] { measure(1); });
  measure(2);
  other.join();
  EXPECT_EQ(met, 2);
}

TEST_F(Measurements, NothingRunsWhileAGraphIsMade) {
  cuda::set_measurements(path_);
  Sleeper slow{5}, quick{0};
  bool taken = true;
  cuda::make_graph(0, [&] { taken = chosen(slow, quick, false, 1); });
  EXPECT_FALSE(taken);
  EXPECT_EQ(slow.calls + quick.calls, 0);
  EXPECT_TRUE(chosen(slow, quick, false, 1));
  cuda::make_graph(0, [&] { taken = chosen(slow, quick, false, 1); });
  EXPECT_TRUE(taken);
}

TEST_F(Measurements, FilesThatAreNone) {
  const std::string first = "ramet measurements 1\n", good = "a card: an_op float32 3 1\t2\t1\n";
  write(first + good);
  cuda::set_measurements(path_);
  for (const auto& [text, line] :
       {std::pair(std::string("something else\n"), ", line 1: got 'something else'"),
        {good, ", line 1"},
        {first + good + "no tabs\n", ", line 3: got 'no tabs'"},
        {first + "x\t1\n", ", line 2"},
        {first + "x\t1\t0\n", ", line 2"},
        {first + "x\t1\tnan\n", ", line 2"},
        {first + "x\t1\t2\t3\n", ", line 2"},
        {first + "\t1\t2\n", ", line 2"}}) {
    write(text);
    EXPECT_MESSAGE(cuda::set_measurements(path_), path_ + line);
    EXPECT_TRUE(cuda::has_measurements()) << "those of before";
    EXPECT_EQ(this->text(), text);
  }
  EXPECT_MESSAGE(cuda::set_measurements("/nowhere/at/all"), "/nowhere/at/all");
}

}  // namespace
}  // namespace ramet::testing
