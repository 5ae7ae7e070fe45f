// What the command line says.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/device.h"

namespace ramet::training {

struct Options {
  std::string data = "fashion-mnist";  // or a folder with four IDX files
  std::string model = "cnn";           // or "mlp"
  std::vector<Device> devices = {Device(kCPU, 0)};
  int epochs = 3;
  int64_t batch = 128;
  int64_t limit = 0;                   // training images used, 0: all
  double lr = 2e-3;
  double dropout = 0;
  uint64_t seed = 1;
  int threads = 0;                     // 0: as RAMET_NUM_THREADS, or all
  int virtual_shards = 0;              // --reduce tree:V; 0: fixed order
  std::string out = "runs/train";
  bool resume = false;
  bool digest = false;                 // print it at the end
};

/// Fills `options`. Returns an exit code where the program is to end (help: 0; bad arguments: 2, after one clear line).
std::optional<int> parse(int argc, char** argv, Options& options);

/// The folder that --data names.
std::string data_folder(const Options& options);

}  // namespace ramet::training
