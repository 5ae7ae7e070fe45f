// A folder of small images that can be learned, and a folder for results. For the tests of the
// training program.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "nn/data/idx.h"
#include "tools/training/options.h"
#include "tools/training/run.h"

namespace ramet::training {

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
inline bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

/// What a run with these options prints.
inline std::string printed(const Options& o, int expected_code = 0) {
  ::testing::internal::CaptureStdout();
  int code = -1;
  std::string error;
  try {
    code = run(o);
  } catch (const Refused& e) { error = e.message; }
  const std::string text = ::testing::internal::GetCapturedStdout();
  EXPECT_EQ(code, expected_code) << error << text;
  return text;
}
/// Why a run with these options is refused, in one line and before anything is printed.
inline std::string refusal(const Options& o) {
  ::testing::internal::CaptureStdout();
  std::string text = "not refused";
  try {
    run(o);
  } catch (const Refused& e) { text = e.message; }
  const std::string before = ::testing::internal::GetCapturedStdout();
  EXPECT_TRUE(text == "not refused" || before.empty()) << before;
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  return text;
}

/// The line of the last step.
inline nlohmann::json last_step(const std::string& metrics) {
  nlohmann::json last;
  std::istringstream lines(metrics);
  for (std::string line; std::getline(lines, line);)
    if (auto j = nlohmann::json::parse(line); j.contains("loss")) last = j;
  return last;
}

class TrainTest : public ::testing::Test {
 protected:
  TrainTest() {
    const char* base = std::getenv("TEST_TMPDIR");
    folder_ = std::string(base ? base : "/tmp") + "/train_" + std::to_string(::getpid()) + "_" +
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    shell("rm -rf '" + folder_ + "' && mkdir -p '" + folder_ + "/data'");
    write_images("train", 90);
    write_images("t10k", 30);
  }
  ~TrainTest() override { shell("rm -rf '" + folder_ + "'"); }
  static void shell(const std::string& command) {
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
  }

  // 5 classes: a bright block at a place of the class, on noise.
  void write_images(const std::string& part, int64_t n, int64_t side = 12) {
    Tensor images(TensorBase::empty({n, side, side}, kByte, Device(kCPU, 0))),
        labels(TensorBase::empty({n}, kByte, Device(kCPU, 0)));
    uint32_t random = part == "train" ? 1 : 2;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t label = i % 5;
      labels.data_ptr<uint8_t>()[i] = static_cast<uint8_t>(label);
      for (int64_t y = 0; y < side; ++y) {
        for (int64_t x = 0; x < side; ++x) {
          random = random * 1664525 + 1013904223;
          const bool bright = x / 4 == label % 3 && y / 4 == label / 3;
          images.data_ptr<uint8_t>()[(i * side + y) * side + x] =
              static_cast<uint8_t>((random >> 24) / 2 + (bright ? 120 : 0));
        }
      }
    }
    data::write_idx(folder_ + "/data/" + part + "-images-idx3-ubyte.gz", images);
    data::write_idx(folder_ + "/data/" + part + "-labels-idx1-ubyte", labels);
  }

  Options options(const std::string& out = "out") const {
    Options o;
    o.data = folder_ + "/data";
    o.out = folder_ + "/" + out;
    o.batch = 16;
    o.epochs = 2;
    o.devices = "cpu:0";
    return o;
  }
  std::string out(const std::string& name, const std::string& run = "out") const {
    return folder_ + "/" + run + "/" + name;
  }
  nlohmann::json summary(const std::string& run = "out") const {
    return nlohmann::json::parse(read_file(out("summary.json", run)), nullptr,
                                 /*allow_exceptions=*/false);
  }
  std::string digest(const std::string& run = "out") const {
    return summary(run).at("digest").get<std::string>();
  }

  std::string folder_;
};

}  // namespace ramet::training
