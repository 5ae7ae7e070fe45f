// Whole training runs: results, same bits, resuming, refusing.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "nn/serialize/safetensors.h"
#include "tests/error_text.h"
#include "tests/share.h"
#include "tests/tools/train_support.h"

namespace ramet::training {
namespace {

constexpr const char* kFiles[] = {"checkpoint",   "model.safetensors", "metrics.jsonl",
                                  "summary.json", "curve.png",         "graph.svg",
                                  "trace.json"};

TEST_F(TrainTest, LearnsAndWritesEverything) {
  Options o = options();
  o.epochs = 6;
  o.devices = "cpu:0,cpu:1";
  o.digest = true;
  const std::string text = printed(o);
  for (const char* name : kFiles) EXPECT_TRUE(exists(out(name))) << name;
  const auto j = summary();
  EXPECT_GE(j.at("test_accuracy").get<double>(), 0.9);
  EXPECT_GT(j.at("seconds").get<double>(), 0);
  EXPECT_GT(j.at("images_per_second").get<double>(), 0);
  EXPECT_EQ(j.at("devices"), (nlohmann::json{"cpu:0", "cpu:1"}));
  EXPECT_EQ(j.at("steps"), 36);
  EXPECT_EQ(digest().size(), 16u);
  expect_part(text, "digest " + digest() + "\n");
  expect_part(text, "epoch 6/6  loss ");
  EXPECT_EQ(text.find('\r'), std::string::npos) << "no progress bar where there is no terminal";

  const auto model = serialize::load_safetensors(out("model.safetensors"));
  ASSERT_NE(model.find("conv2.weight"), nullptr);
  EXPECT_EQ(model.find("conv2.weight")->sizes(), IntArrayRef({64, 32, 3, 3}));
  EXPECT_EQ(model.find("fc1.weight")->sizes(), IntArrayRef({128, 576}));
  EXPECT_NE(model.find("norm1.running_mean"), nullptr);
  const std::string svg = read_file(out("graph.svg"));
  expect_part(svg, "ReduceAdd(conv1.weight)");
  const auto trace = nlohmann::json::parse(read_file(out("trace.json")));
  int steps = 0, lanes = 0;
  for (const auto& e : trace.at("traceEvents")) {
    steps += e.at("name") == "step" && e.at("ph") != "E";
    lanes += e.at("name") == "thread_name";
  }
  EXPECT_EQ(steps, 3);
  EXPECT_GE(lanes, 2);
  std::ifstream metrics(out("metrics.jsonl"));
  int lines = 0;
  for (std::string line; std::getline(metrics, line); ++lines)
    EXPECT_TRUE(nlohmann::json::accept(line));
  EXPECT_EQ(lines, 36 + 6);
}

TEST_F(TrainTest, OneDigestForEveryNumberOfDevicesAndThreads) {
  Options o = options();
  o.reduce = "tree:4";
  o.dropout = 0.25;
  o.batch = 13;  // 90 images: the last batch has 12
  std::string expected;
  int number = 0;
  for (const char* devices : {"cpu:0", "cpu:0,cpu:1", "cpu:0,cpu:1,cpu:2,cpu:3", "cpu:3"}) {
    for (int64_t threads : {1, 2, 3}) {
      // A quarter: one device and thread, two and two, four and three.
      if (number++ % testing::one_repeat_in() != 0) continue;
      o.devices = devices;
      o.threads = threads;
      printed(o);
      if (expected.empty()) expected = digest();
      EXPECT_EQ(digest(), expected) << devices << ", " << threads << " threads";
    }
  }
  o.seed = 2;
  printed(o);
  EXPECT_NE(digest(), expected);
}

TEST_F(TrainTest, LimitAndOtherModel) {
  Options o = options();
  o.model = "mlp";
  o.limit = 20;
  o.dropout = 0.1;
  const std::string text = printed(o);
  expect_part(text, "on 20 images");
  EXPECT_EQ(summary().at("steps"), 4);
  const auto model = serialize::load_safetensors(out("model.safetensors"));
  EXPECT_EQ(model.find("fc1.weight")->sizes(), IntArrayRef({128, 144}));
  EXPECT_EQ(model.find("fc2.weight")->sizes(), IntArrayRef({5, 128}));
}

// The pieces of a text are the rows of a batch: one digest here too.
TEST_F(TrainTest, ModelsOfATextLearnIt) {
  std::string rhyme;
  while (rhyme.size() < 3000) rhyme += "row, row, row your boat\n";
  std::ofstream(folder_ + "/rhyme") << rhyme;
  for (const char* model : {"gpt", "lstm"}) {
    Options o = options(model);
    o.data = folder_ + "/rhyme";
    o.model = model;
    o.reduce = "tree:2";
    o.limit = o.batch = 8;
    o.threads = 1;
    o.lr = 1e-2;
    o.epochs = 4;
    const std::string text = printed(o), expected = digest(model);
    expect_part(text, "on 8 pieces of " + o.data);
    expect_part(text, "it goes on:\n");
    EXPECT_GT(summary(model).at("test_accuracy").get<double>(), 0.5) << text;
    EXPECT_EQ(summary(model).at("steps"), 4);
    o.devices = "cpu:0,cpu:1";
    printed(o);
    EXPECT_EQ(digest(model), expected) << model;
  }
}

TEST_F(TrainTest, InterruptedAndResumedGivesTheSameBits) {
  Options o = options("whole");
  o.epochs = testing::one_repeat_in() > 1 ? 6 : 15;
  o.model = "mlp";
  o.dropout = 0.2;
  printed(o);
  Options cut = o;
  cut.out = folder_ + "/cut";
  std::signal(SIGINT, SIG_IGN);  // if the run should end before the signal comes
  int interrupts = 0;
  for (int round = 0; round < 3; ++round) {
    std::atomic<bool> over{false};
    std::thread user([&] {
      // After a few lines of this process, whatever epoch that is in.
      const size_t before =
          exists(out("metrics.jsonl", "cut")) ? read_file(out("metrics.jsonl", "cut")).size() : 0;
      while (!over && read_file(out("metrics.jsonl", "cut")).size() < before + 200)
        std::this_thread::yield();
      if (!over) ::kill(::getpid(), SIGINT);
    });
    ::testing::internal::CaptureStdout();
    const int code = run(cut);
    const std::string text = ::testing::internal::GetCapturedStdout();
    over = true;
    user.join();
    if (code == 0) break;
    EXPECT_EQ(code, 130);
    expect_part(text, "interrupted after step ");
    EXPECT_TRUE(exists(out("checkpoint", "cut")));
    EXPECT_FALSE(exists(out("summary.json", "cut")));
    ++interrupts;
    cut.resume = true;
  }
  EXPECT_GT(interrupts, 0);
  cut.devices = "cpu:1";  // it may go on elsewhere
  printed(cut);
  EXPECT_EQ(digest("cut"), digest("whole"));
  EXPECT_EQ(summary("cut").at("test_accuracy"), summary("whole").at("test_accuracy"));
  EXPECT_EQ(summary("cut").at("steps"), summary("whole").at("steps"));
  std::signal(SIGINT, SIG_DFL);
}

TEST_F(TrainTest, ResumingAFinishedRunChangesNothing) {
  Options o = options();
  printed(o);
  const std::string before = digest();
  o.resume = true;
  printed(o);
  EXPECT_EQ(digest(), before);
  EXPECT_EQ(summary().at("steps"), 12);
}

TEST_F(TrainTest, ANewRunRemovesTheOldResults) {
  printed(options());
  Options o = options();
  o.epochs = 100000;
  std::atomic<bool> over{false};
  std::signal(SIGINT, SIG_IGN);
  std::thread user([&] {
    while (!over && exists(out("summary.json"))) std::this_thread::yield();
    while (!over && read_file(out("metrics.jsonl")).empty()) std::this_thread::yield();
    ::kill(::getpid(), SIGINT);
  });
  printed(o, 130);
  over = true;
  user.join();
  std::signal(SIGINT, SIG_DFL);
  EXPECT_FALSE(exists(out("model.safetensors")))
      << "the old run's model beside the new run's checkpoint";
}

TEST_F(TrainTest, RefusesBeforeWritingAnything) {
  const auto refused = [&](const std::function<void(Options&)>& change, const std::string& part) {
    Options o = options("never");
    change(o);
    expect_part(refusal(o), part);
    EXPECT_FALSE(exists(folder_ + "/never"));
  };
  refused([](Options& o) { o.model = "gpt"; }, "expected a text that can be read");
  refused(
      [&](Options& o) {
        o.model = "lstm";
        o.data = folder_ + "/data/t10k-labels-idx1-ubyte";
      },
      "characters, expected at least 1280");
  refused([](Options& o) { o.model = "resnet"; },
          "--model: got \"resnet\", expected cnn, mlp, gpt or lstm");
  refused([](Options& o) { o.batch = 0; }, "--batch: got 0");
  refused([](Options& o) { o.batch = INT64_MAX; }, "--batch: got 9223372036854775807");
  refused([](Options& o) { o.epochs = INT64_MAX; }, "--epochs: got 9223372036854775807");
  refused([](Options& o) { o.epochs = INT32_MAX; }, "--epochs: got 12884901882 steps in all");
  refused([](Options& o) { o.devices = "cpu:99999999999999999999"; }, "--devices: got");
  refused([](Options& o) { o.reduce = "tree:99999999999999999999"; }, "--reduce: got");
  refused([](Options& o) { o.devices = "cpu:0,tpu:1"; }, "tpu:1");
  refused([](Options& o) { o.devices = "cpu:77"; }, "cpu:77");
  // What this program has not been linked with: the error says what to build.
  refused([](Options& o) { o.devices = "cpu:0,cuda:1"; },
          "--devices: got \"cpu:0,cuda:1\": [device] device cuda:1 does not exist: this program is "
          "linked without CUDA support; expected what ./tools/train builds for such --devices "
          "(//tools/training:train_gpus)");
  refused(
      [](Options& o) { o.ddp = true; },
      "--ddp: this program is linked without process groups; expected what ./tools/train builds "
      "for --ddp (//tools/training:train_processes)");
  refused(
      [](Options& o) {
        o.devices = "cpu:0,cpu:1,cpu:2";
        o.reduce = "tree:4";
      },
      "tree");
  refused([](Options& o) { o.reduce = "tree:5"; }, "--reduce: got \"tree:5\"");
  refused([](Options& o) { o.data = "/nonexistent"; }, "--data: got \"/nonexistent\"");
  refused([](Options& o) { o.resume = true; }, "cannot open the file");

  const std::string images = folder_ + "/data/train-images-idx3-ubyte.gz",
                    labels = folder_ + "/data/t10k-labels-idx1-ubyte";
  const std::string good = read_file(images);
  std::ofstream(images, std::ios::binary) << good.substr(0, good.size() / 2);
  refused([](Options&) {}, "truncated");
  std::ofstream(images, std::ios::binary)
      << good.substr(0, good.size() / 2) << "xxxxxxxx" << good.substr(good.size() / 2 + 8);
  refused([](Options&) {}, "train-images-idx3-ubyte.gz\"");
  std::ofstream(images, std::ios::binary) << "hello, this is no image file";
  refused([](Options&) {}, "not an IDX file");
  std::ofstream(images, std::ios::binary) << good;
  ::unlink(labels.c_str());
  refused([](Options&) {}, "file not found");
  write_images("t10k", 0);
  refused([](Options&) {}, "got no images");
}

TEST_F(TrainTest, RefusesAFolderThatCannotBeMade) {
  std::ofstream(folder_ + "/file") << "x";
  Options o = options();
  o.out = folder_ + "/file/below";
  expect_part(refusal(o), "--out: cannot make the folder");
  EXPECT_EQ(read_file(folder_ + "/file"), "x");
}

TEST_F(TrainTest, RefusesADamagedCheckpoint) {
  Options o = options();
  printed(o);
  const std::string good = read_file(out("checkpoint"));
  const std::string metrics = read_file(out("metrics.jsonl"));
  o.resume = true;
  std::ofstream(out("checkpoint"), std::ios::binary) << good.substr(0, good.size() - 5);
  expect_part(refusal(o), "checkpoint");
  for (const size_t at : {good.find(R"(\"step\":)") + 9, good.size() / 2, good.size() - 1}) {
    std::string flipped = good;
    flipped[at] = static_cast<char>(flipped[at] ^ 1);
    std::ofstream(out("checkpoint"), std::ios::binary) << flipped;
    expect_part(refusal(o), "checkpoint\" is damaged: got content with the checksum");
  }
  std::ofstream(out("checkpoint"), std::ios::binary) << "not a checkpoint at all";
  expect_part(refusal(o), "no safetensors file");
  std::ofstream(out("checkpoint"), std::ios::binary) << good;
  o.batch = 17;
  o.given = {"batch"};
  expect_part(refusal(o), "--batch: got 17, expected 16 as in the checkpoint");
  EXPECT_EQ(read_file(out("metrics.jsonl")), metrics) << "a refused run leaves the results alone";
}

}  // namespace
}  // namespace ramet::training
