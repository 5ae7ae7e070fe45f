#include "tools/training/options.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <sstream>

#include "runtime/error.h"

namespace ramet::training {
namespace {

std::vector<Device> devices_of(const std::string& text) {
  std::vector<Device> devices;
  std::stringstream list(text);
  for (std::string name; std::getline(list, name, ',');) devices.push_back(resolve(Device(name)));
  RAMET_CHECK(!devices.empty(), "--devices", "got \"", text, "\", expected a list such as cpu:0,cpu:1");
  return devices;
}

int shards_of(const std::string& text) {
  if (text == "fixed") return 0;
  int shards = 0;
  if (text.rfind("tree:", 0) == 0) shards = std::atoi(text.c_str() + 5);
  RAMET_CHECK(shards > 0 && shards <= 64 && (shards & (shards - 1)) == 0, "--reduce", "got \"", text,
              "\", expected fixed or tree:V with V a power of two up to 64");
  return shards;
}

}  // namespace

std::optional<int> parse(int argc, char** argv, Options& o) {
  CLI::App app{"Trains a small network on images in MNIST's IDX format, data-parallel over local devices."};
  std::string devices = "cpu:0", reduce = "fixed";
  app.add_option("--data", o.data, "fashion-mnist, or a folder with the four IDX files (plain or .gz)")->capture_default_str();
  app.add_option("--model", o.model, "cnn: two convolutions with BatchNorm; mlp: 784-128-10")->capture_default_str();
  app.add_option("--devices", devices, "comma-separated, for example cpu:0,cpu:1")->capture_default_str();
  app.add_option("--epochs", o.epochs)->capture_default_str();
  app.add_option("--batch", o.batch, "images a step, over all devices")->capture_default_str();
  app.add_option("--limit", o.limit, "use only the first N training images")->capture_default_str();
  app.add_option("--lr", o.lr, "AdamW's learning rate at the start; a cosine takes it to 0")->capture_default_str();
  app.add_option("--dropout", o.dropout, "probability before the last layer")->capture_default_str();
  app.add_option("--seed", o.seed)->capture_default_str();
  app.add_option("--threads", o.threads, "threads for operations, 0: all cores")->capture_default_str();
  app.add_option("--reduce", reduce, "order of gradient sums: fixed, or tree:V (same bits for any number of devices dividing V)")
      ->capture_default_str();
  app.add_option("--out", o.out, "folder for the results")->capture_default_str();
  app.add_flag("--resume", o.resume, "go on from the checkpoint in --out");
  app.add_flag("--digest", o.digest, "print one hash of parameters, buffers and optimizer state");
  try {
    app.parse(argc, argv);
    o.devices = devices_of(devices);
    o.virtual_shards = shards_of(reduce);
    RAMET_CHECK(o.model == "cnn" || o.model == "mlp", "--model", "unknown model: got \"", o.model, "\", expected cnn or mlp");
    RAMET_CHECK(o.batch > 0, "--batch", "got ", o.batch, ", expected at least 1");
    RAMET_CHECK(o.epochs > 0, "--epochs", "got ", o.epochs, ", expected at least 1");
    RAMET_CHECK(o.limit >= 0, "--limit", "got ", o.limit, ", expected 0 (all) or more");
    RAMET_CHECK(o.lr > 0, "--lr", "got ", o.lr, ", expected a positive number");
    RAMET_CHECK(o.dropout >= 0 && o.dropout < 1, "--dropout", "got ", o.dropout, ", expected a number in [0, 1)");
    RAMET_CHECK(o.threads >= 0 && o.threads <= 256, "--threads", "got ", o.threads, ", expected 0 to 256");
  } catch (const CLI::CallForHelp&) {
    std::printf("%s", app.help().c_str());
    return 0;
  } catch (const CLI::Error& e) {
    std::fprintf(stderr, "train: %s\n", e.what());
    return 2;
  } catch (const Error& e) {
    std::fprintf(stderr, "train: %s\n", e.what());
    return 2;
  }
  return std::nullopt;
}

std::string data_folder(const Options& o) { return o.data == "fashion-mnist" ? "/usr/share/datasets/fashion-mnist" : o.data; }

}  // namespace ramet::training
