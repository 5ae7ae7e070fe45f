// The command line of the training program.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ramet::training {

struct Options {
  std::string data = "fashion-mnist", model = "cnn", devices = "cpu:0,cpu:1", reduce = "fixed",
              autocast = "off", size = "tiny", weights, out = "runs/train", make_data, explore,
              ledger;
  int64_t epochs = 3, batch = 128, limit = 0, length = 0, seed = 1, threads = 0, timeout = 300,
          ledger_every = 0;
  double dropout = 0, lr = 2e-3;
  bool resume = false, digest = false, ddp = false;
  /// Long names of the options that the command line gave.
  std::vector<std::string> given;

  bool was_given(const std::string& name) const;
  /// The settings that decide about the bits of the result, as one line of JSON: kept in the
  /// checkpoint.
  std::string config() const;
  /// Takes over the settings of a checkpoint or a ledger, which `from` names. An Error where one
  /// that was given differs.
  void adopt(const std::string& config, const char* from);
  /// An Error where a value is out of its range.
  void check() const;
};

/// Wrong use of the program, found before anything was written.
struct Usage {
  int exit_code;
  std::string text;  // for standard error where exit_code is not 0
};

/// The options, or what to print and how to end instead. `arguments` without the program's name.
std::optional<Usage> parse(std::vector<std::string> arguments, Options& options);

}  // namespace ramet::training
