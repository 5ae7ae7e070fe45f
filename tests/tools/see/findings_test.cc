// What is suspicious in a recording: each kind on a small made-up one, and on one where it is
// right.
#include "tools/see/findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace ramet {
namespace see {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Id last(size_t n) { return static_cast<Id>(n) - 1; }

// A recording that is written row by row.
struct Made : RecordingData {
  Made() { devices.push_back({"cpu:0", "cpu", 0}); }

  Id tensor(std::vector<int64_t> shape = {4}, Id device = 0) {
    TensorRow t;
    t.shape = std::move(shape);
    t.device = device;
    tensors.push_back(std::move(t));
    return last(tensors.size());
  }
  Id with_statistics(Id tensor, const Statistics& s) {
    statistics.push_back(s);
    tensors[static_cast<size_t>(tensor)].statistics = last(statistics.size());
    return tensor;
  }
  // A tensor with this root mean square.
  Id of_size(double rms, std::vector<int64_t> shape = {4, 4}) {
    Statistics s;
    s.count = 16;
    s.deviation = rms;
    return with_statistics(tensor(std::move(shape)), s);
  }
  Id with_zeros(int64_t zeros, int64_t count) {
    Statistics s;
    s.count = count;
    s.zeros = zeros;
    s.max = s.mean = 1;
    return with_statistics(tensor({count}), s);
  }
  Id with_nans(int64_t nans) {
    Statistics s;
    s.count = 4;
    s.nans = nans;
    s.min = -2;
    s.max = 3;
    return with_statistics(tensor(), s);
  }
  // Its node's edges lead to the inputs' nodes, as those of a recorded operation do.
  Id operation(const std::string& name, std::vector<Id> in, std::vector<Id> out, bool node = true) {
    OperationRow op;
    op.name = name;
    op.device = 0;
    op.start = ++now;
    if (node) {
      NodeRow n;
      n.name = name + "_backward";
      n.operation = static_cast<Id>(operations.size());
      n.sequence = now;
      for (const Id t : in) {
        const auto it = made_by.find(t);
        n.edges.push_back({it == made_by.end() ? -1 : it->second, 0, -1});
      }
      nodes.push_back(n);
      op.node = last(nodes.size());
      for (const Id t : out) made_by[t] = op.node;
    }
    op.inputs = std::move(in);
    op.outputs = std::move(out);
    operations.push_back(std::move(op));
    return last(operations.size());
  }
  Id parameter(const std::string& name, Id of, Id gradient = -1, bool requires_grad = true) {
    ParameterRow p;
    p.name = name;
    p.tensor = of;
    p.gradient = gradient;
    p.requires_grad = requires_grad;
    if (requires_grad) {
      NodeRow n;
      n.name = "AccumulateGrad";
      n.leaf = true;
      n.parameter = static_cast<Id>(parameters.size());
      nodes.push_back(n);
      p.node = made_by[of] = last(nodes.size());
    }
    parameters.push_back(p);
    return last(parameters.size());
  }
  void source(Id operation, const std::string& file, int line) {
    sources.push_back({file, "f", line});
    operations[static_cast<size_t>(operation)].source = last(sources.size());
  }
  EventRow& event(const std::string& kind, Id node = -1, Id device = 0) {
    EventRow e;
    e.kind = kind;
    e.node = node;
    e.device = device;
    e.time = ++now;
    events.push_back(e);
    return events.back();
  }
  void backward(Id root) {
    event("backward_begin", node_of(root));
    event("backward_end");
  }
  Id node_of(Id tensor) const { return made_by.at(tensor); }
  void look(const FindingLimits& limits = {}) { find(*this, limits); }
  std::vector<std::string> texts() const {
    std::vector<std::string> all;
    for (const FindingRow& f : findings) all.push_back(f.kind + ": " + f.text);
    return all;
  }

