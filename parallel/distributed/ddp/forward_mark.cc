#include "parallel/distributed/ddp/forward_mark_internal.h"

#include "autograd/graph/graph_task.h"
#include "parallel/distributed/ddp/gradient_reducer_internal.h"

namespace ramet::distributed::detail {
namespace {

class ForwardMark final : public autograd::Node, public autograd::ReduceBucket {
 public:
  ForwardMark(const Tensor& result, std::weak_ptr<GradientReducer> reducer,
              const GradientReducer::Forward& forward)
      : Node("ReplicatedBackward", 1, 1, sizeof(ForwardMark)),
        next_(autograd::edge_of(result.impl())),
        reducer_(std::move(reducer)),
        forward_(forward) {
    device = result->device;
    flags |= kSpans;  // the engine's general path asks for buckets, its fast path does not
    follow_edges();
  }
  ~ForwardMark() override { autograd::release(next_.node); }
  autograd::RawEdge* edges() override { return &next_; }
  void apply(Tensor* in, Tensor* out) override { out[0] = in[0]; }
  autograd::ReduceBucket* bucket() override { return this; }

  void on_backward_begun(autograd::GraphTask& task) override {
    if (const auto r = reducer_.lock()) r->on_backward_through(task, forward_);
  }
  std::vector<Tensor> reduce(const std::vector<std::pair<autograd::Node*, std::vector<Tensor>>>& in,
                             autograd::GraphTask&) override {
    return {in[0].second[0]};
  }

 private:
  autograd::RawEdge next_;
  const std::weak_ptr<GradientReducer> reducer_;
  const GradientReducer::Forward forward_;
};

}  // namespace

Tensor marked(const Tensor& result, const std::shared_ptr<GradientReducer>& reducer, size_t unit) {
  if (!result.defined() || !autograd::recording(result)) return result;
  // Shallow: the loss has the bits of a forward without a mark (Note [Internal layout]).
  Tensor out = result.shallow();
  auto* node = autograd::new_node<ForwardMark>(result, reducer, reducer->last_forward(unit));
  autograd::attach(out, node, 0);
  autograd::release(node);
  return out;
}

}  // namespace ramet::distributed::detail
