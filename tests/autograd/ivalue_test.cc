// The kinds of values that scripts bring; those of files are in tensor_test.cc.
#include "autograd/ivalue.h"

#include <gtest/gtest.h>

#include <sstream>

#include "autograd/ops.h"
#include "tests/autograd/check.h"

namespace ramet {
namespace {

class Point final : public IValue::Object {
 public:
  const std::string& class_name() const override { return name_; }

 private:
  std::string name_ = "__torch__.Point";
};

std::string printed(const IValue& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

TEST(IValueKinds, EachKindHasItsQuestionItsNameAndItsText) {
  const auto point = std::make_shared<Point>();
  struct Row {
    IValue value;
    bool (IValue::*question)() const;
    const char *tag, *text;
  };
  const std::vector<Row> rows = {
      {{}, &IValue::isNone, "None", "None"},
      {true, &IValue::isBool, "Bool", "True"},
      {7, &IValue::isInt, "Int", "7"},
      {2.5f, &IValue::isDouble, "Double", "2.5"},
      {ones({}), &IValue::isTensor, "Tensor", nullptr},
      {Tensor(), &IValue::isTensor, "Tensor", nullptr},
      {"a", &IValue::isString, "String", "a"},
      {List<int64_t>{1}, &IValue::isIntList, "GenericList", "[1]"},
      {List<double>{1}, &IValue::isDoubleList, "GenericList", "[1.]"},
      {List<bool>{true, false}, &IValue::isBoolList, "GenericList", "[True, False]"},
      {List<Tensor>{}, &IValue::isTensorList, "GenericList", "[]"},
      {IValue::GenericDict{{1, "x"}}, &IValue::isGenericDict, "GenericDict", "{1: x}"},
      {IValue::GenericList{1, "x"}, &IValue::isList, "GenericList", "[1, x]"},
      {IValue::Tuple::create({1, 2.0}), &IValue::isTuple, "Tuple", "(1, 2.)"},
      {IValue(point), &IValue::isObject, "Object", "<__torch__.Point object>"},
      {IValue(std::make_shared<IValue::Future>(IValue(3))), &IValue::isFuture, "Future",
       "Future(3)"},
      {Device(kCPU, 0), &IValue::isDevice, "Device", "cpu"},
      {default_generator(Device(kCPU, 0)), &IValue::isGenerator, "Generator", "<Generator>"},
      {IValue::Opaque{"a.B"}, &IValue::isOpaque, "Opaque", "<a.B>"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(row.value.tagKind(), row.tag);
    for (const Row& other : rows) {
      const bool lists = other.question == &IValue::isList && row.value.isList();
      EXPECT_EQ((row.value.*other.question)(), row.question == other.question || lists)
          << row.tag << " asked as " << other.tag;
    }
    if (row.text) { EXPECT_EQ(printed(row.value), row.text); }
    // What has been moved from is None, and a copy is the same object.
    IValue copy = row.value;  // NOLINT
    EXPECT_TRUE(copy.is(row.value)) << row.tag;
    const IValue moved = std::move(copy);
    EXPECT_TRUE(copy.isNone() && moved.is(row.value)) << row.tag;  // NOLINT
    for (const Row& other : rows) {
      EXPECT_EQ(row.value.is(other.value), &other == &row) << row.tag << " is " << other.tag;
    }
  }
}

TEST(IValueKinds, IdentityIsOfHandlesAndOfWhatIsEqualAlways) {
  const List<int64_t> list{1, 2};
  EXPECT_TRUE(IValue(list).is(IValue(list)));
  EXPECT_FALSE(IValue(list).is(IValue(list.copy())));
  EXPECT_TRUE(IValue("text").is(IValue("text")));
  EXPECT_FALSE(IValue(1).is(IValue(true)));
  const Tensor t = ones({2});
  EXPECT_TRUE(IValue(t).is(t));
  EXPECT_FALSE(IValue(t).is(t.view({2})));
  EXPECT_FALSE(IValue(t).is(Tensor()));
  EXPECT_TRUE(IValue(Tensor()).is(Tensor()));
}

TEST(IValueKinds, NullPointersAreNone) {
  EXPECT_TRUE(IValue(IValue::TuplePtr()).isNone());
  EXPECT_TRUE(IValue(IValue::ObjectPtr()).isNone());
  EXPECT_TRUE(IValue(IValue::FuturePtr()).isNone());
}

TEST(IValueKinds, ObjectsAreSharedAndNamedTuplesKeepTheirNames) {
  const IValue::ObjectPtr point = std::make_shared<Point>();
  EXPECT_EQ(IValue(point).toObject(), point);
  const auto names =
      std::make_shared<const IValue::Tuple::Names>(IValue::Tuple::Names{"Pair", {"a", "b"}});
  const IValue pair(std::make_shared<const IValue::Tuple>(std::vector<IValue>{1, 2}, names));
  EXPECT_EQ(pair.toTupleRef().names()->fields[1], "b");
  EXPECT_EQ(IValue(std::make_tuple(1, 2)).toTupleRef().names(), nullptr);
}

TEST(IValueKinds, AFutureGivesItsValueOrItsError) {
  const auto value = std::make_shared<IValue::Future>(IValue(3));
  EXPECT_TRUE(value->completed() && !value->hasError());
  EXPECT_EQ(IValue(value).toFuture()->value().toInt(), 3);
  const auto error =
      std::make_shared<IValue::Future>(std::make_exception_ptr(IndexError("[f] a future's error")));
  EXPECT_TRUE(error->hasError());
  EXPECT_THROW(error->value(), IndexError);
  EXPECT_EQ(printed(IValue(error)), "Future(error)");
}

TEST(IValueKinds, ListsOfBoolsAreHandles) {
  const List<bool> list{true, false};
  const IValue value(list);
  value.toBoolList().set(1, true);
  list[0] = false;
  list.push_back(true);
  EXPECT_EQ(printed(value), "[False, True, True]");
  EXPECT_EQ(value.toList().size(), 3u);
  EXPECT_TRUE(value.toList().get(1).toBool());
  EXPECT_EQ((IValue(IValue::GenericList{true, false}).to<List<bool>>().size()), 2u);
}

TEST(IValueKinds, TypesWithValuesInside) {
  EXPECT_TRUE(IValue(std::optional<int64_t>()).isNone());
  EXPECT_EQ(IValue(std::optional<Tensor>(ones({2}))).toTensor().numel(), 2);
  EXPECT_EQ(IValue(3).to<std::optional<int64_t>>(), 3);
  EXPECT_EQ(IValue().to<std::optional<double>>(), std::nullopt);
  const IValue texts = IValue::GenericList{IValue("a"), IValue("b")};
  EXPECT_TRUE(texts.isGenericList() && !IValue(List<bool>{true}).isGenericList());
  EXPECT_EQ(texts.to<std::vector<std::string>>(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(IValue(List<bool>{true, false}).to<std::vector<bool>>(),
            (std::vector<bool>{true, false}));
  EXPECT_EQ(IValue(IValue::GenericList()).to<std::vector<std::string>>().size(), 0u);
  IValue::GenericDict dict;
  dict.insert("x", IValue(List<int64_t>{1, 2}));
  const auto table = IValue(dict).to<Dict<std::string, std::vector<int64_t>>>();
  EXPECT_EQ(table.at("x"), (std::vector<int64_t>{1, 2}));
  const auto both =
      IValue(std::make_tuple(1, std::string("t"))).to<std::tuple<int64_t, std::string>>();
  EXPECT_EQ(both, std::make_tuple(int64_t{1}, std::string("t")));
  EXPECT_ERROR_TEXT((IValue(std::make_tuple(1)).to<std::tuple<int, int>>()),
                    "got a tuple of 1 values, expected 2");
  EXPECT_ERROR_TEXT(IValue(3).to<std::vector<std::string>>(), "got int, expected list");
}

TEST(IValueKinds, Hashes) {
  EXPECT_EQ(IValue::hash(IValue("a")), std::hash<std::string>()("a"));
  EXPECT_EQ(IValue(3).hash().toInt(), static_cast<int64_t>(std::hash<int64_t>()(3)));
  const IValue pair = std::make_tuple(1, 2.5);
  EXPECT_EQ(IValue::hash(pair), IValue::hash(IValue(std::make_tuple(1, 2.5))));
  EXPECT_NE(IValue::hash(pair), IValue::hash(IValue(std::make_tuple(2.5, 1))));
  const Tensor t = ones({2});
  EXPECT_EQ(IValue::hash(t), IValue::hash(IValue(t)));
  EXPECT_EQ(IValue::hash(Device("cpu")), IValue::hash(Device(kCPU, 0)));
  EXPECT_EQ(IValue::hash(IValue()), IValue::hash(Tensor()));
  EXPECT_ERROR_TEXT(IValue(List<bool>()).hash(), "Can't hash IValues with tag 'GenericList'");
}

TEST(IValueKinds, ObjectsHaveRolesAndAttributes) {
  const IValue point = IValue::ObjectPtr(std::make_shared<Point>());
  EXPECT_FALSE(point.isModule() || point.isEnum() || point.isCustomClass());
  EXPECT_FALSE(IValue(1).isModule() || IValue(1).isEnum());
  EXPECT_EQ(point.toObjectRef().name(), "__torch__.Point");
  EXPECT_ERROR_TEXT(point.toObjectRef().getAttr("x"), "__torch__.Point has no attribute 'x'");
  EXPECT_ERROR_TEXT(point.toObjectRef().setAttr("x", 1), "has no attribute 'x'");
  EXPECT_ERROR_TEXT(point.toEnumHolder(), "got object, expected enumerator");
  EXPECT_EQ(IValue("text").toStringView(), "text");
}

// More than a stack holds calls.
TEST(IValueKinds, ReleasesManyInsideEachOther) {
  IValue lists = 1, tuples = Tensor();
  const IValue kept = IValue::GenericList{IValue("kept")};
  for (int i = 0; i < 200'000; ++i) {
    lists = i == 100'000 ? IValue(IValue::GenericList{lists, kept})
                         : IValue(IValue::GenericList{lists});
    tuples = std::make_tuple(tuples, IValue(i));
  }
  lists = IValue();
  tuples = IValue();
  EXPECT_EQ(printed(kept), "[kept]");
}

TEST(IValueKinds, ErrorsNameBothKinds) {
  EXPECT_ERROR_TEXT(IValue(1).toDevice(), "[IValue] got int, expected device");
  EXPECT_ERROR_TEXT(IValue(Device(kCPU, 0)).toInt(), "got device, expected int");
  EXPECT_ERROR_TEXT(IValue().toObject(), "got None, expected object");
  EXPECT_ERROR_TEXT(IValue(List<bool>()).toIntVector(), "got bool list, expected int list");
  EXPECT_ERROR_TEXT(IValue(IValue::Opaque{"a.B"}).toTensor(), "cannot hold, expected Tensor");
}

// A number in an IValue needs no memory; a program counts on it.
static_assert(sizeof(IValue) <= 24);
static_assert(std::is_nothrow_move_constructible_v<IValue>);
static_assert(std::is_nothrow_move_assignable_v<IValue>);

}  // namespace
}  // namespace ramet
