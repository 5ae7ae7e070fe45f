// Compares one archive with what PyTorch computed:
//
//   models FOLDER STEM SUFFIX    FOLDER/STEM_64.SUFFIX, FOLDER/STEM_32.SUFFIX and FOLDER/values.pt
//
// Prints one line "name<tab>value" for each figure, and writes FOLDER/STEM_back.pt, which PyTorch
// is to load.
#include <cstdlib>
#include <exception>
#include <iostream>
#include <set>

#include "tools/compat/models/values.h"

namespace ramet::models {
namespace {

void print(const std::string& name, double value) { std::cout << name << '\t' << value << '\n'; }

void print(const std::string& name, const std::vector<Digest>& digests) {
  std::set<std::string> different;
  for (const Digest& d : digests) different.insert(d.digest);
  if (different.size() == 1) {
    std::cout << name << '\t' << *different.begin() << '\n';
    return;
  }
  std::cout << name << "\tdifferent:";
  for (const Digest& d : digests) std::cout << ' ' << d.how << ' ' << d.digest;
  std::cout << '\n';
}

void check(const std::string& folder, const std::string& stem, const std::string& suffix) {
  const auto file = [&](const char* bits) {
    return folder + "/" + stem + "_" + bits + "." + suffix;
  };
  const Values values(folder + "/values.pt");
  jit::load(file("64")).save(folder + "/" + stem + "_back.pt");
  if (values.loss == "none") {
    const jit::Module net = jit::load(file("64"));
    const std::string difference =
        result_difference(net(values.inputs(kDouble)), values.row.at("result"), "the result");
    RAMET_CHECK(difference.empty(), "models", difference);
    print("outputs64", 0);
    return;
  }
  const Errors high = errors(file("64"), values, kDouble);
  print("outputs64", high.outputs);
  print("grads64", high.grads);
  print("buffers64", high.buffers);
  std::cout << "worst64\t" << high.worst << '\n';
  const Errors low = errors(file("32"), values, kFloat, true);
  print("outputs32", low.outputs);
  print("grads32", low.grads);
  print("most32", low.most);
  std::cout << "worst32\t" << low.worst << std::endl;
  print("losses64", loss_difference(file("64"), values, kDouble));
  print("losses32", loss_difference(file("32"), values, kFloat));
  if (!values.parallel) return;
  print("devices", digests_of_devices(file("32"), values, false));
  print("ranks", digests_of_ranks(file("32"), values));
  const Errors gpu = errors(file("64"), values, kDouble, false, Device(kCUDA, 0));
  print("gpu_outputs64", gpu.outputs);
  print("gpu_grads64", gpu.grads);
  print("gpus", digests_of_devices(file("32"), values, true));
}

}  // namespace
}  // namespace ramet::models

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: models FOLDER STEM SUFFIX\n";
    return 2;
  }
  setenv("RAMET_EMULATED_DEVICES", "4", /*overwrite=*/0);
  ramet::set_num_threads(1);  // the bits are the same, and other work may have the other cores
  try {
    ramet::models::check(argv[1], argv[2], argv[3]);
    return 0;
  } catch (const std::exception& e) {
    std::cout << std::flush;
    std::cerr << e.what() << '\n';
    return 1;
  }
}
