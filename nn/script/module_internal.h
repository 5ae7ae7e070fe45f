// The inside of jit::Module.
#pragma once
#include "nn/script/archive_internal.h"

namespace ramet::jit {

/// For the files of this folder.
struct ModuleAccess {
  static Module make(const ramet::script::LoadedModule& m) { return Module(m.object, m.texts); }
  static ramet::script::LoadedModule loaded(const Module& m) { return {m.object_, m.texts_}; }
};

}  // namespace ramet::jit
