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

TEST(Compiler, ProblemsAreThoseSinceTheLastReport) {
  const auto unit = unit_of(R"(
def bad(x: Tensor) -> Tensor:
  return torch.no_such_thing(x)
def worse(x: Tensor) -> Tensor:
  return __torch__.bad(x, )
def good(x: Tensor) -> Tensor:
  return torch.relu(x)
)");
  const auto report_of = [&](const char* name) {
    ScriptFunction& function = *unit->function_named(std::string("__torch__.") + name);
    return error_of([&] {
      unit->compile(function);
      unit->report_problems();
    });
  };
  for (int round = 0; round < 2; ++round) {
    expect_part(report_of("worse"), "got 1 problem, expected none\n  aten::no_such_thing");
    EXPECT_FALSE(unit->function_named("__torch__.worse")->program) << "it cannot run";
    EXPECT_EQ(report_of("good"), "no error");
    expect_part(report_of("bad"), "got 1 problem, expected none\n  aten::no_such_thing");
  }
  EXPECT_TRUE(unit->function_named("__torch__.good")->program);
}

TEST(Compiler, RefusesTypesOfTooManyParts) {
  const auto pairs = [](int levels) {
    std::string text = "def f() -> int:\n  a0 = (1, 2)\n  b0 = (1, 2)\n";
    for (int i = 1; i < levels; ++i)
      for (const char* name : {"a", "b"}) {
        const std::string before = name + std::to_string(i - 1);
        text +=
            std::string("  ") + name + std::to_string(i) + " = (" + before + ", " + before + ")\n";
      }
    const std::string last = std::to_string(levels - 1);
    return text + "  if True:\n    c = a" + last + "\n  else:\n    c = b" + last + "\n  return 5\n";
  };
  EXPECT_EQ(report(pairs(12)), "no error");
  expect_part(report(pairs(60)), "a type: got more than 10000 parts");
  std::string lists = "def f() -> int:\n  x0 = [1]\n";
  for (int i = 1; i < 2000; ++i)
    lists += "  x" + std::to_string(i) + " = [x" + std::to_string(i - 1) + "]\n";
  expect_part(report(lists + "  return 5\n"), "a type: got more than 1000 types inside each other");
}

TEST(Compiler, RefusesFunctionsThatAreTooDeepInside) {
  std::string text;
  for (int i = 0; i < 195; ++i) {
    const std::string next = i < 194 ? "__torch__.g" + std::to_string(i + 1) + "(x, )" : "x";
    text += "def g" + std::to_string(i) + "(x: int):\n  return " + std::string(180, '[') + next +
            std::string(180, ']') + "\n";
  }
  expect_part(report(text + "def f() -> int:\n  y = __torch__.g0(1, )\n  return 1\n"),
              "are inside each other too deeply");
}

// Each of 40 functions forks the next one twice.
TEST(Compiler, RefusesForksThatDouble) {
  std::string text = "def f() -> int:\n";
  for (size_t i = 0; i < 40; ++i) {
    const std::string n = std::to_string(i), blanks(2 * i + 2, ' ');
    text += blanks + "def c" + n + "() -> int:\n";
  }
  text += std::string(82, ' ') + "return 1\n";
  for (size_t i = 40; i-- > 0;) {
    const std::string n = std::to_string(i), blanks(2 * i + 2, ' ');
    text += blanks + "u" + n + " = fork(c" + n + ")\n" + blanks + "v" + n + " = fork(c" + n +
            ")\n" + blanks + "return 1\n";
  }
  expect_part(report(text), "statements and expressions in functions that are forked");
}

TEST(Compiler, RefusesFieldsAndKeysThatItWouldNotUse) {
  const std::string point = "class P(NamedTuple):\n  a : int\n  b : int\n";
  const auto made = [&](const std::string& call) {
    return report(point + "def f() -> int:\n  p = __torch__.P(" + call + ")\n  return p.b\n");
  };
  EXPECT_EQ(made("1, b=3"), "no error");
  expect_part(made("1, 2, b=3"), "__torch__.P: the field 'b' is given twice");
  expect_part(made("1, b=3, b=4"), "__torch__.P: the field 'b' is given twice");
  expect_part(made("1, b=3, c=4"), "__torch__.P: the field 'c' is unknown");
  expect_part(report("def f(t: Tensor) -> Tensor:\n  t[0, 7] = torch.ones([1])\n  return t\n"),
              "an item: got several keys, expected one");
  expect_part(report("def f(l: List[int]) -> List[int]:\n  del l[0, 1]\n  return l\n"),
              "del: expected a name or an item");
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
TEST(Compiler, ConstantListsAreNeverChanged) {
  const auto unit = unit_of(R"(
def f() -> List[int]:
  x = ops.prim.max([1, 2], [0, 5])
  _0 = torch.append(x, 7)
  return x
def g(l: List[int]=[1, 2]) -> List[int]:
  _0 = torch.append(l, 3)
  return l
def h() -> List[int]:
  return __torch__.g()
def k() -> List[int]:
  x = ops.prim.unchecked_unwrap_optional([1, 2])
  _0 = torch.append(x, 3)
  return x
)");
  for (const auto& [name, expected] : std::map<std::string, std::string>{
           {"f", "[1, 2, 7]"}, {"h", "[1, 2, 3]"}, {"k", "[1, 2, 3]"}}) {
    const ScriptFunction& function = compiled(*unit, name);
    for (int round = 0; round < 2; ++round) EXPECT_EQ(printed(call(function, {})), expected);
  }
}

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
