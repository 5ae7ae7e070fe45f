// Programs as PyTorch 2.15 prints them. Expected values are those that PyTorch gave.
#include <gtest/gtest.h>

#include "autograd/graph/engine.h"
#include "autograd/ops.h"
#include "tests/error_text.h"
#include "tests/nn/script/script_texts.h"
#include "tests/values.h"

namespace ramet::script {
namespace {

// Early returns out of loops, as printed: flags, and values that are never read.
const char* const kEarly = R"(
def f(x: Tensor,
    n: int) -> Tensor:
  _19 = uninitialized(Tensor)
  _20 = uninitialized(Tensor)
  _21 = uninitialized(int)
  _22 = uninitialized(bool)
  if torch.gt(n, 3):
    _23 = x
  else:
    _24 = False
    _25 = _19
    x0 = x
    _26 = 0
    _27 = torch.gt(n, 0)
    while _27:
      if torch.eq(_26, 2):
        _28, _29, _30, _31 = False, True, torch.mul(x0, _26), _19
      else:
        _28, _29, _30, _31 = True, False, _19, torch.add(x0, 1)
      _32 = torch.add(_26, 1)
      _33 = torch.__and__(torch.lt(_32, n), _28)
      _27, _24, _25, x0, _26 = _33, _29, _30, _31, _32
    if _24:
      _34 = _25
    else:
      x1 = x0
      n0 = n
      _35 = True
      while _35:
        x2 = torch.add(x1, 1)
        _36 = torch.gt(torch.item(torch.sum(x2)), 100.)
        if _36:
          _37, _38, _39, _40, _41, _42, _43 = True, False, x2, n0, _22, _20, _21
        else:
          if torch.eq(n0, 2):
            _44, _45, _46, _47, _48, _49, _50 = True, True, x2, n0, _22, _20, _21
          else:
            _44, _45, _46, _47, _48, _49, _50 = False, _22, _20, _21, True, x2, torch.add(n0, 1)
          _37, _38, _39, _40, _41, _42, _43 = _44, _45, _46, _47, _48, _49, _50
        if _37:
          _51, _52, _53 = _38, _39, _40
        else:
          _51, _52, _53 = _41, _42, _43
        _35, x1, n0 = _51, _52, _53
      _34 = torch.neg(x1)
    _23 = _34
  return _23
)";

TEST(Interpreter, EarlyReturns) {
  expect_values(run_text(kEarly, {six(), 5}).toTensor(), {-2, -1, 0, 1, 2, 3});
  expect_values(run_text(kEarly, {six(), 3}).toTensor(), {0, 2, 4, 6, 8, 10});
  expect_values(run_text(kEarly, {six(), 2}).toTensor(), {-15, -16, -17, -18, -19, -20});
  expect_values(run_text(kEarly, {six(), 0}).toTensor(), {-15, -16, -17, -18, -19, -20});
}

const char* const kOptional = R"(
def f(a: Optional[Tensor],
    b: Optional[int]=None) -> Tensor:
  _68 = uninitialized(Tensor)
  x: Optional[Tensor] = None
  for i in range(3):
    if torch.__is__(x, None):
      x9 = torch.mul(torch.ones([2]), i)
    else:
      x10 = unchecked_cast(Tensor, x)
      x9 = torch.add(x10, i)
    x = x9
  if torch.__isnot__(x, None):
    x11 = unchecked_cast(Tensor, x)
  else:
    ops.prim.RaiseException("AssertionError: ")
    x11 = _68
  if torch.__isnot__(a, None):
    a1 = unchecked_cast(Tensor, a)
    _69, a0 = torch.__isnot__(b, None), a1
  else:
    _69, a0 = False, a
  if _69:
    a3 = unchecked_cast(Tensor, a0)
    b0 = unchecked_cast(int, b)
    a2, x12 = a3, torch.add(x11, torch.mul(a3, b0))
  else:
    a2, x12 = a0, x11
  if torch.__is__(a2, None):
    _70 = x12
  else:
    a4 = unchecked_cast(Tensor, a2)
    _70 = torch.mul(x12, a4)
  return _70
)";

