// Objects of a script: classes, modules, interfaces, enumerations, NamedTuples, `with`, fork,
// hooks. Texts are as PyTorch 2.15 prints them, expected values are what it gave.
#include <gtest/gtest.h>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "tests/error_text.h"
#include "tests/nn/script/script_texts.h"
#include "tests/values.h"

namespace ramet::script {
namespace {

const char* const kObjects = R"(
class F(Module):
  __parameters__ = []
  __buffers__ = []
  training : bool
  c : __torch__.Color
  k : int
  sub : __torch__.Iface
  mods : __torch__.Mods
  def forward(s: __torch__.F,
    x: Tensor) -> Tensor:
    sub = s.sub
    return (sub).forward(x, )
  def classes(s: __torch__.F,
    x: Tensor) -> Tuple[int, Tensor, bool]:
    a = __torch__.Acc.__new__(__torch__.Acc)
    _0 = (a).__init__(3, )
    b = __torch__.Acc.__new__(__torch__.Acc)
    _1 = (b).__init__(4, )
    _2 = (a).add(x, )
    _3 = (a).add(x, )
    n = a.n
    items = a.items
    _4 = (n, torch.stack(items), (a).__eq__(b, ))
    return _4
  def enums(s: __torch__.F,
    c: __torch__.Color) -> int:
    if torch.eq(c, __torch__.Color.RED):
      _54 = (c).value
    else:
      c0 = s.c
      if torch.__is__(c, c0):
        _55 = 7
      else:
        _55 = torch.len((c).name)
      _54 = _55
    return _54
  def blue(s: __torch__.F) -> __torch__.Color:
    return __torch__.Color.BLUE
  def red(s: __torch__.F) -> __torch__.Color:
    return __torch__.Color.RED
  def modules(s: __torch__.F,
    x: Tensor) -> Tensor:
    mods = s.mods
    _0 = getattr(mods, "0")
    _1 = getattr(mods, "1")
    x3 = (_0).forward(x, )
    x4 = (_1).forward(x3, )
    k = s.k
    return torch.add(x4, k)
  def forks(s: __torch__.F,
    x: Tensor) -> Tensor:
    fs = annotate(List[Future[Tensor]], [])
    for i in range(3):
      mods = s.mods
      _0 = getattr(mods, "0")
      _56 = torch.add(x, i)
      def __forked_function():
        return (_0).forward(_56, )
      _57 = fork(__forked_function)
      _58 = torch.append(fs, _57)
    out = torch.zeros_like(x)
    out0 = out
    for _59 in range(torch.len(fs)):
      f = fs[_59]
      out0 = torch.add_(out0, torch.wait(f))
    return out0
  def points(s: __torch__.F,
    p: __torch__.Point) -> __torch__.Point:
    _71 = torch.mul((p)[0], 2)
    _72 = torch.add((p)[1], 1)
    _73 = __torch__.Point(_71, torch.add(_72, _72))
    return _73
class Mods(Module):
  __parameters__ = []
  __buffers__ = []
  __annotations__["0"] = __torch__.A
  __annotations__["1"] = __torch__.B
class A(Module):
  __parameters__ = []
  __buffers__ = []
  def forward(self: __torch__.A,
    x: Tensor) -> Tensor:
    return torch.add(x, 1)
class B(Module):
  __parameters__ = []
  __buffers__ = []
  def forward(self: __torch__.B,
    x: Tensor) -> Tensor:
    return torch.mul(x, 2)
class Color(Enum):
  RED = 1
  BLUE = 2
class Iface(ModuleInterface):
  def forward(self, x: Tensor) -> Tensor:
    pass
class Acc:
  n : int
  items : List[Tensor]
  def __eq__(self: __torch__.Acc,
    o: __torch__.Acc) -> bool:
    n = self.n
    n1 = o.n
    return torch.eq(n, n1)
  def __init__(self: __torch__.Acc,
    n: int) -> NoneType:
    self.n = n
    self.items = annotate(List[Tensor], [])
    return None
  def add(self: __torch__.Acc,
    t: Tensor) -> int:
    items = self.items
    _115 = torch.append(items, t)
    n = self.n
    self.n = torch.add(n, 1)
    return self.n
class Point(NamedTuple):
  x : Tensor
  n : int
)";

class Objects : public testing::Test {
 protected:
  void SetUp() override {
    unit = unit_of(kObjects);
    // The classes of all objects are known before code is compiled, as an archive's are.
    a = std::make_shared<Object>(unit, unit->class_named("__torch__.A"));
    b = std::make_shared<Object>(unit, unit->class_named("__torch__.B"));
    mods = object_of(unit, "Mods");
    mods->slots = {IValue::ObjectPtr(a), IValue::ObjectPtr(b)};
    net = object_of(unit, "F");
    unit->report_problems();
    set("sub", IValue::ObjectPtr(a));
    set("mods", IValue::ObjectPtr(mods));
    set("k", 5);
    set("c", run("blue"));
  }
  void set(const char* name, IValue value) {
    const int64_t slot = net->info()->slot(name);
    ASSERT_GE(slot, 0) << name;
    net->slots.at(static_cast<size_t>(slot)) = std::move(value);
  }
  IValue run(const char* method, std::vector<IValue> arguments = {}) {
    arguments.insert(arguments.begin(), IValue::ObjectPtr(net));
    return call(*net->info()->method(method), std::move(arguments));
  }

