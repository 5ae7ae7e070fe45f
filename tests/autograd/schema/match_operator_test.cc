// match_operator() and change(): PyTorch's rules of overloads.
#include <gtest/gtest.h>

#include "autograd/ops.h"
#include "runtime/base/error.h"
#include "tests/autograd/schema/called.h"

namespace ramet::script {
namespace {

using Kind = Type::Kind;
using Change = Match::Change;

std::string overload(const std::string& name, const std::vector<Passing>& arguments) {
  const Match match = matched(name, arguments);
  return match.op ? match.op->text() : "";
}
std::string refusal(const std::string& name, const std::vector<Given>& given) {
  std::string why;
  EXPECT_FALSE(match_operator(name, given, why).op);
  return why;
}

TEST(MatchOperator, ChoosesByTypes) {
  const Tensor x = ones({2});
  EXPECT_EQ(overload("aten::add", {x, x}),
            "aten::add(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor");
  EXPECT_EQ(overload("aten::add", {x, 1}),
            "aten::add(Tensor self, Scalar other, Scalar alpha=1) -> Tensor");
  EXPECT_EQ(overload("aten::add", {1, 2}), "aten::add.int(int a, int b) -> int");
  EXPECT_EQ(overload("aten::add", {1, 2.0}), "aten::add.int_float(int a, float b) -> float");
  EXPECT_EQ(overload("aten::add", {"a", "b"}), "aten::add.str(str a, str b) -> str");
  const Match lists = matched("aten::add", {std::vector<int64_t>{1}, std::vector<int64_t>{2}});
  EXPECT_EQ(lists.op->overload, "t");
  EXPECT_EQ(lists.result->text(), "List[int]");
}

TEST(MatchOperator, TakesNamesAndDefaults) {
  const Tensor x = ones({2});
  const Match match = matched("aten::sum", {x, Passing(7, "dtype")});
  EXPECT_EQ(match.sources, (std::vector<int>{0, 1}));
  EXPECT_EQ(called("aten::sum", {x, Passing(7, "dtype")}).toTensor().scalar_type(), kDouble);
  EXPECT_EQ(matched("aten::max", {x, 0}).sources, (std::vector<int>{0, 1, -1}));
  EXPECT_EQ(matched("aten::add", {x, x, Passing(2, "alpha")}).sources, (std::vector<int>{0, 1, 2}));
  const TypePtr tensor = Type::of(Kind::kTensor);
  EXPECT_NE(refusal("aten::add", {{"", tensor}, {"", tensor}, {"beta", tensor}}).find("'beta'"),
            std::string::npos);
  EXPECT_NE(refusal("aten::relu", {{"", tensor}, {"", tensor}}).find("at most 1"),
            std::string::npos);
  EXPECT_NE(refusal("aten::relu", {}).find("'self' has no value"), std::string::npos);
  EXPECT_EQ(refusal("aten::nothing", {}), "there is no operator aten::nothing");
}

TEST(MatchOperator, RepeatsNumbersAndConvertsEmptyLists) {
  const Tensor x = ones({1, 1, 4, 4});
  const Match pool = matched("aten::avg_pool2d", {x, 2});
  EXPECT_EQ(pool.changes[1], Change::kRepeat);
  EXPECT_EQ(change(Change::kRepeat, pool.op->parameters[1], 2).toIntVector(),
            (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(call_match(pool, {x, 2}).toTensor().sizes(), IntArrayRef({1, 1, 2, 2}));
  // A constant [] is of any type.
  const Match empty_list = matched("aten::sum", {x, IValue(std::vector<Tensor>())});
  EXPECT_EQ(empty_list.changes[1], Change::kEmptyList);
  EXPECT_TRUE(change(Change::kEmptyList, empty_list.op->parameters[1], {}).isIntList());
  // No single number where the length is free.
  EXPECT_NE(refusal("aten::permute", {{"", Type::of(Kind::kTensor)}, {"", Type::of(Kind::kInt)}}),
            "");
}

TEST(MatchOperator, ConvertsTensorsOnlyWhereNothingElseFits) {
  const Tensor one = full({}, 1);
  const Match select = matched("aten::select", {ones({2, 3}), one, 0});
  EXPECT_EQ(select.changes[1], Change::kTensorToInt);
  EXPECT_EQ(call_match(select, {ones({2, 3}), one, 0}).toTensor().sizes(), IntArrayRef({2}));
  // add(x, tensor) keeps the tensor.
  EXPECT_EQ(matched("aten::add", {one, one}).changes[1], Change::kNone);
  const Match filled = matched("aten::full", {std::vector<int64_t>{2}, one});
  EXPECT_EQ(filled.changes[1], Change::kTensorToNumber);
  EXPECT_EQ(matched("aten::dropout", {one, one, false}).changes[1], Change::kTensorToFloat);
  EXPECT_EQ(matched("aten::dropout", {one, 0, false}).changes[1], Change::kIntToFloat);
  EXPECT_EQ(matched("aten::view", {one, IValue(std::vector<Tensor>{one})}).changes[1],
            Change::kTensorsToInts);
  const IValue pair = std::make_tuple(IValue(0), IValue(1));
  const Match permuted = matched("aten::permute", {ones({2, 3}), pair});
  EXPECT_EQ(permuted.changes[1], Change::kTupleToList);
  EXPECT_EQ(call_match(permuted, {ones({2, 3}), pair}).toTensor().sizes(), IntArrayRef({2, 3}));
  EXPECT_THROW(change(Change::kTensorToInt, select.op->parameters[1], ones({2})), Error);
}

TEST(MatchOperator, BindsVariables) {
  const TypePtr list_of_int = Type::list(Type::of(Kind::kInt));
  const TypePtr nested = Type::list(list_of_int);
  std::string why;
  const Match item = match_operator("aten::__getitem__", {{"", nested}, {"", Type::of(Kind::kInt)}}, why);
  ASSERT_TRUE(item.op);
  EXPECT_EQ(item.result->text(), "List[int]");
  const TypePtr dict = Type::dict(Type::of(Kind::kString), nested);
  const Match got = match_operator("aten::get", {{"", dict}, {"", Type::of(Kind::kString)}}, why);
  ASSERT_TRUE(got.op);
  EXPECT_EQ(got.result->text(), "Optional[List[List[int]]]");
  const Match pairs = match_operator("aten::items", {{"", dict}}, why);
  ASSERT_TRUE(pairs.op);
  EXPECT_EQ(pairs.result->text(), "List[Tuple[str, List[List[int]]]]");
  // A list takes its own type, and None only where that is optional.
  EXPECT_NE(refusal("aten::append", {{"", list_of_int}, {"", Type::of(Kind::kNone)}}), "");
  const TypePtr optional = Type::list(Type::optional(Type::of(Kind::kTensor)));
  EXPECT_TRUE(match_operator("aten::append", {{"", optional}, {"", Type::of(Kind::kNone)}}, why).op);
  EXPECT_TRUE(match_operator("aten::append", {{"", optional}, {"", Type::of(Kind::kTensor)}}, why).op);
}

TEST(MatchOperator, TakesFurtherArguments) {
  const Match match = matched("aten::format", {"{} {}", 1, 2.5});
  EXPECT_EQ(match.sources, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(called("aten::format", {"{} {}", 1, 2.5}).toStringRef(), "1 2.5");
}

TEST(MatchOperator, KeepsOptionals) {
  const TypePtr tensor = Type::of(Kind::kTensor), none = Type::of(Kind::kNone);
  std::string why;
  EXPECT_TRUE(match_operator("aten::linear", {{"", tensor}, {"", tensor}, {"", none}}, why).op);
  // An optional that may be None fits no tensor.
  EXPECT_FALSE(match_operator("aten::relu", {{"", Type::optional(tensor)}}, why).op);
  EXPECT_NE(why.find("got Optional[Tensor], expected Tensor"), std::string::npos) << why;
}

}  // namespace
}  // namespace ramet::script