TEST(Interpreter, Optionals) {
  const Tensor threes = full({2}, 3.0, kFloat);
  expect_values(run_text(kOptional, {IValue()}).toTensor(), {3, 3});
  expect_values(run_text(kOptional, {threes}).toTensor(), {9, 9});
  expect_values(run_text(kOptional, {threes, 2}).toTensor(), {27, 27});
}

const char* const kDicts = R"(
def f(d: Dict[str, int]) -> List[Tuple[str, int]]:
  out = annotate(List[Tuple[str, int]], [])
  _5 = torch.items(d)
  for _6 in range(torch.len(_5)):
    k, v, = _5[_6]
    _7 = torch.append(out, (k, v))
  _8 = torch.keys(d)
  for _9 in range(torch.len(_8)):
    k0 = _8[_9]
    _10 = torch.append(out, (k0, torch.floordiv(d[k0], 2)))
  if torch.__contains__(d, "a"):
    _11 = torch.pop(d, "a")
  else:
    pass
  m = annotate(Dict[str, int], {})
  _12 = torch.items(d)
  for _13 in range(torch.len(_12)):
    k1, v0, = _12[_13]
    torch._set_item(m, k1, v0)
  _14 = annotate(List[int], [])
  _15 = torch.values(m)
  for _16 in range(torch.len(_15)):
    v1 = _15[_16]
    _17 = torch.append(_14, v1)
  _18 = torch.append(out, ("z", torch.sum(_14)))
  return out
)";

TEST(Interpreter, Dicts) {
  IValue::GenericDict d;
  d.insert("a", 5);
  d.insert("b", 7);
  d.insert("c", 9);
  EXPECT_EQ(printed(run_text(kDicts, {d})),
            "[(a, 5), (b, 7), (c, 9), (a, 2), (b, 3), (c, 4), (z, 16)]");
  EXPECT_EQ(d.size(), 2u) << "the caller's dict is shared";
}

const char* const kUnions = R"(
def f(v: Union[Tensor, int, str],
    o: Optional[List[int]]=None) -> str:
  _97 = uninitialized(str)
  _98 = isinstance(v, int)
  if _98:
    v2 = unchecked_cast(int, v)
    _99, _100 = True, torch.add("int", str(v2))
  else:
    v3 = unchecked_cast(Union[Tensor, str], v)
    _101 = isinstance(v3, str)
    if _101:
      v4 = unchecked_cast(str, v3)
      _104 = torch.add(torch.upper(v4), v4[0])
      _105 = torch.add(_104, torch.slice(v4, -2))
      _102, _103 = True, _105
    else:
      _102, _103 = False, _97
    _99, _100 = _102, _103
  if _99:
    _106 = _100
  else:
    if torch.__isnot__(o, None):
      o0 = unchecked_cast(List[int], o)
      _108 = torch.format("{} {}", o0, torch.len(o0))
      _107 = _108
    else:
      _107 = "tensor"
    _106 = _107
  return _106
)";

TEST(Interpreter, UnionsAndIsinstance) {
  EXPECT_EQ(run_text(kUnions, {4}).toStringRef(), "int4");
  EXPECT_EQ(run_text(kUnions, {"hello"}).toStringRef(), "HELLOhlo");
  EXPECT_EQ(run_text(kUnions, {six(), List<int64_t>{1, 2}}).toStringRef(), "[1, 2] 2");
  EXPECT_EQ(run_text(kUnions, {six()}).toStringRef(), "tensor");
}

const char* const kSlices = R"(
def f(x: Tensor,
    l: List[int],
    t: Tuple[int, str, Tensor]) -> Tuple[Tensor, List[int], str]:
  y = torch.slice(torch.slice(x, 0, 1), 1, None, None, 2)
  _79 = torch.select(y, 0, 0)
  _80 = torch.tensor(3, dtype=ops.prim.dtype(_79), device=ops.prim.device(_79))
  _81 = torch.copy_(_79, _80)
  _82 = torch.add_(torch.select(y, -1, -1), 2)
  _83 = torch.gt(x, 2)
  _84 = torch.tensor(0.5, dtype=ops.prim.dtype(x), device=ops.prim.device(x))
  _85 = annotate(List[Optional[Tensor]], [_83])
  _86 = torch.index_put_(x, _85, _84)
  _87 = torch._set_item(l, 0, 9)
  _88 = torch._set_item(l, -1, torch.add(l[-1], 1))
  _89 = (t)[1]
  i = l[0]
  j = l[1]
  _90 = torch.add(sorted(l), torch.slice(l, None, None, -1))
  z = torch.add(_90, [j, i])
  return (y, z, _89)
)";

