// What PyTorch computes for every module of tests/modules and every function of nn::functional.
// The numbers come from tests/nn/goldens, where make_goldens.py has written them. A line begins a
// case,
//   module Linear: both        (or train, eval)
//   function linear, of a vector: both
// and the others are its tensors, row-major: what it is and of which tensor, dtype, sizes ("-":
// none) and values,
//   gradient weight double 2x3 -0.357 -0.505 0.453 -0.817 0.263 -0.153
// The lines are `input 0` of a function; `output`; `after NAME` of a buffer that has changed. Where
// something has gradients, each `input.0` and parameter has `gradient`: the gradients g for a
// cotangent. They and the cotangent have `second`, the gradients of <g, directions>, unless that
// is 0. A formula gives parameters, buffers, cotangent, directions and most inputs of modules.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "autograd/tensor.h"
#include "nn/module/module.h"
#include "tests/modules.h"

namespace ramet::testing {

struct Golden {
  std::string kind, name, mode;
  std::map<std::string, Tensor> tensors;  ///< by "gradient weight", "output" ...

  /// Null where there is none.
  const Tensor* find(const std::string& what) const;
  /// Computes all that the file has. Returns what differs: empty where nothing does.
  std::string differs(const std::function<Tensor(const Tensors&)>& call) const;
  /// The same of a module, which gets its parameters and buffers, for such inputs.
  std::string differs(const std::function<Tensor(const Tensors&)>& call, nn::Module& module,
                      const std::vector<Draw>& draws) const;

 private:
  std::string differs(const std::function<Tensor(const Tensors&)>& call, nn::Module* module,
                      const Tensors& inputs) const;
};

/// An Error where the files are more than 2 MB or a tensor has more than 64 elements.
const std::vector<Golden>& goldens();

/// A function of nn::functional, all its results in one tensor.
struct FunctionRow {
  const char* name;  ///< the function's; another line of one: with a comma and words after it
  Tensor (*call)(const std::vector<Tensor>& inputs);
  const char* why_not = nullptr;  ///< why it has no golden
};
const std::vector<FunctionRow>& golden_functions();

}  // namespace ramet::testing