  std::shared_ptr<CompilationUnit> unit;
  std::shared_ptr<Object> a, b, mods, net;
};

TEST_F(Objects, InterfacesCallTheClassOfTheObject) {
  expect_values(run("forward", {six()}).toTensor(), {-1, 0, 1, 2, 3, 4});
  set("sub", IValue::ObjectPtr(b));
  expect_values(run("forward", {six()}).toTensor(), {-4, -2, 0, 2, 4, 6});
}

TEST_F(Objects, ClassesAreMade) {
  const IValue result = run("classes", {six()});
  const std::vector<IValue>& parts = result.toTupleRef().elements();
  EXPECT_EQ(parts[0].toInt(), 5);
  expect_values(parts[1].toTensor(), {-2, -1, 0, 1, 2, 3, -2, -1, 0, 1, 2, 3});
  EXPECT_FALSE(parts[2].toBool());
}

TEST_F(Objects, Enumerations) {
  EXPECT_EQ(run("enums", {run("red")}).toInt(), 1);
  EXPECT_EQ(run("enums", {run("blue")}).toInt(), 7);
  set("c", run("red"));
  EXPECT_EQ(run("enums", {run("blue")}).toInt(), 4);
}

TEST_F(Objects, ModulesInsideModules) {
  expect_values(run("modules", {six()}).toTensor(), {3, 5, 7, 9, 11, 13});
}

TEST_F(Objects, ForksRunAtOnce) {
  expect_values(run("forks", {six()}).toTensor(), {0, 3, 6, 9, 12, 15});
}

TEST_F(Objects, NamedTuples) {
  const IValue result = run("points", {std::make_tuple(six(), 4)});
  EXPECT_EQ(result.toTupleRef().elements()[1].toInt(), 10);
  ASSERT_TRUE(result.toTupleRef().names());
  EXPECT_EQ(result.toTupleRef().names()->fields, (std::vector<std::string>{"x", "n"}));
}

TEST_F(Objects, AttributesOfAnotherClassAreRefused) {
  set("mods", IValue::ObjectPtr(a));
  EXPECT_ERROR_TEXT(run("modules", {six()}),
                    "an attribute: got an object of __torch__.A, expected __torch__.Mods");
  set("mods", 3);
  EXPECT_NE(error_of([&] { run("modules", {six()}); }), "no error");
}

const char* const kWith = R"(
class Ctx:
  l : List[int]
  def __enter__(self: __torch__.Ctx) -> int:
    l = self.l
    _116 = torch.append(l, 1)
    l0 = self.l
    return torch.len(l0)
  def __exit__(self: __torch__.Ctx,
    t: Any,
    v: Any,
    tb: Any) -> NoneType:
    l = self.l
    _117 = torch.append(l, 2)
    return None
  def __init__(self: __torch__.Ctx,
    l: List[int]) -> NoneType:
    self.l = l
    return None
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
def f(x: Tensor) -> Tuple[Tensor, List[int]]:
  l = annotate(List[int], [])
  _109 = __torch__.Ctx.__new__(__torch__.Ctx)
  _110 = (_109).__init__(l, )
  with _109 as n:
    _111 = __torch__.no_grad.__new__(__torch__.no_grad)
    _112 = (_111).__init__()
    with _111:
      x13 = torch.mul(x, n)
      _113 = __torch__.Ctx.__new__(__torch__.Ctx)
      _114 = (_113).__init__(l, )
      with _113:
        y = torch.add(x13, 1)
  return (torch.add(x13, y), l)
def fails(x: Tensor,
    l: List[int]) -> Tensor:
  _0 = __torch__.Ctx.__new__(__torch__.Ctx)
  _1 = (_0).__init__(l, )
  _2 = __torch__.no_grad.__new__(__torch__.no_grad)
  _3 = (_2).__init__()
  with _0:
    with _2:
      y = torch.mul(x, torch.ones([7]))
  return y
def leaves(l: List[int]) -> int:
  for i in range(4):
    _0 = __torch__.Ctx.__new__(__torch__.Ctx)
    _1 = (_0).__init__(l, )
    with _0:
      if torch.eq(i, 1):
        continue
      if torch.eq(i, 2):
        return i
  return 9
)";

