// A loaded module as C++: a header with a struct for each kind of module in it.
//
// The program that includes it needs neither the file nor this folder's library. It computes the
// same bits as the loaded module, trains and clones as any module, and can be stepped through in a
// debugger. `./tools/translate` writes such a header.
#pragma once
#include <string>

#include "nn/module/ordered_dict.h"
#include "nn/script/script.h"

namespace ramet::script {

/// A module as C++, and the values that belong to it.
struct Translation {
  std::string header;  ///< its text: it includes ramet.h
  /// Parameters, buffers and tensors of the code, by the names of the struct's state dict.
  OrderedDict<std::string, Tensor> tensors;
};

/// Writes `module` and all that its forward() calls as C++. Without a forward() all methods are
/// written. `name` is the outermost struct's, in a namespace of that name in lower case. An Error
/// lists what has no C++, with the Python file and line. Most of that are operators on texts,
/// modules that the code chooses while it runs, and values of several types.
RAMET_API Translation translate(const jit::Module& module, const std::string& name);

}  // namespace ramet::script
