// Files that load() refuses: other formats, hostile pickles, names and sizes that lie.
#include <gtest/gtest.h>

#include <sstream>

#include "autograd/autograd.h"
#include "autograd/ops.h"
#include "nn/script/script.h"
#include "tests/error_text.h"
#include "tests/nn/script/archive_entries.h"

namespace ramet {
namespace {

using namespace script_files;  // NOLINT

TEST(ScriptFiles, OtherFormatsAreRefusedByName) {
  Entries old("mlp_traced");
  old["model.json"] = "{}";
  EXPECT_TRUE(contains(old.load_error(), "format 1 or 2"));
  EXPECT_ERROR_TEXT(jit::load(file("old_1_5")),
                    "got format \"2\", expected 3 to 10: load and save it with PyTorch 1.6");
  Entries mobile("mlp_traced");
  mobile["bytecode.pkl"] = "";
  EXPECT_TRUE(contains(mobile.load_error(), ".ptl"));
  for (const char* version : {"2", "11", "x", ""}) {
    Entries entries("mlp_traced");
    entries["version"] = version;
    EXPECT_TRUE(contains(entries.load_error(), "expected 3 to 10")) << version;
  }
  Entries script("mlp_traced");
  script["code/__torch__.py"] = "class Mlp(Module):\n  __parameters__ = [\n";
  EXPECT_TRUE(contains(script.load_error(), "code/__torch__.py"));
  EXPECT_ERROR_TEXT(jit::load(file("values")), "expected one of torch.jit.save()");
}

// A pickle of one object of class `name` with this state.
std::string pickle(const std::string& name, const std::string& state) {
  const size_t dot = name.rfind('.');
  return "\x80\x02" + ("c" + name.substr(0, dot) + "\n" + name.substr(dot + 1) + "\n") + ")\x81" +
         state + "b.";
}

TEST(ScriptFiles, HostilePicklesAreRefused) {
  const auto error = [](const std::string& data, const script::LoadOptions& options = {}) {
    Entries entries("mlp_traced");
    entries["data.pkl"] = data;
    return entries.load_error(options);
  };
  expect_part(error(pickle("__torch__.torch.classes.quantized.LinearPackedParamsBase", "}")),
              "C++ class torch.classes.quantized");
  expect_part(error(pickle("__torch__.Nothing", "}")), "Nothing");
  expect_part(error(pickle("os.system", "}")), "os.system");
  expect_part(error(pickle("__torch__.Mlp", "}")), "got no attribute __torch__.Mlp.training");
  expect_part(error(pickle("__torch__.Mlp", std::string("}X\x04\0\0\0"
                                                        "abcdNs",
                                                        12))),
              "which does not have it");
  expect_part(error("\x80\x02}."), "expected a module");
  // A module that holds itself: the memo's 0 is an attribute of what it names.
  std::string written =
      "\x80\x02"
      "c__torch__\nMlp\n)\x81q";
  written += '\0';
  written += "}X";
  written += std::string("\x06\0\0\0", 4) + "layersh";
  written += '\0';
  written += "sb.";
  expect_part(error(written), "that holds itself");
  // Nested deeper than the limit.
  std::string deep = "\x80\x02";
  for (int i = 0; i < 300; ++i) deep += ']';
  for (int i = 1; i < 300; ++i) deep += 'a';
  expect_part(error(deep + "."), "nested deeper than 200");
}

// They would load, and the module could not be saved again.
TEST(ScriptFiles, NamesThatNoZipCanHaveAreRefused) {
  for (const std::string& bad :
       {std::string(1, '\1'), std::string(1, '\x1f'), std::string("\xff")}) {
    Entries entries("mlp_traced");
    entries["code/?.txt"] = "text";
    std::string bytes = entries.packed();
    for (size_t at = bytes.find("code/?"); at != bytes.npos; at = bytes.find("code/?", at))
      bytes.replace(at + 5, 1, bad);
    std::istringstream in(bytes);
    EXPECT_ERROR_TEXT(jit::load(in), "an entry of code: got a name of 10 bytes, expected UTF-8");
  }
  Entries entries("mlp_traced");
  entries["code/" + std::string(5000, 'a')] = "text";
  EXPECT_NE(entries.load_error().find("got a name of 5005 bytes"), std::string::npos);
  // Names that the program gives.
  const jit::Module net = jit::load(file("mlp_scripted"));
  std::ostringstream out;
  for (const char* name : {"a\1", "\xff"})
    EXPECT_ERROR_TEXT(net.save(out, {{name, "text"}}), "name of an entry: got \"archive/extra/");
  for (const char* name : {"a/", ""})
    EXPECT_ERROR_TEXT(net.save(out, {{name, "text"}}), "name of an extra file: got \"");
}

TEST(ScriptFiles, SizesAreCompared) {
  script::LoadOptions options;
  options.unpacked_bytes = 100;
  expect_part(Entries("mlp_traced").load_error(options), "more than 100 bytes unpacked");
  Entries shorter("mlp_traced");
  shorter["data/0"].resize(3);
  expect_part(shorter.load_error(), "got 3 bytes in entry");
  Entries missing("mlp_traced");
  missing["data/0"].clear();
  EXPECT_NE(missing.load_error(), "no error");
  // Cut anywhere, a file is an Error and nothing else.
  const std::string whole = bytes_of(file("mlp_traced"));
  for (size_t n = 0; n < whole.size(); n += 97) {
    std::istringstream in(whole.substr(0, n));
    EXPECT_NE(error_of([&] { jit::load(in); }), "no error") << n;
  }
}

TEST(ScriptFiles, UnknownOperationsAreListedTogether) {
  Entries entries("mlp_traced");
  replace(entries["code/__torch__.py"], "return ",
          "a = torch.no_such_operation(x)\n    b = torch.nor_this_one(x)\n    "
          "c = ops.torchvision.nms(x, x, 0.5)\n    return ");
  const std::string error = entries.load_error();
  expect_part(error, "torchvision::nms: no such operation");
  expect_part(error, "no_such_operation");
  expect_part(error, "nor_this_one");
}

}  // namespace
}  // namespace ramet
