// The parameters of every module after a seed are PyTorch's, bit for bit, where the generator is of
// kind kMersenne (goldens/make_mersenne.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include "autograd/ops/random/random.h"
#include "nn/module/checkpoint.h"
#include "runtime/devices/mersenne.h"
#include "tests/modules.h"

namespace ramet {
namespace {

using testing::ModuleRow;

struct Made {
  std::string digest;
  int64_t next;
};

// Modules that clone layers draw more here: LibTorch's clone() draws parameters, which it then
// overwrites, and PyTorch's deep copy does not. Transformer draws its parameters after that.
constexpr const char* kOfClones[] = {"TransformerEncoder", "TransformerDecoder", "Transformer"};
// C++ leaves the order open in which arguments are made.
constexpr const char* kOfArguments[] = {"Sequential", "ModuleList", "ModuleDict"};
// Its three layers are drawn in another order than by the class of the goldens.
constexpr const char* kOwn[] = {"LoRALinear"};

template <size_t N> bool is_in(const char* const (&names)[N], const std::string& name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

Made made_of(const ModuleRow& row) {
  manual_seed(2026);
  const std::shared_ptr<nn::Module> module = row.make();
  const int64_t next = randint(0, 1 << 27, {1}).item<int64_t>();
  std::map<std::string, Tensor> sorted;
  for (const auto& item : module->named_parameters()) sorted[item.key()] = item.value();
  uint64_t value = 0xcbf29ce484222325u;
  for (const auto& [name, tensor] : sorted)
    for (const char byte : testing::bits(tensor.detach()))
      value = (value ^ static_cast<unsigned char>(byte)) * 0x100000001b3u;
  std::ostringstream hex;
  hex << std::hex;
  hex.fill('0');
  hex.width(16);
  hex << value;
  return {hex.str(), next};
}

TEST(MersenneModules, StartWithPyTorchsParameters) {
  set_generator_kind(GeneratorKind::kMersenne);
  std::ifstream golden("tests/nn/goldens/parameters/mersenne.txt");
  std::map<std::string, Made> wanted;
  Made want;
  std::string name;
  while (golden >> want.digest >> want.next && std::getline(golden >> std::ws, name))
    wanted[name] = want;
  ASSERT_GT(wanted.size(), 100u);
  for (const ModuleRow& row : testing::all_modules()) {
    ASSERT_TRUE(wanted.count(row.name)) << row.name;
    if (is_in(kOfArguments, row.name) || is_in(kOwn, row.name)) continue;
    const Made made = made_of(row);
    if (is_in(kOfClones, row.name)) {
      EXPECT_NE(made.next, wanted[row.name].next) << row.name << " needs no exception";
      continue;
    }
    EXPECT_EQ(made.digest, wanted[row.name].digest) << row.name;
    EXPECT_EQ(made.next, wanted[row.name].next) << row.name;
  }
  set_generator_kind(GeneratorKind::kPhilox);
}

TEST(MersenneModules, ACheckpointHasKindAndState) {
  const std::string path = std::string(::testing::TempDir()) + "/mersenne_checkpoint";
  set_generator_kind(GeneratorKind::kMersenne);
  manual_seed(8);
  randn({3});
  Checkpoint checkpoint;
  checkpoint.save(path);
  const Tensor want = randn({7});
  set_generator_kind(GeneratorKind::kPhilox);
  manual_seed(9);
  checkpoint.load(path);
  EXPECT_EQ(generator_kind(), GeneratorKind::kMersenne);
  EXPECT_TRUE(randn({7}).equal(want));
  set_generator_kind(GeneratorKind::kPhilox);
  checkpoint.save(path);
  set_generator_kind(GeneratorKind::kMersenne);
  checkpoint.load(path);
  EXPECT_EQ(generator_kind(), GeneratorKind::kPhilox);
}

}  // namespace
}  // namespace ramet
