// What of a module is each rank's own business.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "nn/module/module.h"

namespace ramet {
namespace distributed {

/// What the ranks do not share: never compared, copied, reduced or merged.
struct Ignored {
  std::vector<std::shared_ptr<nn::Module>> modules;  // with all below them
  std::vector<Tensor> tensors;                       // parameters and buffers
  /// Full names of modules, parameters and buffers: "fc1", "*.bias" (patterns as in file names; a
  /// star stands for dots too). An Error for one that fits nothing.
  std::vector<std::string> names;
};

}  // namespace distributed
}  // namespace ramet
