#include "tools/training/options.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "CLI/CLI.hpp"
#include "runtime/error.h"

namespace ramet::training {

using Json = nlohmann::ordered_json;

bool Options::was_given(const std::string& name) const {
  return std::find(given.begin(), given.end(), name) != given.end();
}

namespace {
// Calls f(name, member) for each setting that decides about the result. Not: devices and threads
// (under tree:V they change nothing), the folder, what is printed.
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
}
}  // namespace

std::string Options::config() const {
  Json j;
  settings(*this, [&](const char* name, const auto& value) { j[name] = value; });
  return j.dump();
}

void Options::adopt(const std::string& config) {
  try {
    const Json j = Json::parse(config);
    settings(*this, [&](const char* name, auto& value) {
      const auto saved = j.at(name).get<std::decay_t<decltype(value)>>();
      RAMET_CHECK(!was_given(name) || value == saved, "train", "--", name, ": got ",
                  Json(value).dump(), ", expected ", Json(saved).dump(), " as in the checkpoint");
      value = saved;
    });
  } catch (const Json::exception& e) {
    fail("train", "the checkpoint's settings are damaged (", e.what(), ")");
  }
}

void Options::check() const {
  const auto at_least = [](const char* name, int64_t value, int64_t low) {
    RAMET_CHECK(value >= low, "train", "--", name, ": got ", value, ", expected at least ", low);
  };
  RAMET_CHECK(model == "cnn" || model == "mlp", "train", "--model: got \"", model,
              "\", expected cnn or mlp");
  at_least("epochs", epochs, 1);
  at_least("batch", batch, 1);
  at_least("limit", limit, 0);
  at_least("seed", seed, 0);
  at_least("threads", threads, 0);
  RAMET_CHECK(threads <= 1024, "train", "--threads: got ", threads, ", expected at most 1024");
  RAMET_CHECK(dropout >= 0 && dropout < 1, "train", "--dropout: got ", dropout,
              ", expected at least 0 and less than 1");
  RAMET_CHECK(std::isfinite(lr) && lr > 0, "train", "--lr: got ", lr,
              ", expected a positive number");
  RAMET_CHECK(!out.empty(), "train", "--out: got an empty path");
}

std::optional<Usage> parse(std::vector<std::string> arguments, Options& o) {
  CLI::App app("Trains an image classifier, data-parallel over several devices.", "train");
  app.add_option("--data", o.data, "fashion-mnist, or a folder with MNIST's four IDX files")
      ->type_name("NAME|DIR")
      ->capture_default_str();
  app.add_option("--model", o.model, "cnn or mlp")->type_name("NAME")->capture_default_str();
  app.add_option("--devices", o.devices, "where replicas run, separated by commas")
      ->type_name("LIST")
      ->capture_default_str();
  app.add_option("--reduce", o.reduce,
                 "order of sums over replicas: fixed, any, or tree:V (same bits for every number "
                 "of devices)")
      ->type_name("ORDER")
      ->capture_default_str();
  app.add_option("--epochs", o.epochs, "passes over the data")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--batch", o.batch, "images in a step")->type_name("N")->capture_default_str();
  app.add_option("--lr", o.lr, "largest learning rate; it falls to 0 along a half cosine")
      ->type_name("RATE")
      ->capture_default_str();
  app.add_option("--dropout", o.dropout, "probability before the last layer")
      ->type_name("P")
      ->capture_default_str();
  app.add_option("--limit", o.limit, "use only the first N images of each set; 0: all")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--seed", o.seed, "of weights, order and dropout")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--threads", o.threads, "threads for computation; 0: one for each core")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--out", o.out, "folder for the results")->type_name("DIR")->capture_default_str();
  app.add_flag(
      "--resume", o.resume,
      "go on from the checkpoint in DIR; settings that are not given are the checkpoint's");
  app.add_flag("--digest", o.digest,
               "print one hash of parameters, buffers and optimizer state at the end");
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
  return std::nullopt;
}

}  // namespace ramet::training
