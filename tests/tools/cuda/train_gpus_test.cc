// Whole training runs on emulated GPUs: same bits for 1, 2 and 4 of them, resuming, refusing.
#include <gtest/gtest.h>

#include "nn/serialize/safetensors.h"
#include "tests/error_text.h"
#include "tests/runtime/cuda/gpus.h"
#include "tests/tools/train_support.h"

namespace ramet::training {
namespace {

using testing::gpu_settings;
using testing::Gpus;

class TrainOnGpus : public TrainTest {
 protected:
  Options on(const std::string& devices, const std::string& out) const {
    Options o = options(out);
    o.model = "mlp";
    o.limit = 64;
    o.epochs = 1;
    o.devices = devices;
    o.reduce = "tree:4";
    return o;
  }
};

TEST_F(TrainOnGpus, OneDigest) {
  const Gpus four(gpu_settings(4));
  const std::string text = printed(on("cuda:0", "one"));
  expect_part(text, "devices cuda:0;");
  for (const char* list : {"cuda:0,cuda:1", "cuda:0,cuda:1,cuda:2,cuda:3"}) {
    printed(on(list, "many"));
    EXPECT_EQ(digest("many"), digest("one")) << list;
  }
  EXPECT_EQ(summary("many").at("devices").size(), 4u);
  EXPECT_EQ(summary("many").at("devices")[3], "cuda:3");
}

TEST_F(TrainOnGpus, GoesOnWithOtherGpus) {
  const Gpus two(gpu_settings(2));
  Options whole = on("cuda:0,cuda:1", "whole"), half = on("cuda:0", "half");
  whole.epochs = 2;
  whole.dropout = half.dropout = 0.5;
  printed(whole);
  // One epoch of two: the schedule is the longer run's, so that run is cut short from outside.
  half.epochs = 2;
  printed(half);
  EXPECT_EQ(digest("half"), digest("whole"));
  half.resume = true;  // at its end: nothing changes
  half.devices = "cuda:1,cuda:0";
  printed(half);
  EXPECT_EQ(digest("half"), digest("whole"));
}

TEST_F(TrainOnGpus, Refusals) {
  const Gpus two(gpu_settings(2));
  expect_part(refusal(on("cuda:0,cuda:2", "none")),
              "--devices: got \"cuda:0,cuda:2\": [device] device does not exist: got cuda:2, "
              "expected cuda:0 to cuda:1");
  EXPECT_FALSE(exists(folder_ + "/none"));
  const Gpus bad(gpu_settings(2), "0;1");
  expect_part(refusal(on("cuda:0", "none")), "[RAMET_CUDA_DEVICES] got '0;1'");
  EXPECT_FALSE(exists(folder_ + "/none"));
}

}  // namespace
}  // namespace ramet::training