TEST(Interpreter, SlicesWriteTheTensorAndTheList) {
  const Tensor x = arange(12, kFloat).view({3, 4});
  const List<int64_t> l{5, 2, 8};
  const IValue result = run_text(kSlices, {x, l, std::make_tuple(1, "q", x)});
  const std::vector<IValue>& parts = result.toTupleRef().elements();
  expect_values(parts[0].toTensor(), {0.5, 0.5, 0.5, 0.5});
  EXPECT_EQ(printed(parts[1]), "[2, 9, 9, 9, 2, 9, 2, 9]");
  EXPECT_EQ(parts[2].toStringRef(), "q");
  EXPECT_EQ(l.vec(), (std::vector<int64_t>{9, 2, 9}));
  expect_values(x, {0, 1, 2, .5, .5, .5, .5, .5, .5, .5, .5, .5});
}

const char* const kNumbers = R"(
def f(n: int,
    f: float,
    x: Tensor) -> Tuple[int, float, float, bool, int, float]:
  _60 = torch.add(torch.floordiv(n, 2), torch.remainder(n, 3))
  import_ = torch.sub(_60, torch.pow(n, 2))
  _61 = torch.add(torch.div(float(n), 3), torch.pow(f, 0.5))
  _62 = torch.add(torch.add(_61, ops.prim.min(f, 2.)), ops.prim.max(n, 3))
  g = torch.add(_62, ops.prim.abs(torch.neg(f)))
  if torch.gt(n, 100):
    h = inf
  else:
    h = -inf
  if torch.gt(n, 2):
    _63 = torch.lt(f, 0.001)
  else:
    _63 = False
  if _63:
    b = True
  else:
    b = torch.eq(torch.dim(x), 2)
  _64 = int(import_)
  _65 = int(torch.sum(x))
  _66 = torch.add(float(torch.max(x)), 3.1415926535897931)
  _67 = (_64, g, h, b, _65, torch.add(_66, torch.round(f)))
  return _67
)";

TEST(Interpreter, Numbers) {
  const IValue result = run_text(kNumbers, {7, 2.25, six()});
  const std::vector<IValue>& first = result.toTupleRef().elements();
  EXPECT_EQ(first[0].toInt(), -45);
  EXPECT_DOUBLE_EQ(first[1].toDouble(), 15.083333333333334);
  EXPECT_EQ(first[2].toDouble(), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(first[3].toBool());
  EXPECT_EQ(first[4].toInt(), 3);
  EXPECT_DOUBLE_EQ(first[5].toDouble(), 8.141592653589793);
  const IValue other = run_text(kNumbers, {101, 2.25, select(six(), 0, 0)});
  const std::vector<IValue>& second = other.toTupleRef().elements();
  EXPECT_EQ(second[0].toInt(), -10149);
  EXPECT_EQ(second[2].toDouble(), std::numeric_limits<double>::infinity());
  EXPECT_FALSE(second[3].toBool());
}

TEST(Interpreter, StringsAndLists) {
  const char* const text = R"(
def f(a: str,
    n: int,
    x: Tensor) -> Tuple[List[str], List[List[float]], List[int]]:
  _91 = torch.strip(a)
  _92 = torch.percentFormat("%s-%d", (a, n))
  r = [_91, _92, torch.replace(a, "a", "b"), torch.join(",", ["x", "y"])]
  r0 = torch.add_(r, torch.split(a, " "))
  l = annotate(List[List[float]], x.tolist())
  return (r0, l, torch.add(torch.size(x), [5]))
)";
  EXPECT_EQ(printed(run_text(text, {"xa b ", 2, six()})),
            "([xa b, xa b -2, xb b , x,y, xa, b, ], [[-2., -1., 0.], [1., 2., 3.]], [2, 3, 5])");
}

