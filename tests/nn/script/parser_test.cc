// Texts as PyTorch prints them, read and printed again in full brackets; and texts that are none.
#include <gtest/gtest.h>

#include <limits>
#include <sstream>

#include "nn/script/ast_internal.h"
#include "runtime/base/classic.h"
#include "tests/error_text.h"

namespace ramet::script {
namespace {

using Form = Expression::Kind;

std::string shown(const ExpressionPtr& e);

std::string shown(const std::vector<ExpressionPtr>& items, size_t from = 0) {
  std::string text;
  for (size_t i = from; i < items.size(); ++i) text += (i > from ? " " : "") + shown(items[i]);
  return text;
}

// The tree in brackets: "(call f x y=1)".
std::string shown(const ExpressionPtr& e) {
  if (!e) return "_";
  switch (e->kind) {
    case Form::kName: return e->text;
    case Form::kInt: return std::to_string(e->number);
    case Form::kFloat: return detail::formatted("%.17g", e->real) + "f";
    case Form::kString: return "'" + e->text + "'";
    case Form::kTrue: return "True";
    case Form::kFalse: return "False";
    case Form::kNone: return "None";
    case Form::kEllipsis: return "...";
    case Form::kAttribute: return shown(e->items[0]) + "." + e->text;
    case Form::kSubscript: return shown(e->items[0]) + "[" + shown(e->items, 1) + "]";
    case Form::kSlice: return "(slice " + shown(e->items) + ")";
    case Form::kList: return "(list" + (e->items.empty() ? "" : " " + shown(e->items)) + ")";
    case Form::kTuple: return "(tuple" + (e->items.empty() ? "" : " " + shown(e->items)) + ")";
    case Form::kUnary: return "(" + e->text + " " + shown(e->items) + ")";
    case Form::kBinary:
      return "(" + shown(e->items[0]) + " " + e->text + " " + shown(e->items[1]) + ")";
    case Form::kConditional: return "(if " + shown(e->items) + ")";
    case Form::kCall:
    case Form::kDict: {
      std::string text = e->kind == Form::kCall ? "(call " + shown(e->items) : "(dict";
      for (const Named& n : e->named)
        text += " " + (n.key ? shown(n.key) + ":" : n.name + "=") + shown(n.value);
      return text + ")";
    }
  }
  return "?";
}

SourcePtr source_of(const std::string& text) {
  auto source = std::make_shared<Source>();
  source->name = "code/net.py";
  source->text = text;
  return source;
}

FileSyntax read(const std::string& text, const ParseLimits& limits = {}) {
  return parse(source_of(text), limits);
}

std::string expression(const std::string& text) {
  const FileSyntax file = read("def f():\n  return " + text + "\n");
  return shown(file.functions.at(0)->body.at(0).value);
}

// The first letters of statements: "if{pass}else{return}".
std::string shown(const Block& block) {
  static const char* const names[] = {"assign", "do",    "if",   "for",   "while",
                                      "return", "with",  "pass", "break", "continue",
                                      "assert", "raise", "def",  "del"};
  std::string text;
  for (const Statement& s : block) {
    text += (text.empty() ? "" : ";") + std::string(names[static_cast<int>(s.kind)]);
    if (!s.targets.empty()) text += (s.unpacks ? " *" : " ") + shown(s.targets);
    if (s.type) text += ":" + shown(s.type);
    if (s.value) text += " " + shown(s.value);
    if (s.message) text += ", " + shown(s.message);
    if (!s.body.empty()) text += "{" + shown(s.body) + "}";
    if (!s.other.empty()) text += "else{" + shown(s.other) + "}";
    if (s.function) text += " " + s.function->name + "{" + shown(s.function->body) + "}";
  }
  return text;
}

std::string statements(const std::string& lines) {
  return shown(read("def f():\n" + lines).functions.at(0)->body);
}

// Printed by PyTorch 2.15 for a module with a list of modules, a buffer and a constant.
const char* const kClasses = R"(class Inner(Module):
  __parameters__ = ["w", ]
  __buffers__ = ["b", ]
  __forward_hooks__ = ["hook", ]
  w : Tensor
  b : Tensor
  training : bool
  _is_full_backward_hook : Optional[bool]
  __annotations__["foo-bar"] = __torch__.torch.nn.modules.linear.Linear
  in : __torch__.Color
  eps : Final[float] = 1.0000000000000001e-05
  def forward(s: __torch__.Inner,
    x: Tensor,
    y: Optional[Tensor]=None) -> Tuple[Tensor, int]:
    n = s.in
    return (torch.add(x, y), 1)
  def hook(self: __torch__.Inner,
    i: Tuple[Tensor],
    o: Tensor) -> Tensor:
    return torch.add(o, 1)
class Color(Enum):
  RED = 1
  GREEN = 2
class MIf(ModuleInterface):
  def forward(self, x: Tensor) -> Tensor:
    pass
class Pt(NamedTuple):
  x : int
  y : Optional[Tensor]
def helper(x: Tensor) -> Tensor:
  if torch.gt(torch.numel(x), 3):
    _20 = torch.sum(x, [1], True)
  else:
    _20 = x
  return _20
)";

TEST(Parser, Files) {
  const FileSyntax file = read(kClasses);
  ASSERT_EQ(file.classes.size(), 4u);
  const ClassSyntax& inner = *file.classes[0];
  EXPECT_EQ(inner.name, "Inner");
  EXPECT_EQ(inner.base, "Module");
  EXPECT_EQ(inner.parameters, std::vector<std::string>{"w"});
  EXPECT_EQ(inner.buffers, std::vector<std::string>{"b"});
  EXPECT_EQ(inner.hooks, std::vector<std::string>{"hook"});
  ASSERT_EQ(inner.attributes.size(), 7u);
  EXPECT_EQ(shown(inner.attributes[3].type), "Optional[bool]");
  EXPECT_EQ(inner.attributes[4].name, "foo-bar");
  EXPECT_EQ(shown(inner.attributes[4].type), "__torch__.torch.nn.modules.linear.Linear");
  EXPECT_EQ(inner.attributes[5].name, "in");
  EXPECT_FALSE(inner.attributes[5].constant);
  EXPECT_TRUE(inner.attributes[6].constant);
  EXPECT_EQ(shown(inner.attributes[6].type), "float");
  EXPECT_EQ(shown(inner.attributes[6].value), "1.0000000000000001e-05f");
  ASSERT_EQ(inner.methods.size(), 2u);
  const FunctionSyntax& forward = *inner.methods[0];
  ASSERT_EQ(forward.parameters.size(), 3u);
  EXPECT_EQ(shown(forward.parameters[2].type), "Optional[Tensor]");
  EXPECT_EQ(shown(forward.parameters[2].value), "None");
  EXPECT_EQ(shown(forward.result), "Tuple[Tensor int]");
  EXPECT_EQ(shown(forward.body), "assign n s.in;return (tuple (call torch.add x y) 1)");
  EXPECT_EQ(shown(file.classes[1]->attributes[1].value), "2");
  EXPECT_EQ(file.classes[2]->base, "ModuleInterface");
  EXPECT_EQ(file.classes[2]->methods[0]->parameters[0].type, nullptr);
  EXPECT_EQ(file.classes[3]->base, "NamedTuple");
  ASSERT_EQ(file.functions.size(), 1u);
  EXPECT_EQ(shown(file.functions[0]->body),
            "if (call torch.gt (call torch.numel x) 3){assign _20 (call torch.sum x (list 1) "
            "True)}else{assign _20 x};return _20");
  EXPECT_EQ(file.source->place(file.functions[0]->offset), "code/net.py:30");
}

// What PyTorch 1.4 and older wrote.
TEST(Parser, OldFiles) {
  const FileSyntax file = read(
      "op_version_set = 1\n"
      "class Net(Module):\n"
      "  __parameters__ = [\"weight\", ]\n"
      "  weight : Tensor\n"
      "  training : bool\n"
      "  def forward(self: __torch__.Net,\n"
      "    input: Tensor) -> Tensor:\n"
      "    return torch.mv(self.weight, input)");
  ASSERT_EQ(file.classes.size(), 1u);
  EXPECT_FALSE(file.classes[0]->states_buffers);
  EXPECT_EQ(shown(file.classes[0]->methods[0]->body), "return (call torch.mv self.weight input)");
  EXPECT_TRUE(read("").classes.empty());
  EXPECT_TRUE(read("\n  # nothing\n\n").functions.empty());
  EXPECT_EQ(read("class A:\n  pass\nclass B: pass\n").classes.size(), 2u);
}

TEST(Parser, Expressions) {
  EXPECT_EQ(expression("(self).f(a0, (x, ), _1=[1, 2], )"),
            "(call self.f a0 (tuple x) _1=(list 1 2))");
  EXPECT_EQ(expression("annotate(Dict[str, List[int]], {})"),
            "(call annotate Dict[str List[int]] (dict))");
  EXPECT_EQ(expression("{\"a\": 1, \"b\": -2, }"), "(dict 'a':1 'b':-2)");
  EXPECT_EQ(expression("(hx2)[0]"), "hx2[0]");
  EXPECT_EQ(expression("x[1:, ::2, :-1, ..., None]"),
            "x[(slice 1 _ _) (slice _ _ 2) (slice _ -1 _) ... None]");
  EXPECT_EQ(expression("isinstance(x, (int, str))"), "(call isinstance x (tuple int str))");
  EXPECT_EQ(expression("()"), "(tuple)");
  EXPECT_EQ(expression("Tuple[()]"), "Tuple[(tuple)]");
  EXPECT_EQ(expression("a, b"), "(tuple a b)");
  EXPECT_EQ(expression("a if b else c if d else e"), "(if a b (if c d e))");
  EXPECT_EQ(expression("a or b and not c == d + e * -f ** g[0]"),
            "(a or (b and (not (c == (d + (e * (- (f ** g[0]))))))))");
  EXPECT_EQ(expression("a - b - c // d"), "((a - b) - (c // d))");
  EXPECT_EQ(expression("a is not None or b not in c and d in e"),
            "((a is not None) or ((b not in c) and (d in e)))");
  EXPECT_EQ(expression("~a | b ^ c & d << 1 >> 2"), "((~ a) | (b ^ (c & ((d << 1) >> 2))))");
  EXPECT_EQ(expression("(a +\n   # a comment\n\n b)"), "(a + b)");
}

TEST(Parser, Numbers) {
  EXPECT_EQ(expression("9223372036854775807"), "9223372036854775807");
  EXPECT_EQ(expression("-9223372036854775808"), "-9223372036854775808");
  EXPECT_EQ(expression("- -9223372036854775808"), "(- -9223372036854775808)");
  EXPECT_EQ(expression("-(5)"), "-5");
  EXPECT_EQ(expression("(0., -0., 1e-05, .5, 1.0000000000000001e+300)"),
            "(tuple 0f -0f 1.0000000000000001e-05f 0.5f 1.0000000000000001e+300f)");
  EXPECT_EQ(expression("(inf, -inf, nan)"), "(tuple inff -inff nanf)");
  EXPECT_EQ(expression("1e999"), "inff");
  for (const char* text : {"9223372036854775808", "99999999999999999999999", "-9223372036854775809",
                           "-9223372036854775808 ** 2", "(9223372036854775808) - 1"})
    EXPECT_ERROR_TEXT(expression(text), "code/net.py:2: got an integer of more than 64 bits");
  EXPECT_ERROR_TEXT(expression("1j"), "got a complex number, which this library does not have");
  EXPECT_ERROR_TEXT(expression("0x10"), "got \"0x\", expected a decimal number");
  EXPECT_ERROR_TEXT(expression("1e+"), "got a number without the digits of its exponent");
  EXPECT_ERROR_TEXT(expression(std::string(2000, '1') + "."), "got a number of 2001 characters");
}

TEST(Parser, Texts) {
  EXPECT_EQ(expression(R"("a\n\t\\\"\'" 'b"')"), "'a\n\t\\\"'b\"'");
  // PyTorch prints bytes that are no letters of ASCII in octal digits.
  EXPECT_EQ(expression(R"("\303\251\0017\x41")"), "'\303\251\0017A'");
  EXPECT_EQ(expression("\"caf\303\251\""), "'caf\303\251'");
  EXPECT_EQ(expression("\"a\\\nb\""), "'ab'");
  EXPECT_ERROR_TEXT(expression("\"abc"), "code/net.py:2: got a text in quotes without its end");
  EXPECT_ERROR_TEXT(expression("\"abc\\"), "got a text in quotes without its end");
  EXPECT_ERROR_TEXT(expression("\"abc\n\""), "got a text in quotes without its end");
  EXPECT_ERROR_TEXT(expression(R"("\q")"), "got the escape \"\\q\", which texts do not have");
  EXPECT_ERROR_TEXT(expression(R"("\777")"), "got an escape of no byte in a text");
  EXPECT_ERROR_TEXT(expression(R"("\x4")"), "got an escape of no byte in a text");
}

TEST(Parser, Statements) {
  EXPECT_EQ(statements("  _6, x1, _5 = _10, _8, _9\n  a, = x\n  a = x\n  self.prev = False\n"),
            "assign *_6 x1 _5 (tuple _10 _8 _9);assign *a x;assign a x;assign self.prev False");
  EXPECT_EQ(statements("  a, (b, c), = x\n  l : List[int] = []\n  x[0] = 1\n"),
            "assign *a (tuple b c) x;assign l:List[int] (list);assign x[0] 1");
  EXPECT_EQ(statements("  if a:\n    pass\n  elif b:\n    break\n  else:\n    continue\n"),
            "if a{pass}else{if b{break}else{continue}}");
  EXPECT_EQ(statements("  for i in range(3):\n    f(i, )\n  for k, v in x:\n    pass\n"),
            "for i (call range 3){do (call f i)};for *k v x{pass}");
  EXPECT_EQ(statements("  while _6:\n    return\n  with a as b, c:\n    pass\n"),
            "while _6{return};with b a{with c{pass}}");
  EXPECT_EQ(statements("  assert a, \"b\"\n  raise E(\"x\")\n  del a, b[0]\n"),
            "assert a, 'b';raise (call E 'x');del *a b[0]");
  EXPECT_EQ(
      statements("  def __forked_function():\n    return g(a, )\n  w = fork(__forked_function)\n"),
      "def __forked_function{return (call g a)};assign w (call fork __forked_function)");
  EXPECT_EQ(statements("  if x: pass\n  else: return x\n"), "if x{pass}else{return x}");
  EXPECT_ERROR_TEXT(statements("  if x: if y: pass\n"), "got \"if\", expected an expression");
  EXPECT_ERROR_TEXT(statements("  f(x) = 1\n"), "code/net.py:2: got a value, expected the name of");
  EXPECT_ERROR_TEXT(statements("  a += 1\n"), "got \"=\", expected an expression");
  EXPECT_ERROR_TEXT(statements("  a = 1 2\n"), "got \"2\", expected the end of the line");
  EXPECT_ERROR_TEXT(statements("  if a:\n  b = 1\n"),
                    "got \"b\", expected a line further to the right");
  EXPECT_ERROR_TEXT(statements("  if a:\n      b = 1\n    c = 1\n"),
                    "code/net.py:4: got a line after 4 spaces, expected 2 as in a block around it");
  EXPECT_ERROR_TEXT(statements("  f(x\n"), "got the end of the text after an open \"(\"");
  EXPECT_ERROR_TEXT(statements("  f(x]\n"), "got \"]\" without an open \"[\"");
  EXPECT_ERROR_TEXT(statements("  f(a=1, b)\n"), "got an argument without a name after one with");
  EXPECT_ERROR_TEXT(statements("  f(1=2)\n"), "got \"=\" after an expression, expected a name");
  EXPECT_ERROR_TEXT(statements("  return a < b < c\n"), "got a chain of comparisons, expected one");
  EXPECT_ERROR_TEXT(statements("  x = $\n"), "got the character \"$\"");
  EXPECT_ERROR_TEXT(statements("\tpass\n"), "got a tab, expected spaces before a statement");
}

TEST(Parser, Classes) {
  EXPECT_ERROR_TEXT(read("x = 1\n"), "code/net.py:1: got \"x\", expected a class or a function");
  EXPECT_ERROR_TEXT(read("class A:\n  x\n"), "got the end of the line, expected \":\" and a type");
  EXPECT_ERROR_TEXT(read("class A:\n  x : Final[int]\n"), "got the constant \"x\" without a value");
  EXPECT_ERROR_TEXT(read("class A:\n  __buffers__ = [1]\n"), "got no text in __buffers__");
  EXPECT_ERROR_TEXT(read("class if:\n  pass\n"), "got \"if\", expected the name of a class");
  EXPECT_ERROR_TEXT(read("@torch.jit.script\ndef f():\n  pass\n"), "got \"@\", expected a class");
  EXPECT_ERROR_TEXT(read("def f(x, x=):\n  pass\n"), "got \")\", expected an expression");
}

std::string repeated(const std::string& text, size_t times) {
  std::string all;
  for (size_t i = 0; i < times; ++i) all += text;
  return all;
}

// Each kind of nesting ends at the limit, not with the program's stack.
TEST(Parser, TooDeep) {
  const size_t deep = 100000;
  const char* const error = "got more than 200 ";
  for (const auto& [open, close] :
       std::vector<std::pair<const char*, const char*>>{{"(", ")"},
                                                        {"[", "]"},
                                                        {"{1: ", "}"},
                                                        {"f(", ")"},
                                                        {"x[", "]"},
                                                        {"-", ""},
                                                        {"not ", ""},
                                                        {"~", ""},
                                                        {"", ".a"},
                                                        {"", "[0]"},
                                                        {"", "()"},
                                                        {"", " + x"},
                                                        {"", " or x"},
                                                        {"", " ** x"},
                                                        {"x if x else ", ""}}) {
    EXPECT_ERROR_TEXT(expression(repeated(open, deep) + "x" + repeated(close, deep)), error);
    EXPECT_NO_THROW(expression(repeated(open, 60) + "x" + repeated(close, 60))) << open << close;
  }
  std::string blocks, others = "  if x:\n    pass\n";
  for (size_t i = 1; i < 1000; ++i) blocks += std::string(i, ' ') + "if x:\n";
  EXPECT_ERROR_TEXT(statements(blocks + std::string(1000, ' ') + "pass\n"), error);
  EXPECT_ERROR_TEXT(statements(others + repeated("  elif x:\n    pass\n", 1000)), error);
  EXPECT_ERROR_TEXT(statements("  with " + repeated("x, ", 1000) + "x:\n    pass\n"), error);
  ParseLimits more;
  more.depth = 2000;
  EXPECT_NO_THROW(
      read("def f():\n  return " + repeated("(", 900) + "x" + repeated(")", 900), more));
}

TEST(Parser, Limits) {
  ParseLimits limits;
  limits.bytes = 10;
  EXPECT_ERROR_TEXT(read("class A: pass", limits),
                    "code/net.py: got a text of 13 bytes, expected at most 10");
  limits = {};
  limits.expressions = 1000;
  EXPECT_ERROR_TEXT(read("def f():\n  return [" + repeated("1, ", 2000) + "]\n", limits),
                    "got more than 1000 expressions in a text (a limit of load)");
  EXPECT_ERROR_TEXT(read(std::string("def f():\n  pass\0\n", 17)),
                    "code/net.py:2: got a character 0");
  EXPECT_ERROR_TEXT(read("# \xff\n"), "code/net.py: got bytes that are no valid UTF-8");
  // A long line: a comment, a name, a text, brackets.
  const std::string many(4 << 20, 'a');
  EXPECT_NO_THROW(read("#" + many));
  EXPECT_NO_THROW(read("def " + many + "():\n  return \"" + many + "\"\n"));
  EXPECT_ERROR_TEXT(read(many), "\"" + std::string(60, 'a') + "...\", expected a class");
  EXPECT_ERROR_TEXT(read("def f(" + many), "after an open \"(\"");
}

TEST(Parser, Places) {
  auto source = std::make_shared<Source>();
  source->name = "code/net.py";
  source->text = "def f():\n  return $\n";
  source->origins = {{4, "net.py", 12}, {11, "/home/a/net.py", 13}, {19, "", 0}};
  EXPECT_EQ(source->place(0), "code/net.py:1");
  EXPECT_EQ(source->place(4), "net.py:12 (code/net.py:1)");
  EXPECT_EQ(source->place(19), "code/net.py:2");
  EXPECT_EQ(source->place(1000), "code/net.py:3");
  EXPECT_ERROR_START(parse(source), "[torch::jit::load] /home/a/net.py:13 (code/net.py:2): got");
}

// ---- the tables of lines ------------------------------------------------------------------------

std::string text_opcode(const std::string& s) {
  return std::string("X") + static_cast<char>(s.size()) + std::string(3, '\0') + s;
}
std::string number_opcode(int n) { return std::string("K") + static_cast<char>(n); }

TEST(Origins, NewFormat) {
  const std::string intlist = "ctorch.jit._pickle\nbuild_intlist\n";
  // The text of two lines starts at line 27 of "net.py"; offset 5 comes from its second line.
  const std::string from = "(" + intlist + "(](" + number_opcode(1) + number_opcode(2) + "etR" +
                           number_opcode(3) + number_opcode(27) + "tq\x01";
  const std::string none = "(" + intlist + "(](etR" + number_opcode(0) + number_opcode(0) + "t";
  const auto range = [](int offset, const std::string& text, int start) {
    return "(" + number_opcode(offset) + "(" + text + number_opcode(start) +
           number_opcode(start + 2) + "t" + number_opcode(0) + "t";
  };
  const std::string table = std::string("\x80\x02", 2) + "(" +
                            text_opcode("FORMAT_WITH_STRING_TABLE") + "(" + text_opcode("") +
                            text_opcode("def f():\n") + text_opcode("  return x\n") +
                            text_opcode("net.py") + "t(" + range(0, none, 0) + range(5, from, 8) +
                            range(7, "h\x01", 9) + range(9, "h\x01", 11) + "tt.";
  const std::vector<Source::Origin> origins = read_origins("f.debug_pkl", table);
  ASSERT_EQ(origins.size(), 3u);  // two of one line are one
  EXPECT_EQ(origins[0].file, "");
  EXPECT_EQ(origins[1].offset, 5u);
  EXPECT_EQ(origins[1].file, "net.py");
  EXPECT_EQ(origins[1].line, 27);
  EXPECT_EQ(origins[2].offset, 7u);
  EXPECT_EQ(origins[2].line, 28);
  for (size_t size = 0; size < table.size(); ++size)
    EXPECT_ERROR_START(read_origins("f.debug_pkl", table.substr(0, size)),
                       "[torch::jit::load] f.debug_pkl, offset ");
}

// Before PyTorch 1.10, with the text itself.
TEST(Origins, OldFormat) {
  const auto range = [](int offset, const std::string& text, int start) {
    return "(" + number_opcode(offset) + "(" + text + number_opcode(start) +
           number_opcode(start + 2) + "t" + number_opcode(0) + "t";
  };
  const std::string text =
      "(" + text_opcode("a\nb\n") + text_opcode("old.py") + number_opcode(4) + "t";
  const std::string unknown = "(" + text_opcode("a\n") + "N" + number_opcode(0) + "t";
  const std::vector<Source::Origin> origins = read_origins(
      "f", std::string("\x80\x02", 2) + "(" + range(3, text, 2) + range(1, unknown, 0) + "t.");
  ASSERT_EQ(origins.size(), 2u);
  EXPECT_EQ(origins[0].file, "");
  EXPECT_EQ(origins[1].offset, 3u);
  EXPECT_EQ(origins[1].file, "old.py");
  EXPECT_EQ(origins[1].line, 5);
}

TEST(Origins, Refused) {
  const auto table = [](const std::string& body) {
    return std::string("\x80\x02", 2) + body + ".";
  };
  EXPECT_ERROR_TEXT(read_origins("f", table("N")),
                    "f, offset 2: got None, expected a table of lines");
  EXPECT_ERROR_TEXT(read_origins("f", table("(K\x01t")),
                    "got an integer, expected an offset and a range");
  EXPECT_ERROR_TEXT(read_origins("f", table("(" + text_opcode("OTHER") + "NNt")),
                    "got the text \"OTHER\", expected the text \"FORMAT_WITH_STRING_TABLE\"");
  // 200 lists of a string of 200 kB, 200 times each: 8 GB of text from a file of 300 kB.
  std::string big = "X" + std::string("\x40\x0d\x03\0", 4) + std::string(200000, '\n');
  std::string ranges;
  for (int i = 0; i < 200; ++i) {
    std::string pieces;
    for (int k = 0; k < 200; ++k) pieces += number_opcode(0);
    ranges += "(" + number_opcode(1) + "((](" + pieces + "e" + number_opcode(0) + number_opcode(0) +
              "t" + number_opcode(0) + number_opcode(0) + "tt";
  }
  EXPECT_ERROR_TEXT(read_origins("f", table("(" + text_opcode("FORMAT_WITH_STRING_TABLE") + "(" +
                                            big + "t(" + ranges + "tt")),
                    "got strings that are repeated too often");
}

}  // namespace
}  // namespace ramet::script
