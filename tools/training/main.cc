// train: see --help, and ../train for the script that builds and starts it.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "runtime/base/logging.h"
#include "tools/training/options.h"
#include "tools/training/run.h"

int main(int argc, char** argv) {
  using namespace ramet::training;
  // A build with emulated GPUs has as many as a list can name, unless the environment says
  // otherwise.
  setenv("RAMET_EMULATED_DEVICES", "8", /*overwrite=*/0);
  Options options;
  if (const auto usage = parse(std::vector<std::string>(argv + 1, argv + argc), options)) {
    std::fprintf(usage->exit_code == 0 ? stdout : stderr, "%s%s", usage->text.c_str(),
                 usage->exit_code == 0 ? "" : "\n");
    return usage->exit_code;
  }
  ramet::set_log_handler([](ramet::LogLevel level, const std::string& text) {
    if (level != ramet::LogLevel::Info) ramet::log_to_stderr()(level, text);
  });
  try {
    return run(options);
  } catch (const Refused& e) {
    std::fprintf(stderr, "train: %s\n", e.message.c_str());
    return 2;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "train: failed: %s\n", e.what());
    return 1;
  }
}
