// Frozen modules, and modules as text.
#include <gtest/gtest.h>

#include "autograd/ops.h"
#include "nn/script/script.h"
#include "tests/error_text.h"
#include "tests/nn/script/script_files.h"

namespace ramet {
namespace {

using namespace script_files;  // NOLINT

std::string names_of(const std::vector<jit::Named<IValue>>& list) {
  std::string text;
  for (const auto& item : list) text.append(text.empty() ? "" : " ").append(item.name);
  return text;
}

// LibTorch 2.15's freeze() of this file gave the same.
TEST(Freeze, MakesConstants) {
  const jit::Module net = jit::load(file("frozen"));
  const char* const training =
      "Freezing is currently only implemented for modules in eval mode. Please call .eval() before";
  EXPECT_ERROR_TEXT(jit::freeze(net), training);
  EXPECT_ERROR_TEXT(jit::optimize_for_inference(net), training);
  net.eval();
  const Tensor x = ones({2});
  const Tensor want = net.deepcopy().forward({x}).toTensor();
  EXPECT_TRUE(want.requires_grad());
  const jit::Module frozen = jit::freeze(net);
  EXPECT_FALSE(frozen == net);
  EXPECT_TRUE(frozen.named_parameters().empty());
  EXPECT_EQ(names_of(frozen.named_attributes()), "count calls");
  EXPECT_TRUE(frozen.children().empty());
  EXPECT_EQ(frozen.get_methods().size(), 1u);
  EXPECT_FALSE(frozen.find_method("other"));
  for (const char* name : {"training", "n", "sub"}) EXPECT_FALSE(frozen.hasattr(name)) << name;
  EXPECT_TRUE(frozen.hasattr("size")) << "a constant of the class";
  const Tensor got = frozen.forward({x}).toTensor();
  EXPECT_TRUE(got.equal(want));
  EXPECT_FALSE(got.requires_grad());
  EXPECT_EQ(frozen.attr("calls").toInt(), 1);
  EXPECT_EQ(frozen.deepcopy().attr("count").toTensor().item<double>(), 1);
  EXPECT_EQ(net.attr("calls").toInt(), 0) << "a copy";
  EXPECT_TRUE(net.named_parameters()[0].value.requires_grad());
}

// LibTorch's freeze() keeps the same, and `held`, which only training changes. It has no hooks.
TEST(Freeze, KeepsWhatIsChangedThroughOtherNames) {
  const jit::Module net = jit::load(file("changing"));
  const jit::Module frozen = jit::freeze(net);
  EXPECT_EQ(names_of(frozen.named_attributes()),
            "cache viewed a b passed given hooked items n first second first.seen second.seen");
  for (const char* name : {"still", "held", "weight"}) EXPECT_FALSE(frozen.hasattr(name)) << name;
  for (const auto& child : frozen.named_children())
    EXPECT_EQ(names_of(child.value.named_attributes()), "seen") << child.name;
  EXPECT_EQ(frozen.children().size(), 2u);
  (void)frozen({ones({2, 2}), false});
  EXPECT_EQ(frozen.attr("hooked").toTensor().sum().item<double>(), 4);
  EXPECT_EQ(frozen.attr("n").toInt(), 1);
  // A module that is preserved has all its attributes. torch.jit.script has made `second` another
  // one.
  const jit::Module whole = jit::freeze(net, std::vector<std::string>{"second"});
  for (const auto& child : whole.named_children())
    EXPECT_EQ(names_of(child.value.named_attributes()),
              child.name == "second" ? "seen still training _is_full_backward_hook" : "seen");
}

TEST(Freeze, KeepsWhatIsNamed) {
  const jit::Module net = jit::load(file("frozen"));
  net.eval();
  const jit::Module frozen = jit::freeze(net, std::vector<std::string>{"n", "other", "sub.w"});
  EXPECT_EQ(names_of(frozen.named_attributes()), "count n calls sub sub.w");
  ASSERT_EQ(frozen.named_parameters().size(), 1u);
  EXPECT_EQ(frozen.named_parameters()[0].name, "sub.w");
  EXPECT_TRUE(frozen.named_parameters()[0].value.requires_grad());
  EXPECT_TRUE(frozen.run_method("other", ones({2})).isTensor());
  EXPECT_ERROR_TEXT(jit::freeze(net, std::vector<std::string>{"nothing"}), "got 'nothing'");
  const jit::Module best = jit::optimize_for_inference(net);
  EXPECT_TRUE(best.parameters().empty());
  EXPECT_ERROR_TEXT(jit::optimize_for_inference(net, {"other"}), "Method 'other' is not defined");
  EXPECT_TRUE(jit::optimize_for_inference(frozen, {"other"}) == frozen) << "it is frozen already";
  // Batch norms count their batches in training only.
  const jit::Module cnn = jit::load(file("cnn_scripted"));
  cnn.eval();
  EXPECT_EQ(names_of(jit::freeze(cnn).named_attributes()), "");
}

TEST(Freeze, ModulesAsText) {
  const jit::Module net = jit::load(file("frozen"));
  const std::string text = net.dump_to_str(false, true, false);
  expect_part(text,
              "module __torch__.Frozen {\n  parameters {\n  }\n  attributes {\n    count =  0\n");
  expect_part(text, "    calls = 0\n");
  expect_part(text, "  methods {\n    method forward {\n    }\n    method other {\n    }\n  }\n");
  expect_part(text, "    module __torch__.Part {\n      parameters {\n        w = ...\n      }\n");
  expect_part(net.dump_to_str(true, false, false), "    method other {\n      def other(self");
  size_t modules = 0;
  std::string last;
  net.apply([&](jit::Module& m) { ++modules, last = m.type_name(); });
  EXPECT_EQ(modules, 5u);
  EXPECT_EQ(last, "__torch__.Frozen") << "those below a module come first";
  EXPECT_EQ(net.num_slots(), 9u);
  net.register_buffer("count", ones({1}));
  EXPECT_EQ(net.named_buffers()[0].value.item<double>(), 1);
}

}  // namespace
}  // namespace ramet
