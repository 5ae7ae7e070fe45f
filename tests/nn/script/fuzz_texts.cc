#include "tests/nn/script/fuzz_texts.h"

#include "autograd/ops.h"
#include "nn/script/lexer_internal.h"
#include "tests/nn/fuzz/fuzz_files.h"
#include "tests/nn/script/script_texts.h"

namespace ramet {
namespace fuzz {
namespace {

using namespace script;

const char* const kText = R"(class M(Module):
  __parameters__ = ["w", ]
  __buffers__ = []
  w : Tensor
  col : __torch__.Color
  m : __torch__.MIf
  eps : Final[float] = 1.0000000000000001e-05
  def forward(self: __torch__.M,
    x: Tensor) -> Tuple[Tensor, int]:
    w = self.w
    return (torch.mul(x, w), 1)
class Color(Enum):
  RED = 1
  GREEN = 2
class MIf(Interface):
  def forward(self, x: Tensor) -> Tensor:
    pass
class Pt(NamedTuple):
  x : int
  y : Optional[Tensor]
class no_grad:
  prev : bool
  def __enter__(self: __torch__.no_grad) -> NoneType:
    self.prev = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    return None
  def __exit__(self: __torch__.no_grad,
    exc_type: Any,
    exc_value: Any,
    traceback: Any) -> NoneType:
    prev = self.prev
    torch.set_grad_enabled(prev)
    return None
  def __init__(self: __torch__.no_grad) -> NoneType:
    self.prev = False
    return None
def f(x: Tensor,
    n: int=3,
    y: Optional[Tensor]=None) -> Tensor:
  if torch.__isnot__(y, None):
    y0 = unchecked_cast(Tensor, y)
    x0 = torch.add(x, y0)
  else:
    x0 = x
  x1 = x0
  _5 = 0
  _6 = torch.gt(n, 0)
  while _6:
    if torch.eq(_5, 2):
      _7, _8 = False, x1
    else:
      _7, _8 = True, torch.mul(x1, 2.5)
    _9 = torch.add(_5, 1)
    _10 = torch.__and__(torch.lt(_9, n), _7)
    _6, x1, _5 = _10, _8, _9
  d = annotate(Dict[str, int], {})
  names = ["a", "b"]
  for _12 in range(torch.len(names)):
    nm = names[_12]
    torch._set_item(d, nm, torch.len(nm))
  l = annotate(List[int], [])
  for j in range(4):
    _16 = torch.append(l, torch.mul(j, 2))
  p = __torch__.Pt(1, x1)
  a, b, = p
  _70 = __torch__.no_grad.__new__(__torch__.no_grad)
  _71 = (_70).__init__()
  with _70:
    z = torch.detach(x1)
  def __forked_function():
    return __torch__.g(z, __torch__.Color.RED)
  fut = fork(__forked_function)
  if isinstance(l[-1], int):
    pass
  else:
    ops.prim.RaiseException(torch.format("dim {}", (p)[0]), "builtins.ValueError")
  return torch.add(torch.wait(fut), x1, alpha=d["a"])
def g(x: Tensor, c: __torch__.Color) -> Tensor:
  if torch.eq(c, __torch__.Color.GREEN):
    _0 = x
  else:
    _0 = torch.slice(torch.slice(x), 1, 1, -1)
    _0 = torch.sum(x, [1], True)
  return _0
)";

struct Piece {
  std::string text, space;  // what stands before it
};

const std::vector<Piece>& pieces() {
  static const std::vector<Piece> made = [] {
    Source source;
    source.text = kText;
    std::vector<Piece> list;
    size_t end = 0;
    for (Lexer lexer(source, 200); lexer.next().kind != Token::Kind::kEnd;) {
      const Token token = lexer.take();
      if (token.text.empty()) continue;
      list.push_back({std::string(token.text), source.text.substr(end, token.offset - end)});
      end = token.offset + token.text.size();
    }
    return list;
  }();
  return made;
}

// Up to `most` changes: tokens are left out, doubled, exchanged for others, or put in.
std::string changed(Tape& tape, int64_t most) {
  static const std::vector<std::string> kOthers = {"None",
                                                   "inf",
                                                   "9223372036854775808",
                                                   "-9223372036854775807",
                                                   "(",
                                                   ")",
                                                   "[",
                                                   "]",
                                                   "{",
                                                   "}",
                                                   ",",
                                                   ":",
                                                   "=",
                                                   "\n",
                                                   "\n  ",
                                                   "\n      ",
                                                   "\"",
                                                   "'",
                                                   "\\",
                                                   "\"a\"",
                                                   "1.5",
                                                   "not",
                                                   "if",
                                                   "else:",
                                                   "def",
                                                   "class A(NamedTuple):\n  a : __torch__.A\n",
                                                   "fork",
                                                   "range",
                                                   "torch.wait",
                                                   "uninitialized(Tensor)",
                                                   "__torch__.f",
                                                   "CONSTANTS.c0",
                                                   "self",
                                                   "List[int]",
                                                   "Union[int, str]",
                                                   "torch.zeros([1000000000000])",
                                                   "\xc3",
                                                   "#",
                                                   "*",
                                                   "**",
                                                   "@",
                                                   "...",
                                                   "lambda",
                                                   "__torch__.torch.classes.a.B",
                                                   "return",
                                                   "break",
                                                   "continue",
                                                   "del",
                                                   "assert",
                                                   "raise"};
  std::vector<Piece> list = pieces();
  for (int64_t changes = tape.between(1, most); changes > 0 && !list.empty(); --changes) {
    const auto at = static_cast<size_t>(tape.below(static_cast<int64_t>(list.size())));
    const auto from = static_cast<size_t>(tape.below(static_cast<int64_t>(list.size())));
    const auto place = list.begin() + static_cast<ptrdiff_t>(at);
    switch (tape.below(6)) {
      case 0: list.erase(place); break;
      case 1: list[at].text = list[from].text; break;
      case 2: list[at].text = tape.one_of(kOthers); break;
      case 3: list.insert(place, {list[from].text, " "}); break;
      case 4: list.insert(place, {tape.one_of(kOthers), " "}); break;
      default: list[at].space += std::string(static_cast<size_t>(tape.below(5)), ' ');
    }
  }
  std::string text;
  for (const Piece& p : list) text += p.space + p.text;
  return text;
}

// As the loader does: all that the text defines is declared and compiled.
void use(const std::string& text) {
  auto source = std::make_shared<Source>();
  source->name = "code/__torch__.py", source->text = text;
  Limits limits;
  limits.depth = 50, limits.recursion = 20, limits.steps = 2000;
  const auto unit = std::make_shared<CompilationUnit>(
      [source](const std::string& module) { return module == "__torch__" ? source : nullptr; },
      std::vector<IValue>{Tensor(zeros({2}))}, 10, limits);
  const FileSyntax file = parse(source, {limits.depth});
  for (const auto& c : file.classes) {
    const TypePtr type = unit->type_named("__torch__." + c->name);
    if (type->info())
      for (const auto& method : type->info()->methods) unit->compile(*method);
  }
  for (const auto& f : file.functions) unit->compile(*unit->function_named("__torch__." + f->name));
  unit->report_problems();
  call(*unit->function_named("__torch__.f"), {Tensor(ones({2, 3}))});
}

// Errors alone are thrown. Operators may ask for too much memory.
template <class F> bool succeeds(F&& f) {
  const Limit limit(1 << 20);
  try {
    f();
    return true;
  } catch (const Error& e) { RC_ASSERT(std::string(e.what()) != ""); }
  return false;
}

}  // namespace

void check_text(Tape& tape) {
  static const bool as_it_is = succeeds([] { use(kText); });
  RC_ASSERT(as_it_is);
  succeeds([&] { use(changed(tape, 4)); });
}

void check_origins(Tape& tape) {
  const auto text = [](const std::string& s) {
    return "X" + std::string(1, static_cast<char>(s.size())) + std::string(3, '\0') + s;
  };
  const auto number = [](int n) { return "K" + std::string(1, static_cast<char>(n)); };
  // The pieces "def f():\n" of "net.py", from line 27 on, and ranges at 1 and 5.
  const std::string from =
      "((](" + number(1) + number(1) + "e" + number(2) + number(27) + "tq" + '\1';
  std::string bytes = std::string("\x80\x02(", 3) + text("FORMAT_WITH_STRING_TABLE") + "(" +
                      text("") + text("def f():\n") + text("net.py") + "t((" + number(1) + from +
                      number(3) + number(12) + "tt(" + number(5) + "(h\x01" + number(11) +
                      number(12) + "ttt" + "t.";
  static const bool as_it_is = read_origins("f", bytes).size() == 2;
  RC_ASSERT(as_it_is);
  damage(tape, bytes, false);
  succeeds([&] {
    for (const Source::Origin& origin : read_origins("f", bytes)) RC_ASSERT(origin.line >= 0);
  });
}

}  // namespace fuzz
}  // namespace ramet
