// Parts of a module that the ranks do not share.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "nn/module/module.h"

namespace ramet {
namespace distributed {

/// What the ranks do not share: never compared, copied, reduced or merged.
struct Ignored {
  std::vector<std::shared_ptr<nn::Module>> modules;  // with all modules inside them
  std::vector<Tensor> tensors;                       // parameters and buffers
  /// Full names of modules, parameters and buffers: "fc1", "*.bias". Patterns are as in file names,
  /// but a star also matches dots. An Error for a pattern without a match.
  std::vector<std::string> names;
};

}  // namespace distributed
}  // namespace ramet
