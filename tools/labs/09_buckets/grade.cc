// A wire with a second rank on its other end, and an observer that counts the backward's nodes.
#include <atomic>

#include "tools/labs/09_buckets/lab.h"

namespace ramet::labs {
namespace {

/// Counts the nodes of backwards that have begun, of all threads.
class Nodes {
 public:
  Nodes() {
    Observer o;
    o.scope_begin = [this](const Scope& s) {
      if (s.name.find("Backward") != std::string::npos ||
          s.name.find("Accumulate") != std::string::npos)
        ++begun_;
    };
    number_ = add_observer(std::move(o));
  }
  ~Nodes() { remove_observer(number_); }
  int begun() const { return begun_; }
  void reset() { begun_ = 0; }

 private:
  std::atomic<int> begun_{0};
  uint64_t number_ = 0;
};

/// Two ranks: this one, and one with known buckets.
class TestWire : public Wire {
 public:
  explicit TestWire(const Nodes& nodes) : nodes_(nodes) {}
  std::vector<Tensor> theirs;  // what the other rank has in each bucket
  struct Start {
    size_t bucket;
    int nodes;  // that had begun
  };
  std::vector<Start> starts;

  int ranks() const override { return 2; }
  void start(size_t bucket, const Tensor& flat) override {
    expect(bucket < theirs.size(), "bucket ", bucket, " was started, and there are ",
           theirs.size());
    expect(bucket == starts.size(), "this rank started bucket ", bucket, " when bucket ",
           starts.size(), " was next: the other rank is at bucket ", starts.size(),
           ", and the two would add up what does not belong together");
    expect(flat.dim() == 1 && flat.numel() == theirs[bucket].numel(), "bucket ", bucket, " has ",
           flat.numel(), " elements, expected ", theirs[bucket].numel());
    starts.push_back({bucket, nodes_.begun()});
    flat_.push_back(flat);
  }
  void wait(size_t bucket) override {
    expect(bucket < flat_.size(), "wait(", bucket, "), and bucket ", bucket,
           " was never started: the other ranks wait for it for ever");
    expect(bucket >= done_, "wait(", bucket, ") a second time");
    flat_[bucket].add_(theirs[bucket]);
    done_ = bucket + 1;
  }
  void next_step() {
    starts.clear();
    flat_.clear();
    done_ = 0;
  }

 private:
  const Nodes& nodes_;
  std::vector<Tensor> flat_;
  size_t done_ = 0;
};

using Plan = std::vector<std::vector<size_t>>;

/// Three layers with a weight and a bias each, a reducer on them, and what the other rank's
/// gradients are.
struct Setting {
  Nodes nodes;
  TestWire wire{nodes};
  nn::Sequential net{nn::Linear(4, 6), nn::Tanh(), nn::Linear(6, 5), nn::Tanh(), nn::Linear(5, 2)};
  std::vector<Tensor> parameters;
  bool uses_extra = false;
  Tensor extra;  // a parameter that only some steps of this rank use
  Plan plan;
  std::function<void()> finish;
  std::vector<int> complete;  // nodes that had begun when a parameter's gradient was complete

  Setting(const BucketsLab& answer, Plan p, bool with_extra = false) : plan(std::move(p)) {
    manual_seed(5);
    NoGradGuard no_grad;
    net->to(kDouble);
    for (Tensor& t : net->parameters()) {
      t.fill_(0).add_(randn(t.sizes(), kDouble).mul_(0.4));
      parameters.push_back(t);
    }
    if (with_extra) parameters.push_back(extra = ones({3}, kDouble).requires_grad_());
    complete.resize(parameters.size());
    // Registered first, so called first.
    for (size_t i = 0; i < parameters.size(); ++i)
      parameters[i].register_post_accumulate_grad_hook(
          [this, i](const Tensor&) { complete[i] = nodes.begun(); });
    finish = answer.make(parameters, plan, wire);
  }

  Tensor loss(uint64_t batch) {
    manual_seed(100 + batch);
    const Tensor of_net = net->forward(randn({3, 4}, kDouble)).pow(2).sum();
    return batch % 2 == 0 && uses_extra ? of_net + extra.pow(2).sum() : of_net;
  }

