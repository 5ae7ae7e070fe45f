// Errors with their places, limits, and one program on many threads.
#include <gtest/gtest.h>

#include <thread>

#include "autograd/ops.h"
#include "tests/error_text.h"
#include "tests/nn/script/script_texts.h"
#include "tests/values.h"

namespace ramet::script {
namespace {

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(Limits, AnErrorListsTheCallsOnce) {
  const char* const text = R"(
def h(x: Tensor) -> Tensor:
  return torch.matmul(x, torch.ones([5, 5]))
def g(x: Tensor) -> Tensor:
  return __torch__.h(torch.add(x, 1), )
def f(x: Tensor) -> Tensor:
  y = __torch__.g(x, )
  return y
)";
  const std::string error = error_of([&] { run_text(text, {ones({2, 3})}); });
  EXPECT_EQ(error.find("[matmul]"), 0u) << error;
  for (const char* name : {"in __torch__.f, ", "in __torch__.g, ", "in __torch__.h, "})
    EXPECT_EQ(count(error, name), 1u) << error;
  EXPECT_LT(error.find("in __torch__.h, "), error.find("in __torch__.g, ")) << error;
  EXPECT_EQ(count(error, "model.py:"), 3u) << error;
}

TEST(Limits, ErrorsKeepTheirType) {
  const char* const text = "def f(l: List[int]) -> int:\n  return l[5]\n";
  EXPECT_THROW(run_text(text, {List<int64_t>{1}}), IndexError);
}

TEST(Limits, Recursion) {
  const char* const text = R"(
def f(n: int) -> int:
  if torch.eq(n, 0):
    return 0
  else:
    pass
  return torch.add(__torch__.f(torch.sub(n, 1), ), 1)
)";
  EXPECT_EQ(run_text(text, {199}).toInt(), 199);
  EXPECT_ERROR_TEXT(run_text(text, {200}), "recursion: got more than 200 calls");
  Limits few;
  few.recursion = 5;
  const auto unit = unit_of(text, few);
  const ScriptFunction& f = compiled(*unit, "f");
  EXPECT_EQ(call(f, {4}).toInt(), 4);
  EXPECT_ERROR_TEXT(call(f, {5}), "recursion: got more than 5 calls");
  EXPECT_EQ(call(f, {4}).toInt(), 4) << "a failed call changes nothing";
}

TEST(Limits, Steps) {
  const char* const text = R"(
def f(n: int) -> int:
  k = 0
  for i in range(n):
    k = torch.add(k, 1)
  return k
def endless(n: int) -> int:
  while True:
    n = torch.add(n, 1)
  return n
)";
  Limits few;
  few.steps = 1000;
  const auto unit = unit_of(text, few);
  EXPECT_EQ(call(compiled(*unit, "f"), {100}).toInt(), 100);
  EXPECT_ERROR_TEXT(call(compiled(*unit, "f"), {1000000000000}),
                    "steps: got a call of more than 1000");
  EXPECT_ERROR_TEXT(call(compiled(*unit, "endless"), {1}), "Limits::steps");
}

TEST(Limits, ChainsOfObjectsAreReleased) {
  const auto unit = unit_of(R"(
class Node:
  next : Optional[__torch__.Node]
  def __init__(self: __torch__.Node) -> NoneType:
    self.next = None
    return None
def f(n: int) -> int:
  head = __torch__.Node.__new__(__torch__.Node)
  _0 = (head).__init__()
  for i in range(n):
    node = __torch__.Node.__new__(__torch__.Node)
    node.next = head
    head = node
  return 5
)");
  unit->class_named("__torch__.Node");
  EXPECT_EQ(call(compiled(*unit, "f"), {1'000'000}).toInt(), 5);
}

