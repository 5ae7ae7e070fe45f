// A replica set follows the structure of its source: rebuilding, ties, and modules that it refuses.
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "autograd/autograd.h"
#include "parallel/move/counters.h"
#include "runtime/base/logging.h"
#include "tests/parallel/replicas/replica_set.h"

namespace ramet {
namespace {

using namespace testing;
using namespace nn::parallel;
using ramet::parallel::counters;
using ramet::parallel::reset_counters;

// What the log says when the shells are made again.
class RebuildLog {
 public:
  RebuildLog() {
    set_log_handler([this](LogLevel level, const std::string& text) {
      if (level == LogLevel::Info && contains(text, "[replicate]")) texts.push_back(text);
    });
  }
  ~RebuildLog() { set_log_handler(nullptr); }
  std::vector<std::string> texts;
};

struct GrowingImpl : nn::Cloneable<GrowingImpl> {
  GrowingImpl() { GrowingImpl::reset(); }
  void reset() override {
    w = register_parameter("w", filled({width}, 2));
    if (extra) more = register_parameter("more", filled({1}, 10));
    fc = register_module("fc", nn::Linear(2, 2));
  }
  Tensor forward(const Tensor& x) { return extra ? x * w.sum() + more : x * w.sum(); }
  int64_t width = 1;
  bool extra = false;
  Tensor w, more;
  nn::Linear fc{nullptr};
};
RAMET_MODULE(Growing);

TEST(ReplicaSet, StructureChangesRebuild) {
  Growing m;
  ReplicaSet set(m.ptr(), {kHost, d(0)});
  const RebuildLog log;
  reset_counters();
  uint64_t rebuilds = 0;
  auto expect_rebuilt = [&](const char* what) {
    set.refresh();
    EXPECT_EQ(counters().replica_rebuilds, ++rebuilds) << what;
    ASSERT_EQ(log.texts.size(), rebuilds) << what;
    EXPECT_TRUE(contains(log.texts.back(), what)) << log.texts.back();
    expect_equal_to_source(set);
    set.refresh();
    EXPECT_EQ(counters().replica_rebuilds, rebuilds) << what << ": once";
  };
  set.refresh();
  m->extra = true;  // a late registration
  m->more = m->register_parameter("more", filled({1}, 20));
  expect_rebuilt("the module");
  m->width = 3;
  expect_rebuilt("a member of the module");
  m->w.set_data(filled({3}, 4));
  expect_rebuilt("shape, dtype or device of 'w'");
  m->fc->to(kDouble);
  expect_rebuilt("shape, dtype or device of 'fc.weight'");
  m->fc = m->replace_module("fc", nn::Linear(2, 2));
  expect_rebuilt("a child");
  m->to(d(1));
  expect_rebuilt("shape, dtype or device of 'w'");
  EXPECT_EQ(set.home(), d(1));
  EXPECT_EQ(set.replica<GrowingImpl>(1).w.device(), d(0));
  // Values, modes and flags are no structure.
  m->train(false);
  m->w.requires_grad_(false);
  set.refresh();
  EXPECT_EQ(counters().replica_rebuilds, rebuilds);
  EXPECT_FALSE(set.shell(1)->is_training());
}

/// The same tensor under two names, in two modules, and one module under two names.
struct SharingImpl : nn::Cloneable<SharingImpl> {
  SharingImpl() { SharingImpl::reset(); }
  void reset() override {
    in = register_module("in", Times(3));
    out = register_module("out", Times(5));
    again = register_parameter("again", in->w);
    twice = register_module("twice", out);
  }
  Tensor forward(const Tensor& x) { return twice(out(in(x))) * again; }
  Times in{nullptr}, out{nullptr}, twice{nullptr};
  Tensor again;
};
RAMET_MODULE(Sharing);

TEST(ReplicaSet, TiedParametersStayTied) {
  Sharing m;
  ReplicaSet set(m.ptr(), {kHost, d(0)});
  set.refresh();
  for (int r = 0; r < 2; ++r) {
    auto& replica = set.replica<SharingImpl>(r);
    EXPECT_EQ(replica.again->data, replica.in->w->data);
    EXPECT_EQ(replica.again->node, replica.in->w->node);
    EXPECT_EQ(replica.again->slot, replica.in->w->slot);
    EXPECT_EQ(replica.out->w->data, replica.twice->w->data);
    EXPECT_EQ(replica.named_parameters().keys(), m->named_parameters().keys());
  }
  std::vector<Tensor> y(2);
  set.apply([&](int r) {
    y[static_cast<size_t>(r)] =
        set.replica<SharingImpl>(r).forward(make({1, 2}, kFloat, set.device_of()[size_t(r)]));
  });
  EXPECT_EQ(values(y[1]), (Values{225, 450}));
  (y[0].sum() + y[1].to(kHost).sum()).backward();
  EXPECT_EQ(values(m->in->w.grad()), Values{900});   // d(25 w^2 x)/dw = 150 x, x sums to 6
  EXPECT_EQ(values(m->out->w.grad()), Values{540});  // d(9 v^2 x)/dv = 90 x
  {
    const NoGradGuard off;
    m->in->w.fill_(1);
  }
  set.refresh();
  EXPECT_EQ(values(set.replica<SharingImpl>(1).again), Values{1});
}

struct BorrowerImpl : nn::Cloneable<BorrowerImpl> {
  BorrowerImpl() { BorrowerImpl::reset(); }
  void reset() override { own = register_parameter("own", make({1})); }
  Tensor forward(const Tensor& x) { return x * own; }
  Tensor own, borrowed;
  std::vector<Tensor> list;
  std::array<char, sizeof(void*)> room{};  // as padding is, copied and never read
};
RAMET_MODULE(Borrower);
struct LenderImpl : nn::Cloneable<LenderImpl> {
  LenderImpl() { LenderImpl::reset(); }
  void reset() override {
    w = register_parameter("w", make({3}));
    child = register_module("child", Borrower());
  }
  Tensor w;
  Borrower child{nullptr};
};
RAMET_MODULE(Lender);

TEST(ReplicaSet, TiesThatTheRegistryDoesNotKnowAreRefused) {
  Lender m;
  m->child->borrowed = m->w;
  EXPECT_ERROR_TEXT(
      ReplicaSet(m.ptr(), many(2)),
      "module 'child' holds parameter 'w' in a member that does not follow in its clone");
  m->child->borrowed = Tensor();
  m->child->list = {m->child->own};  // its own, and still lost
  EXPECT_ERROR_TEXT(ReplicaSet(m.ptr(), many(2)),
                    "module 'child' holds parameter 'child.own' in a member that does not follow");
  m->child->list = {};
  ReplicaSet set(m.ptr(), many(2));
  set.refresh();
  expect_equal_to_source(set);
}

TEST(ReplicaSet, WhatTheMemoryHeldBeforeIsNoMember) {
  Lender m;
  const TensorImpl *own = m->child->own.impl(), *lent = m->w.impl();
  for (const TensorImpl* held : {own, lent}) {
    std::memcpy(m->child->room.data(), &held, sizeof held);
    ReplicaSet set(m.ptr(), many(2));
    set.refresh();
    expect_equal_to_source(set);
    m->child->borrowed = held == own ? m->child->own : m->w;  // a member is still seen
    EXPECT_ERROR_TEXT(ReplicaSet(m.ptr(), many(2)),
                      "in a member that does not follow in its clone");
    m->child->borrowed = Tensor();
  }
}

struct OwnCloneImpl : nn::Module {
  OwnCloneImpl() { w = register_parameter("w", make({1})); }
  std::shared_ptr<nn::Module> clone(const std::optional<Device>& device) const override {
    auto copy = std::make_shared<OwnCloneImpl>();
    copy->factor = factor;
    copy->w.set_data(device ? w.detach().to(*device, false, true) : w.detach().clone());
    copy->copy_flags_from(*this);
    return copy;
  }
  Tensor forward(const Tensor& x) { return x * w * factor; }
  double factor = 1;
  Tensor w;
};

TEST(ReplicaSet, MembersBehindTheModulesBackNeedRebuild) {
  auto m = std::make_shared<OwnCloneImpl>();  // says nothing about its bytes
  ReplicaSet set(m, many(1));
  m->factor = 3;
  set.refresh();
  EXPECT_EQ(set.replica<OwnCloneImpl>(0).factor, 1);
  set.rebuild();
  set.refresh();
  EXPECT_EQ(set.replica<OwnCloneImpl>(0).factor, 3);
  expect_equal_to_source(set);
}

struct NoCloneImpl : nn::Module {};
struct OtherTypeImpl : StackImpl {
  std::shared_ptr<nn::Module> clone(const std::optional<Device>& device) const override {
    return StackImpl::clone(device);
  }
};
struct SelfCloneImpl : nn::Module {
  std::shared_ptr<nn::Module> clone(const std::optional<Device>&) const override { return nullptr; }
};

TEST(ReplicaSet, Errors) {
  Stack m;
  EXPECT_ERROR_TEXT(ReplicaSet(m.ptr(), {}), "at least one device is required");
  EXPECT_ERROR_TEXT(ReplicaSet(nullptr, many(1)), "module: got an empty pointer");
  EXPECT_ERROR_TEXT(ReplicaSet(m.ptr(), std::vector<Device>(17, kHost)),
                    "replicas: got 17, expected at most 16");
  ReplicaOptions tree;
  tree.order = ReduceOrder::tree(4);
  EXPECT_ERROR_TEXT(ReplicaSet(m.ptr(), many(3), tree), "got V = 4 and 3 devices");
  EXPECT_ERROR_TEXT(ReplicaSet(std::make_shared<NoCloneImpl>(), many(1)),
                    "clone() has not been implemented for");
  EXPECT_ERROR_TEXT(ReplicaSet(std::make_shared<OtherTypeImpl>(), many(1)), "is of another type");
  EXPECT_ERROR_TEXT(ReplicaSet(std::make_shared<SelfCloneImpl>(), many(1)), "got an empty pointer");
  ReplicaSet two(m.ptr(), many(2));
  EXPECT_ERROR_TEXT(two.apply([](int) {}, 0), "replicas to run: got 0, expected 1 to 2");
  EXPECT_ERROR_TEXT(two.apply([](int) {}, 3), "replicas to run: got 3, expected 1 to 2");
  m->b->weight.set_data(m->b->weight.to(d(2)));
  EXPECT_ERROR_TEXT(ReplicaSet(m.ptr(), many(1)),
                    "found one of them on device: " + d(2).str() + " ('b.weight')");
}

TEST(ReplicaSet, FailedRebuildLeavesTheSetUsable) {
  Stack m;
  ReplicaSet set(m.ptr(), {kHost, d(0)});
  set.refresh();
  const Tensor before = m->b->weight.detach();
  m->b->weight.set_data(before.to(d(2)));
  EXPECT_ERROR_TEXT(set.refresh(), "found one of them on device");
  m->b->weight.set_data(before);
  set.refresh();
  expect_equal_to_source(set);
}

}  // namespace
}  // namespace ramet
