// Whole training runs of GPT-2.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <fstream>
#include <sstream>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "nn/serialize/safetensors.h"
#include "runtime/observe/observer.h"
#include "tests/error_text.h"
#include "tests/tools/train_support.h"
#include "tools/training/jobs.h"
#include "tools/training/results.h"

namespace ramet::training {
namespace {

class TrainGpt2 : public TrainTest {
 protected:
  // Ids that repeat: what follows can be learned.
  void write_ids(const std::string& path, int count, int step, int symbols = 512) const {
    std::vector<uint16_t> ids;
    for (int i = 0; i < count; ++i)
      ids.push_back(static_cast<uint16_t>(i / 3 * step * (i % 3 + 1) % 11 + (symbols - 11)));
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(ids.data()), 2 * count);
  }
  Options gpt2(const std::string& out, const std::string& data) const {
    Options o = options(out);
    o.model = "gpt2";
    o.data = data;
    o.length = 16;
    o.limit = 32;
    o.batch = 8;
    o.lr = 1e-2;
    o.epochs = 4;
    o.reduce = "tree:2";
    o.threads = 1;
    return o;
  }
  double first_loss(const std::string& run) const {
    std::istringstream lines(read_file(out("metrics.jsonl", run)));
    std::string line;
    std::getline(lines, line);
    return nlohmann::json::parse(line).at("loss").get<double>();
  }
  double last_loss(const std::string& run) const {
    return last_step(read_file(out("metrics.jsonl", run))).at("loss").get<double>();
  }
  // A run that ends after its sixth step, of four in an epoch.
  static void expect_interrupted(const Options& o) {
    Observer observer;
    observer.scope_begin = [steps = 0](const Scope& scope) mutable {
      if (scope.name == "step" && ++steps == 6) std::raise(SIGINT);
    };
    const uint64_t number = add_observer(observer);
    expect_part(printed(o, 128 + SIGINT), "interrupted after step 6: ");
    remove_observer(number);
  }
  // The text that ends with samples, from the place where they go on after the 16 ids of a prompt.
  static std::vector<int> drawn_after_prompt(const std::string& text) {
    const std::string begin = "it goes on:\n";
    expect_part(text, begin);
    std::istringstream line(text.substr(text.find(begin) + begin.size()));
    std::vector<int> ids;
    for (int id; line >> id;) ids.push_back(id);
    EXPECT_EQ(ids.size(), 48u) << text;
    ids.erase(ids.begin(), ids.begin() + std::min<std::ptrdiff_t>(16, std::ssize(ids)));
    return ids;
  }
};

// It learns, with one digest for any number of devices, with dropout too. A run goes on from a
// checkpoint in the middle of an epoch, and another one from its weights.
TEST_F(TrainGpt2, LearnsIds) {
  const std::string ids = folder_ + "/ids.bin";
  write_ids(ids, 3000, 5);
  for (const char* autocast : {"off", "bf16", "fp16"}) {
    Options o = gpt2(autocast, ids);
    o.autocast = autocast;
    o.dropout = 0.1;
    const std::string text = printed(o);
    expect_part(text, "gpt2 with 136,960 parameters on 32 pieces of " + ids + "; devices cpu:0;");
    // 11 of 512 ids are in the data.
    const std::vector<int> drawn = drawn_after_prompt(text);
    EXPECT_GT(std::count_if(drawn.begin(), drawn.end(), [](int id) { return id >= 501; }), 10)
        << text;
    EXPECT_EQ(text.find("nan"), std::string::npos) << text;
    EXPECT_NEAR(first_loss(autocast), std::log(512), 0.1);
    EXPECT_LT(last_loss(autocast), 3) << text;
    EXPECT_LT(summary(autocast).at("test_loss").get<double>(), 3);
    const std::string expected = digest(autocast);
    o.devices = "cpu:0,cpu:1";
    o.out = folder_ + "/two";
    expect_interrupted(o);
    o.resume = true;
    expect_part(printed(o), ", resumed after step 6\n");
    EXPECT_EQ(digest("two"), expected) << autocast;
  }
  Options next = gpt2("next", ids);
  next.weights = out("model.safetensors", "off");
  next.epochs = 1;
  // In the folder of the weights, the run would remove them.
  Options over = next;
  over.out = folder_ + "/off/../off";
  expect_part(refusal(over), "--weights: got \"" + next.weights +
                                 "\", which a new run in --out \"" + over.out +
                                 "\" removes, expected another --out");
  EXPECT_TRUE(exists(next.weights) && exists(out("config.json", "off")));
  printed(next);
  EXPECT_LT(first_loss("next"), 3) << "it begins with what has been learned";
  EXPECT_EQ(summary("next").at("size"), "tiny");
  EXPECT_EQ(summary("next").at("length"), 16);
  EXPECT_EQ(summary("next").at("weights"), next.weights);
  // A checkpoint has the weights: the file may be gone.
  shell("rm '" + next.weights + "'");
  const std::string before = digest("next");
  Options again = options("next");  // --resume --length 16, and no --model
  again.resume = true;
  again.length = 16;
  again.given = {"length"};
  printed(again);
  EXPECT_EQ(digest("next"), before);
  expect_part(refusal(next), "cannot open the file");
}

TEST_F(TrainGpt2, LearnsATextAndAFolder) {
  std::string rhyme;
  while (rhyme.size() < 3000) rhyme += "row, row, row your boat\n";
  std::ofstream(folder_ + "/rhyme") << rhyme;
  Options text = gpt2("text", folder_ + "/rhyme");
  const std::string said = printed(text);
  EXPECT_LT(last_loss("text"), 3) << said;
  // The rhyme has 11 of 512 ids.
  const std::string prompt = "it goes on:\nw your boat\nrow,";
  expect_part(said, prompt);
  const std::string drawn = said.substr(said.find(prompt) + prompt.size());
  EXPECT_GT(std::count_if(drawn.begin(), drawn.end(),
                          [&](char c) { return rhyme.find(c) != std::string::npos; }),
            10)
      << said;

  const std::string folder = folder_ + "/tokens";
  shell("mkdir '" + folder + "'");
  write_ids(folder + "/train.bin", 16 * 8 + 1, 5);
  write_ids(folder + "/val.bin", 17, 5);
  Options o = gpt2("folder", folder);
  o.limit = 0;
  o.epochs = 1;
  expect_part(printed(o), "on 8 pieces of " + folder);
  EXPECT_EQ(summary("folder").at("steps"), 1);
}

TEST_F(TrainGpt2, SamplesUseOnlyPlacesThatAreTrained) {
  const std::string ids = folder_ + "/ids.bin";
  write_ids(ids, 3000, 5);
  const auto job = make_job(gpt2("never", ids));
  nn::Sequential model = job->make_model(0);
  model->eval();
  const NoGradGuard off;
  model->named_parameters()["transformer.wpe.weight"].slice(0, 16).fill_(std::nan(""));
  EXPECT_EQ(drawn_after_prompt(job->samples(model, Device(kCPU, 0))).size(), 32u);
}

// A new run removes what an earlier one wrote. A config.json that no run wrote is the user's.
TEST_F(TrainGpt2, RemovesNoConfigOfOthers) {
  const std::string config = folder_ + "/config.json", written = folder_ + "/summary.json";
  for (const std::string text :
       {"none", "", "{", "7", R"({"model": 7})", R"({"model": "cnn"})", R"({"model": "gpt2"})"}) {
    std::ofstream(config) << "{}";
    if (text != "none") std::ofstream(written) << text;
    remove_stale_results(folder_);
    EXPECT_EQ(exists(config), text != R"({"model": "gpt2"})") << text;
    EXPECT_FALSE(exists(written)) << text;
  }
}

TEST_F(TrainGpt2, RefusesBeforeWritingAnything) {
  const std::string ids = folder_ + "/ids.bin";
  write_ids(ids, 3000, 5);
  const auto refused = [&](const std::function<void(Options&)>& change, const std::string& part) {
    Options o = gpt2("never", ids);
    change(o);
    expect_part(refusal(o), part);
    EXPECT_FALSE(exists(folder_ + "/never"));
  };
  refused([](Options& o) { o.size = "huge"; },
          "--size: got \"huge\", expected tiny, 124M, small, medium, large or xl");
  refused([](Options& o) { o.length = 65; },
          "--length: got 65, expected at most 64 for --size tiny");
  refused([](Options& o) { o.length = -1; }, "--length: got -1, expected at least 0");
  refused([](Options& o) { o.data = "/nonexistent"; }, "got a file that cannot be read");
  refused([&](Options& o) { o.data = folder_ + "/data"; }, "/data/train.bin\": got a file that");
  refused([](Options& o) { o.weights = "/nonexistent"; }, "/nonexistent");
  write_ids(ids, 3000, 5, 513);
  refused([](Options&) {}, "got the id 512 at place ");
  write_ids(ids, 160, 5);
  refused([](Options&) {}, "got 16 ids to test with, expected at least 17 (--length 16 and one");
  write_ids(ids, 0, 5);
  refused([](Options&) {}, "got 0 ids to train with, expected at least 17");
  for (const char* name : {"size", "weights", "length"})
    refused(
        [&](Options& o) {
          o.model = "gpt";
          o.given = {name};
        },
        "--" + std::string(name) + ": got it with --model gpt, expected --model gpt2");
}

}  // namespace
}  // namespace ramet::training
