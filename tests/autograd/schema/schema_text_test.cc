// parse_schema() and Operator::text().
#include <gtest/gtest.h>

#include "autograd/schema/operators_internal.h"
#include "runtime/base/error.h"

namespace ramet::script {
namespace {

std::string again(const char* text) { return parse_schema(text, nullptr).text(); }

TEST(SchemaText, ReadsWhatItWrites) {
  for (const char* text : {
           "aten::relu(Tensor self) -> Tensor",
           "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
           "aten::max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor, Tensor)",
           "aten::format(str self, ...) -> str",
           "prim::Print(...) -> ()",
           "aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
           "aten::dict.str((str, tVal)[] inputs) -> Dict(str, tVal)",
           "aten::x(int[2] a=1, int[]? b=None, float c=0.5, str d=\"a \\n\\\"\", bool e=True) -> int",
           "aten::wait(Future(t) self) -> t",
           "aten::y(Device d, Generator? g=None) -> ()"})
    EXPECT_EQ(again(text), text);
}

TEST(SchemaText, DropsWhatDoesNotMatter) {
  EXPECT_EQ(again("aten::max.dim(Tensor(a -> *) self, int dim) -> (Tensor values, Tensor indices)"),
            "aten::max.dim(Tensor self, int dim) -> (Tensor, Tensor)");
  EXPECT_EQ(again("aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)"),
            "aten::view(Tensor self, int[] size) -> Tensor");
  EXPECT_EQ(again("aten::f(ScalarType? dtype=long, int reduction=Mean) -> t(*)?"),
            "aten::f(int? dtype=4, int reduction=1) -> t?");
  EXPECT_EQ(again("aten::items.str(Dict(str, t) self) -> ((str, t)[])"),
            "aten::items.str(Dict(str, t) self) -> (str, t)[]");
}

TEST(SchemaText, KnowsDetailsOfParameters) {
  const Operator op = parse_schema(
      "aten::f.over(Tensor(a!) self, int[2] stride=3, *, Scalar? x=None) -> Tensor(a!)", nullptr);
  EXPECT_EQ(op.name, "aten::f");
  EXPECT_EQ(op.overload, "over");
  ASSERT_EQ(op.parameters.size(), 3u);
  EXPECT_TRUE(op.parameters[0].written);
  EXPECT_FALSE(op.parameters[1].written);
  EXPECT_EQ(op.parameters[1].repeat, 2);
  EXPECT_EQ(op.parameters[1].value->toIntVector(), (std::vector<int64_t>{3, 3}));
  EXPECT_FALSE(op.parameters[1].by_name);
  EXPECT_TRUE(op.parameters[2].by_name);
  EXPECT_TRUE(op.parameters[2].value->isNone());
  // A float's default may be written as an integer.
  EXPECT_TRUE(parse_schema("aten::f(float x=1) -> ()", nullptr).parameters[0].value->isDouble());
}

TEST(SchemaText, RefusesOtherTexts) {
  for (const char* text :
       {"", "relu(Tensor self) -> Tensor", "aten::f", "aten::f(", "aten::f(Tensor self",
        "aten::f(Tensor self)", "aten::f(Tensor self) ->", "aten::f(Tensor) -> Tensor",
        "aten::f(Stream s) -> ()", "aten::f(int x=) -> ()", "aten::f(int x=1.2.3) -> ()",
        "aten::f(int x=99999999999999999999) -> ()", "aten::f(str x=\"a) -> ()",
        "aten::f(Tensor(a self) -> ()", "aten::f(int[ x) -> ()", "aten::f(int x) -> () rest",
        "aten::f(Dict(str) x) -> ()", "aten::f(int x=[1) -> ()", "aten::f(int x y) -> ()"})
    EXPECT_THROW(parse_schema(text, nullptr), Error) << text;
}

}  // namespace
}  // namespace ramet::script
