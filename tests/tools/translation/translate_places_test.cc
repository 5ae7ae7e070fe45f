// Translations of values and devices of the code: what attributes hold, constants of frozen files,
// and what follows a module to another device.
#include "nn/script/translation/translation_internal.h"
#include "tests/error_text.h"
#include "tests/tools/translation/cases.h"
#include "tests/tools/translation/expression_names.h"
#include "tests/tools/translation/followed.h"
#include "tests/tools/translation/frozen_tagger.h"
#include "tests/tools/translation/held.h"

namespace ramet {
namespace {

std::vector<IValue> frozen_inputs(const std::string& name) {
  const auto rows = formats::load_pt(translation::file("frozen_values.pt")).toGenericDict();
  const IValue list = rows.at(name).toGenericDict().at("inputs");
  return list.isTuple() ? list.toTupleRef().elements() : list.toList().vec();
}

// PyTorch's freeze() leaves a cast to a list in a branch that no tensor takes.
TEST(TranslatePlaces, ConstantsOfFrozenFiles) {
  const auto in = frozen_inputs("frozen_tagger");
  translation::expect_same_calls<frozentagger::FrozenTagger>(
      "frozen_tagger.pt",
      [&](frozentagger::FrozenTagger& net) {
        return net.forward(in[0].toTensor(), in[1].toTensor());
      },
      [&] { return in; });
}

TEST(TranslatePlaces, AttributesOfAllKinds) {
  const auto in = frozen_inputs("held");
  translation::expect_same_calls<held::Held>(
      "held.pt", [&](held::Held& net) { return net.forward(in[0].toTensor()); },
      [&] { return in; });
  // Their tensors are the module's.
  const auto net = translation::filled<held::Held>(jit::load(translation::file("held.pt")));
  net->to(kDouble);
  EXPECT_EQ(net->tensors[1].scalar_type(), kDouble);
  EXPECT_EQ(net->any.at("t").toTensor().scalar_type(), kDouble);
}

TEST(TranslatePlaces, DevicesAndTensorsOfFunctionsFollow) {
  const Tensor x = frozen_inputs("followed")[0].toTensor();
  translation::expect_same_calls<followed::Followed>(
      "followed.pt", [&](followed::Followed& net) { return net.forward(x); },
      [&] { return std::vector<IValue>{x}; });
  const jit::Module module = jit::load(translation::file("followed.pt"));
  const auto net = translation::filled<followed::Followed>(module);
  const Tensor want = module.forward({x}).toTensor();
  const Device other(kCPU, 1);
  const auto copy = std::dynamic_pointer_cast<followed::Followed>(net->clone(other));
  ASSERT_TRUE(copy);
  for (const auto& each : {copy, net}) {
    if (each == net) net->to(other);
    const Tensor got = each->forward(x.to(other));
    EXPECT_EQ(got.device(), other);
    EXPECT_TRUE(got.cpu().equal(want));
  }
  EXPECT_EQ(net->places->forward(x.to(other)).device(), other) << "a module without a tensor";
}

// Headers call what is public. The names were compiled with this file.
TEST(TranslatePlaces, NamesInExpressionsArePublic) {
  EXPECT_EQ(translation::kNamesInExpressions, script::names_in_expressions().size())
      << "expression_names.h is of another build";
  EXPECT_GT(translation::kNamesInExpressions, 500U);
  for (const std::string& word : script::unused_own_words())
    ADD_FAILURE() << word << " is in no expression: kOwn of translation/words.cc has it";
}

}  // namespace
}  // namespace ramet
