// Grad mode and InferenceMode: what a tensor made in one of them is, and what may be done with it
// in another. Leaves that are views, and their views.
#include <gtest/gtest.h>

#include <optional>

#include "autograd/autograd.h"
#include "autograd/graph/node.h"
#include "autograd/ops.h"
#include "tests/autograd/check.h"

namespace ramet {
namespace {

using Values = std::vector<double>;

struct Mode {
  std::optional<NoGradGuard> no_grad;
  std::optional<autograd::InferenceMode> inference;
  explicit Mode(int i) {  // 0: none
    if (i == 1) no_grad.emplace();
    if (i == 2) inference.emplace();
  }
};
Tensor inference_tensor(std::initializer_list<double> v) {
  const InferenceMode on;
  return constant(v);
}

char letter(bool b) { return b ? 'T' : 'F'; }
// The uses of v, which was made of a leaf. Each gives T or F, or E for an Error.
using Use = char (*)(Tensor& v, const Tensor& other);
const Use kUses[] = {
    [](Tensor& v, const Tensor&) { return letter(v.mul_(2).requires_grad()); },
    [](Tensor& v, const Tensor& other) { return letter(v.mul_(other).requires_grad()); },
    [](Tensor& v, const Tensor&) { return letter((v * 2).requires_grad()); },
    [](Tensor& v, const Tensor& other) { return letter((v * other).requires_grad()); },  // saves v
    [](Tensor& v, const Tensor&) { return letter(v.requires_grad_().requires_grad()); },
    [](Tensor& v, const Tensor& other) {
      return letter(add_out(v, other.detach(), other.detach()).is_inference());
    },
    [](Tensor& v, const Tensor& other) {
      v.set_data(other.data());
      return letter(v.is_inference());
    },
};
constexpr size_t kOp = 2, kOut = 5, kSetData = 6;

// By LibTorch 2.15: what a tensor is (requires_grad, is_leaf, is_inference, is_view), then what the
// uses say in no mode, in no_grad mode and in inference mode. A row's name: what it was made of (a
// leaf, another tensor that requires grad, an inference tensor) and how. Its modes: plain, no_grad,
// inference. G: the leaf gets a gradient. T of an operation: its result requires a gradient, which
// reaches no leaf.
struct Row {
  const char *name, *modes, *answers;
} const kRows[] = {
    {"leaf itself", "pni", "TTFF EEGTTEF TTFFTFF TTFFTFF"},
    {"leaf view", "p", "TFFT EEGTTEF TTFFTFF TTFFTFF"},
    {"leaf view", "ni", "TTFT EETTTEF TTFFTFF TTFFTFF"},
    {"leaf detach", "pni", "FTFF FTFTTFF FFFFTFF FFFFTFF"},
    {"leaf clone", "p", "TFFF TTGTTEF TTFFTFF TTFFTFF"},
    {"leaf clone", "n", "FTFF FTFTTFF FFFFTFF FFFFTFF"},
    {"leaf clone", "i", "FTTF EEFEEEF EEFFEEF FFFFTTF"},
    {"leaf data", "pni", "FTFF FTFTTFF FFFFTFF FFFFTFF"},
    {"leaf op", "p", "TFFF TTGTTEF TTFFTFF TTFFTFF"},
    {"leaf op", "n", "FTFF FTFTTFF FFFFTFF FFFFTFF"},
    {"leaf op", "i", "FTTF EEFEEEF EEFFEEF FFFFTTF"},
    {"other itself", "pni", "TFFF TTGTTEF TTFFTFF TTFFTFF"},
    {"other view", "p", "TFFT TTGTTEF TTFFTFF TTFFTFF"},
    {"other view", "ni", "TTFT EETTTEF TTFFTFF TTFFTFF"},
    {"other detach", "pni", "FTFF FTFTTFF FFFFTFF FFFFTFF"},
    {"other clone", "p", "TFFF TTGTTEF TTFFTFF TTFFTFF"},
    {"other clone", "n", "FTFF FTFTTFF FFFFTFF FFFFTFF"},
    {"other clone", "i", "FTTF EEFEEEF EEFFEEF FFFFTTF"},
    {"other data", "pni", "FTFF FTFTTFF FFFFTFF FFFFTFF"},
    {"other op", "p", "TFFF TTGTTEF TTFFTFF TTFFTFF"},
    {"other op", "n", "FTFF FTFTTFF FFFFTFF FFFFTFF"},
    {"other op", "i", "FTTF EEFEEEF EEFFEEF FFFFTTF"},
    {"inference itself", "pni", "FTTF EEFEEEF EEFFEEF FFFFTTF"},
    {"inference view", "pni", "FTTF EEFEEEF EEFFEEF FFFFTTF"},
    {"inference detach", "pn", "FTTF FTFEETF FFFFETF FFFFTTF"},
    {"inference detach", "i", "FTTF EEFEEEF EEFFEEF FFFFTTF"},
    {"inference clone", "pn", "FTFF FTFTTFF FFFFTFF FFFFTFF"},
    {"inference clone", "i", "FTTF EEFEEEF EEFFEEF FFFFTTF"},
    {"inference data", "pn", "FTTF FTFEETF FFFFETF FFFFTTF"},
    {"inference data", "i", "FTTF EEFEEEF EEFFEEF FFFFTTF"},
    {"inference op", "pn", "FTFF FTFTTFF FFFFTFF FFFFTFF"},
    {"inference op", "i", "FTTF EEFEEEF EEFFEEF FFFFTTF"},
};

// Where our answers differ (tools/compare/NOTES.md). An operation on a view without history is a
// constant. An inference tensor's detach() is never written outside. set_data leaves what the
// tensor is.
std::string expected(const Row& row) {
  std::string e = row.answers;
  const std::string name = row.name;
  const bool shows_inference = name.rfind("inference d", 0) == 0;  // detach, data
  for (size_t use = 0; use < 3; ++use) {
    char* const at = &e[5 + 8 * use];
    if (at[kOp] == 'T') at[kOp] = 'F';
    at[kSetData] = e[2];
    if (shows_inference && use < 2)
      for (size_t i : {size_t{0}, size_t{1}, kOut}) at[i] = 'E';
  }
  return e;
}

Tensor made(const std::string& name, char mode, const Tensor& leaf) {
  const std::string kind = name.substr(0, name.find(' ')), how = name.substr(kind.size() + 1);
  const Tensor of = kind == "leaf"    ? leaf
                    : kind == "other" ? leaf * 2
                                      : inference_tensor({1, 1, 1, 1});
  const Mode in(mode == 'p' ? 0 : mode == 'n' ? 1 : 2);
  return how == "itself"   ? of
         : how == "view"   ? of.view({4})
         : how == "detach" ? of.detach()
         : how == "clone"  ? of.clone()
         : how == "data"   ? of.data()
                           : of * 2;
}

TEST(GradModes, WhatIsMadeInOneAndUsedInAnother) {
  for (const Row& row : kRows)
    for (const char* made_in = row.modes; *made_in; ++made_in) {
      const auto make = [&](const Tensor& of) { return made(row.name, *made_in, of); };
      const Tensor v = make(leaf({1, 1, 1, 1}));
      std::string ours = {letter(v.requires_grad()), letter(v.is_leaf()), letter(v.is_inference()),
                          letter(v.is_view())};
      for (int mode = 0; mode < 3; ++mode) {
        ours += ' ';
        for (const Use use : kUses) {
          const Tensor w = leaf({1, 1, 1, 1}), other = leaf({1, 1, 1, 1});
          Tensor x = make(w);
          const Mode in(mode);
          try {
            const char says = use(x, other);
            const bool op = use == kUses[kOp] && says == 'T';
            if (op) (x * 2).sum().backward();
            ours += op && w.grad().defined() ? 'G' : says;
          } catch (const Error&) { ours += 'E'; }
        }
      }
      EXPECT_EQ(ours, expected(row)) << row.name << ", " << *made_in;
    }
}

bool refused(const Tensor& x, const char* why) {
  const std::vector<double> before = values(x);
  const std::string what = error_of([&] { x.mul_(2); });
  return what.find(why) != std::string::npos && values(x) == before;
}

TEST(GradModes, ViewsOfALeafThatIsAViewAreRefused) {
  const char *leaf = "a view of a leaf Variable that requires grad",
             *made_off = "A view was created in no_grad mode";
  const Tensor b = constant({1, 2, 3, 4}), x = b.view({2, 2}).requires_grad_();
  for (const Tensor& v : {x, x.view({4}), x.view({4})[1], x.split(1)[1], x.expand({2, 2}),
                          x.unfold(0, 1, 1), x.t(), x.diagonal(), x.view({4}).view({2, 2})})
    EXPECT_TRUE(refused(v, leaf)) << v.sizes();
  for (int mode : {1, 2}) {
    const Tensor v = [&] {
      const Mode in(mode);
      return x.view({4});
    }();
    EXPECT_TRUE(v.requires_grad() && v.is_leaf() && v._base().is_same(b) && refused(v, made_off));
    EXPECT_TRUE(refused(v.view({2, 2}), made_off));
  }
  x.detach().mul_(2);  // as LibTorch
  EXPECT_TRUE(x.is_leaf() && x._base().is_same(b));
  (x * x.view({4}).view({2, 2})).sum().backward();
  EXPECT_EQ(values(x.grad()), (Values{4, 8, 12, 16}));
}

// In LibTorch it is no leaf any more, and its gradient stays undefined.
TEST(GradModes, ALeafThatIsAViewIsNoMoreAfterItsBaseGotAHistory) {
  const Tensor b = constant({1, 2}), x = b.view({2, 1}).requires_grad_(), v = x.view({2}),
               w = leaf({3, 4});
  b.mul_(w);
  const char* why =
      "a leaf Variable that requires grad is a view of a tensor that has been modified";
  EXPECT_ERROR_TEXT(x * 2, why);
  EXPECT_ERROR_TEXT(x.view({2}), why);
  const Tensor y = w * 1;
  expect_part(error_of([&] { y.add_(x.detach().view({2})), y.view({2, 1}).add_(x); }), why);
  EXPECT_EQ(values(y), (Values{6, 12}));  // the second was not begun
  x.requires_grad_(false);
  EXPECT_TRUE(x.requires_grad() && !x.is_leaf());
  (x * 2).sum().backward();
  EXPECT_EQ(values(w.grad()), (Values{2, 4}));
}

TEST(GradModes, LeavesThatAreViewsOfOneAnother) {
  const Tensor b = constant({1, 2, 3, 4}), x = b.view({2, 2}).requires_grad_(),
               w = leaf({5, 6, 7, 8});
  std::optional<NoGradGuard> off(std::in_place);
  const Tensor z = x.view({4}).requires_grad_(), u = z.view({2, 2}).requires_grad_();
  off.reset();
  (x.sum() + z.sum() * 2 + u.sum() * 3).backward();
  EXPECT_EQ(values(x.grad()), (Values{1, 1, 1, 1}));
  EXPECT_EQ(values(z.grad()), (Values{2, 2, 2, 2}));
  EXPECT_EQ(values(u.grad()), (Values{3, 3, 3, 3}));
  EXPECT_TRUE(u._base().is_same(b) && refused(u.t(), "A view was created in no_grad mode"));
  for (const Tensor& t : {x, z, u}) t.requires_grad_(false);
  const Tensor v = u.view({4}), in_order = b.view({4});
  b.mul_(w);
  EXPECT_TRUE(u.requires_grad() && x.requires_grad());
  EXPECT_THROW(v * 2, Error);
  in_order.sum().backward();
  EXPECT_EQ(values(w.grad()), (Values{1, 2, 3, 4}));
}

// It is a view of its base again, and so are the views that were made of it.
TEST(GradModes, ALeafThatIsAViewAndRequiresNoGradientAnyMore) {
  const Tensor b = constant({1, 2, 3, 4}), x = b.view({2, 2}).requires_grad_(), w = leaf({5, 6});
  const Tensor old = x.view({4});
  x.requires_grad_(false);
  const Tensor v = x.view({4});
  EXPECT_TRUE(refused(old, "a view of a leaf Variable that requires grad"));
  v.slice(0, 1, 3).mul_(w);
  EXPECT_TRUE(b.requires_grad() && x.requires_grad() && v.requires_grad());
  (b.sum() + x.sum() * 10 + v.sum() * 100).backward();
  EXPECT_EQ(values(w.grad()), (Values{222, 333}));
}

TEST(GradModes, WritesThatWouldMakeABaseWrongAreRefused) {
  const char* why = "A view was created in no_grad mode";
  for (int mode : {1, 2}) {
    const Tensor w = leaf({1, 2}), h = w * 3, plain = constant({5, 6});
    std::optional<Mode> in(std::in_place, mode);
    const Tensor v = h.view({2, 1}), u = plain.view({2});
    v.mul_(2);  // in the mode
    in.reset();
    EXPECT_TRUE(refused(v, why));
    (h * h).sum().backward();  // 6 w in memory, 3 w in the history
    EXPECT_EQ(values(w.grad()), (Values{36, 72}));
    u.mul_(2);  // no gradient needs it
    const std::string what = error_of([&] { u.mul_(w); });
    expect_part(what, why);
    EXPECT_EQ(values(plain), (Values{10, 12}));
    plain.mul_(w);  // now u's history would be another
    EXPECT_TRUE(u.requires_grad() && refused(u, why));
    EXPECT_ERROR_TEXT(u * 2, why);
    NoGradGuard off;
    EXPECT_EQ(values(u * 2), (Values{20, 48}));
  }
}

TEST(GradModes, NobodyReadsTheGradientOfAViewWithoutHistory) {
  const Tensor h = leaf({1, 2}) * 2;
  std::optional<NoGradGuard> off(std::in_place);
  const Tensor v = h.view({2, 1});
  off.reset();
  EXPECT_TRUE(v.requires_grad() && v.is_leaf() && !v.grad_fn());
  EXPECT_THROW(v.register_hook([](const Tensor&) {}), Error);
  EXPECT_THROW(v.register_post_accumulate_grad_hook([](const Tensor&) {}), Error);
  EXPECT_THROW(v.sum().backward(), Error);
  EXPECT_THROW(autograd::grad({h.sum()}, {v}), Error);
  v.retain_grad();  // nothing, as for any leaf
  v.requires_grad_();
  (v * v).sum().backward();
  EXPECT_EQ(values(v.grad()), (Values{4, 8}));
}

TEST(InferenceModeTest, VersionsAndNormalTensors) {
  const Tensor w = leaf({1, 2}), h = w * 2, y = h * h, t = inference_tensor({1, 2});
  EXPECT_ERROR_TEXT(t._version(), "Inference tensors do not track version counter");
  {
    const InferenceMode on;
    EXPECT_TRUE(!h.view({2, 1}).is_inference() && (h + 1).is_inference());
    h.view({2, 1}).add_(1);
    EXPECT_EQ(h._version(), 1);
    EXPECT_THROW(t._version(), Error);
    w.mul_(1);  // a leaf
  }
  EXPECT_ERROR_TEXT(y.sum().backward(), "has been modified by an inplace operation");
}

TEST(InferenceModeTest, GradModeStaysOffInside) {
  const Tensor w = leaf({1, 2}), t = inference_tensor({1, 2});
  const InferenceMode on;
  {
    const EnableGradGuard grad;
    EXPECT_FALSE(GradMode::is_enabled() || (w * 2).requires_grad());
    GradMode::set_enabled(true);
    EXPECT_FALSE(GradMode::is_enabled());
  }
  const NoGradGuard off;
  const InferenceMode normal(false);
  EXPECT_TRUE(GradMode::is_enabled() && !autograd::InferenceMode::is_enabled());
  const Tensor y = w * 2;
  EXPECT_TRUE(y.requires_grad() && !y.is_inference() && t.view({2, 1}).is_inference());
  EXPECT_THROW(t.mul_(2), Error);
  EXPECT_FALSE((t * 2).is_inference());
}

// LibTorch loses the gradient of t.sum() and t.view(), and delivers that of t * 2 and t + w.
TEST(InferenceModeTest, OneThatRequiresGradIsRefused) {
  Tensor t;
  {
    const InferenceMode on;
    t = constant({1, 2}).requires_grad_();
    EXPECT_TRUE(t.requires_grad() && t.is_inference() && !(t * 2).requires_grad());
    EXPECT_FALSE(t.view({2, 1}).requires_grad() || t.detach().requires_grad());
  }
  const Tensor w = leaf({1, 2}), h = w * 2;
  const auto says = [](const std::function<void()>& f) {
    return error_of(f).find("an inference tensor that requires grad is used where history") !=
           std::string::npos;
  };
  EXPECT_TRUE(says([&] { t.sum(); }) && says([&] { t.view({2, 1}); }) && says([&] { t * 2; }));
  EXPECT_TRUE(says([&] { w + t; }) && says([&] { t + w; }) && says([&] { stack({w, t}); }));
  EXPECT_TRUE(says([&] { h.add_(t); }) && says([&] { h[0].copy_(t[0]); }));
  EXPECT_EQ(values(h), (Values{2, 4}));
  {
    const NoGradGuard off;
    EXPECT_EQ(values(t * 2), (Values{2, 4}));
  }
  const Tensor normal = t.detach().clone().requires_grad_();
  (normal * normal).sum().backward();
  EXPECT_EQ(values(normal.grad()), (Values{2, 4}));
  EXPECT_THROW(inference_tensor({1}).requires_grad_(), Error);
}

// What must be saved is, before anything is written.
TEST(InferenceModeTest, RefusedBeforeTheWrite) {
  const Tensor t = inference_tensor({1, 2}), w = leaf({1, 2});
  std::optional<InferenceMode> on(std::in_place);
  const Tensor mask = t.gt(1), index = t.gt(1).to(kLong);
  on.reset();
  const std::pair<const char*, std::function<void(const Tensor&)>> writes[] = {
      {"mul_", [&](const Tensor& h) { h.mul_(t); }},
      {"div_", [&](const Tensor& h) { h.div_(t); }},
      {"pow_", [&](const Tensor& h) { h.pow_(t); }},
      {"addcmul_", [&](const Tensor& h) { h.addcmul_(w, t); }},
      {"masked_fill_", [&](const Tensor& h) { h.masked_fill_(mask, 7); }},
      {"masked_fill_ of a tensor", [&](const Tensor& h) { h.masked_fill_(mask, w[0]); }},
      {"scatter_", [&](const Tensor& h) { h.scatter_(0, index, 7); }},
      {"scatter_add_", [&](const Tensor& h) { h.scatter_add_(0, index, w); }},
      {"index_add_", [&](const Tensor& h) { h.index_add_(0, index, w); }},
      {"index_put_", [&](const Tensor& h) { h.index_put_({index}, w); }},
  };
  for (const auto& [name, write] : writes) {
    const Tensor h = w * 2;
    const std::string what = error_of([&] { write(h); });
    EXPECT_NE(what.find("Inference tensors cannot be saved"), std::string::npos) << name << what;
    EXPECT_EQ(values(h), (Values{2, 4})) << name;
    EXPECT_EQ(h._version(), 0) << name;
    EXPECT_EQ(h.grad_fn()->name(), "MulBackward1") << name;
  }
  const Tensor h = w * 2;
  h.add_(t);  // saves nothing
  EXPECT_EQ(values(h), (Values{3, 6}));
}

// set_data leaves what the tensor is; in LibTorch a parameter that was given an inference tensor
// is one, and can no longer be trained.
TEST(InferenceModeTest, DataOfAnInferenceTensor) {
  const Tensor p = leaf({1, 2});
  p.set_data(inference_tensor({3, 4}));
  EXPECT_FALSE(p.is_inference());
  (p * p).sum().backward();
  EXPECT_EQ(values(p.grad()), (Values{6, 8}));
}

}  // namespace
}  // namespace ramet