  /// One step of both ranks. Wrong where a gradient is not the mean.
  void step(uint64_t number) {
    const auto gradients = [&](uint64_t batch) {
      std::vector<Tensor> list = autograd::grad({loss(batch)}, parameters, {}, false, false, true);
      for (Tensor& g : list)
        if (!g.defined()) g = zeros({3}, kDouble);  // of `extra`
      return list;
    };
    const std::vector<Tensor> mine = gradients(2 * number);
    std::vector<Tensor> other = gradients(2 * number + 1);
    if (extra.defined()) other.back().fill_(4);  // the other rank always uses it
    wire.next_step();
    wire.theirs.clear();
    for (const auto& bucket : plan) {
      std::vector<Tensor> flat;
      for (const size_t p : bucket) flat.push_back(other[p].flatten());
      wire.theirs.push_back(cat(flat));
    }
    for (Tensor& p : parameters) p.mutable_grad().reset();
    const Tensor own = loss(2 * number);
    nodes.reset();
    own.backward();
    nodes_in_backward = nodes.begun();
    finish();
    expect(wire.starts.size() == plan.size(), "bucket ", wire.starts.size(), " of ", plan.size(),
           " was never started: the other ranks wait for it for ever");
    for (size_t i = 0; i < parameters.size(); ++i) {
      const Tensor& got = parameters[i].grad();
      expect(got.defined(), "parameter ", i, " has no gradient after finish()");
      const Tensor want = (mine[i] + other[i]) / 2;
      expect(got.sizes() == want.sizes(), "the gradient of parameter ", i, " has the shape ",
             got.sizes(), ", expected ", want.sizes());
      const double off = (got - want).abs().max().item<double>();
      const auto first = [](const Tensor& t) { return t.flatten()[0].item<double>(); };
      expect(off < 1e-12, "the gradient of parameter ", i, " begins with ", first(got),
             ", and the mean of both ranks' with ", first(want), " (this rank's: ", first(mine[i]),
             ", the other's: ", first(other[i]), ")");
    }
  }
  int nodes_in_backward = 0;
};

// The last layer's gradients are there first: its bucket comes first.
const Plan kBackwards = {{4, 5}, {2, 3}, {0, 1}}, kForwards = {{0, 1}, {2, 3}, {4, 5}};

std::string check_overlap(const BucketsLab& answer) {
  Setting s(answer, kBackwards);
  s.step(0);
  for (size_t b = 0; b < s.plan.size(); ++b) {
    int full = 0;
    for (const size_t p : s.plan[b]) full = std::max(full, s.complete[p]);
    expect(s.wire.starts[b].nodes == full, "bucket ", b, " was full when ", full,
           " nodes of the backward had begun and ", s.nodes_in_backward - full,
           " still had to run, and was started after ", s.wire.starts[b].nodes);
  }
  return words("bucket 0 left after ", s.wire.starts[0].nodes, " nodes of ", s.nodes_in_backward);
}

}  // namespace

void grade(const BucketsLab& answer, Report& report) {
  report.step("means of two ranks",
              "what is in a bucket, what comes back, and where does it go? "
              "chapter 9, and lab.h for class Wire",
              [&]() -> std::string {
                Setting s(answer, {{4, 5}, {2, 3, 0, 1}});
                s.step(0);
                return "6 gradients are right";
              });
  report.step("a bucket leaves as soon as it is full",
              "who knows that a bucket is full, and when? chapter 9",
              [&] { return check_overlap(answer); });
  report.step("in the order of the plan",
              "here the last bucket is full first: chapter 9, and the small example in task.md",
              [&]() -> std::string {
                Setting s(answer, kForwards);
                s.step(0);
                return "0, 1, 2, although 2 was full first";
              });
  report.step("a second step", "what counts down has to be set up again: task.md",
              [&]() -> std::string {
                Setting s(answer, kBackwards);
                s.step(0);
                s.step(1);
                expect(s.wire.starts[0].nodes < s.nodes_in_backward,
                       "in the second backward bucket 0 left only after the last node");
                return "means of the second step, and bucket 0 left early";
              });
  report.step("a parameter that is not used",
              "other ranks may use it, and wait for its bucket: task.md", [&]() -> std::string {
                Setting s(answer, {{4, 5}, {2, 3, 6}, {0, 1}}, true);
                s.step(0);
                s.uses_extra = true;
                s.step(1);
                s.uses_extra = false;
                s.step(2);  // and what was in the bucket is not there any more
                return "it counts as zeros, also behind a step that used it";
              });
}

}  // namespace ramet::labs
