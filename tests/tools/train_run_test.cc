// Whole training runs: results, same bits, resuming.
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <ctime>
#include <sstream>
#include <thread>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "nn/layers/basic/functional_module.h"
#include "nn/serialize/safetensors.h"
#include "tests/error_text.h"
#include "tests/share.h"
#include "tests/tools/train_support.h"
#include "tools/training/jobs.h"

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

// Autocast learns as float32 does, with one digest for any number of devices; a loss scale goes on
// from the checkpoint.
TEST_F(TrainTest, InSixteenBits) {
  std::vector<std::string> digests;
  for (const char* autocast : {"off", "bf16", "fp16"}) {
    Options o = options(autocast);
    o.model = "mlp";
    o.epochs = 6;
    o.reduce = "tree:2";
    o.autocast = autocast;
    printed(o);
    EXPECT_EQ(summary(autocast).at("autocast"), autocast);
    EXPECT_GE(summary(autocast).at("test_accuracy").get<double>(), 0.9) << autocast;
    digests.push_back(digest(autocast));
    o.devices = "cpu:0,cpu:1";
    printed(o);
    EXPECT_EQ(digest(autocast), digests.back()) << autocast;
    o.resume = true;  // of the end: the scale must be in the checkpoint
    printed(o);
    EXPECT_EQ(digest(autocast), digests.back()) << autocast;
  }
  EXPECT_NE(digests[0], digests[1]);
  EXPECT_NE(digests[0], digests[2]);
  EXPECT_NE(digests[1], digests[2]);
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

TEST_F(TrainTest, ResNetLearnsShapesFromMemoryAndFromFiles) {
  Options o = options("memory");
  o.model = "resnet";
  o.data = "shapes";
  o.limit = 20;
  o.batch = 10;
  o.epochs = 20;
  o.lr = 3e-3;
  o.seed = 3;
  o.threads = 1;
  o.make_data = folder_ + "/cifar";
  Options few = o;
  few.limit = 4;
  expect_part(refusal(few), "--limit: got 4, expected at least 5 for --make-data");
  EXPECT_FALSE(exists(o.make_data));
  expect_part(printed(o), folder_ + "/cifar has the images of --data shapes --seed 3");
  EXPECT_FALSE(exists(folder_ + "/memory")) << "nothing was trained";
  EXPECT_EQ(read_file(o.make_data + "/data_batch_5.bin").size(), 4u * 3073);
  EXPECT_EQ(read_file(o.make_data + "/test_batch.bin").size(), 20u * 3073);
  o.make_data = "";
  o.reduce = "tree:2";
  printed(o);
  // Chance: 2.3.
  EXPECT_LT(last_step(read_file(out("metrics.jsonl", "memory"))).at("loss"), 1.3);
  Options files = o;
  files.data = folder_ + "/cifar";
  files.out = folder_ + "/files";
  files.devices = "cpu:0,cpu:1";
  printed(files);
  EXPECT_EQ(digest("files"), digest("memory"));
  o.seed = 4;
  o.make_data = folder_ + "/others";
  printed(o);
  EXPECT_NE(read_file(o.make_data + "/test_batch.bin"), read_file(files.data + "/test_batch.bin"));
}

TEST_F(TrainTest, DcganLearnsWhatImagesLookLike) {
  const auto run_for = [&](const std::string& name, int64_t epochs, double lr) {
    Options o = options(name);
    o.model = "dcgan";
    o.batch = 30;
    o.epochs = epochs;
    o.lr = lr;
    o.reduce = "tree:2";
    o.threads = 1;
    if (name == "two") o.devices = "cpu:0,cpu:1";
    return printed(o);
  };
  run_for("new", 1, 1e-12);
  const std::string lost = run_for("lost", 2, 1e30);
  EXPECT_NE(lost.find("nan"), std::string::npos) << lost;
  EXPECT_EQ(lost.find("-nan"), std::string::npos) << lost;
  EXPECT_TRUE(summary("lost").at("test_frechet").is_null()) << "a run whose loss is NaN ends, too";
  const std::string text = run_for("one", 10, 2e-3);
  expect_part(text, "  generator loss ");
  expect_part(text, "  test generator loss ");
  EXPECT_LT(summary("one").at("test_frechet").get<double>(),
            0.5 * summary("new").at("test_frechet").get<double>());
  const auto step = last_step(read_file(out("metrics.jsonl", "one")));
  for (const char* name : {"loss", "generator_loss"}) {
    EXPECT_GT(step.at(name).get<double>(), 0) << name;
    EXPECT_LT(step.at(name).get<double>(), 20) << name;
  }
  const std::string pictures = read_file(out("pictures.png", "one"));
  EXPECT_EQ(pictures.substr(1, 3), "PNG");
  run_for("two", 10, 2e-3);
  EXPECT_EQ(digest("two"), digest("one"));
  EXPECT_EQ(read_file(out("pictures.png", "two")), pictures);
}

TEST_F(TrainTest, UNetLearnsShapes) {
  Options o = options("one");
  o.model = "unet";
  o.data = "shapes";
  o.limit = 8;
  o.batch = 4;
  o.epochs = 10;
  o.lr = 1e-2;
  o.reduce = "tree:2";
  o.threads = 1;
  const std::string text = printed(o);
  expect_part(text, "  test iou ");
  // Chance: 1.39.
  EXPECT_LT(last_step(read_file(out("metrics.jsonl", "one"))).at("loss"), 1.0) << text;
  EXPECT_EQ(read_file(out("pictures.png", "one")).substr(1, 3), "PNG");
  o.epochs = 1;
  printed(o);
  o.out = folder_ + "/two";
  o.devices = "cpu:0,cpu:1";
  printed(o);
  EXPECT_EQ(digest("two"), digest("one"));

  // The measure for a model that knows the answers and moves them by some pixels, counted pixel by
  // pixel.
  const auto job = make_job(o);
  const Tensor right = job->data().test_targets.to(kLong);
  const NoGradGuard off;
  for (const int64_t shift : {0, 3}) {
    const Tensor says = right.roll(shift, 2);
    int64_t at = 0;
    nn::Sequential oracle(nn::Functional([&](const Tensor& pictures) {
      at += pictures.size(0);
      return one_hot(says.slice(0, at - pictures.size(0), at), 4).permute({0, 3, 1, 2}).to(kFloat);
    }));
    double sum = 0;
    for (int64_t c = 0; c < 4; ++c) {
      int64_t both = 0, either = 0;
      for (int64_t i = 0; i < right.numel(); ++i) {
        const bool is = right.data_ptr<int64_t>()[i] == c,
                   said = says.contiguous().data_ptr<int64_t>()[i] == c;
        both += is && said, either += is || said;
      }
      sum += static_cast<double>(both) / static_cast<double>(either);
    }
    const Job::Tested tested = job->test(oracle, Device(kCPU, 0));
    ASSERT_EQ(tested.more.size(), 1u);
    EXPECT_NEAR(tested.more[0].value, sum / 4, 1e-12);
    if (shift == 0) {
      EXPECT_EQ(tested.more[0].value, 1.0);
    } else {
      EXPECT_LT(tested.more[0].value, 0.95);
    }
  }
}

TEST_F(TrainTest, StringsAreRewritten) {
  // What a sample's line says has to be written.
  const auto expected = [](const std::string& data, const std::string& read) {
    if (data == "reverse") return std::string(read.rbegin(), read.rend());
    for (const char* format : {"%d %B %Y", "%B %d, %Y", "%d.%m.%Y", "%Y/%m/%d", "%A, %d %B %Y"}) {
      std::tm day{};
      const char* end = ::strptime(read.c_str(), format, &day);
      if (!end || *end != 0) continue;
      const int weekday = day.tm_wday;
      std::tm checked = day;
      checked.tm_hour = 12;
      ::timegm(&checked);
      if (format[1] == 'A') { EXPECT_EQ(checked.tm_wday, weekday) << read; }
      char text[20];
      std::strftime(text, sizeof(text), "%Y-%m-%d", &day);
      return std::string(text);
    }
    return "no date: " + read;
  };
  for (const std::string data : {"reverse", "dates"}) {
    Options o = options(data);
    o.model = "seq2seq";
    o.data = data;
    o.limit = 16;
    o.batch = 4;
    o.epochs = 8;
    o.lr = 5e-3;
    o.reduce = "tree:2";
    o.threads = 1;
    const std::string text = printed(o);
    expect_part(text, "on 16 pairs of " + data);
    expect_part(text, "  test exact match ");
    EXPECT_GT(last_step(read_file(out("metrics.jsonl", data))).at("accuracy").get<double>(), 0.7)
        << text;
    std::istringstream lines(text.substr(text.find("of the test:\n") + 13));
    int count = 0;
    for (std::string line; std::getline(lines, line); ++count) {
      const size_t arrow = line.find(" -> "), wrong = line.find(", expected ");
      ASSERT_NE(arrow, std::string::npos) << line;
      const std::string right = expected(data, line.substr(0, arrow)),
                        wrote = line.substr(arrow + 4, wrong - std::min(wrong, arrow + 4));
      if (wrong == std::string::npos) {
        EXPECT_EQ(wrote, right) << line;
      } else {
        EXPECT_EQ(line.substr(wrong + 11), right) << line;
      }
    }
    EXPECT_EQ(count, 6);
    if (data == "dates") continue;
    const std::string one = digest(data);
    o.devices = "cpu:0,cpu:1";
    printed(o);
    EXPECT_EQ(digest(data), one);
  }
}

// The model knows the answers. Only in every third string the last symbol is missing.
TEST_F(TrainTest, ExactMatchesAreCounted) {
  Options o;
  o.model = "seq2seq";
  o.data = "reverse";
  o.limit = 30;
  const auto job = make_job(o);
  const Tensor& targets = job->data().test_targets;
  const int64_t steps = targets.size(1), read = job->data().test_rows.size(1) - steps;
  nn::Sequential oracle(nn::Functional([&](const Tensor& rows) {
    const int64_t written = rows.size(1) - read;
    Tensor says = targets.slice(1, 0, written).clone();
    for (int64_t i = 0; i < says.size(0); i += 3) {
      const int64_t last = targets[i].ne(0).sum().item<int64_t>() - 1;
      if (last < written) says[i][last] = 0;
    }
    return one_hot(says, 64).transpose(1, 2).to(kFloat);
  }));
  const NoGradGuard off;
  const Job::Tested tested = job->test(oracle, Device(kCPU, 0));
  ASSERT_EQ(tested.more.size(), 1u);
  EXPECT_EQ(tested.more[0].name, "exact_match");
  EXPECT_DOUBLE_EQ(tested.more[0].value, 20.0 / 30);
  EXPECT_DOUBLE_EQ(tested.accuracy, 1 - 10.0 / (30 * static_cast<double>(steps)));
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
      // After a few lines of this process, in any epoch.
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

}  // namespace
}  // namespace ramet::training
