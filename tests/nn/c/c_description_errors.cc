// Descriptions of modules that are none: a text that names the place.
#include <string>
#include <vector>

#include "nn/c/c.h"
#include "runtime/memory/allocator.h"
#include "tests/error_text.h"
#include "tests/fuzz.h"
#include "tests/modules.h"
#include "tests/nn/c/c_support.h"

namespace ramet {
namespace {

struct CDescriptions : CInterface {};

TEST_F(CDescriptions, ErrorsNameThePlace) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"layers": [{"type": "ReLU"}, {"type": "ReLU"}, {"type": "Linear", "in_features": -3, "out_features": 1}]})",
       "[ramet_module_new] layers[2].in_features: expected a positive integer, got -3"},
      {R"({"type": "Linear", "in_features": 0, "out_features": 1})",
       "in_features: expected a positive integer, got 0"},
      {R"({"type": "Linear", "in_features": 2.0, "out_features": 1})",
       "in_features: expected a positive integer, got 2.0"},
      {R"({"type": "Linear", "in_features": 18446744073709551615, "out_features": 1})",
       "in_features: expected a positive integer, got 18446744073709551615"},
      {R"({"type": "Linear", "out_features": 1})",
       "in_features: Linear needs this option, got nothing"},
      {R"({"type": "Linear", "in_features": 1, "out_features": 1, "bais": true})",
       "bais: no such option of Linear, which has dtype, layers, type, in_features, out_features, "
       "bias"},
      {R"({"layers": [{"layers": [{"type": "Linear", "in_features": 1, "out_features": 1, "bias": 3}]}]})",
       "layers[0].layers[0].bias: expected true or false, got 3"},
      {R"({"layers": [{"type": "Liner"}]})",
       "layers[0].type: expected one of the modules that ramet/c.h lists, got \"Liner\""},
      {R"({"layers": [{"in_features": 1}]})",
       "layers[0].type: a module needs this option, got nothing"},
      {R"({"layers": [7]})", "layers[0]: expected an object, got 7"},
      {R"({"layers": {}})", "layers: expected a list of modules, got {}"},
      {R"({"type": "Sequential"})", "layers: expected a list of modules, got nothing"},
      {R"([])", "the text: expected an object, got []"},
      {R"({"type": "Conv2d", "in_channels": 1, "out_channels": 1, "kernel_size": [3, 0]})",
       "kernel_size[1]: expected a positive integer, got 0"},
      {R"({"type": "Conv2d", "in_channels": 1, "out_channels": 1, "kernel_size": [3]})",
       "kernel_size: expected a positive integer or a list of 2, got [3]"},
      {R"({"type": "Conv2d", "in_channels": 1, "out_channels": 1, "kernel_size": 3, "padding": "some"})",
       "padding: expected one of \"valid\", \"same\", got \"some\""},
      {R"({"type": "Conv2d", "in_channels": 1, "out_channels": 1, "kernel_size": 3, "padding": -1})",
       "padding: expected an integer, 0 or more, got -1"},
      {R"({"type": "Conv2d", "in_channels": 1, "out_channels": 1, "kernel_size": 3, "padding_mode": "mirror"})",
       "padding_mode: expected one of \"zeros\", \"reflect\", \"replicate\", \"circular\", got "
       "\"mirror\""},
      // What the module's class refuses says where, too.
      {R"({"layers": [{"type": "Conv2d", "in_channels": 3, "out_channels": 4, "kernel_size": 3, "groups": 2}]})",
       "(layers[0], Conv2d)"},
      {R"({"type": "Dropout", "p": 1.5})", "(Dropout)"},
      {R"({"layers": [{"type": "ReLU", "name": "a.b"}]})", "layers[0].name"},
      {R"({"layers": [{"type": "ReLU", "name": "a"}, {"type": "ReLU", "name": "a"}]})",
       "layers[1].name"},
      {R"({"type": "ReLU", "dtype": "int8"})", "dtype: expected \"float32\", \"float64\""},
      {R"({"layers": [{"type": "ReLU", "dtype": "float64"}]})",
       "layers[0].dtype: no such option of ReLU"},
      {R"({"type": "LSTM", "input_size": 1, "hidden_size": 1, "output": "first"})",
       "output: expected \"sequence\" or \"last\", got \"first\""},
      {R"({"type": "LayerNorm"})",
       "normalized_shape: expected the last sizes of the input, got nothing"},
      {R"({"type": "ReLU", "type": "Tanh"})", "the JSON text: got the key \"type\" twice"},
      {R"({"type": "ReLU")", "the JSON text is no valid JSON ("},
      {"", "the JSON text is no valid JSON ("},
      {"{\"type\": \"\xff\"}", "the JSON text is no valid JSON ("},
  };
  for (const auto& [json, part] : cases) {
    EXPECT_EQ(ramet_module_new(json, nullptr), nullptr) << json;
    expect_part(last(), part);
  }
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += R"({"layers":[)";
  for (int i = 0; i < 100; ++i) deep += "]}";
  EXPECT_EQ(ramet_module_new(deep.c_str(), nullptr), nullptr);
  expect_part(last(), "modules are more than 64 deep");
  // Which a message that showed it would call itself for.
  const std::string lists =
      "{\"type\": " + std::string(100000, '[') + std::string(100000, ']') + "}";
  EXPECT_EQ(ramet_module_new(lists.c_str(), nullptr), nullptr);
  expect_part(last(), "the JSON text: got JSON nested deeper than 256");
  // More than any memory has: an error, not an end.
  EXPECT_EQ(
      ramet_module_new(
          R"({"type": "Linear", "in_features": 4000000000000000000, "out_features": 7})", nullptr),
      nullptr);
  expect_part(last(), "(Linear)");
}

