#include "nn/module/ordered_dict.h"

#include "tests/nn/support.h"

namespace ramet {
namespace {

TEST(OrderedDict, KeepsTheOrderOfInsertion) {
  OrderedDict<std::string, int> dict;
  EXPECT_TRUE(dict.is_empty());
  dict.insert("b", 1);
  dict.insert("a", 2);
  dict.insert("c", 3);
  EXPECT_EQ(dict.keys(), (std::vector<std::string>{"b", "a", "c"}));
  EXPECT_EQ(dict.values(), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(dict.pairs()[1], (std::pair<std::string, int>("a", 2)));
  EXPECT_EQ(dict.front().key(), "b");
  EXPECT_EQ(dict.back().value(), 3);
  EXPECT_EQ(dict.size(), 3u);
  int sum = 0;
  for (auto& item : dict) sum += item.value() + *item;
  EXPECT_EQ(sum, 12);
}

TEST(OrderedDict, HasNoEndsWhereItIsEmpty) {
  OrderedDict<std::string, int> dict;
  const OrderedDict<std::string, int>& same = dict;
  EXPECT_ERROR_TEXT(dict.front(), "[OrderedDict] front() of an empty one");
  EXPECT_ERROR_TEXT(dict.back(), "[OrderedDict] back() of an empty one");
  EXPECT_ERROR_TEXT(same.front(), "front() of an empty one");
  EXPECT_ERROR_TEXT(same.back(), "back() of an empty one");
  dict.insert("a", 1);
  dict.erase("a");
  EXPECT_ERROR_TEXT(dict.back(), "back() of an empty one");
}

TEST(OrderedDict, FindsByKeyAndByPosition) {
  OrderedDict<std::string, int> dict{{"x", 7}, {"y", 8}};
  EXPECT_EQ(dict["x"], 7);
  EXPECT_EQ(dict[1].key(), "y");
  EXPECT_EQ(*dict.find("y"), 8);
  EXPECT_EQ(dict.find("z"), nullptr);
  EXPECT_TRUE(dict.contains("x"));
  dict["x"] = 9;
  EXPECT_EQ(dict[0].value(), 9);
}

TEST(OrderedDict, ErasesAndGoesOn) {
  OrderedDict<std::string, int> dict;
  for (int i = 0; i < 100; ++i) dict.insert(std::to_string(i), i);
  for (int i = 0; i < 100; i += 3) dict.erase(std::to_string(i));
  EXPECT_EQ(dict.size(), 66u);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(dict.contains(std::to_string(i)), i % 3 != 0) << i;
    if (i % 3 != 0) { EXPECT_EQ(dict[std::to_string(i)], i); }
  }
  EXPECT_EQ(dict[0].value(), 1);
  EXPECT_EQ(dict[2].value(), 4);
  dict.insert("0", -1);
  EXPECT_EQ(dict.back().value(), -1);
  OrderedDict<std::string, int> other;
  other.insert("new", 5);
  dict.update(other);
  EXPECT_EQ(dict["new"], 5);
  dict.clear();
  EXPECT_FALSE(dict.contains("new"));
}

TEST(OrderedDict, ErrorsCallAKeyByItsDescription) {
  OrderedDict<std::string, int> dict("Parameter");
  dict.insert("w", 1);
  EXPECT_ERROR_TEXT(dict.insert("w", 2), "Parameter 'w' already defined");
  EXPECT_ERROR_TEXT(dict["v"], "Parameter 'v' is not defined");
  EXPECT_ERROR_TEXT(dict.erase("v"), "Parameter 'v' doesn't exist");
  EXPECT_ERROR_TEXT(dict[1], "Index 1 is out of bounds for 1 items");
  EXPECT_EQ(dict["w"], 1);
}

TEST(OrderedDict, ARefusedValueStaysItsOwners) {
  OrderedDict<std::string, std::unique_ptr<int>> d;
  d.insert("a", std::make_unique<int>(1));
  auto value = std::make_unique<int>(2);
  EXPECT_THROW(d.insert("a", std::move(value)), Error);
  EXPECT_TRUE(value != nullptr);
  EXPECT_EQ(d.size(), 1u);
}

TEST(OrderedDict, TakesAValueInBraces) {
  OrderedDict<std::string, std::vector<int>> dict;
  EXPECT_EQ(dict.insert("list", {1, 2, 3}).size(), 3u);
  dict.insert("empty", {});
  const std::string key = "named";
  const std::vector<int> value(2, 7);
  dict.insert(key, value);
  EXPECT_EQ(dict["list"], (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(dict[1].key(), "empty");
  EXPECT_EQ(dict["named"], value);
  EXPECT_ERROR_TEXT(dict.insert("list", {4}), "Key 'list' already defined");
}

TEST(OrderedDict, Compares) {
  OrderedDict<std::string, int> a{{"x", 1}, {"y", 2}}, b{{"x", 1}, {"y", 2}}, c{{"y", 2}, {"x", 1}};
  EXPECT_TRUE(a == b);
  EXPECT_FALSE(a == c);
}

}  // namespace
}  // namespace ramet
