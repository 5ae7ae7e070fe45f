// Translations of what the language has apart from tensors: lists and dictionaries that change,
// objects, `with` blocks, hooks, fork(), and modules that have two places.
#include <set>

#include "tests/error_text.h"
#include "tests/tools/translation/beam.h"
#include "tests/tools/translation/blocks.h"
#include "tests/tools/translation/cases.h"
#include "tests/tools/translation/cnn_core.h"
#include "tests/tools/translation/control.h"
#include "tests/tools/translation/forked.h"
#include "tests/tools/translation/gpt_core.h"
#include "tests/tools/translation/hooked.h"
#include "tests/tools/translation/language.h"
#include "tests/tools/translation/nested.h"
#include "tests/tools/translation/old.h"
#include "tests/tools/translation/quiet.h"
#include "tests/tools/translation/tagger.h"
#include "tests/tools/translation/types.h"

namespace ramet {
namespace {

using translation::expect_same_calls;
using Inputs = std::vector<IValue>;

// Inputs of a golden, as its script saved them.
Inputs saved_inputs(const std::string& values, const std::string& key, const std::string& name) {
  const auto row =
      formats::load_pt(translation::file(values)).toGenericDict().at(name).toGenericDict();
  const IValue& list = row.at(key);
  return list.isTuple() ? list.toTupleRef().elements() : list.toListRef().vec();
}
Inputs scripted_inputs(const std::string& name) {
  return saved_inputs("values.pt", "inputs", name);
}

TEST(TranslateLanguage, ListsAndDictionariesThatChange) {
  const Inputs in = scripted_inputs("beam");
  expect_same_calls<beam::Beam>(
      "beam.pt",
      [&](beam::Beam& net) { return net.forward(in[0].toTensor(), in[1].toInt(), in[2].toInt()); },
      [&] { return in; });
}

TEST(TranslateLanguage, BlocksOfWith) {
  const Inputs in = scripted_inputs("blocks");
  expect_same_calls<blocks::Blocks>(
      "blocks.pt",
      [&](blocks::Blocks& net) { return net.forward(in[0].toTensor(), in[1].toInt()); },
      [&] { return in; });
}

TEST(TranslateLanguage, ForkedFunctionsAndHooks) {
  const Tensor x = scripted_inputs("forked")[0].toTensor();
  expect_same_calls<forked::Forked>(
      "forked.pt", [&](forked::Forked& net) { return net.forward(x); }, [&] { return Inputs{x}; });
  const Tensor y = scripted_inputs("hooked")[0].toTensor();
  expect_same_calls<hooked::Hooked>(
      "hooked.pt", [&](hooked::Hooked& net) { return net.forward(y); }, [&] { return Inputs{y}; });
}

TEST(TranslateLanguage, PackedSequences) {
  const Inputs in = scripted_inputs("tagger");
  expect_same_calls<tagger::Tagger>(
      "tagger.pt",
      [&](tagger::Tagger& net) { return net.forward(in[0].toTensor(), in[1].toTensor()); },
      [&] { return in; });
}

TEST(TranslateLanguage, ObjectsEnumeratorsAndOptionals) {
  const Inputs in = scripted_inputs("types");
  expect_same_calls<types::Types>(
      "types.pt",
      [&](types::Types& net) { return net.forward(in[0].toTensor(), in[1].toTensor()); },
      [&] { return in; });
  expect_same_calls<types::Types>(
      "types.pt", [&](types::Types& net) { return net.forward(in[0].toTensor(), std::nullopt); },
      [&] {
        return Inputs{in[0], IValue()};
      });
}

TEST(TranslateLanguage, FilesOfPyTorch110) {
  expect_same_calls<old::Old>(
      "old_1_10.pt", [](old::Old& net) { return net.forward(arange(-3, 3), linspace(-1, 1, 6)); },
      [] {
        return Inputs{arange(-3, 3), linspace(-1, 1, 6)};
      });
}

// What make_goldens.py's Language has, as a person would call it.
Dict<std::string, Tensor> table_of_two() { return {{"v", ones({2})}, {"w", full({2, 2}, 0.5)}}; }

TEST(TranslateLanguage, AllOfTheLanguage) {
  const Tensor x = arange(6, kFloat).view({3, 2}) - 2;
  expect_same_calls<language::Language>(
      "language.pt", [&](language::Language& net) { return net.forward(x, table_of_two(), 6); },
      [&] {
        return Inputs{x, translation::value_of(table_of_two()), 6};
      });
}

TEST(TranslateLanguage, AModuleInTwoPlacesIsOne) {
  const jit::Module module = jit::load(translation::file("language.pt"));
  const auto net = translation::filled<language::Language>(module);
  EXPECT_EQ(net->cell, net->holder->cell);
  EXPECT_EQ(net->parameters().size(), 1U);
  const Tensor x = randn({3, 2});
  net->forward(x, table_of_two(), 6);
  EXPECT_EQ(net->cell->calls, 2);
  const auto copy = std::dynamic_pointer_cast<language::Language>(net->clone());
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->cell, copy->holder->cell);
  EXPECT_NE(copy->cell, net->cell);
  EXPECT_TRUE(copy->cell->mean.equal(net->cell->mean));
  // Lists and objects of its own, with the values that they had.
  const size_t seen = net->cell->seen.size();
  EXPECT_EQ(copy->cell->seen.size(), seen);
  EXPECT_EQ(copy->box->calls, 1);
  copy->forward(x, table_of_two(), 6);
  EXPECT_EQ(copy->cell->seen.size(), seen + 2);
  EXPECT_EQ(copy->box->calls, 2);
  EXPECT_EQ(net->cell->seen.size(), seen);
  EXPECT_EQ(net->box->calls, 1);
  EXPECT_EQ(net->totals.at("v"), 1);
}

TEST(TranslateLanguage, FormatsWithTooFewValuesAreErrors) {
  const jit::Module module = jit::load(translation::file("language.pt"));
  const auto net = translation::filled<language::Language>(module);
  const Tensor x = randn({3, 2});
  EXPECT_ERROR_TEXT(net->forward(x, table_of_two(), 99), "expected more");
  EXPECT_ERROR_TEXT(module.forward({x, translation::value_of(table_of_two()), 99}),
                    "expected more");
}

TEST(TranslateLanguage, HooksOfAForwardWithoutAResult) {
  const jit::Module module = jit::load(translation::file("quiet.pt"));
  const auto net = translation::filled<quiet::Quiet>(module);
  const Tensor x = randn({3, 2});
  for (int call = 1; call < 3; ++call) {
    net->forward(x);
    EXPECT_TRUE(module({x}).isNone());
    EXPECT_TRUE(net->total.equal(module.attr("total").toTensor()));
    EXPECT_EQ(net->calls, 3 * call);
    EXPECT_EQ(module.attr("calls").toInt(), 3 * call);
  }
}

// A list that the code changes would become two lists.
TEST(TranslateLanguage, RefusesAChangedValueInTwoPlaces) {
  const jit::Module module = jit::load(translation::file("language.pt"));
  const auto refused = [&] { return error_of([&] { script::translate(module, "Net"); }); };
  const auto ranks = [](const List<int64_t>& a, const List<int64_t>& b) {
    IValue::GenericList rows;
    rows.push_back(a);
    rows.push_back(b);
    return rows;
  };
  const List<int64_t> row{3, 1};
  module.setattr("ranks", ranks(row, List<int64_t>{3, 1}));
  EXPECT_EQ(refused(), "no error");
  module.setattr("ranks", ranks(row, row));
  expect_part(refused(), "attribute 'ranks': got a List[int] that ranks holds, too");
  module.setattr("ranks", ranks(row, List<int64_t>{2}));
  for (const auto& child : module.named_children())
    if (child.name == "cell") child.value.setattr("seen", row);
  expect_part(refused(), " holds, too");
}

// Too many values, and few modules with very many paths to them.
TEST(TranslateLanguage, RefusesManyValuesAndPaths) {
  const jit::Module module = jit::load(translation::file("language.pt"));
  IValue level = List<int64_t>(std::vector<int64_t>(1'000'000));
  for (int i = 1; i < 24; ++i) {
    IValue::GenericList next;
    next.push_back(level);
    level = next;
  }
  module.setattr("deep", level);
  EXPECT_ERROR_TEXT(script::translate(module, "Net"), "'deep': got more than 1000000 values");
  EXPECT_ERROR_TEXT(script::translate(jit::load(translation::file("paths.pt")), "Net"),
                    "paths to modules");
}

TEST(TranslateLanguage, ErrorsLeaveBlocks) {
  const jit::Module module = jit::load(translation::file("forked.pt"));
  const auto net = translation::filled<forked::Forked>(module);
  EXPECT_THROW(net->forward(randn({2, 5})), Error);
  EXPECT_TRUE(GradMode::is_enabled());
}

TEST(TranslateLanguage, ConditionsAndLoopsOfExportedPrograms) {
  const Inputs in = saved_inputs("exported/values_2.15.pt", "args", "control");
  for (const double sign : {1.0, -1.0}) {
    const Tensor x = in[0].toTensor() * sign;
    expect_same_calls<control::Control>(
        "exported/control_2.15.pt2",
        [&](control::Control& net) { return net.forward(x, in[1].toTensor()); },
        [&] {
          return Inputs{x, in[1]};
        });
  }
}

TEST(TranslateLanguage, NestedArgumentsAndResults) {
  const Tensor a = randn({2, 3}, kDouble);
  const auto pair = [&] { return std::tuple(a, std::tuple(a[0] * 2, a + 1)); };
  const auto more = [&] {
    return Dict<std::string, IValue>{{"x", IValue(a * 3)},
                                     {"list", IValue(std::vector<Tensor>{a - 1})}};
  };
  expect_same_calls<nested::Nested>(
      "exported/nested_2.15.pt2",
      [&](nested::Nested& net) { return net.forward(pair(), more(), 2.0); },
      [&] {
        return Inputs{translation::value_of(pair()), translation::value_of(more()), 2.0};
      });
}

TEST(TranslateLanguage, NormsThatExportDecomposed) {
  const Inputs image = saved_inputs("exported/values_2.15.pt", "args", "cnn_core");
  expect_same_calls<cnncore::CnnCore>(
      "exported/cnn_core_2.15.pt2",
      [&](cnncore::CnnCore& net) { return net.forward(image[0].toTensor()); },
      [&] { return image; });
  const Inputs ids = saved_inputs("exported/values_2.15.pt", "args", "gpt_core");
  expect_same_calls<gptcore::GptCore>(
      "exported/gpt_core_2.15.pt2",
      [&](gptcore::GptCore& net) { return net.forward(ids[0].toTensor()); }, [&] { return ids; });
}

// All files of both folders; those of other versions are compiled by `./tools/test --long`.
TEST(TranslateLanguage, TranslatesEachGolden) {
  const char* const scripted[] = {
      "beam",         "blocks", "cnn_scripted", "cnn_traced",   "encoder_traced", "forked",
      "gpt_scripted", "hooked", "language",     "mlp_scripted", "mlp_traced",     "named",
      "old_1_10",     "shared", "tagger",       "types",        "unet",           "vit_traced"};
  const char* const exported[] = {
      "cnn_2.12",      "cnn_2.15",           "cnn_2.5",         "cnn_2.7",      "cnn_2.9",
      "cnn_core_2.15", "cnn_core_eval_2.15", "cnn_strict_2.15", "control_2.15", "encoder_2.15",
      "gpt_2.12",      "gpt_2.15",           "gpt_2.5",         "gpt_2.7",      "gpt_2.9",
      "gpt_core_2.15", "gru_core_2.15",      "lstm_2.15",       "nested_2.15",  "sizes_2.15"};
  std::vector<std::string> paths;
  for (const char* const name : scripted) paths.push_back(std::string(name) + ".pt");
  for (const char* const name : exported) paths.push_back("exported/" + std::string(name) + ".pt2");
  for (const std::string& path : paths) {
    SCOPED_TRACE(path);
    const jit::Module module = jit::load(translation::file(path));
    const auto made = script::translate(module, "Net");
    EXPECT_NE(made.header.find("struct Net : ramet::nn::Cloneable<Net>"), std::string::npos);
    for (const auto& p : module.named_parameters())
      EXPECT_TRUE(made.tensors.contains(p.name)) << p.name;
  }
}

}  // namespace
}  // namespace ramet
