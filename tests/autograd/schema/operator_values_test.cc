// Operators on numbers, lists, dictionaries and strings: PyTorch 2.15's results.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>

#include "runtime/base/error.h"
#include "tests/autograd/schema/called.h"

namespace ramet::script {
namespace {

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
constexpr double kInf = std::numeric_limits<double>::infinity();

std::string shown(const IValue& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}
// What a call prints as. Ints and floats differ: "2" and "2.".
std::string value(const std::string& name, const std::vector<Passing>& arguments) {
  return shown(called(name, arguments));
}
IValue ints(std::vector<int64_t> list) { return list; }
IValue texts(const std::vector<std::string>& list) {
  IValue::GenericList made;
  for (const std::string& item : list) made.push_back(item);
  return made;
}

TEST(OperatorValues, Numbers) {
  const struct {
    const char* name;
    std::vector<Passing> arguments;
    const char* expected;
  } kCases[] = {
      {"aten::floordiv", {7, 2}, "3"},
      {"aten::floordiv", {-7, 2}, "-4"},
      {"aten::floordiv", {kLeast, -1}, "-9223372036854775808"},
      {"aten::floordiv", {-7.0, 2.0}, "-4."},
      {"aten::floordiv", {7.0, 0.0}, "inf"},
      {"aten::remainder", {-7, 3}, "2"},
      {"aten::remainder", {7, -3}, "-2"},
      {"aten::remainder", {kLeast, -1}, "0"},
      {"aten::remainder", {-7.5, 3.0}, "1.5"},
      {"aten::remainder", {7.0, 0.0}, "nan"},
      {"aten::div", {7, 2}, "3.5"},
      {"aten::div", {7, 0}, "inf"},
      {"aten::div", {0, 0}, "nan"},
      {"aten::add", {std::numeric_limits<int64_t>::max(), 1}, "-9223372036854775808"},
      {"aten::mul", {kLeast, -1}, "-9223372036854775808"},
      {"aten::neg", {kLeast}, "-9223372036854775808"},
      {"aten::sub", {1, 2.5}, "-1.5"},
      {"aten::pow", {2, -1}, "0.5"},
      {"aten::pow", {-8.0, 0.3}, "nan"},
      {"aten::round", {2.5}, "2."},
      {"aten::round", {3.5}, "4."},
      {"aten::round", {-2.5}, "-2."},
      {"aten::round", {3}, "3."},
      {"aten::round", {kInf}, "inf"},
      {"aten::round", {-kInf}, "-inf"},
      {"aten::round", {-0.4}, "-0."},
      {"aten::round", {-0.0}, "-0."},
      {"aten::round", {std::nan("")}, "nan"},
      {"aten::lgamma", {3.0}, "0.69314718055994529"},
      {"aten::lgamma", {-0.5}, "1.2655121234846454"},
      {"aten::lgamma", {0}, "inf"},
      {"aten::sqrt", {-1.0}, "nan"},
      {"aten::log", {0.0}, "-inf"},
      {"aten::floor", {-2.1}, "-3"},
      {"aten::ceil", {2.1}, "3"},
      {"aten::ceil", {2}, "2"},
      {"aten::Int", {-2.7}, "-2"},
      {"aten::Int", {std::nan("")}, "-9223372036854775808"},
      {"aten::Int", {1e30}, "-9223372036854775808"},
      {"aten::Int", {"12"}, "12"},
      {"aten::Int", {" 5"}, "5"},
      {"aten::Int", {"\t+7"}, "7"},
      {"aten::Int", {true}, "1"},
      {"aten::Float", {"1.5"}, "1.5"},
      {"aten::Float", {"inf"}, "inf"},
      {"aten::Float", {" -inf"}, "-inf"},
      {"aten::Float", {3}, "3."},
      {"aten::Bool", {0.0}, "False"},
      {"prim::max", {std::nan(""), 1.0}, "1."},
      {"prim::max", {1, 2.5}, "2.5"},
      {"prim::min", {3, 2}, "2"},
      {"prim::abs", {-3}, "3"},
      {"aten::eq", {1, 1.0}, "True"},
      {"aten::lt", {1, 2}, "True"},
      {"aten::ge", {1.5, 2}, "False"},
      {"aten::__and__", {6, 3}, "2"},
      {"aten::__xor__", {true, true}, "False"},
      {"aten::__lshift__", {5, 2}, "20"},
      {"aten::__rshift__", {-5, 70}, "-1"},
      {"aten::__not__", {true}, "False"},
      {"aten::gcd", {12, 18}, "6"},
      {"aten::factorial", {5}, "120"},
      {"aten::frexp", {5.0}, "(0.625, 3)"},
      {"aten::divmod", {-7, 2}, "(-4, 1)"},
      {"aten::__range_length", {7, 0, -2}, "4"},
      {"aten::__range_length", {0, 0, 1}, "0"},
      {"aten::__derive_index", {2, 10, -3}, "4"},
  };
  for (const auto& c : kCases) {
    std::string got = value(c.name, c.arguments);
    if (got == "-nan") got = "nan";  // the sign is free
    EXPECT_EQ(got, c.expected) << c.name;
  }
  for (const char* name : {"aten::floordiv", "aten::remainder"})
    EXPECT_THROW(called(name, {1, 0}), Error) << name;
  for (const char* text : {"1x", " 7 ", "5 ", "- 5", "", " ", "9999999999999999999"})
    EXPECT_THROW(called("aten::Int", {text}), Error) << text;
  EXPECT_THROW(called("aten::Float", {"1x"}), Error);
  EXPECT_THROW(called("aten::factorial", {-1}), Error);
  EXPECT_THROW(called("aten::__range_length", {0, 1, 0}), Error);
  EXPECT_EQ(called("aten::div", {7.0, -0.0}).toDouble(), -kInf);
}

TEST(OperatorValues, Lists) {
  const IValue list = ints({3, 1, 2});
  EXPECT_EQ(value("aten::len", {list}), "3");
  EXPECT_EQ(value("aten::__getitem__", {list, -1}), "2");
  EXPECT_THROW(called("aten::__getitem__", {list, 3}), IndexError);
  called("aten::append", {list, 4});
  EXPECT_EQ(shown(list), "[3, 1, 2, 4]");
  called("aten::_set_item", {list, 0, 9});
  called("aten::extend", {list, list});
  EXPECT_EQ(shown(list), "[9, 1, 2, 4, 9, 1, 2, 4]");
  EXPECT_EQ(value("aten::pop", {list, 1}), "1");
  EXPECT_EQ(value("aten::pop", {list}), "4");
  called("aten::insert", {list, -100, 0});
  called("aten::insert", {list, 100, 7});
  called("aten::reverse", {list});
  EXPECT_EQ(shown(list), "[7, 2, 1, 9, 4, 2, 9, 0]");
  called("aten::remove", {list, 9});
  called("aten::Delete", {list, 0});
  called("aten::sort", {list, Passing(true, "reverse")});
  EXPECT_EQ(shown(list), "[9, 4, 2, 2, 1, 0]");
  EXPECT_EQ(value("aten::sorted", {list}), "[0, 1, 2, 2, 4, 9]");
  EXPECT_EQ(value("aten::slice", {list, 1, -1, 2}), "[4, 2]");
  EXPECT_EQ(value("aten::slice", {list, IValue(), IValue(), -1}), "[0, 1, 2, 2, 4, 9]");
  EXPECT_EQ(value("aten::slice", {list, -100, 100, kLeast}), "[]");
  EXPECT_EQ(value("aten::count", {list, 2}), "2");
  EXPECT_EQ(value("aten::index", {list, 4}), "1");
  EXPECT_THROW(called("aten::index", {list, 5}), Error);
  EXPECT_EQ(value("aten::__contains__", {list, 4}), "True");
  EXPECT_EQ(value("aten::mul", {ints({1, 2}), 2}), "[1, 2, 1, 2]");
  EXPECT_EQ(value("aten::mul", {ints({1, 2}), -1}), "[]");
  EXPECT_THROW(called("aten::mul", {ints({1, 2}), std::numeric_limits<int64_t>::max()}), Error);
  EXPECT_EQ(value("aten::add", {ints({1}), ints({2})}), "[1, 2]");
  EXPECT_EQ(value("aten::eq", {ints({1}), ints({1})}), "True");
  EXPECT_EQ(value("prim::max", {list}), "9");
  const IValue small = ints({0, 5}), large = ints({1, 2});
  for (const char* name : {"prim::max", "prim::min"}) {
    called("aten::append", {called(name, {large, small}), 7});
    EXPECT_EQ(shown(large) + shown(small), "[1, 2][0, 5]") << name << " gives a new list";
  }
  EXPECT_THROW(called("prim::max", {IValue(std::vector<double>())}), Error);
  EXPECT_EQ(value("aten::sum", {IValue(std::vector<double>{1.5, 2})}), "3.5");
  EXPECT_EQ(value("aten::any", {IValue(List<bool>{false, true})}), "True");
  EXPECT_EQ(value("prim::rangelist", {3}), "[0, 1, 2]");
  EXPECT_THROW(called("aten::pop", {ints({})}), Error);
  called("aten::clear", {list});
  EXPECT_EQ(shown(list), "[]");
  const IValue flags = List<bool>{true, false};
  called("aten::append", {flags, true});
  EXPECT_EQ(shown(flags), "[True, False, True]");
  const IValue pairs = IValue::GenericList{IValue(std::make_tuple(IValue(2), IValue("b"))),
                                           IValue(std::make_tuple(IValue(1), IValue("c"))),
                                           IValue(std::make_tuple(IValue(1), IValue("a")))};
  EXPECT_EQ(value("aten::sorted", {pairs}), "[(1, a), (1, c), (2, b)]");
}

// 2^60 ways lead to the number inside.
TEST(OperatorValues, EqualityOfSharedParts) {
  IValue left = std::make_tuple(IValue(1), IValue(2)),
         right = std::make_tuple(IValue(1), IValue(2));
  for (int i = 0; i < 60; ++i) {
    left = std::make_tuple(left, left);
    right = std::make_tuple(right, right);
  }
  const IValue lefts = IValue::GenericList{left}, rights = IValue::GenericList{right};
  EXPECT_EQ(value("aten::count", {Passing(lefts, "", Type::list(Type::of(Type::Kind::kString))),
                                  Passing(right, "", Type::of(Type::Kind::kString))}),
            "1");
  IValue other = std::make_tuple(IValue(1), IValue(3));
  for (int i = 0; i < 60; ++i) other = std::make_tuple(other, other);
  EXPECT_EQ(value("aten::count", {Passing(lefts, "", Type::list(Type::of(Type::Kind::kString))),
                                  Passing(other, "", Type::of(Type::Kind::kString))}),
            "0");
  // A list that contains itself, and another such.
  const IValue::GenericList one{IValue(0)}, two{IValue(0)};
  one.push_back(one);
  two.push_back(two);
  EXPECT_THROW(called("aten::count", {Passing(one, "", Type::list(Type::of(Type::Kind::kString))),
                                      Passing(two, "", Type::of(Type::Kind::kString))}),
               Error);
  one.clear();
  two.clear();
}

TEST(OperatorValues, Dictionaries) {
  const IValue dict = IValue::GenericDict{{IValue("a"), IValue(1)}};
  called("aten::_set_item", {dict, "b", 2});
  EXPECT_EQ(value("aten::len", {dict}), "2");
  EXPECT_EQ(value("aten::__getitem__", {dict, "b"}), "2");
  EXPECT_THROW(called("aten::__getitem__", {dict, "x"}), IndexError);
  EXPECT_EQ(value("aten::__contains__", {dict, "x"}), "False");
  EXPECT_EQ(value("aten::get", {dict, "x"}), "None");
  EXPECT_EQ(value("aten::get", {dict, "x", 5}), "5");
  EXPECT_EQ(value("aten::setdefault", {dict, "c", 3}), "3");
  EXPECT_EQ(value("aten::keys", {dict}), "[a, b, c]");
  EXPECT_EQ(value("aten::values", {dict}), "[1, 2, 3]");
  EXPECT_EQ(value("aten::items", {dict}), "[(a, 1), (b, 2), (c, 3)]");
  const IValue copied = called("aten::copy", {dict});
  EXPECT_EQ(value("aten::pop", {dict, "a"}), "1");
  EXPECT_EQ(value("aten::pop", {dict, "a", 7}), "7");
  EXPECT_THROW(called("aten::pop", {dict, "a"}), IndexError);
  EXPECT_EQ(value("aten::popitem", {dict}), "(b, 2)");
  called("aten::update", {dict, copied});
  called("aten::update", {dict, dict});
  EXPECT_EQ(shown(dict), "{c: 3, a: 1, b: 2}");
  called("aten::Delete", {dict, "b"});
  called("aten::clear", {dict});
  EXPECT_EQ(shown(dict), "{}");
  EXPECT_EQ(
      value("aten::dict", {IValue::GenericList{IValue(std::make_tuple(IValue(1), IValue(2)))}}),
      "{1: 2}");
}

TEST(OperatorValues, Strings) {
  const struct {
    const char* name;
    std::vector<Passing> arguments;
    const char* expected;
  } kCases[] = {
      {"aten::split", {" a b  c "}, "[a, b, c]"},
      {"aten::split", {""}, "[]"},
      {"aten::split", {"a,b,,c", ","}, "[a, b, , c]"},
      {"aten::split", {"", ","}, "[]"},  // one empty text prints as nothing
      {"aten::split", {"a,b,,c", ",", 1}, "[a, b,,c]"},
      {"aten::split", {" a b  c ", IValue(), 1}, "[a, b, c]"},
      {"aten::split", {" a b c ", IValue(), 0}, "[a, b, c]"},
      {"aten::rsplit", {"a,b,c", ",", 1}, "[a,b, c]"},
      {"aten::splitlines", {"a\nb\r\nc"}, "[a, b, , c]"},
      {"aten::splitlines", {"a\r\nb\vc\fd\re\n"}, "[a, , b, c, d, e]"},
      {"aten::splitlines", {"a\x1c\x1dz\x1e"}, "[a, , z]"},
      {"aten::splitlines", {"a\nb", true}, "[a, \n, b]"},
      {"aten::splitlines", {"\r", true}, "[, \r]"},
      {"aten::splitlines", {""}, "[]"},
      {"aten::slice", {"hello", 1, 3}, "el"},
      {"aten::slice", {"hello", IValue(), IValue(), -1}, "olleh"},
      {"aten::__getitem__", {"hello", -1}, "o"},
      {"aten::replace", {"hello", "l", "LL"}, "heLLLLo"},
      {"aten::replace", {"hello", "l", "LL", 1}, "heLLlo"},
      {"aten::find", {"hello", "l"}, "2"},
      {"aten::find", {"hello", "x"}, "-1"},
      {"aten::rfind", {"hello", "l"}, "3"},
      {"aten::startswith", {"hello", "he"}, "True"},
      {"aten::endswith", {"lo", "hello"}, "False"},
      {"aten::endswith", {"hello", "lo"}, "True"},
      {"aten::count", {"hello", "l"}, "2"},
      {"aten::strip", {"  hello \n"}, "hello"},
      {"aten::lstrip", {"xxa", "x"}, "a"},
      {"aten::isdigit", {""}, "False"},
      {"aten::isdigit", {"12"}, "True"},
      {"aten::upper", {"aB1"}, "AB1"},
      {"aten::title", {"ab cd"}, "Ab Cd"},
      {"aten::capitalize", {"aB"}, "Ab"},
      {"aten::swapcase", {"aB"}, "Ab"},
      {"aten::zfill", {"-5", 4}, "00-5"},
      {"aten::center", {"a", 4, "*"}, "*a**"},
      {"aten::center", {"ab", 5, "*"}, "**ab*"},
      {"aten::center", {"ab", 7, "*"}, "***ab**"},
      {"aten::center", {"abc", 8, "*"}, "**abc***"},
      {"aten::center", {"ab", kLeast, "*"}, "ab"},
      {"aten::ljust", {"ab", kLeast}, "ab"},
      {"aten::zfill", {"ab", kLeast}, "ab"},
      {"aten::partition", {"a=b=c", "="}, "(a, =, b=c)"},
      {"aten::rpartition", {"a=b=c", "="}, "(a=b, =, c)"},
      {"aten::hex", {-255}, "-0xff"},
      {"aten::bin", {5}, "0b101"},
      {"aten::chr", {65}, "A"},
      {"aten::ord", {"A"}, "65"},
      {"aten::str", {0.1}, "0.10000000000000001"},
      {"aten::str", {IValue()}, "None"},
      {"aten::format", {"x{}y{}", 1, 1.5}, "x1y1.5"},
      {"aten::format", {"{}", 1, 2}, "1"},
      {"aten::percentFormat", {"%d %s %f%%", 3, "a", 1.5}, "3 a 1.500000%"},
      {"aten::percentFormat", {"%E %F", 1.5, 2.25}, "1.500000E+00 2.250000"},
      {"aten::percentFormat", {"%E", -kInf}, "-INF"},
      {"aten::lt", {"a", "b"}, "True"},
      {"aten::len", {"abc"}, "3"},
      {"aten::list", {"ab"}, "[a, b]"},
  };
  for (const auto& c : kCases) EXPECT_EQ(value(c.name, c.arguments), c.expected) << c.name;
  EXPECT_EQ(value("aten::join", {"-", texts({"a", "b"})}), "a-b");
  EXPECT_THROW(called("aten::ord", {"ab"}), Error);
  EXPECT_THROW(called("aten::__getitem__", {"hello", 9}), IndexError);
  EXPECT_THROW(called("aten::format", {"{} {}", 1}), Error);
  EXPECT_THROW(called("aten::percentFormat", {"%q", 1}), Error);
  EXPECT_THROW(called("aten::percentFormat", {"%g", 1.5}), Error);
  EXPECT_THROW(called("aten::percentFormat", {"%d", 1, 2}), Error);
  EXPECT_THROW(called("aten::split", {"a", ""}), Error);
  EXPECT_THROW(called("aten::zfill", {"a", int64_t{1} << 40}), Error);
}

TEST(OperatorValues, Programs) {
  EXPECT_EQ(value("aten::__is__", {IValue(), IValue()}), "True");
  EXPECT_EQ(value("aten::__isnot__", {1, IValue()}), "True");
  EXPECT_EQ(value("aten::device", {"cpu"}), "cpu");
  EXPECT_EQ(value("prim::type", {IValue(Device(kCPU, 0))}), "cpu");
  try {
    called("prim::RaiseException", {"bad", "builtins.ValueError"});
    FAIL();
  } catch (const Error& error) { EXPECT_STREQ(error.what(), "[builtins.ValueError] bad"); }
  EXPECT_THROW(called("aten::_unwrap_optional",
                      {Passing(IValue(), "", Type::optional(Type::of(Type::Kind::kInt)))}),
               Error);
}

}  // namespace
}  // namespace ramet::script
