#include "tools/training/options.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "CLI/CLI.hpp"
#include "runtime/base/error.h"
#include "tools/training/explore.h"
#include "tools/training/gpt2.h"
#include "tools/training/jobs.h"
#include "tools/training/results.h"

namespace ramet::training {

using Json = nlohmann::ordered_json;

bool Options::was_given(const std::string& name) const {
  return std::find(given.begin(), given.end(), name) != given.end();
}

namespace {
// Calls f(name, member) for each setting that decides about the result. Not: devices and threads
// (under tree:V they change nothing), the folder, what is printed, how long others are waited for.
template <class O, class F> void settings(O& o, const F& f) {
  f("data", o.data);
  f("model", o.model);
  f("reduce", o.reduce);
  f("epochs", o.epochs);
  f("batch", o.batch);
  f("limit", o.limit);
  f("seed", o.seed);
  f("dropout", o.dropout);
  f("lr", o.lr);
  f("autocast", o.autocast);
  f("size", o.size);
  f("weights", o.weights);
  f("length", o.length);
}

// Older checkpoints do not hold these.
bool is_newer(const std::string& name) {
  return name == "autocast" || name == "size" || name == "weights" || name == "length";
}
}  // namespace

std::string Options::config() const {
  Json j;
  settings(*this, [&](const char* name, const auto& value) { j[name] = value; });
  return j.dump();
}

void Options::adopt(const std::string& config, const char* from) {
  try {
    const Json j = Json::parse(config), usual = Json::parse(Options().config());
    settings(*this, [&](const char* name, auto& value) {
      const bool older = is_newer(name) && !j.contains(name);
      const auto saved = (older ? usual : j).at(name).get<std::decay_t<decltype(value)>>();
      RAMET_CHECK(!was_given(name) || value == saved, "train", "--", name, ": got ",
                  Json(value).dump(), ", expected ", Json(saved).dump(), " as in the ", from);
      value = saved;
    });
  } catch (const Json::exception& e) {
    fail("train", "the ", from, "'s settings are damaged (", e.what(), ")");
  }
}

void Options::check() const {
  const auto in_range = [](const char* name, int64_t value, int64_t low, int64_t high) {
    RAMET_CHECK(value >= low, "train", "--", name, ": got ", value, ", expected at least ", low);
    RAMET_CHECK(value <= high, "train", "--", name, ": got ", value, ", expected at most ", high);
  };
  RAMET_CHECK(defaults_of(model), "train", "--model: got \"", model, "\", expected ", job_names());
  // Products of two of these fit into 64 bits.
  in_range("epochs", epochs, 1, INT32_MAX);
  in_range("batch", batch, 1, INT32_MAX);
  in_range("limit", limit, 0, INT64_MAX);
  in_range("length", length, 0, INT32_MAX);
  in_range("seed", seed, 0, INT64_MAX);
  in_range("threads", threads, 0, 1024);
  in_range("timeout", timeout, 1, 86400);
  in_range("ledger-every", ledger_every, 0, INT32_MAX);
  RAMET_CHECK(dropout >= 0 && dropout < 1, "train", "--dropout: got ", dropout,
              ", expected at least 0 and less than 1");
  RAMET_CHECK(std::isfinite(lr) && lr > 0, "train", "--lr: got ", lr,
              ", expected a positive number");
  RAMET_CHECK(autocast == "off" || autocast == "bf16" || autocast == "fp16", "train",
              "--autocast: got \"", autocast, "\", expected off, bf16 or fp16");
  // Only the checkpoint says of which model it is: adopt() compares these settings with its own.
  const bool known = !resume || was_given("model");
  for (const char* name : {"size", "weights", "length"})
    RAMET_CHECK(!known || model == "gpt2" || !was_given(name), "train", "--", name,
                ": got it with --model ", model, ", expected --model gpt2");
  RAMET_CHECK(!out.empty(), "train", "--out: got an empty path");
}

namespace {

// CLI11 itself cuts a number that does not fit to the largest one, and reads 010 as octal.
template <class T> std::string take_number(std::string& text) {
  T value{};
  const char *begin = text.data(), *end = begin + text.size();
  const auto [stop, error] = std::from_chars(begin, end, value);
  if (error == std::errc() && stop == end) {
    if constexpr (std::is_integral_v<T>) text = std::to_string(value);
    return "";
  }
  std::string expected = "a number that fits into 64 bits";
  if constexpr (std::is_integral_v<T>)
    expected = "a whole number from 0 to " + std::to_string(std::numeric_limits<T>::max());
  return "got " + (text.empty() ? "nothing" : text) + ", expected " + expected;
}

template <class T>
CLI::Option* add_number(CLI::App& app, const std::string& name, T& value,
                        const std::string& description) {
  return app.add_option(name, value, description)
      ->transform(CLI::Validator(take_number<T>, ""))
      ->capture_default_str();
}

}  // namespace

std::optional<Usage> parse(std::vector<std::string> arguments, Options& o) {
  CLI::App app("Trains a model of images, a text or strings, data-parallel over several devices.",
               "./tools/train");
  app.add_option(
         "--data", o.data,
         "of images fashion-mnist, shapes (made by --seed; all that unet takes), or a folder with "
         "MNIST's four IDX files or CIFAR's binary files; for gpt and lstm a text (by default "
         "CONTRIBUTING.md); for gpt2 a text, whose bytes are its ids, or a file NAME.bin of ids of "
         "16 bits as nanoGPT and llm.c write it, or a folder with train.bin and val.bin; for "
         "seq2seq dates or reverse (made by --seed)")
      ->type_name("NAME|DIR")
      ->capture_default_str();
  app.add_option("--model", o.model,
                 job_descriptions() + ". --data, --lr, --batch and --epochs have defaults for each")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--size", o.size, "of gpt2: " + gpt2_sizes())
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--weights", o.weights,
                 "weights that gpt2 begins with: a safetensors file that transformers wrote, or "
                 "model.safetensors of an earlier run in another --out; both have one form")
      ->type_name("FILE");
  add_number(app, "--length", o.length, "ids in a piece of gpt2; 0: as many as it sees at once")
      ->type_name("N");
  app.add_option("--devices", o.devices, "where replicas run, separated by commas")
      ->type_name("LIST")
      ->capture_default_str();
  app.add_option("--reduce", o.reduce,
                 "order of sums over replicas: fixed, any, or tree:V (same bits for every number "
                 "of devices)")
      ->type_name("ORDER")
      ->capture_default_str();
  app.add_option("--autocast", o.autocast,
                 "compute products and convolutions in bf16 (bfloat16) or fp16 (float16, with a "
                 "loss scale), from float32 parameters; off: in float32")
      ->type_name("DTYPE")
      ->capture_default_str();
  add_number(app, "--epochs", o.epochs, "passes over the data")->type_name("N");
  add_number(app, "--batch", o.batch, "images, pieces of the text or pairs of strings in a step")
      ->type_name("N");
  add_number(app, "--lr", o.lr, "largest learning rate; it falls to 0 along a half cosine")
      ->type_name("RATE");
  add_number(app, "--dropout", o.dropout,
             "probability before the last layer, or between layers; not of dcgan")
      ->type_name("P");
  add_number(app, "--limit", o.limit,
             "use only the first N images (pieces, pairs) of each set; 0: all")
      ->type_name("N");
  add_number(app, "--seed", o.seed, "of weights, order, dropout, noise and data that are made")
      ->type_name("N");
  app.add_option("--make-data", o.make_data,
                 "write the images of --data shapes into DIR, as CIFAR-10's files, and end")
      ->type_name("DIR");
  CLI::Option* explore =
      app.add_option(
             "--explore", o.explore,
             "record one step, a few after the first, with every replica's and rank's part in it, "
             "and write it as a page for a browser (default: step.html in --out) and, for "
             "./tools/explore, as a file .ramet.gz beside it; that step runs eagerly, as all do "
             "here, and slower; the result has the same bits")
          ->type_name("FILE")
          ->expected(0, 1);
  CLI::Option* ledger =
      app.add_option(
             "--ledger", o.ledger,
             "write hashes of each step's batch, random state, gradients, parameters and buffers, "
             "and a checkpoint after each epoch (default: run.ledger in --out, or RAMET_LEDGER); "
             "./tools/verify checks any step from it")
          ->type_name("FILE")
          ->expected(0, 1);
  add_number(app, "--ledger-every", o.ledger_every,
             "steps between further checkpoints of --ledger; 0: none")
      ->type_name("N");
  add_number(app, "--threads", o.threads, "threads for computation; 0: one for each core")
      ->type_name("N");
  app.add_option("--out", o.out, "folder for the results")->type_name("DIR")->capture_default_str();
  app.add_flag(
      "--resume", o.resume,
      "go on from the checkpoint in DIR; settings that are not given are the checkpoint's");
  app.add_flag("--digest", o.digest,
               "print one hash of parameters, buffers and optimizer state at the end");
  app.add_flag(
      "--ddp", o.ddp,
      "one of several processes, which tools/launch, mpirun or srun started; --devices are "
      "each one's (by default cpu:0); cuda without a number is the GPU of the process's number on "
      "its host");
  add_number(app, "--timeout", o.timeout,
             "how long the processes of --ddp wait for one that does not come or answer")
      ->type_name("SECONDS");
  app.footer("Defaults above are cnn's. Of others:\n" + job_defaults());
  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
  try {
    app.parse(arguments);
  } catch (const CLI::CallForHelp&) {
    return Usage{0, app.help()};
  } catch (const CLI::ParseError& e) {
    std::string text = e.what();
    std::replace(text.begin(), text.end(), '\n', ' ');
    return Usage{2, "train: " + text + " (--help lists the options)"};
  }
  for (const CLI::Option* option : app.get_options())
    if (option->count() > 0 && !option->get_lnames().empty())
      o.given.push_back(option->get_lnames()[0]);
  if (explore->count() > 0 && o.explore.empty()) o.explore = o.out + "/" + kPage;
  if (ledger->count() > 0 && o.ledger.empty()) o.ledger = o.out + "/" + kLedger;
  if (o.ddp && !o.was_given("devices")) o.devices = "cpu:0";
  if (const JobDefaults* defaults = defaults_of(o.model)) {
    if (!o.was_given("data")) o.data = defaults->data;
    if (!o.was_given("lr")) o.lr = defaults->lr;
    if (!o.was_given("batch")) o.batch = defaults->batch;
    if (!o.was_given("epochs")) o.epochs = defaults->epochs;
  }
  return std::nullopt;
}

}  // namespace ramet::training