TEST(Limits, RangesAtTheEndsOfIntegers) {
  const char* const text = R"(
def f(a: int,
    b: int,
    c: int) -> int:
  k = 0
  for i in range(a, b, c):
    k = torch.add(k, 1)
  return k
)";
  EXPECT_EQ(run_text(text, {5, 0, -2}).toInt(), 3);
  EXPECT_EQ(run_text(text, {0, 5, -1}).toInt(), 0);
  EXPECT_ERROR_TEXT(run_text(text, {0, 5, 0}), "range: got a step of 0");
  const int64_t top = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(run_text(text, {top - 2, top, 1}).toInt(), 2);
  EXPECT_EQ(run_text(text, {top - 5, top, 4}).toInt(), 2) << "the counter would not fit after it";
}

TEST(Limits, ArgumentsFromOutside) {
  const char* const text = "def f(x: Tensor, n: float=0.5) -> Tensor:\n  return torch.mul(x, n)\n";
  const auto unit = unit_of(text);
  const ScriptFunction& f = compiled(*unit, "f");
  expect_values(call(f, {ones({1})}).toTensor(), {0.5});
  expect_values(call(f, {ones({1}), 3}).toTensor(), {3});
  expect_values(call(f, {ones({1})}, {{"n", 2.0}}).toTensor(), {2});
  EXPECT_ERROR_TEXT(call(f, {}), "[__torch__.f] got no argument 'x', expected Tensor");
  EXPECT_ERROR_TEXT(call(f, {1}), "argument 'x': got Int, expected Tensor");
  EXPECT_ERROR_TEXT(call(f, {ones({1}), "a"}), "argument 'n': got String, expected float");
  EXPECT_ERROR_TEXT(call(f, {ones({1}), 1., 2.}), "got 3 arguments, expected at most 2");
  EXPECT_ERROR_TEXT(call(f, {ones({1})}, {{"m", 1.}}), "got an argument 'm'");
  EXPECT_ERROR_TEXT(call(f, {ones({1})}, {{"x", 1.}}), "got the argument 'x' twice");
}

TEST(Limits, CodeThatLiesAboutTypes) {
  const char* const text = R"(
def f(x: Any) -> Tensor:
  y = unchecked_cast(Tensor, x)
  a, b, = unchecked_cast(Tuple[Tensor, Tensor], x)
  return torch.add(a, y)
)";
  EXPECT_NE(error_of([&] { run_text(text, {3}); }), "no error");
  EXPECT_ERROR_TEXT(run_text(text, {std::make_tuple(ones({1}))}), "unpacking: got 1 values");
  const char* const never =
      "def f(n: int) -> Tensor:\n  x = uninitialized(Tensor)\n"
      "  return torch.add(x, n)\n";
  EXPECT_NE(error_of([&] { run_text(never, {3}); }), "no error");
}

TEST(Limits, ManyThreadsRunOneProgram) {
  const auto unit = unit_of(R"(
def g(x: Tensor,
    n: int) -> Tensor:
  for i in range(n):
    x = torch.add(torch.mul(x, 0.5), i)
  return x
def f(x: Tensor,
    n: int) -> Tuple[Tensor, List[int]]:
  l = annotate(List[int], [])
  for i in range(n):
    _0 = torch.append(l, i)
    x = __torch__.g(x, i, )
  return (x, l)
)");
  const ScriptFunction& f = compiled(*unit, "f");
  const std::vector<double> expected =
      values(call(f, {ones({3}), 9}).toTupleRef().elements()[0].toTensor());
  std::vector<std::thread> threads;
  std::vector<int> right(4, 0);
  for (size_t t = 0; t < right.size(); ++t)
    threads.emplace_back([&, t] {
      for (int round = 0; round < 20; ++round) {
        const IValue result = call(f, {ones({3}), 9});
        const std::vector<IValue>& parts = result.toTupleRef().elements();
        right[t] += values(parts[0].toTensor()) == expected && parts[1].toIntVector().size() == 9;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, std::vector<int>(4, 20));
}

}  // namespace
}  // namespace ramet::script