TEST(Interpreter, GradientsThroughAScript) {
  const char* const text = R"(
def f(x: Tensor,
    w: Tensor) -> Tensor:
  x0 = x
  for i in range(3):
    x0 = torch.mul(torch.tanh(x0), w)
  if torch.gt(torch.sum(x0), 0.):
    y = torch.sum(x0)
  else:
    y = torch.neg(torch.sum(x0))
  return y
)";
  const Tensor x = six().requires_grad_();
  const Tensor w = full({3}, 1.5, kDouble).requires_grad_();
  run_text(text, {x, w}).toTensor().backward();
  // The same in C++:
  const Tensor a = x.detach().requires_grad_(), b = w.detach().requires_grad_();
  Tensor y = a;
  for (int i = 0; i < 3; ++i) y = mul(tanh(y), b);
  sum(y).backward();
  expect_values(x.grad(), values(a.grad()));
  expect_values(w.grad(), values(b.grad()));
}

TEST(Interpreter, GradientsInsideAScript) {
  const Tensor x = six().requires_grad_(true);
  const IValue got = run_text(R"(
def f(x: Tensor) -> Tuple[Optional[Tensor], Optional[Tensor]]:
  y = torch.sum(torch.mul(x, x))
  gs = torch.autograd.grad([y], [x, torch.add(x, 0)], None, True, False, True)
  torch.autograd.backward([y], None, True)
  torch.autograd.backward(torch.mul(y, 2))
  return (gs[0], gs[1])
)",
                              {x});
  const std::vector<IValue> grads = got.toTupleRef().elements();
  EXPECT_TRUE(grads[0].toTensor().equal(2 * x.detach()));
  EXPECT_TRUE(grads[1].isNone()) << "y does not depend on it";
  EXPECT_TRUE(x.grad().equal(6 * x.detach()));
}

TEST(Interpreter, WhatTheLoopChangesIsShared) {
  const char* const text = R"(
def g(l: List[Tensor]) -> NoneType:
  _0 = torch.append(l, torch.ones([1]))
  return None
def f(x: Tensor) -> Tuple[List[Tensor], Tensor]:
  l = [x]
  k = l
  for i in range(2, 8, 3):
    _0 = __torch__.g(k, )
    _1 = torch.add_(l[0], i)
  return (l, torch.view(x, [2, 3]))
)";
  const Tensor x = zeros({6}, kDouble);
  const IValue result = run_text(text, {x});
  EXPECT_EQ(result.toTupleRef().elements()[0].toTensorVector().size(), 3u);
  expect_values(x, {7, 7, 7, 7, 7, 7});
}

// PyTorch prints none of these, but its importer reads them.
TEST(Interpreter, PythonThatIsWrittenByHand) {
  const char* const text = R"(
def f(l: List[int],
    d: Dict[str, int]) -> Tuple[int, str, bool]:
  total = 0
  for x in l:
    if x == 2:
      continue
    if x > 4 or x < 0:
      break
    total = total + x * 2 - (-x)
  names = ""
  for k in d:
    names = names + k
  assert total > 0, "no sum"
  return (total if len(l) > 1 else 0, names, not 3 in l and l[-1] != 2 ** 2)
)";
  IValue::GenericDict d;
  d.insert("p", 1);
  d.insert("q", 2);
  EXPECT_EQ(printed(run_text(text, {List<int64_t>{1, 2, 3, 5, 4}, d})), "(12, pq, False)");
  EXPECT_EQ(printed(run_text(text, {List<int64_t>{1, 7}, d})), "(3, pq, True)");
  EXPECT_ERROR_TEXT(run_text(text, {List<int64_t>(), d}), "no sum");
}

TEST(Interpreter, SwappedVariables) {
  const char* const text = R"(
def f(n: int) -> Tuple[int, int, int]:
  a = 0
  b = 1
  t = (a, b)
  for i in range(n):
    a, b = b, torch.add(a, b)
    t = (b, a)
  b, a, = (a, b)
  t0, t1, = t
  return (a, b, t0)
)";
  EXPECT_EQ(printed(run_text(text, {10})), "(89, 55, 89)");
  EXPECT_EQ(printed(run_text(text, {0})), "(1, 0, 0)");
}

}  // namespace
}  // namespace ramet::script
