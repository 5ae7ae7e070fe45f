// ./tools/translate: a TorchScript or .pt2 file as a C++ header, and its weights.
#include <CLI/CLI.hpp>
#include <cctype>
#include <iostream>

#include "nn/formats/pt.h"
#include "nn/script/translate.h"
#include "ramet.h"

namespace {

// "nets/res_net-18.pt" is ResNet18.
std::string struct_name(const std::string& path) {
  const size_t begin = path.find_last_of('/') + 1;  // 0 where there is none
  std::string name;
  bool starts = true;
  for (const char c : path.substr(begin, path.find('.', begin) - begin)) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) {
      starts = true;
      continue;
    }
    name += starts ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    starts = false;
  }
  return name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0 ? "Net" + name
                                                                                : name;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Writes the module of a TorchScript or .pt2 file as C++ on standard output.");
  std::string file, name, weights;
  app.add_option("file", file, "a file of torch.jit.save() or torch.export.save()")->required();
  app.add_option("--name", name, "of the struct (default: after the file)");
  app.add_option("--weights", weights, "a file to write: the state dict, as torch.save() does");
  CLI11_PARSE(app, argc, argv);
  try {
    const ramet::jit::Module module = ramet::jit::load(file);
    const auto made = ramet::script::translate(module, name.empty() ? struct_name(file) : name);
    if (!weights.empty()) ramet::formats::save_pt(weights, made.tensors);
    std::cout << made.header << std::flush;
    if (!std::cout) throw ramet::Error("standard output cannot be written");
  } catch (const std::exception& e) {
    std::cerr << "translate: " << e.what() << '\n';
    return 1;
  }
  return 0;
}