  std::map<Id, Id> made_by;
  uint64_t now = 0;
};

TEST(Findings, NothingInAnEmptyRecordingAndOldFindingsGo) {
  RecordingData d;
  d.findings.push_back({"nan", "of an earlier look", -1, -1, -1});
  find(d);
  EXPECT_TRUE(d.findings.empty());
}

// w and v are used for the loss; v is cut off by each test in another way.
TEST(Findings, ParameterThatIsFrozen) {
  Made m;
  const Id w = m.tensor(), x = m.tensor(), y = m.tensor();
  m.parameter("fc.weight", w, -1, false);
  m.operation("mul", {x, w}, {y}, false);
  m.look();
  ASSERT_EQ(m.findings.size(), 1u);
  EXPECT_EQ(m.findings[0].kind, "no gradient");
  EXPECT_EQ(m.findings[0].parameter, 0);
  EXPECT_THAT(m.findings[0].text, AllOf(HasSubstr("fc.weight"), HasSubstr("frozen")));
}

TEST(Findings, OneForAllParametersWhenNoBackwardRan) {
  Made m;
  m.parameter("a", m.tensor());
  m.parameter("b", m.tensor());
  m.look();
  EXPECT_THAT(m.texts(),
              testing::ElementsAre("no gradient: 2 parameters have no gradient: no backward ran "
                                   "while this was recorded."));
}

TEST(Findings, ParameterThatIsNeverUsed) {
  Made m;
  const Id w = m.tensor(), v = m.tensor(), x = m.tensor(), loss = m.tensor();
  m.parameter("w", w, m.tensor());
  m.parameter("v", v);
  m.operation("mul", {x, w}, {loss});
  m.backward(loss);
  m.look();
  EXPECT_THAT(m.texts(),
              testing::ElementsAre("no gradient: v has no gradient: the forward never used it."));
  EXPECT_EQ(m.findings[0].parameter, 1);
}

TEST(Findings, ParameterBehindADetachNamesItsLine) {
  Made m;
  const Id w = m.tensor(), v = m.tensor(), x = m.tensor(), h = m.tensor(), cut = m.tensor(),
           metric = m.tensor(), loss = m.tensor();
  m.parameter("w", w, m.tensor());
  m.parameter("v", v);
  m.operation("mul", {x, v}, {h});
  m.operation("argmax", {h}, {metric}, false);  // no history either, but not on the way to the loss
  const Id detach = m.operation("detach", {h}, {cut}, false);
  m.source(detach, "/home/ann/net/model.cc", 41);
  m.operation("mul", {cut, w}, {loss});
  m.backward(loss);
  m.look();
  EXPECT_THAT(m.texts(), testing::ElementsAre("no gradient: v has no gradient: its history was "
                                              "cut by detach (model.cc:41)."));
  EXPECT_EQ(m.findings[0].operation, detach);
}

// Replicas' parameters are copied by one broadcast into one piece of memory, and are tensors of
// their own when they are used. The graph says which tensors came from one parameter.
TEST(Findings, ParametersOfReplicas) {
  Made d;
  const auto in_storage = [&d](Id storage) {
    const Id t = d.tensor();
    d.tensors[static_cast<size_t>(t)].storage = storage;
    return t;
  };
  const Id w = in_storage(1), u = in_storage(1), copy_w = in_storage(2), copy_u = in_storage(2);
  d.parameter("w", w);
  d.parameter("u", u);
  MovementRow m;
  m.kind = "broadcast";
  m.from = {w, u};
  m.to = {copy_w, copy_u};
  m.start = ++d.now;
  d.movements.push_back(m);
  const Id used = in_storage(2), y = in_storage(3), cut = in_storage(3), head = d.tensor(),
           loss = d.tensor();
  NodeRow sum;
  sum.name = "ReduceAdd(w)";
  sum.reduces = true;
  sum.edges.push_back({d.node_of(w), 0, -1});
  d.nodes.push_back(sum);
  d.made_by[used] = last(d.nodes.size());
  d.operation("linear", {used}, {y});
  d.parameter("head", head, d.tensor());
  const Id after = d.operation("mul", {cut, head}, {loss});
  d.source(after, "net.cc", 7);
  d.backward(loss);
  d.look();
  EXPECT_THAT(d.texts(),
              testing::ElementsAre(
                  AllOf(HasSubstr("w has no gradient: its history was cut"), HasSubstr("net.cc:7")),
                  "no gradient: u has no gradient: the forward never used it."));
}

TEST(Findings, ParameterBehindAnOperationWithoutHistory) {
  Made m;
  const Id w = m.tensor(), v = m.tensor(), h = m.tensor(), loss = m.tensor();
  m.parameter("w", w, m.tensor());
  m.parameter("v", v);
  const Id sign = m.operation("exp", {v}, {h}, false);
  m.operation("mul", {h, w}, {loss});
  m.backward(loss);
  m.look();
  ASSERT_EQ(m.findings.size(), 1u);
  EXPECT_THAT(m.findings[0].text, HasSubstr("exp keeps no history"));
  EXPECT_EQ(m.findings[0].operation, sign);
}

TEST(Findings, ParameterThatIsUsedButNotForTheLoss) {
  Made m;
  const Id w = m.tensor(), v = m.tensor(), x = m.tensor(), h = m.tensor(), side = m.tensor(),
           loss = m.tensor();
  m.parameter("w", w, m.tensor());
  m.parameter("v", v);
  m.operation("mul", {x, v}, {h});
  const Id sum = m.operation("sum", {h}, {side});
  m.operation("mul", {x, w}, {loss});
  m.backward(loss);
  m.look();
  ASSERT_EQ(m.findings.size(), 1u);
  EXPECT_THAT(m.findings[0].text, HasSubstr("v has no gradient: it was used, but no history leads "
                                            "from there to the loss; the last use that is known is "
                                            "sum. "));
  EXPECT_EQ(m.findings[0].operation, sum);
}

// A real recording does not know of detach(): the memory shows it.
TEST(Findings, ParameterWhoseValuesAreUsedWithoutTheirHistory) {
  for (const bool of_a_result : {false, true}) {
    Made m;
    const Id w = m.tensor(), v = m.tensor(), h = m.tensor(), cut = m.tensor(), loss = m.tensor();
    Id storage = 0;
    for (TensorRow& t : m.tensors) t.storage = ++storage;
    m.tensors[static_cast<size_t>(cut)].storage =
        m.tensors[static_cast<size_t>(of_a_result ? h : v)].storage;
    m.parameter("w", w, m.tensor());
    m.parameter("v", v);
    m.operation("mul", {v}, {h});
    const Id sum = m.operation("addmm", {cut, w}, {loss});
    m.source(sum, "model.cc", 9);
    m.backward(loss);
    m.look();
    EXPECT_THAT(m.texts(),
                testing::ElementsAre("no gradient: v has no gradient: its history was cut: addmm "
                                     "(model.cc:9) is given what came of it without its history, "
                                     "as detach() and data leave it."));
    EXPECT_EQ(m.findings[0].operation, sum);
    // In a flat store all parameters show one memory: nothing is known by that.
    if (of_a_result) continue;
    m.tensors[static_cast<size_t>(w)].storage = m.tensors[static_cast<size_t>(v)].storage;
    m.look();
    EXPECT_THAT(m.findings.at(0).text, HasSubstr("it was used, but no history"));
  }
}

// A tensor that is written again later: what was made of its older value leads nowhere.
TEST(Findings, UseIsFollowedForwardInTimeOnly) {
  Made m;
  const Id w = m.tensor(), v = m.tensor(), scratch = m.tensor(), loss = m.tensor();
  m.parameter("w", w, m.tensor());
  m.parameter("v", v);
  m.operation("mul", {scratch, w}, {loss});
  m.operation("copy_", {v}, {scratch}, false);
  m.backward(loss);
  m.look();
  ASSERT_EQ(m.findings.size(), 1u);
  EXPECT_THAT(m.findings[0].text, HasSubstr("the last use that is known is copy_."));
}

TEST(Findings, ParameterThatTheBackwardDidNotComeTo) {
  Made m;
  const Id v = m.tensor(), loss = m.tensor();
  m.parameter("v", v);
  const Id op = m.operation("floor", {v}, {loss});
  m.backward(loss);
  m.look();
  ASSERT_EQ(m.findings.size(), 1u);
  EXPECT_THAT(m.findings[0].text,
              HasSubstr("floor_backward of floor gives this input no gradient"));
  EXPECT_EQ(m.findings[0].operation, op);
  m.event("failed", m.node_of(loss)).text = "[mul] planned";
  m.look();
  EXPECT_THAT(m.findings.at(0).text,
              HasSubstr("the backward failed before it came, in floor_backward of floor: [mul] "));
}

// zero_grad() before the end of the recording is no mistake.
TEST(Findings, GradientThatCameAndWentIsNone) {
  Made m;
  const Id v = m.tensor(), loss = m.tensor();
  m.parameter("v", v);
  m.operation("mul", {v}, {loss});
  m.backward(loss);
  m.event("accumulated", m.node_of(v));
  m.look();
  EXPECT_TRUE(m.findings.empty());
}

// A replica's copies are moved there, and the sum comes back over ReduceAdd.
TEST(Findings, ParametersOfReplicasAreFollowedOverMovements) {
  Made m;
  const Id v = m.tensor(), copy = m.tensor(), h = m.tensor(), cut = m.tensor(), w = m.tensor(),
           loss = m.tensor();
  m.parameter("w", w, m.tensor());
  m.parameter("v", v);
  m.nodes[1].leaf = true;
  MovementRow b;
  b.kind = "broadcast";
  b.from = {v};
  b.to = {copy};
  b.start = ++m.now;
  m.movements.push_back(b);
  m.operation("mul", {copy}, {h});
  m.operation("detach", {h}, {cut}, false);
  m.operation("mul", {cut, w}, {loss});
  m.backward(loss);
  m.look();
  ASSERT_EQ(m.findings.size(), 1u);
  EXPECT_THAT(m.findings[0].text, HasSubstr("its history was cut by detach"));
}

TEST(Findings, DeadRelu) {
  for (const auto& [out_zeros, gradient_zeros, dead] :
       {std::tuple(100, 100, true), {90, 90, true}, {89, 100, false}, {95, 10, false}}) {
    Made m;
    const Id x = m.tensor(), y = m.with_zeros(out_zeros, 100);
    const Id op = m.operation("relu", {x}, {y});
    m.modules.push_back({"net.1", "ReLU", -1});
    m.operations[0].module = 0;
    EventRow& e = m.event("delivered", m.node_of(y));
    e.edge = 0;
    e.tensor = m.with_zeros(gradient_zeros, 100);
    m.look();
    ASSERT_EQ(m.findings.size(), dead ? 1u : 0u) << out_zeros << " " << gradient_zeros;
    if (!dead) continue;
    EXPECT_EQ(m.findings[0].kind, "dead relu");
    EXPECT_EQ(m.findings[0].operation, op);
    EXPECT_THAT(m.findings[0].text,
                HasSubstr("relu in net.1: " + std::to_string(out_zeros) + " % of its outputs"));
  }
}

// Four layers from the input to the loss, with gradients of these sizes.
std::vector<FindingRow> of_ratios(const std::vector<double>& rms, double value = 1) {
  Made m;
  Id x = m.tensor();
  for (size_t i = 0; i < rms.size(); ++i) {
    const Id w = m.of_size(value), y = m.tensor();
    m.parameter("fc" + std::to_string(i) + ".weight", w, m.of_size(rms[i]));
    m.operation("addmm", {x, w}, {y});
    x = y;
  }
  m.backward(x);
  m.look();
  return m.findings;
}

TEST(Findings, VanishingAndExploding) {
  EXPECT_TRUE(of_ratios({1.1e-4, 0.1, 1, 1}).empty());
  const auto vanishing = of_ratios({1e-7, 9e-5, 0.1, 1});
  ASSERT_EQ(vanishing.size(), 1u);
  EXPECT_EQ(vanishing[0].kind, "vanishing");
  EXPECT_EQ(vanishing[0].parameter, 0);
  EXPECT_THAT(vanishing[0].text,
              AllOf(HasSubstr("fc0.weight is 1e-07 (root mean square), 1/1e+07 of fc3.weight's"),
                    HasSubstr("So it is with fc1.weight.")));
  const auto zero = of_ratios({0, 0.1, 1, 1});
  ASSERT_EQ(zero.size(), 1u);
  EXPECT_THAT(zero[0].text, HasSubstr("fc0.weight is 0 everywhere, while fc3.weight's is 1"));
  const auto exploding = of_ratios({2e6, 1e3, 10, 1}, 1e3);
  ASSERT_EQ(exploding.size(), 1u);
  EXPECT_EQ(exploding[0].kind, "exploding");
  EXPECT_EQ(exploding[0].parameter, 0);
  EXPECT_THAT(exploding[0].text, HasSubstr("2e+06 times fc3.weight's"));
  // Of one layer, which is itself the one nearest to the loss: against the parameter.
  const auto own = of_ratios({2e5}, 1);
  ASSERT_EQ(own.size(), 1u);
  EXPECT_THAT(own[0].text, HasSubstr("2e+05 times the parameter itself"));
}

TEST(Findings, InfiniteGradient) {
  Made m;
  Statistics s;
  s.count = 4;
  s.infinities = 4;
  m.parameter("b", m.tensor(), m.with_statistics(m.tensor(), s));
  m.look();
  EXPECT_THAT(m.texts(),
              testing::ElementsAre("exploding: The gradient of b has 4 infinite elements of 4."));
}

TEST(Findings, FirstNan) {
  Made m;
  const Id x = m.with_nans(0), y = m.with_nans(2), z = m.with_nans(4);
  const Id log = m.operation("log", {x}, {y});
  m.operation("sum", {y}, {z});
  m.look();
  EXPECT_THAT(m.texts(), testing::ElementsAre("nan: The first NaN comes from log: 2 of 4 elements "
                                              "of its result. Its inputs: argument 0 from -2 to "
                                              "3."));
  EXPECT_EQ(m.findings[0].operation, log);
  // They were there before.
  m.statistics[0].nans = 1;
  m.look();
  EXPECT_THAT(m.findings.at(0).text, HasSubstr("An input of log has 1 NaN already"));
}

TEST(Findings, FirstNanOfTheBackward) {
  Made m;
  const Id x = m.with_nans(0), y = m.with_nans(0);
  m.operation("sqrt", {x}, {y});
  EventRow& e = m.event("delivered", m.node_of(y));
  e.edge = 0;
  e.tensor = m.with_nans(1);
  m.look();
  ASSERT_EQ(m.findings.size(), 1u);
  EXPECT_THAT(m.findings[0].text,
              HasSubstr("the first one comes from the backward, from "
                        "sqrt_backward of sqrt: 1 of 4 elements of gradient 0"));
}

TEST(Findings, LargeSavedTensor) {
  Made m;
  const Id op = m.operation("relu", {m.tensor()}, {m.tensor()});
  MemoryRow r;
  r.device = 0;
  r.peak = 40000000;
  r.at_peak.push_back({-1, 16000000, "parameter fc.weight", -1, -1, 0});
  r.at_peak.push_back({-1, 15200000, "saved by ReluBackward0", -1, 0, -1});
  r.at_peak.push_back({-1, 8800000, "saved by MulBackward0", -1, -1, -1});  // 22 %
  m.memory.push_back(r);
  m.look();
  ASSERT_EQ(m.findings.size(), 1u);
  EXPECT_EQ(m.findings[0].operation, op);
  EXPECT_THAT(m.findings[0].text,
              HasSubstr("relu keeps 15.2 MB for its backward: 38 % of the peak of cpu:0, which is "
                        "40 MB"));
}

TEST(Findings, HostWait) {
  for (const char* const kind : {"gpu", "emulated gpu", "cpu"}) {
    Made m;
    m.devices.push_back({"cuda:0", kind, 0});
    const Id loss = m.tensor({}, 1), copy = m.tensor({}, 0);
    const Id item = m.operation("item", {loss}, {}, false);
    m.operation("to", {loss}, {copy}, false);
    m.operation("mul", {loss}, {loss}, false);
    m.event("backward_end");
    m.operation("item", {loss}, {}, false);  // after the step: delays nothing
    m.look();
    const bool gpu = std::string(kind) != "cpu";
    ASSERT_EQ(m.findings.size(), gpu ? 2u : 0u) << kind;
    if (!gpu) continue;
    EXPECT_EQ(m.findings[0].operation, item);
    EXPECT_THAT(m.findings[0].text, HasSubstr("In the middle of the step item waits for cuda:0"));
    EXPECT_THAT(m.findings[1].text, HasSubstr("to waits for cuda:0"));
  }
}

// What stands between two steps keeps neither of them waiting.
TEST(Findings, HostWaitBetweenStepsIsNone) {
  Made m;
  m.devices.push_back({"cuda:0", "emulated gpu", 0});
  const Id loss = m.tensor({}, 1);
  const auto step = [&](bool waits) {
    m.operation("mul", {loss}, {m.tensor({}, 1)});
    const Id wait = waits ? m.operation("synchronize", {}, {}, false) : -1;
    if (waits) m.operations.back().device = 1;
    m.operation("mul", {loss}, {m.tensor({}, 1)});
    m.event("backward_begin");
    m.event("backward_end");
    m.event("step_end");
    return wait;
  };
  step(false);
  m.operation("item", {loss}, {}, false);
  const Id wait = step(true);
  m.operation("item", {loss}, {}, false);
  m.look();
  ASSERT_EQ(m.findings.size(), 1u);
  EXPECT_EQ(m.findings[0].operation, wait);
  EXPECT_THAT(m.findings[0].text, HasSubstr("synchronize waits for cuda:0"));
}

void run(Made& m, Id node, Id device, uint64_t from, uint64_t to) {
  m.event("begin", node, device).time = from;
  m.event("end", node, device).time = to;
}

TEST(Findings, ReplicaThatWaits) {
  constexpr uint64_t kMs = 1000000;
  Made m;
  m.devices.push_back({"cpu:1", "cpu", 0});
  const Id y = m.tensor();
  m.operation("mul", {m.tensor()}, {y});
  m.event("backward_begin", 0).time = 0;
  run(m, 0, 0, kMs, 3 * kMs);
  m.event("begin", 0, 1).time = kMs;
  run(m, 0, 1, 2 * kMs, 3 * kMs);  // a backward inside of a node counts once
  m.event("end", 0, 1).time = 9 * kMs;
  m.event("backward_end").time = 10 * kMs;
  m.look();
  ASSERT_EQ(m.findings.size(), 1u);
  EXPECT_EQ(m.findings[0].kind, "late replica");
  EXPECT_EQ(m.findings[0].node, 0);
  EXPECT_THAT(m.findings[0].text, HasSubstr("cpu:0 was busy for 20 % of the backward, cpu:1 for "
                                            "80 %: it waits for that one, whose last node is "
                                            "mul_backward of mul"));
  m.devices[1].kind = "emulated gpu";
  m.look();
  EXPECT_TRUE(m.findings.empty());
  // A GPU's lane only queues: its kernels count.
  m.devices[0].kind = m.devices[1].kind = "gpu";
  for (const Id device : {0, 1}) {
    KernelRow k;
    k.device = device;
    k.start = kMs;
    k.end = device == 0 ? 8 * kMs : 2 * kMs;
    m.kernels.push_back(k);
  }
  m.look();
  ASSERT_EQ(m.findings.size(), 1u);
  EXPECT_THAT(m.findings[0].text,
              HasSubstr("cpu:1 was busy for 10 % of the backward, cpu:0 for 70 %"));
}

// Numbers of a damaged file lead nowhere.
TEST(Findings, RowsThatPointNowhere) {
  Made m;
  OperationRow op;
  op.name = "relu";
  op.inputs = op.outputs = {77, -5};
  op.node = 99;
  op.source = op.module = op.device = 1000;
  m.operations.push_back(op);
  NodeRow n;
  n.edges = {{500, 0, -1}, {-1, 0, -1}};
  m.nodes.push_back(n);
  ParameterRow p;
  p.tensor = 44;
  p.node = 45;
  m.parameters.push_back(p);
  m.event("delivered", 600, 700).tensor = 800;
  m.event("begin", 600, 700);
  m.event("backward_begin", 600);
  m.event("backward_end");
  m.memory.push_back({});
  m.look();
  ASSERT_EQ(m.findings.size(), 1u);
  EXPECT_EQ(m.findings[0].parameter, 0);
}

}  // namespace
}  // namespace see
}  // namespace ramet
