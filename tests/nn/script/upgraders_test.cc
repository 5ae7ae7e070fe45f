// Operators of files of version 3 to 9. Expected values are those of PyTorch 2.15, from such files.
#include <gtest/gtest.h>

#include <sstream>

#include "autograd/ops.h"
#include "nn/script/script.h"
#include "tests/error_text.h"
#include "tests/nn/script/script_files.h"
#include "tests/nn/script/script_texts.h"
#include "tests/values.h"

namespace ramet::script {
namespace {

std::shared_ptr<CompilationUnit> unit_in(int64_t version, const std::string& text) {
  const auto lookup = [text](const std::string& module) -> SourcePtr {
    if (module != "__torch__") return nullptr;
    auto source = std::make_shared<Source>();
    source->name = "code/__torch__.py", source->text = text;
    return source;
  };
  return std::make_shared<CompilationUnit>(lookup, std::vector<IValue>(), version, Limits());
}

// The result of an expression of x, y, i and f in a file of that version.
IValue in_version(int64_t version, const std::string& expression, const std::string& type,
                  const Tensor& x, const Tensor& y = {}, int64_t i = 2, double f = 2) {
  const auto unit = unit_in(version, "def g(x: Tensor, y: Tensor, i: int, f: float) -> " + type +
                                         ":\n  return " + expression + "\n");
  return call(compiled(*unit, "g"), {x, y.defined() ? y : x, i, f});
}
Tensor tensor_in(int64_t version, const std::string& expression, const Tensor& x,
                 const Tensor& y = {}, int64_t i = 2, double f = 2) {
  return in_version(version, expression, "Tensor", x, y, i, f).toTensor();
}
void expect_tensor(const Tensor& got, const Tensor& expected) {
  EXPECT_EQ(got.scalar_type(), expected.scalar_type());
  EXPECT_TRUE(equal(got, expected)) << got << "\nexpected " << expected;
}

const Tensor kSevens = tensor({7, -7}), kTwos = tensor({2, 2});
const Tensor kWhole = tensor({3, -3}), kHalves = tensor({3.5f, -3.5f});

TEST(Upgraders, Division) {
  for (const char* division : {"torch.div(x, y)", "torch.div(x, i)",
                               "torch.div_(torch.clone(x), y)", "torch.div_(torch.clone(x), i)"}) {
    expect_tensor(tensor_in(3, division, kSevens, kTwos), kWhole.to(kSevens.scalar_type()));
    expect_tensor(tensor_in(3, division, kSevens.to(kDouble), kTwos), kHalves.to(kDouble));
  }
  for (const int64_t version : {3, 4, 10}) {
    expect_tensor(tensor_in(version, "torch.div(x, f)", kSevens), kHalves);
    expect_tensor(tensor_in(version, "torch.div(x, y, rounding_mode=\"floor\")", kSevens, kTwos),
                  tensor({3, -4}).to(kSevens.scalar_type()));
    // Numbers are no tensors: their quotient was always a float.
    EXPECT_EQ(in_version(version, "torch.div(i, 4)", "float", kSevens).toDouble(), 0.5);
  }
  for (const int64_t version : {4, 10}) {
    expect_tensor(tensor_in(version, "torch.div(x, y)", kSevens, kTwos), kHalves);
    expect_tensor(tensor_in(version, "torch.div(x, i)", kSevens), kHalves);
    EXPECT_NE(
        error_of([&] { tensor_in(version, "torch.div_(torch.clone(x), y)", kSevens, kTwos); }),
        "no error");
  }
  // Into a real tensor it was a real quotient.
  const Tensor real = zeros({2}), whole = zeros({2}, kLong);
  const auto unit = unit_in(3,
                            "def f(x: Tensor, y: Tensor, o: Tensor) -> Tensor:\n"
                            "  return torch.div(x, y, out=o)\n");
  for (const Tensor& out : {real, whole}) call(compiled(*unit, "f"), {kSevens, kTwos, out});
  expect_tensor(real, kHalves);
  expect_tensor(whole, kWhole.to(kLong));
}

TEST(Upgraders, Full) {
  for (const int64_t version : {3, 4}) {
    expect_tensor(tensor_in(version, "torch.full([2], i)", kTwos, {}, 7), tensor({7.f, 7.f}));
    expect_tensor(tensor_in(version, "torch.full([2], True)", kTwos), tensor({1.f, 1.f}));
  }
  for (const int64_t version : {5, 10}) {
    expect_tensor(tensor_in(version, "torch.full([2], i)", kTwos, {}, 7), full({2}, 7, kLong));
    expect_tensor(tensor_in(version, "torch.full([2], True)", kTwos), full({2}, true, kBool));
  }
  for (const int64_t version : {3, 5}) {
    expect_tensor(tensor_in(version, "torch.full([2], i, dtype=4)", kTwos, {}, 7),
                  full({2}, 7, kLong));
    expect_tensor(
        tensor_in(version, "torch.full([2], 0.5, dtype=None, layout=None, device=None)", kTwos),
        tensor({0.5f, 0.5f}));
  }
}

TEST(Upgraders, Steps) {
  for (const char* steps : {"", ", None"}) {
    const std::string spaced = std::string("torch.linspace(0., f") + steps + ")";
    const std::string powers = std::string("torch.logspace(0., f") + steps + ")";
    expect_tensor(tensor_in(7, spaced, kTwos), linspace(0, 2, 100));
    expect_tensor(tensor_in(8, powers, kTwos), logspace(0, 2, 100));
    EXPECT_ERROR_TEXT(tensor_in(8, spaced, kTwos),
                      "aten::linspace: no overload takes the arguments");
    EXPECT_ERROR_TEXT(tensor_in(9, powers, kTwos),
                      "aten::logspace: no overload takes the arguments");
  }
  for (const int64_t version : {3, 10}) {
    expect_tensor(tensor_in(version, "torch.linspace(0., f, 3)", kTwos), linspace(0, 2, 3));
    expect_tensor(tensor_in(version, "torch.linspace(0, i, 3, dtype=7)", kTwos),
                  linspace(0, 2, 3, kDouble));
    expect_tensor(tensor_in(version, "torch.logspace(0., f, 3, 2.)", kTwos),
                  logspace(0, 2, 3, 2.0));
  }
}

TEST(Upgraders, Gelu) {
  const Tensor x = tensor({-1.f, 0.5f});
  for (const int64_t version : {3, 9, 10}) {
    expect_tensor(tensor_in(version, "torch.gelu(x)", x), gelu(x, "none"));
    expect_tensor(tensor_in(version, "torch.gelu(x, approximate=\"tanh\")", x), gelu(x, "tanh"));
  }
}

// PyTorch 1.10.2 wrote it (goldens/make_old_goldens.py), and printed these values.
TEST(Upgraders, AFileOfPyTorch110) {
  jit::Module net = jit::load(script_files::file("old_1_10"));
  for (int round = 0; round < 2; ++round) {
    const IValue result = net({arange(-3, 3), linspace(-1, 1, 6)});
    const std::vector<IValue>& got = result.toTupleRef().elements();
    ASSERT_EQ(got.size(), 8u);
    const Tensor halves = tensor({-1.5f, -1.f, -0.5f, 0.f, 0.5f, 1.f});
    expect_tensor(got[0].toTensor(), halves);
    expect_tensor(got[1].toTensor(), halves);
    EXPECT_TRUE(allclose(got[2].toTensor(), tensor({-0.5f, -0.3f, -0.1f, 0.1f, 0.3f, 0.5f})));
    expect_tensor(got[3].toTensor(), full({2}, 3, kLong));
    EXPECT_TRUE(allclose(got[4].toTensor(), arange(100) / 99.0, 1e-6, 1e-6));
    EXPECT_TRUE(allclose(got[5].toTensor(), pow(10, arange(100) / 99.0), 1e-6, 1e-6));
    const Tensor gelus = tensor({1.f, 0.8354f, 0.8317f, 1.3476f, 2.7418f, 5.2067f}).view({2, 3});
    EXPECT_TRUE(allclose(got[6].toTensor(), gelus, 1e-4, 1e-4));
    EXPECT_EQ(got[7].toStringRef(), "a");
    // What is saved keeps the version, and so the old meaning.
    std::stringstream saved;
    net.save(saved);
    net = jit::load(saved);
  }
}

}  // namespace
}  // namespace ramet::script
