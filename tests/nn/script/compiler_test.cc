// What the compiler accepts and refuses, and the programs that it makes.
#include <gtest/gtest.h>

#include "autograd/ops.h"
#include "nn/script/program_internal.h"
#include "tests/error_text.h"
#include "tests/nn/script/script_texts.h"
#include "tests/values.h"

namespace ramet::script {
namespace {

/// The report on the function f of a text.
std::string report(const std::string& text) {
  const auto unit = unit_of(text);
  unit->compile(*unit->function_named("__torch__.f"));
  return error_of([&] { unit->report_problems(); });
}

TEST(Compiler, ListsAllThatIsMissing) {
  const std::string text = report(R"(
def g(x: Tensor) -> Tensor:
  return torch.no_such_thing(x)
def f(x: Tensor,
    n: int) -> Tensor:
  a = torch.no_such_thing(x, torch.nor_this(x))
  b = ops.image.decode(a)
  if torch.gt(n, 1):
    c = __torch__.absent.Thing(b)
  else:
    c = __torch__.g(x, )
  d = torch.relu(x, x, x)
  e = torch.relu(unknown)
  return torch.relu(c)
)");
  expect_part(text, "[torch::jit::load] the code does not fit: got 6 problems, expected none");
  expect_part(text, "aten::no_such_thing: no such operation\n    at model.py:");
  expect_part(text, "aten::nor_this: no such operation");
  expect_part(text, "image::decode: no such operation");
  expect_part(text, "__torch__.absent.Thing: the archive has no such class or function");
  expect_part(text, "aten::relu: no overload takes the arguments");
  expect_part(text, "the name 'unknown' is unknown");
  expect_part(text, ", in __torch__.g");
  EXPECT_EQ(text.find("no_such_thing"), text.rfind("no_such_thing")) << "listed once: " << text;
}

TEST(Compiler, RefusesTypesThatDoNotFit) {
  EXPECT_EQ(report("def f(x: Tensor) -> Tensor:\n  return x\n"), "no error");
  expect_part(report("def f(x: Tensor) -> List[int]:\n  return x\n"),
              "the result of __torch__.f: got Tensor, expected List[int]");
  expect_part(report("def f(x: int) -> int:\n  if torch.gt(x, 1):\n    y = 2\n  else:\n    pass\n"
                     "  return y\n"),
              "'y' has a value after one branch of an `if` only");
  expect_part(report("def f(n: int) -> int:\n  x = 1\n  for i in range(n):\n    x = \"a\"\n"
                     "  return x\n"),
              "'x' changes its type in a loop: got str, expected int");
  expect_part(report("def f(n: int) -> int:\n  for i in range(n):\n    y = i\n  return y\n"),
              "the name 'y' is unknown");
  expect_part(report("def f(t: Tuple[int, str]) -> int:\n  a, b, c, = t\n  return a\n"),
              "unpacking: got 2 values, expected 3");
  expect_part(report("def f(t: Tuple[int, str]) -> int:\n  return (t)[2]\n"),
              "an item of a tuple: got 2, expected one of 2");
  expect_part(report("def f(n: int) -> int:\n  break\n  return n\n"), "break outside of a loop");
  expect_part(report("def f(n: int) -> int:\n  return n.x\n"), "int has no attribute 'x'");
  expect_part(report("def f(n: int) -> int:\n  return annotate(NoSuchType, n)\n"), "NoSuchType");
  expect_part(report("def f(n: int) -> int:\n  with n:\n    pass\n  return n\n"), "with: got int");
}

TEST(Compiler, RefusesCallsThatDoNotFit) {
  const std::string g = "def g(a: int, b: str=\"x\") -> int:\n  return a\n";
  EXPECT_EQ(report(g + "def f(n: int) -> int:\n  return __torch__.g(n, b=\"y\")\n"), "no error");
  expect_part(report(g + "def f(n: int) -> int:\n  return __torch__.g()\n"),
              "argument 'a' is missing");
  expect_part(report(g + "def f(n: int) -> int:\n  return __torch__.g(n, c=1)\n"),
              "argument 'c' is unknown");
  expect_part(report(g + "def f(n: int) -> int:\n  return __torch__.g(n, a=1)\n"),
              "argument 'a' is given twice");
  expect_part(report(g + "def f(n: int) -> int:\n  return __torch__.g(n, \"x\", 3, 4)\n"),
              "got 4 arguments, expected 2");
  expect_part(report(g + "def f(n: str) -> int:\n  return __torch__.g(n)\n"),
              "argument 'a': got str, expected int");
  expect_part(report(g + "def f(n: int) -> int:\n  h = __torch__.g\n  return h\n"),
              "__torch__.g: a function is used as a value");
}

TEST(Compiler, FunctionsThatCallEachOther) {
  const char* const text = R"(
def even(n: int) -> bool:
  if torch.eq(n, 0):
    return True
  else:
    pass
  return __torch__.odd(torch.sub(n, 1), )
def odd(n: int) -> bool:
  if torch.eq(n, 0):
    return False
  else:
    pass
  return __torch__.even(torch.sub(n, 1), )
def f(n: int) -> bool:
  return __torch__.even(n, )
)";
  EXPECT_TRUE(run_text(text, {10}).toBool());
  EXPECT_FALSE(run_text(text, {7}).toBool());
  expect_part(report("def f(n: int):\n  return __torch__.f(n, )\n"),
              "__torch__.f calls itself, and does not state its result");
}

TEST(Compiler, ConstantListsAreMadeOnce) {
  const auto unit = unit_of(R"(
def f(x: Tensor) -> Tensor:
  return torch.sum(torch.permute(x, [1, 0]), [0, 1], True)
)");
  const Program& program = *compiled(*unit, "f").program;
  for (const Instruction& i : program.instructions)
    EXPECT_NE(i.code, Instruction::Code::kList) << "a list of numbers in the text is a constant";
  EXPECT_EQ(program.instructions.size(), 3u);
}

// A list that a program keeps is another one in each call.
TEST(Compiler, ListsThatAreKeptAreNew) {
  const auto unit = unit_of(R"(
def f(n: int) -> List[List[int]]:
  l = annotate(List[List[int]], [])
  for i in range(n):
    _0 = torch.append(l, [1, 2])
  _1 = torch.append(l[0], 3)
  return l
)");
  const ScriptFunction& f = compiled(*unit, "f");
  for (int round = 0; round < 2; ++round) {
    const IValue l = call(f, {2});
    EXPECT_EQ(l.toListRef()[0].toIntVector(), (std::vector<int64_t>{1, 2, 3}));
    EXPECT_EQ(l.toListRef()[1].toIntVector(), (std::vector<int64_t>{1, 2}));
  }
}

TEST(Compiler, ValuesShareSlotsAndAreGivenBack) {
  std::string text = "def f(x: Tensor) -> Tensor:\n  x0 = torch.add(x, 1)\n";
  for (int i = 0; i < 100; ++i)
    text += "  x" + std::to_string(i + 1) + " = torch.add(x" + std::to_string(i) + ", 1)\n";
  const auto unit = unit_of(text + "  return x100\n");
  const ScriptFunction& f = compiled(*unit, "f");
  EXPECT_LE(f.program->slots, 3u);
  EXPECT_EQ(f.program->instructions.size(), 102u) << "a variable is made where it lives";
  expect_values(call(f, {zeros({2})}).toTensor(), {101, 101});
}

// A value that one branch alone needs is given back at the start of the other.
TEST(Compiler, BranchesGiveBackWhatTheyDoNotUse) {
  const auto unit = unit_of(R"(
def g(t: Tensor) -> int:
  return 1
def f(x: Tensor,
    flag: bool) -> int:
  y = torch.add(x, 1)
  n = 0
  while torch.lt(n, 3):
    if flag:
      n = torch.add(n, torch.size(y, 0))
    else:
      n = torch.add(n, 1)
  if flag:
    m = torch.numel(y)
  else:
    m = __torch__.g(torch.ones([1]), )
  return torch.add(m, n)
)");
  const ScriptFunction& f = compiled(*unit, "f");
  size_t frees = 0;
  for (const Instruction& i : f.program->instructions)
    frees += i.code == Instruction::Code::kFree ? 1u : 0u;
  EXPECT_GE(frees, 1u);
  EXPECT_EQ(call(f, {zeros({2, 2}), true}).toInt(), 8);
  EXPECT_EQ(call(f, {zeros({2, 2}), false}).toInt(), 4);
}

TEST(Compiler, ConstantsOfTheArchive) {
  const auto unit = unit_of(
      "def f(x: Tensor) -> Tensor:\n  return torch.add(x, CONSTANTS.c1)\n"
      "def g(x: Tensor) -> Tensor:\n  return torch.add(x, CONSTANTS.c2)\n",
      {}, {zeros({2}), ones({2})});
  expect_values(call(compiled(*unit, "f"), {ones({2})}).toTensor(), {2, 2});
  EXPECT_ERROR_TEXT(compiled(*unit, "g"), "CONSTANTS.c2");
}

}  // namespace
}  // namespace ramet::script
