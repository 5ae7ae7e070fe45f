// ./tools/translate wrote these headers while the test was built. They compute the interpreter's
// bits, forwards and backwards, and are modules.
#include "tests/error_text.h"
#include "tests/tools/translation/cases.h"
#include "tests/tools/translation/cnn_exported.h"
#include "tests/tools/translation/cnn_scripted.h"
#include "tests/tools/translation/cnn_traced.h"
#include "tests/tools/translation/encoder_traced.h"
#include "tests/tools/translation/gpt_exported.h"
#include "tests/tools/translation/gpt_scripted.h"
#include "tests/tools/translation/mlp_scripted.h"
#include "tests/tools/translation/mlp_traced.h"
#include "tests/tools/translation/named.h"
#include "tests/tools/translation/shared.h"
#include "tests/tools/translation/unet.h"
#include "tests/tools/translation/vit_traced.h"

namespace ramet {
namespace {

using translation::file;
using translation::filled;

// The first argument of `name` in a file of values.
Tensor input_of(const std::string& values, const std::string& arguments, const std::string& name) {
  const auto row = formats::load_pt(file(values)).toGenericDict().at(name).toGenericDict();
  const IValue& list = row.at(arguments);
  return (list.isTuple() ? list.toTupleRef().elements() : list.toListRef().vec())[0].toTensor();
}
Tensor script_input(const std::string& name) { return input_of("values.pt", "inputs", name); }

template <class Net> void expect_the_same(const std::string& path, const Tensor& x) {
  translation::expect_same_calls<Net>(
      path, [&](Net& net) { return net.forward(x.clone()); },
      [&] { return std::vector<IValue>{x.clone()}; });
}

template <class Net> void expect_the_same(const std::string& name) {
  expect_the_same<Net>(name + ".pt", script_input(name));
}

TEST(Translate, ComputesTheInterpretersBits) {
  expect_the_same<mlptraced::MlpTraced>("mlp_traced");
  expect_the_same<mlpscripted::MlpScripted>("mlp_scripted");
  expect_the_same<cnntraced::CnnTraced>("cnn_traced");
  expect_the_same<cnnscripted::CnnScripted>("cnn_scripted");
  expect_the_same<vittraced::VitTraced>("vit_traced");
  expect_the_same<gptscripted::GptScripted>("gpt_scripted");
  expect_the_same<encodertraced::EncoderTraced>("encoder_traced");
  expect_the_same<unet::Unet>("unet");
}

TEST(Translate, ComputesTheBitsOfExportedPrograms) {
  const std::string values = "exported/values_2.15.pt";
  expect_the_same<cnnexported::CnnExported>("exported/cnn_2.15.pt2",
                                            input_of(values, "args", "cnn"));
  expect_the_same<gptexported::GptExported>("exported/gpt_2.15.pt2",
                                            input_of(values, "args", "gpt"));
}

TEST(Translate, SharedTensorsAreOne) {
  const jit::Module module = jit::load(file("shared.pt"));
  const auto net = filled<shared::Shared>(module);
  EXPECT_TRUE(net->weight.is_same(net->again));
  EXPECT_EQ(net->parameters().size(), 1U);
  expect_the_same<shared::Shared>("shared");
}

// One name for a class, a member, a method and a variable; attributes that the code changes; a loop
// that reads a parameter.
TEST(Translate, NamesAndAttributesStayApart) {
  const jit::Module module = jit::load(file("named.pt"));
  const auto net = filled<named::Named>(module);
  EXPECT_FALSE(net->is_training());
  const Tensor x = randn({3, 2});
  for (int call = 0; call < 4; ++call) {
    if (call == 2) net->train(), module.train();
    EXPECT_TRUE(net->forward(x, 3).equal(module.forward({x, 3}).toTensor())) << call;
    EXPECT_TRUE(net->total.equal(module.attr("total").toTensor())) << call;
    EXPECT_EQ(net->steps, module.attr("steps").toInt());
  }
  EXPECT_TRUE(net->named_buffers()["total"].is_same(net->total));
}

TEST(Translate, NamesOfFilesStayInComments) {
  const std::string header = script::translate(jit::load(file("mlp_traced.pt")), "Std").header;
  EXPECT_NE(header.find("namespace std_net {"), std::string::npos);
}

TEST(Translate, AClonedStructIsAModule) {
  const jit::Module module = jit::load(file("cnn_scripted.pt"));
  const auto net = filled<cnnscripted::CnnScripted>(module);
  net->eval();
  const auto copy = std::dynamic_pointer_cast<cnnscripted::CnnScripted>(net->clone());
  ASSERT_TRUE(copy);
  const Tensor x = script_input("cnn_scripted");
  EXPECT_TRUE(copy->forward(x).equal(net->forward(x)));
  optim::SGD sgd(copy->parameters(), 0.1);
  copy->forward(x).sum().backward();
  sgd.step();
  EXPECT_FALSE(copy->forward(x).equal(net->forward(x)));
}

TEST(Translate, WritesTheSameTextTwice) {
  const jit::Module module = jit::load(file("vit_traced.pt"));
  EXPECT_EQ(script::translate(module, "Vit").header, script::translate(module, "Vit").header);
}

TEST(Translate, RefusesNames) {
  EXPECT_ERROR_TEXT(script::translate(jit::load(file("mlp_traced.pt")), "two words"), "two words");
  EXPECT_ERROR_TEXT(script::translate(jit::load(file("mlp_traced.pt")), "class"), "class");
  EXPECT_ERROR_TEXT(script::translate(jit::Module(), "Net"), "holds nothing");
}

}  // namespace
}  // namespace ramet
