// Modules call themselves torch::nn::Linear in programs that include this. See
// Note [The compatibility prefix] in nn/module/class_name.h.
#pragma once

/// What the library asks for when it prints a class's name. `used`: nothing in the program calls
/// it. Default visibility: a Ramet in a shared library has to find it in the program.
extern "C" __attribute__((used, visibility("default"))) inline const char* ramet_root_namespace() {
  return "torch";
}
