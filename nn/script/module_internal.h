// The inside of jit::Module.
#pragma once
#include <set>

#include "nn/script/archive_internal.h"

namespace ramet::script {

/// Of a frozen module: the attributes and methods that it still has. Names of attributes in modules
/// below have dots. A module is there where one of its attributes is.
struct FrozenNames {
  std::set<std::string> attributes, methods;
};

}  // namespace ramet::script

namespace ramet::jit {

/// The name of an attribute of a module below another one: "conv.weight".
std::string full_name(const std::string& module, const std::string& own);

/// For the files of this folder.
struct ModuleAccess {
  static Module make(const ramet::script::LoadedModule& m) { return Module(m.object, m.texts); }
  static void freeze(Module& module, ramet::script::FrozenNames names) {
    module.frozen_ = std::make_shared<const ramet::script::FrozenNames>(std::move(names));
  }
  static bool sees(const Module& module, const std::string& name) { return module.sees(name); }
  static bool frozen(const Module& module) { return module.frozen_ != nullptr; }
  static ramet::script::LoadedModule loaded(const Module& m) { return {m.object_, m.texts_}; }
};

}  // namespace ramet::jit
