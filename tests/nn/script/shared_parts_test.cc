// Values and texts that a short file makes large: lists that share parts, and names that are wrong.
#include <gtest/gtest.h>

#include "tests/error_text.h"
#include "tests/nn/script/script_texts.h"

namespace ramet::script {
namespace {

constexpr int kLevels = 40;

// x40 is a list of two x39, and so on: 2^40 ways lead to the numbers.
std::string nested_lists() {
  std::string text = "  x0 = [1, 2]\n";
  for (int i = 1; i <= kLevels; ++i) {
    const std::string before = "x" + std::to_string(i - 1);
    text += "  x" + std::to_string(i) + " = [" + before + ", " + before + "]\n";
  }
  return text;
}
std::string nested_type(const std::string& item) {
  std::string text = item;
  for (int i = 0; i <= kLevels; ++i) text = "List[" + text + "]";
  return text;
}

TEST(SharedParts, IsinstanceChecksAPartOnce) {
  for (const auto& [item, expected] : {std::pair("int", true), {"str", false}}) {
    const IValue is =
        run_text("def f() -> bool:\n" + nested_lists() +
                 "  return isinstance(annotate(Any, x40), " + nested_type(item) + ")\n");
    EXPECT_EQ(is.toBool(), expected) << item;
  }
}

TEST(SharedParts, ArgumentsAndResultsAreCheckedOnce) {
  const auto unit = unit_of("def f() -> " + nested_type("int") + ":\n" + nested_lists() +
                            "  return x40\ndef g(x: " + nested_type("int") +
                            ") -> int:\n  return torch.len(x)\n");
  const IValue lists = call(compiled(*unit, "f"), {});
  EXPECT_EQ(call(compiled(*unit, "g"), {lists}).toInt(), 2);
}

TEST(SharedParts, TextsHaveALimit) {
  for (const char* text :
       {"torch.str(x40)", "torch.format(\"{}\", x40)", "torch.percentFormat(\"%s\", x40)"})
    expect_part(error_of([&] {
                  run_text("def f() -> str:\n" + nested_lists() + "  return " + text + "\n");
                }),
                "got a value of more than 16777216 characters as text");
  EXPECT_EQ(run_text("def f() -> str:\n  return torch.str([[1, 2], [3]])\n").toStringRef(),
            "[[1, 2], [3]]");
}

TEST(SharedParts, ErrorsShowTheBeginningOfAValue) {
  std::vector<IValue> constants{IValue(std::vector<int64_t>{1, 2})};
  for (int i = 0; i < kLevels; ++i) {
    IValue::GenericList pair;
    pair.push_back(constants[0]);
    pair.push_back(constants[0]);
    constants[0] = pair;
  }
  const auto unit = unit_of("def f(x: str=CONSTANTS.c0) -> str:\n  return x\n", {}, constants);
  const std::string error = error_of([&] { unit->function_named("__torch__.f"); });
  expect_part(error, "got the value [[[");
  EXPECT_LT(error.size(), 400u) << error;
}

TEST(SharedParts, DefaultsAreEachCallsOwn) {
  const auto unit = unit_of(R"(
def f(x: List[int]=[1], y: Dict[str, List[int]]={"a": [1]}) -> int:
  _0 = torch.append(x, 2)
  _1 = torch.append(y["a"], 2)
  return torch.add(torch.len(x), torch.len(y["a"]))
)");
  const ScriptFunction& f = compiled(*unit, "f");
  for (int i = 0; i < 2; ++i) EXPECT_EQ(call(f, {}).toInt(), 4) << i;
}

// PyTorch gave these: the type of a list without numbers says the dtype.
TEST(SharedParts, TensorsOfListsWithoutNumbers) {
  const auto made = [](const std::string& type, const std::string& list,
                       const std::string& more = "") {
    return run_text("def f() -> Tensor:\n  x = annotate(" + type + ", [])\n  y = annotate(List[" +
                    type + "], " + list + ")\n  return torch.tensor(y" + more + ")\n")
        .toTensor();
  };
  EXPECT_EQ(made("List[int]", "[]").scalar_type(), kLong);
  EXPECT_EQ(made("List[bool]", "[]").scalar_type(), kBool);
  EXPECT_EQ(made("List[float]", "[]").scalar_type(), kFloat);
  EXPECT_EQ(made("List[int]", "[]").sizes(), IntArrayRef({0}));
  EXPECT_EQ(made("List[int]", "[x, x]").sizes(), IntArrayRef({2, 0}));
  EXPECT_EQ(made("List[int]", "[x, x]").scalar_type(), kLong);
  EXPECT_EQ(made("List[int]", "[x, x]", ", dtype=None").scalar_type(), kLong);
  EXPECT_EQ(made("List[bool]", "[]", ", dtype=6").scalar_type(), kFloat);
  EXPECT_EQ(made("List[List[bool]]", "[]").scalar_type(), kBool);
}

TEST(SharedParts, ManyWrongNamesAreFoundQuickly) {
  std::string text = "def f(x: Tensor) -> Tensor:\n";
  for (int i = 0; i < 20000; ++i)
    text += "  a" + std::to_string(i) + " = annotate(NoType" + std::to_string(i) + ", x)\n";
  const auto unit = unit_of(text + "  return x\n");
  unit->compile(*unit->function_named("__torch__.f"));
  EXPECT_EQ(unit->problems().size(), 20000u);
  expect_part(unit->problems().back().what, "code/__torch__.py:20001");
}

}  // namespace
}  // namespace ramet::script
