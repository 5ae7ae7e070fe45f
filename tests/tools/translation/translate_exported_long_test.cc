// Exported programs of all versions as C++.
#include "tests/tools/translation/cases.h"
#include "tests/tools/translation/cnn_core_eval.h"
#include "tests/tools/translation/cnn_of_2_5.h"
#include "tests/tools/translation/cnn_of_2_9.h"
#include "tests/tools/translation/cnn_strict.h"
#include "tests/tools/translation/encoder.h"
#include "tests/tools/translation/gpt_of_2_5.h"
#include "tests/tools/translation/gpt_of_2_9.h"
#include "tests/tools/translation/gru_core.h"
#include "tests/tools/translation/lstm.h"
#include "tests/tools/translation/sizes.h"

namespace ramet {
namespace {

template <class Net>
void expect_same_program(const std::string& name, const std::string& version = "2.15") {
  const auto rows = formats::load_pt(translation::file("exported/values_" + version + ".pt"));
  const auto row = rows.toGenericDict().at(name).toGenericDict();
  const Tensor x = row.at("args").toListRef()[0].toTensor();
  translation::expect_same_calls<Net>(
      "exported/" + name + "_" + version + ".pt2", [&](Net& net) { return net.forward(x); },
      [&] { return std::vector<IValue>{x}; });
}

TEST(TranslateExported, Versions) {
  expect_same_program<cnnof25::CnnOf25>("cnn", "2.5");
  expect_same_program<cnnof29::CnnOf29>("cnn", "2.9");
  expect_same_program<gptof25::GptOf25>("gpt", "2.5");
  expect_same_program<gptof29::GptOf29>("gpt", "2.9");
}

TEST(TranslateExported, Programs) {
  expect_same_program<cnncoreeval::CnnCoreEval>("cnn_core_eval");
  expect_same_program<cnnstrict::CnnStrict>("cnn_strict");
  expect_same_program<encoder::Encoder>("encoder");
  expect_same_program<grucore::GruCore>("gru_core");
  expect_same_program<lstm::Lstm>("lstm");
}

TEST(TranslateExported, SizesThatValuesGive) {
  const Tensor x = randn({4, 6}, kDouble), y = randn({5, 6}, kDouble), n = tensor(4);
  translation::expect_same_calls<sizes::Sizes>(
      "exported/sizes_2.15.pt2", [&](sizes::Sizes& net) { return net.forward(x, y, n); },
      [&] {
        return std::vector<IValue>{x, y, n};
      });
}

}  // namespace
}  // namespace ramet