TEST(With, EntersAndLeaves) {
  const Tensor x = six().requires_grad_();
  const IValue result = run_text(kWith, {x});
  const std::vector<IValue>& parts = result.toTupleRef().elements();
  expect_values(parts[0].toTensor(), {-3, -1, 1, 3, 5, 7});
  EXPECT_FALSE(parts[0].toTensor().requires_grad());
  EXPECT_EQ(printed(parts[1]), "[1, 1, 2, 2]");
  EXPECT_TRUE(GradMode::is_enabled());
}

TEST(With, LeavesWhereAnErrorIsThrown) {
  const auto unit = unit_of(kWith);
  const List<int64_t> l;
  EXPECT_ERROR_TEXT(call(compiled(*unit, "fails"), {six(), l}), "[mul]");
  EXPECT_EQ(l.vec(), (std::vector<int64_t>{1, 2}));
  EXPECT_TRUE(GradMode::is_enabled());
}

TEST(With, LeavesByJumpsAndReturns) {
  const auto unit = unit_of(kWith);
  const List<int64_t> l;
  EXPECT_EQ(call(compiled(*unit, "leaves"), {l}).toInt(), 2);
  EXPECT_EQ(l.vec(), (std::vector<int64_t>{1, 2, 1, 2, 1, 2}));
}

TEST(Fork, AnErrorComesWhereItIsAwaited) {
  const char* const text = R"(
def g(x: Tensor) -> Tensor:
  ops.prim.RaiseException("inside", "builtins.ValueError")
  return x
def f(x: Tensor,
    n: int) -> int:
  def __forked_function():
    return __torch__.g(x, )
  fut = fork(__forked_function)
  if torch.gt(n, 0):
    y = torch.wait(fut)
  else:
    pass
  return n
)";
  EXPECT_EQ(run_text(text, {six(), 0}).toInt(), 0);
  EXPECT_ERROR_TEXT(run_text(text, {six(), 1}), "inside");
}

TEST(Hooks, RunAroundForward) {
  const char* const text = R"(
class M(Module):
  __parameters__ = []
  __buffers__ = []
  __forward_hooks__ = ["after", ]
  __forward_pre_hooks__ = ["before", "again", ]
  def forward(self: __torch__.M,
    x: Tensor,
    n: int) -> Tensor:
    return torch.mul(x, n)
  def before(self: __torch__.M,
    input: Tuple[Tensor, int]) -> Tuple[Tensor, int]:
    x, n, = input
    return (torch.add(x, 1), torch.add(n, 1))
  def again(self: __torch__.M,
    input: Tuple[Tensor, int]) -> NoneType:
    return None
  def after(self: __torch__.M,
    input: Tuple[Tensor, int],
    output: Tensor) -> Tensor:
    return torch.sub(output, (input)[1])
)";
  const auto unit = unit_of(text);
  const auto module = object_of(unit, "M");
  unit->report_problems();
  expect_values(call_module(module, {six(), 2}).toTensor(), {-6, -3, 0, 3, 6, 9});
  const IValue self = IValue::ObjectPtr(module);
  expect_values(call(*module->info()->method("forward"), {self, six()}, {{"n", 2}}).toTensor(),
                {-4, -2, 0, 2, 4, 6});
}

// A class is also the namespace of its hooks: code/__torch__/Inner.py has them.
TEST(Hooks, OfAModuleInsideAreCallsOfFunctions) {
  const auto unit = unit_of(std::map<std::string, std::string>{{"__torch__", R"(
class Hooked(Module):
  __parameters__ = []
  __buffers__ = []
  i : __torch__.Inner
  def forward(s: __torch__.Hooked,
    x: Tensor) -> Tensor:
    i = s.i
    _0 = __torch__.Inner.pre(i, (torch.neg(x),), )
    _1, = _0
    _2 = __torch__.Inner.post(i, _0, (i).forward(_1, ), )
    return _2
class Inner(Module):
  __parameters__ = []
  __buffers__ = []
  __forward_pre_hooks__ = ["pre", ]
  def forward(s: __torch__.Inner,
    x: Tensor) -> Tensor:
    return torch.mul(x, 2)
  def pre(self: __torch__.Inner,
    inp: Tuple[Tensor]) -> Tuple[Tensor]:
    return (torch.add((inp)[0], 1),)
)"},
                                                               {"__torch__.Inner", R"(
def post(self: __torch__.Inner,
    inp: Tuple[Tensor],
    out: Tensor) -> Tensor:
  return torch.sub(out, (inp)[0])
)"}});
  const auto module = object_of(unit, "Hooked");
  unit->report_problems();
  module->slots[0] =
      IValue::ObjectPtr(std::make_shared<Object>(unit, unit->class_named("__torch__.Inner")));
  expect_values(call_module(module, {six()}).toTensor(), {3, 2, 1, 0, -1, -2});
}

}  // namespace
}  // namespace ramet::script