// Texts that are nearly descriptions: a module or an error, and nothing else.
TEST_F(CDescriptions, ThatWereDamaged) {
  std::vector<std::string> all;
  for (const testing::ModuleExample& row : testing::module_examples())
    if (row.json) all.emplace_back(row.json);
  const std::vector<std::string> values = {"-1",
                                           "0",
                                           "1",
                                           "3",
                                           "2147483648",
                                           "4611686018427387904",
                                           "-9223372036854775808",
                                           "18446744073709551616",
                                           "1.5",
                                           "-1e308",
                                           "1e999",
                                           "null",
                                           "true",
                                           "\"\"",
                                           "\"same\"",
                                           "[]",
                                           "[1]",
                                           "[1, 2, 3]",
                                           "[null, 1]",
                                           "{}"};
  set_memory_limit(Device(kCPU, 0), int64_t{16} << 20);
  fuzz::check_tapes(500, 30, [&](fuzz::Tape& tape) {
    std::string text = "{\"layers\": [" + tape.one_of(all) + ", " + tape.one_of(all) + "]}";
    for (int64_t edits = tape.between(1, 3); edits > 0 && !text.empty(); --edits) {
      const auto at = static_cast<size_t>(tape.below(static_cast<int64_t>(text.size())));
      const size_t value = text.find(": ", at);
      switch (tape.below(4)) {
        case 0:
        case 1:  // another value
          if (value == std::string::npos) break;
          text.replace(value + 2, text.find_first_of(",}", value) - value - 2, tape.one_of(values));
          break;
        case 2: text.erase(at, static_cast<size_t>(tape.between(1, 9))); break;
        default: text[at] = static_cast<char>(tape.below(256));
      }
    }
    ramet_module* net = ramet_module_new(text.c_str(), nullptr);
    if (!net) RC_ASSERT(contains(last(), "["));
    ramet_module_free(net);
  });
  set_memory_limit(Device(kCPU, 0), 0);
}

}  // namespace
}  // namespace ramet
