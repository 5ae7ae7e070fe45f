// Programs of torch.export that are refused, and their guards.
#include <gtest/gtest.h>

#include "tests/nn/script/exported_files.h"

namespace ramet {
namespace {

using namespace exported_files;  // NOLINT

// PyTorch's module() refuses these: Python's code would take the other branch.
TEST(ExportedRefused, GuardsOfTheTracerHold) {
  const Exported guarded("guarded");
  const auto run = [&](int64_t x, int64_t y) {
    IValue::GenericDict more;
    more.insert("y", IValue(std::vector<Tensor>{ones({y, 5}, kDouble)}));
    return guarded.net({ones({x, 5}, kDouble), more}).toTensor().item<double>();
  };
  EXPECT_EQ(run(4, 3), 2 * 20 + 15);
  EXPECT_EQ(run(3, 1), 2 * 15 + 5);
  for (const auto& [x, y] : {std::pair(3, 3), {4, 5}})
    expect_error([&, x = x, y = y] { run(x, y); },
                 {"inputs: got more[\"y\"][0] of the size [" + std::to_string(y) + ", 5], x of",
                  "expected L['x'].size()[0] > L['more']['y'][0].size()[0]"});
  expect_error([&] { run(2, 1); }, {"input 'x'", "at least 3"});
}

// Sources that are fields of a NamedTuple, and that are in **kwargs.
TEST(ExportedRefused, GuardsOfFieldsAndNames) {
  const Exported fields("fields");
  const auto run = [&](int64_t x, int64_t y) {
    IValue::GenericDict more;
    more.insert("{}", ones({y, 5}, kDouble));
    const IValue pair = IValue::Tuple::create({ones({2, 3}, kDouble), ones({x, 5}, kDouble)});
    return fields.net({pair}, {{"y", more}}).toTensor().sum().item<double>();
  };
  EXPECT_EQ(run(4, 3), 12);
  expect_error([&] { run(3, 3); },
               {"inputs: got pair[1] of the size [3, 5], y[\"{ }\"] of the size [3, 5]",
                "expected L['pair'].second.size()[0] > L['more']['y']['{ }'].size()[0]"});
}

TEST(ExportedRefused, AllProblemsAreOneErrorWithPythonsLines) {
  const std::string error = error_of([] {
    std::istringstream in(changed("cnn", "models/", [](std::string& text) {
      replace_all(text, "torch.ops.aten.conv2d.default", "torch.ops.aten.conv9d.default");
      replace_all(text, "torch.ops.aten.silu.default", "torch.ops.mine.silu.default");
    }));
    jit::load(in);
  });
  for (const char* part : {"aten::conv9d: no such operation", "mine::silu: no such operation",
                           "make_exported.py:", "node \"conv2d\"", "node \"silu\""})
    EXPECT_NE(error.find(part), std::string::npos) << part << " is not in: " << error;
}

TEST(ExportedRefused, GuardsOfAnotherGrammar) {
  const auto expect = [](const std::string& to, const std::string& part) {
    const std::string error =
        error_with("guarded", "models/", "L['x'].size()[0] > L['more']", to + " > L['more']");
    EXPECT_NE(error.find(part), std::string::npos) << part << " is not in: " << error;
  };
  const std::string guard = "got the guard";
  expect("L['x'].data_ptr()", guard);
  expect("L['x'].size()[i]", "expected the number of a dimension");
  for (const char* unknown : {"L['z']", "L['x'].a", "L['z']['x']['y']", "L['z'][0]"})
    EXPECT_EQ(error_with("guarded", "models/", "L['x'].size()[0] > L",
                         std::string(unknown) + ".size()[0] > L"),
              "")
        << unknown;
  expect("open(1)", "expected a function that this library has, not builtins.open");
  expect("torch.relu(L['x'])", guard);
  expect("[1]", "expected numbers, sizes, and operations on them");
  expect("1 +", "got a guard that is no expression");
  std::string doubled = "L['x'].size()[0]";
  for (int i = 0; i < 40; ++i) doubled = "torch._sym_log2(" + doubled + ")";
  expect(doubled, "expected a shorter one");
  expect(std::string(500, '('), "got a guard that is no expression");
  EXPECT_EQ(error_with("guarded", "models/", "L['x'].size()[0] > L",
                       "math.floor(torch.sym_max(L['x'].size()[0], -2) / 1.5) % 7 != 3 and not "
                       "L['x'].stride()[1] == 2 or L['x'].storage_offset() < L"),
            "");
}

TEST(ExportedRefused, ObjectsOfLibraries) {
  const std::string spec =
      error_with("cnn", "models/", "{\"buffer\": {\"arg\": {\"name\": \"b_scale\"}",
                 "{\"custom_obj\": {\"arg\": {\"name\": \"b_scale\", \"class_fqn\": \"my.Queue\"}");
  EXPECT_NE(spec.find("object of the C++ class \"my.Queue\""), std::string::npos) << spec;
  const std::string argument =
      error_with("cnn", "models/", "{\"as_ints\": [2, 2]}",
                 "{\"as_custom_obj\": {\"name\": \"q\", \"class_fqn\": \"my.Queue\"}}");
  EXPECT_NE(argument.find("object of the C++ class \"my.Queue\""), std::string::npos) << argument;
}

TEST(ExportedRefused, StepsOfVmapAndOtherRegions) {
  const auto error = [](const std::string& from, const std::string& to) {
    return error_with("sums", "models/", from, to);
  };
  const std::string vmap =
      error("torch.ops.aten.movedim.int", "torch._functorch.predispatch._add_batch_dim");
  EXPECT_NE(vmap.find("write the loop with scan()"), std::string::npos) << vmap;
  const std::string flex = error("higher_order.associative_scan", "higher_order.flex_attention");
  EXPECT_NE(flex.find("higher_order::flex_attention: no such operation"), std::string::npos);
}

TEST(ExportedRefused, WrongFiles) {
  const auto expect = [](const std::string& error, const std::string& part) {
    EXPECT_NE(error.find(part), std::string::npos) << part << " is not in: " << error;
  };
  expect(error_with("cnn", "models/", "\"major\": 8", "\"major\": 99"), "version 99");
  expect(error_with("cnn", "models/", "\"as_ints\"", "\"as_dreams\""), "as_dreams");
  expect(error_with("cnn", "models/", "\"outputs\": [{\"as_tensor\": {\"name\": \"conv2d\"",
                    "\"outputs\": [{\"as_tensor\": {\"name\": \"conv_\""),
         "\"conv2d\", expected the name");
  expect(error_with("cnn", "models/", "Symbol(", "Lambda("), "expected Add, Mul");
  expect(error_with("cnn", "model_weights_config", "\"as_int\": 18", "\"as_int\": 1800000"),
         "expected a part of a storage");
  expect(error_with("cnn", "model_weights_config", "weight_0", "weight_x"), "got no entry");
  expect(error_with("cnn", "model_weights_config", "conv.bias", "conv.other"), "conv.bias");
}

}  // namespace
}  // namespace ramet
