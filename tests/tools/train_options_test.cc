// The training program's command line.
#include <gtest/gtest.h>

#include "runtime/error.h"
#include "tests/error_text.h"
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
  EXPECT_EQ(gpt.data, "README.md");
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
  EXPECT_FALSE(parse({"--data",   "d",         "--model=mlp", "--devices",   "cpu:2", "--reduce",
                      "tree:4",   "--epochs",  "7",           "--batch",     "62",    "--lr",
                      "0.5",      "--dropout", "0.25",        "--limit",     "500",   "--seed",
                      "9",        "--threads", "3",           "--out",       "o",     "--resume",
                      "--digest", "--timeout", "11",          "--make-data", "m"},
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
  EXPECT_TRUE(o.resume && o.digest);
  EXPECT_TRUE(o.was_given("batch"));
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
                            "gpt, lstm: go on with", "seq2seq: rewrites"})
    expect_part(help.text, model);
  expect_part(help.text, "Usage: ./tools/train ");
}

TEST(TrainOptions, ValuesOutOfRange) {
  const auto error = [](const std::vector<std::string>& arguments) {
    Options o;
    EXPECT_FALSE(parse(arguments, o));
    return error_of([&] { o.check(); });
  };
  EXPECT_EQ(error({"--model", "vgg"}),
            "[train] --model: got \"vgg\", expected cnn, mlp, resnet, dcgan, unet, gpt, lstm or "
            "seq2seq");
  EXPECT_EQ(error({"--batch", "0"}), "[train] --batch: got 0, expected at least 1");
  EXPECT_EQ(error({"--epochs", "0"}), "[train] --epochs: got 0, expected at least 1");
  EXPECT_EQ(error({"--limit", "-1"}), "[train] --limit: got -1, expected at least 0");
  EXPECT_EQ(error({"--threads", "-2"}), "[train] --threads: got -2, expected at least 0");
  EXPECT_EQ(error({"--timeout", "0"}), "[train] --timeout: got 0, expected at least 1");
  EXPECT_EQ(error({"--timeout", "86401"}), "[train] --timeout: got 86401, expected at most 86400");
  expect_part(error({"--dropout", "1"}), "--dropout: got 1, expected at least 0 and less than 1");
  expect_part(error({"--lr", "0"}), "--lr: got 0, expected a positive number");
  expect_part(error({"--lr", "nan"}), "--lr: got nan");
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
       {"--epochs", "--batch", "--limit", "--seed", "--threads", "--timeout"}) {
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
    expect_part(error_of([&] { parse_order(bad); }), "--reduce: got \"" + std::string(bad) + "\"");
  }
}

TEST(TrainOptions, ResumedSettingsComeFromTheCheckpoint) {
  Options saved;
  parse({"--batch", "32", "--seed", "5", "--lr", "0.1"}, saved);
  Options plain;
  parse({"--resume"}, plain);
  plain.adopt(saved.config());
  EXPECT_EQ(plain.batch, 32);
  EXPECT_EQ(plain.seed, 5);
  EXPECT_EQ(plain.lr, 0.1);
  Options same;
  parse({"--resume", "--batch", "32", "--devices", "cpu:3"}, same);
  EXPECT_EQ(error_of([&] { same.adopt(saved.config()); }), "no error");
  EXPECT_EQ(same.devices, "cpu:3") << "where it runs may change";
  Options other;
  parse({"--resume", "--batch", "64"}, other);
  EXPECT_EQ(error_of([&] { other.adopt(saved.config()); }),
            "[train] --batch: got 64, expected 32 as in the checkpoint");
  expect_part(error_of([&] { other.adopt("{"); }), "settings are damaged");
}

}  // namespace
}  // namespace ramet::training
