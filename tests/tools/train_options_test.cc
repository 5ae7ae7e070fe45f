// The training program's command line, and what it refuses.
#include <gtest/gtest.h>

#include "nn/serialize/safetensors.h"
#include "runtime/base/error.h"
#include "tests/error_text.h"
#include "tests/tools/train_support.h"
#include "tools/training/explore.h"
#include "tools/training/options.h"
#include "tools/training/replicas.h"

namespace ramet::training {
namespace {

Usage usage_of(const std::vector<std::string>& arguments) {
  Options o;
  return parse(arguments, o).value_or(Usage{-1, ""});
}

TEST(TrainOptions, DefaultsAreTheMainJob) {
  Options o;
  EXPECT_FALSE(parse({}, o));
  EXPECT_EQ(o.data, "fashion-mnist");
  EXPECT_EQ(o.model, "cnn");
  EXPECT_EQ(o.devices, "cpu:0,cpu:1");
  EXPECT_EQ(o.epochs, 3);
  EXPECT_EQ(o.batch, 128);
  EXPECT_EQ(o.lr, 2e-3);
  EXPECT_TRUE(o.given.empty());
  o.check();
}

TEST(TrainOptions, DefaultsAreTheModels) {
  Options gpt, lstm, gan, pairs;
  EXPECT_FALSE(parse({"--model", "gpt"}, gpt));
  EXPECT_EQ(gpt.data, "CONTRIBUTING.md");
  EXPECT_FALSE(parse({"--model", "lstm", "--data", "fashion-mnist"}, lstm));
  EXPECT_EQ(lstm.data, "fashion-mnist");
  EXPECT_FALSE(parse({"--model", "dcgan"}, gan));
  EXPECT_EQ(gan.data, "fashion-mnist");
  EXPECT_EQ(gan.lr, 2e-4);
  EXPECT_EQ(gan.batch, 64);
  EXPECT_EQ(gan.epochs, 3);
  EXPECT_FALSE(parse({"--model", "seq2seq", "--lr", "0.5"}, pairs));
  EXPECT_EQ(pairs.data, "dates");
  EXPECT_EQ(pairs.lr, 0.5);
}

TEST(TrainOptions, EveryOptionIsTaken) {
  Options o;
  EXPECT_FALSE(parse({"--data",   "d",          "--model=mlp", "--devices",   "cpu:2", "--reduce",
                      "tree:4",   "--epochs",   "7",           "--batch",     "62",    "--lr",
                      "0.5",      "--dropout",  "0.25",        "--limit",     "500",   "--seed",
                      "9",        "--threads",  "3",           "--out",       "o",     "--resume",
                      "--digest", "--timeout",  "11",          "--make-data", "m",     "--explore",
                      "p",        "--autocast", "fp16",        "--size",      "xl",    "--weights",
                      "w",        "--length",   "13"},
                     o));
  EXPECT_EQ(o.data, "d");
  EXPECT_EQ(o.model, "mlp");
  EXPECT_EQ(o.devices, "cpu:2");
  EXPECT_EQ(o.reduce, "tree:4");
  EXPECT_EQ(o.epochs, 7);
  EXPECT_EQ(o.batch, 62);
  EXPECT_EQ(o.lr, 0.5);
  EXPECT_EQ(o.dropout, 0.25);
  EXPECT_EQ(o.limit, 500);
  EXPECT_EQ(o.seed, 9);
  EXPECT_EQ(o.threads, 3);
  EXPECT_EQ(o.timeout, 11);
  EXPECT_EQ(o.out, "o");
  EXPECT_EQ(o.make_data, "m");
  EXPECT_EQ(o.explore, "p");
  EXPECT_EQ(o.autocast, "fp16");
  EXPECT_EQ(o.size, "xl");
  EXPECT_EQ(o.weights, "w");
  EXPECT_EQ(o.length, 13);
  EXPECT_TRUE(o.resume && o.digest);
  EXPECT_TRUE(o.was_given("batch"));
}

TEST(TrainOptions, AStepIsExploredWhereItIsAskedFor) {
  Options without, plain, last, named;
  EXPECT_FALSE(parse({"--epochs", "1"}, without));
  EXPECT_EQ(without.explore, "");
  EXPECT_FALSE(parse({"--explore", "--out", "o"}, plain));
  EXPECT_EQ(plain.explore, "o/step.html");
  EXPECT_FALSE(parse({"--out=o", "--explore"}, last));
  EXPECT_EQ(last.explore, "o/step.html");
  EXPECT_FALSE(parse({"--explore=a/b.html"}, named));
  EXPECT_EQ(named.explore, "a/b.html");
  EXPECT_EQ(recording_beside("a/b.html"), "a/b.ramet.gz");
  EXPECT_EQ(recording_beside("a.html/b"), "a.html/b.ramet.gz");
  EXPECT_EQ(recording_beside(".html"), ".html.ramet.gz");
}

// Before anything runs: the step is over by the time it is written.
TEST_F(TrainTest, RefusesAPageThatCannotBeWritten) {
  check_page(folder_ + "/step.html", "o");
  check_page("o/step.html", "o");
  check_page("step.html", "o");
  const auto refused = [](const std::string& page, const std::string& part) {
    EXPECT_ERROR_TEXT(check_page(page, "o"), part);
  };
  refused(folder_ + "/none/step.html", "--explore: cannot write into \"" + folder_ + "/none/\"");
  refused(folder_, "--explore: got \"" + folder_ + "\", expected the name of a file");
  refused(folder_ + "/", "expected the name of a file");
}

TEST(TrainOptions, WrongCommandLinesAreOneLineAndCode2) {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"--btach", "3"}, {"--batch", "many"}, {"--batch"}, {"extra"}, {"--epochs", "1.5"}}) {
    const Usage u = usage_of(arguments);
    EXPECT_EQ(u.exit_code, 2);
    EXPECT_EQ(u.text.find('\n'), std::string::npos) << u.text;
    EXPECT_EQ(u.text.rfind("train: ", 0), 0u) << u.text;
  }
  expect_part(usage_of({"--btach", "3"}).text, "--btach");
  expect_part(usage_of({"--batch", "many"}).text, "many");
  const Usage help = usage_of({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  expect_part(help.text, "--reduce");
  for (const char* model : {"cnn, mlp, resnet: tell classes of images; dcgan: draws", "unet: tells",
                            "gpt, lstm, gpt2: go on with", "seq2seq: rewrites"})
    expect_part(help.text, model);
  expect_part(help.text, "Usage: ./tools/train ");
  expect_part(help.text, "  --model resnet: --data shapes --batch 64 --epochs 12\n");
  expect_part(help.text, "  --model gpt: --data CONTRIBUTING.md --batch 32 --epochs 5\n");
  EXPECT_EQ(help.text.find("--model mlp:"), std::string::npos) << "it has cnn's";
}

TEST(TrainOptions, ValuesOutOfRange) {
  const auto error = [](const std::vector<std::string>& arguments) {
    Options o;
    EXPECT_FALSE(parse(arguments, o));
    return error_of([&] { o.check(); });
  };
  EXPECT_EQ(error({"--model", "vgg"}),
            "[train] --model: got \"vgg\", expected cnn, mlp, resnet, dcgan, unet, gpt, lstm, "
            "gpt2 or seq2seq");
  EXPECT_EQ(error({"--batch", "0"}), "[train] --batch: got 0, expected at least 1");
  EXPECT_EQ(error({"--epochs", "0"}), "[train] --epochs: got 0, expected at least 1");
  EXPECT_EQ(error({"--limit", "-1"}), "[train] --limit: got -1, expected at least 0");
  EXPECT_EQ(error({"--threads", "-2"}), "[train] --threads: got -2, expected at least 0");
  EXPECT_EQ(error({"--timeout", "0"}), "[train] --timeout: got 0, expected at least 1");
  EXPECT_EQ(error({"--timeout", "86401"}), "[train] --timeout: got 86401, expected at most 86400");
  expect_part(error({"--dropout", "1"}), "--dropout: got 1, expected at least 0 and less than 1");
  expect_part(error({"--lr", "0"}), "--lr: got 0, expected a positive number");
  expect_part(error({"--lr", "nan"}), "--lr: got nan");
  expect_part(error({"--autocast", "half"}),
              "--autocast: got \"half\", expected off, bf16 or fp16");
}

// Nothing is cut to what fits, and the option is named.
TEST(TrainOptions, NumbersThatDoNotFit) {
  const auto error = [](const std::string& option, const std::string& value) {
    Options o;
    const auto usage = parse({option, value}, o);
    if (!usage) return error_of([&] { o.check(); });
    EXPECT_EQ(usage->exit_code, 2);
    EXPECT_EQ(usage->text.find('\n'), std::string::npos) << usage->text;
    return usage->text;
  };
  for (const char* option :
       {"--epochs", "--batch", "--limit", "--length", "--seed", "--threads", "--timeout"}) {
    for (const char* value : {"99999999999999999999", "9223372036854775808", "-9223372036854775809",
                              "1e3", "0x10", "7 ", "", "18446744073709551617"})
      expect_part(error(option, value), std::string(option) + ": got ");
  }
  for (const char* option : {"--dropout", "--lr"})
    for (const char* value : {"1e999", "-1e999", "1e-999", "inf", "0.1x", "", "nan(1)"})
      expect_part(error(option, value), std::string(option) + ": got ");
  for (const char* option : {"--epochs", "--batch", "--threads", "--timeout"})
    expect_part(error(option, "9223372036854775807"), std::string(option) + ": got 9223372036854");
  EXPECT_EQ(error("--seed", "99999999999999999999"),
            "train: --seed: got 99999999999999999999, expected a whole number from 0 to "
            "9223372036854775807 (--help lists the options)");
  for (const char* option : {"--limit", "--seed"})
    EXPECT_EQ(error(option, "9223372036854775807"), "no error");
  Options o;
  EXPECT_FALSE(parse({"--batch", "010", "--seed", "9223372036854775807"}, o));
  EXPECT_EQ(o.batch, 10) << "not octal";
  EXPECT_EQ(o.seed, INT64_MAX);
}

TEST(TrainOptions, Devices) {
  const std::vector<Device> devices = parse_devices("cpu,cpu:3,cpu:3");
  ASSERT_EQ(devices.size(), 3u);
  EXPECT_EQ(devices[0], Device(kCPU, 0));
  EXPECT_EQ(devices[2], Device(kCPU, 3));
  for (const char* bad : {"", "cpu:0,", ",cpu", "gpu:1", "cpu:99", "cuda:0", "cpu:x", "cpu 1"}) {
    EXPECT_NE(error_of([&] { parse_devices(bad); }), "no error") << bad;
  }
  EXPECT_EQ(parse_order("tree:4"), parallel::ReduceOrder::tree(4));
  EXPECT_EQ(parse_order("fixed"), parallel::ReduceOrder::fixed());
  EXPECT_EQ(parse_order("any"), parallel::ReduceOrder::any());
  for (const char* bad : {"tree", "tree:", "tree:3", "tree:0", "tree:32", "tree:4x", "sorted"}) {
    EXPECT_ERROR_TEXT(parse_order(bad), "--reduce: got \"" + std::string(bad) + "\"");
  }
}

TEST(TrainOptions, SharesOfABatch) {
  using Shares = std::vector<int64_t>;
  EXPECT_EQ(shares_of(7, 3, 0, "fixed"), (Shares{3, 3, 1}));
  EXPECT_EQ(shares_of(4, 3, 0, "any"), (Shares{2, 2}));
  EXPECT_EQ(shares_of(7, 1, 0, "tree:4"), (Shares{2, 2, 2, 1}));
  EXPECT_EQ(shares_of(2, 1, 0, "tree:4"), (Shares{1, 1}));
  // Of processes, each of which has its own.
  EXPECT_EQ(shares_of(7, 2, 2, "fixed"), (Shares{2, 2, 2, 1}));
  EXPECT_EQ(shares_of(7, 2, 2, "tree:4"), (Shares{2, 2, 2, 1}));
  EXPECT_ERROR_TEXT(shares_of(3, 2, 2, "fixed"),
                    "--batch: got a batch of 3, expected at least one for each of 4 replicas");
}

TEST(TrainOptions, ResumedSettingsComeFromTheCheckpoint) {
  Options saved;
  parse({"--batch", "32", "--seed", "5", "--lr", "0.1"}, saved);
  Options plain;
  parse({"--resume"}, plain);
  plain.adopt(saved.config(), "checkpoint");
  EXPECT_EQ(plain.batch, 32);
  EXPECT_EQ(plain.seed, 5);
  EXPECT_EQ(plain.lr, 0.1);
  Options same;
  parse({"--resume", "--batch", "32", "--devices", "cpu:3"}, same);
  EXPECT_EQ(error_of([&] { same.adopt(saved.config(), "checkpoint"); }), "no error");
  EXPECT_EQ(same.devices, "cpu:3") << "where it runs may change";
  Options other;
  parse({"--resume", "--batch", "64"}, other);
  EXPECT_EQ(error_of([&] { other.adopt(saved.config(), "checkpoint"); }),
            "[train] --batch: got 64, expected 32 as in the checkpoint");
  EXPECT_ERROR_TEXT(other.adopt("{", "checkpoint"), "settings are damaged");
  // Of a checkpoint from before these settings, and without one that all have.
  auto earlier = nlohmann::ordered_json::parse(saved.config());
  for (const char* name : {"autocast", "size", "weights", "length"})
    EXPECT_EQ(earlier.erase(name), 1u) << name;
  Options old;
  old.adopt(earlier.dump(), "checkpoint");
  EXPECT_EQ(old.config(), saved.config());
  earlier.erase("lr");
  EXPECT_ERROR_TEXT(old.adopt(earlier.dump(), "checkpoint"), "settings are damaged");
}

// Without --model, the checkpoint says whether it is of one that has them.
TEST(TrainOptions, ResumedSettingsOfGpt2) {
  Options saved, cnn;
  parse({"--model", "gpt2", "--length", "64", "--weights", "w"}, saved);
  const auto error = [](std::vector<std::string> arguments, const Options& checkpoint) {
    Options o;
    arguments.insert(arguments.begin(), "--resume");
    EXPECT_FALSE(parse(arguments, o));
    return error_of([&] {
      o.check();
      o.adopt(checkpoint.config(), "checkpoint");
      o.check();
      EXPECT_EQ(o.config(), checkpoint.config());
    });
  };
  EXPECT_EQ(error({"--length", "64", "--size", "tiny", "--weights", "w"}, saved), "no error");
  EXPECT_EQ(error({"--length", "64"}, cnn),
            "[train] --length: got 64, expected 0 as in the checkpoint");
  EXPECT_EQ(error({"--model", "cnn", "--length", "64"}, saved),
            "[train] --length: got it with --model cnn, expected --model gpt2");
}

// ---- what is refused before anything is written

TEST_F(TrainTest, RefusesCifarFilesThatLie) {
  const std::string folder = folder_ + "/cifar";
  shell("mkdir " + folder);
  const auto write = [&](const std::string& name, const std::string& bytes) {
    std::ofstream(folder + "/" + name, std::ios::binary) << bytes;
  };
  const auto record = [](int label) {
    return std::string(1, static_cast<char>(label)) + std::string(3072, '\x40');
  };
  const auto refused = [&](const std::string& part) {
    Options o = options("never");
    o.model = "mlp";
    o.data = folder;
    expect_part(refusal(o), part);
    EXPECT_FALSE(exists(folder_ + "/never"));
  };
  write("test_batch.bin", record(9));
  refused("data_batch_1.bin\": cannot be read");
  for (int i = 1; i <= 5; ++i) write("data_batch_" + std::to_string(i) + ".bin", record(i));
  write("data_batch_3.bin", record(3) + record(10));
  refused("data_batch_3.bin\": got the label 10 in record 1, expected less than 10");
  write("data_batch_3.bin", record(3).substr(1));
  refused("data_batch_3.bin\": got 3072 bytes, expected a multiple of 3073");
  write("data_batch_3.bin", "");
  refused("data_batch_3.bin\": got 0 bytes");
  shell("rm " + folder + "/data_batch_3.bin && mkdir " + folder + "/data_batch_3.bin");
  refused("data_batch_3.bin\": cannot be read");
  shell("rm -r " + folder + "/data_batch_3.bin");
  write("data_batch_3.bin", record(3));
  Options good = options("good");
  good.model = "mlp";
  good.data = folder;
  expect_part(printed(good), "on 5 images of " + folder);
  // Files of two sets: the program cannot know which one was meant.
  write("test.bin", "\x13" + record(7));
  refused("got \"" + folder + "/data_batch_1.bin\" of CIFAR-10 and \"" + folder +
          "/test.bin\" of CIFAR-100, expected one set in a folder");
  shell("rm " + folder + "/test.bin && cp " + folder_ + "/data/t10k* " + folder);
  refused("--data: got \"" + folder + "/t10k-images-idx3-ubyte.gz\" beside \"" + folder +
          "/data_batch_1.bin\", expected one set in a folder");
  // CIFAR-100's two labels: the second one counts.
  shell("rm " + folder + "/*");
  write("train.bin", "\x13" + record(99) + "\x01" + record(0));
  refused("test.bin\": cannot be read");
  write("test.bin", "\x14" + record(99));
  refused("test.bin\": got the label 20 in record 0, expected less than 20");
  write("test.bin", "\x13" + record(100));
  refused("test.bin\": got the label 100 in record 0, expected less than 100");
  write("test.bin", "\x13" + record(7));
  printed(good);
  EXPECT_EQ(
      serialize::load_safetensors(out("model.safetensors", "good")).find("fc2.weight")->sizes(),
      IntArrayRef({100, 128}));
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
  refused(
      [](Options& o) { o.model = "vgg"; },
      "--model: got \"vgg\", expected cnn, mlp, resnet, dcgan, unet, gpt, lstm, gpt2 or seq2seq");
  refused([](Options& o) { o.model = "unet"; }, "expected shapes for --model unet");
  refused([](Options& o) { o.model = "seq2seq"; }, "expected dates or reverse for --model seq2seq");
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
  refused([](Options& o) { o.explore = "step.html"; },
          "--explore: this program is linked without recordings; expected what ./tools/train "
          "builds for --explore (//tools/training:train_explore)");
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

// Batch norms want two values a channel, and images of 4 x 4 become single pixels.
TEST_F(TrainTest, RefusesBatchesThatAreTooSmallForBatchNorms) {
  write_images("train", 33, 4);
  write_images("t10k", 5, 4);
  Options o = options("never");
  const auto refused = [&](const std::string& model, int64_t batch, const std::string& devices,
                           const std::string& reduce, const std::string& part) {
    o.model = model, o.batch = batch, o.devices = devices, o.reduce = reduce;
    expect_part(refusal(o), part);
    EXPECT_FALSE(exists(folder_ + "/never"));
  };
  for (const std::string model : {"dcgan", "resnet"})
    refused(model, 16, "cpu:0", "fixed",
            "--batch: got 16 of 33 images, of which one batch is 1 and a replica's share of it 1, "
            "expected at least 2 for the batch norms of --model " +
                model);
  refused("resnet", 30, "cpu:0,cpu:1", "fixed", "one batch is 3 and a replica's share of it 1");
  refused("resnet", 26, "cpu:0", "tree:4", "one batch is 7 and a replica's share of it 1");
  refused("dcgan", 1, "cpu:0", "fixed", "one batch is 1 and");
  o.epochs = 1;
  o.out = folder_ + "/out";
  for (const char* model : {"dcgan", "resnet"}) {
    o.model = model, o.batch = 31, o.devices = "cpu:0", o.reduce = "fixed";
    printed(o);  // 31 and 2
  }
  o.model = "cnn", o.batch = 32;
  printed(o);  // 32 and 1, of 2 x 2 pixels
}

TEST_F(TrainTest, RefusesAFolderThatCannotBeMade) {
  std::ofstream(folder_ + "/file") << "x";
  Options o = options();
  o.out = folder_ + "/file/below";
  expect_part(refusal(o), "--out: cannot make the folder");
  EXPECT_EQ(read_file(folder_ + "/file"), "x");
  o.make_data = o.out;
  expect_part(refusal(o), "--make-data: cannot make the folder");
  o.make_data = "";
  o.given = {"make-data"};  // an empty name is no wish to train
  expect_part(refusal(o), "--make-data: cannot write into \"\"");
  o.make_data = folder_ + "/new";
  o.limit = 4;
  expect_part(refusal(o), "--limit: got 4, expected at least 5 for --make-data");
  EXPECT_FALSE(exists(o.make_data));
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
