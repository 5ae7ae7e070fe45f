#include "autograd/checkpoint.h"

#include "autograd/autocast.h"
#include "autograd/grad_mode.h"
#include "autograd/graph/checkpoint_frame_internal.h"

using ramet::detail::tls;

namespace ramet {
namespace autograd {
namespace {
// The run of a checkpoint's function that this thread is in, the innermost one.
__thread CheckpointFrame::Running* t_running = nullptr;
}  // namespace

/// The node of a Saved's tensor, where the frame has the values or will compute them. No backward
/// pass reaches it.
struct StandIn final : Node {
  std::shared_ptr<CheckpointFrame> frame;
  size_t number;    // among the tensors of the frame
  RawEdge history;  // of the tensor that it stands for

  StandIn(std::shared_ptr<CheckpointFrame> of, size_t n)
      : Node("Checkpoint", 0, 1, sizeof(StandIn)), frame(std::move(of)), number(n) {}
  ~StandIn() override {
    frame->drop(number);
    release(history.node);
  }
  RawEdge* edges() override { return nullptr; }
  void apply(Tensor*, Tensor*) override {}

  static StandIn* of(const Tensor& t) {
    return t.defined() ? dynamic_cast<StandIn*>(static_cast<Node*>(t->node)) : nullptr;
  }
};

// ---- the forward pass ---------------------------------------------------------------------------

CheckpointFrame::CheckpointFrame(std::function<void()> again, const tensor_list& inputs)
    : call_(new Call{std::move(again), {}, ForwardContextGuard::all(), {}, {}}) {
  for (const Tensor& t : inputs)
    if (t.defined()) call_->inputs.emplace_back(t, t.version());
}

namespace {
uint8_t watching_while(bool again) {
  if (!again) return tls.watching | Context::kCheckpoint;
  return (tls.watching & Context::kAnomaly) | Context::kCheckpoint | Context::kComputesAgain;
}
}  // namespace

CheckpointFrame::Running::Running(CheckpointFrame& frame, bool again)
    : frame_(frame),
      again_(again),
      outer_(t_running),
      draws_(frame.call_->draws, again),
      watching_(tls.watching, watching_while(again)) {
  t_running = this;
}
CheckpointFrame::Running::~Running() { t_running = outer_; }
bool CheckpointFrame::Running::first_time() { return t_running && !t_running->again_; }

struct detail::CheckpointRegion::State {
  State(std::function<void()> again, const tensor_list& inputs)
      : frame(std::make_shared<CheckpointFrame>(std::move(again), inputs)),
        running(*frame, false) {}
  const std::shared_ptr<CheckpointFrame> frame;
  const CheckpointFrame::Running running;
};
detail::CheckpointRegion::CheckpointRegion(std::function<void()> again, const tensor_list& inputs) {
  if (tls.grad_mode && !CheckpointFrame::Running::first_time())
    state_ = std::make_unique<State>(std::move(again), inputs);
}
detail::CheckpointRegion::~CheckpointRegion() = default;

bool CheckpointFrame::take_over(Saved& saved) {
  Running* const running = t_running;
  if (!running || is_never_written_with_history(saved.t_)) return false;
  const Tensor like = saved.t_;
  if (!running->again_) running->frame_.keep(saved);
  // The frame of a function that runs again gets the tensor, or the stand-in of a frame inside it.
  Running* const outer = running->again_ ? running : running->outer_;
  if (outer) outer->frame_.put(outer->next_++, like, saved);
  if (running->again_) saved = Saved();
  return true;
}

void CheckpointFrame::keep(Saved& saved) {
  const Tensor& t = saved.t_;
  const std::lock_guard lock(mutex_);
  values_.push_back({t.sizes().vec(), t.scalar_type(), t.device(), nullptr, {}});
  Tensor stand_in(TensorBase::empty(IntArrayRef{0}, kByte, Device(kCPU, 0)));
  auto* holder = new_node<StandIn>(shared_from_this(), values_.size() - 1);
  stand_in->node = holder;  // keeps it
  holder->history = edge_of(t.impl());
  values_.back().holder = holder;
  saved.version_ = stand_in.version() + 1;
  saved.t_ = std::move(stand_in);
}

// ---- the backward pass --------------------------------------------------------------------------

void CheckpointFrame::put(size_t number, const Tensor& like, Saved& saved) {
  RAMET_CHECK(number < values_.size(), "checkpoint",
              "run again, the function saved more tensors: got ", describe(like), " as number ",
              number, ", expected ", values_.size(), " tensors as in the forward pass");
  Value& value = values_[number];
  RAMET_CHECK(like.sizes() == IntArrayRef(value.sizes) && like.scalar_type() == value.dtype &&
                  like.device() == value.device,
              "checkpoint", "run again, the function saved another tensor as number ", number,
              ": got ", describe(like), ", expected ", short_name_of(value.dtype),
              IntArrayRef(value.sizes), " on ", value.device.str(), " as in the forward pass");
  if (!value.holder) return;
  const RawEdge history = value.holder->history;
  if (StandIn* inner = StandIn::of(saved.t_)) {  // of a checkpoint inside
    if (history.node) history.node->hold();
    release(std::exchange(inner->history, history).node);
    value.computed = saved;
    return;
  }
  const NoGradGuard off;
  // A tensor that is a view until it is written has one implementation.
  Tensor t = like.storage_impl()->copy_on_write ? like.detach().clone() : like.shallow();
  if (history.node) attach(t, history.node, history.slot);
  value.computed.version_ = t.version();
  value.computed.t_ = std::move(t);
}

void CheckpointFrame::check_inputs(const Node& asking) const {
  for (size_t i = 0; i < call_->inputs.size(); ++i) {
    const auto& [t, version] = call_->inputs[i];
    RAMET_CHECK(t.version() == version, "checkpoint", "input tensor ", i, " was changed by ",
                t.storage_impl()->last_writer(), ": got ", describe(t), " at version ", t.version(),
                ", expected version ", version, " to compute again what ", asking.name(), " needs");
  }
}

std::unique_ptr<CheckpointFrame::Call> CheckpointFrame::compute_again(const Node& asking) {
  check_inputs(asking);
  try {
    const ThreadLocalStateGuard state(call_->state);
    const ramet::detail::OwnCasts casts;
    EnteredContexts contexts(call_->contexts);
    const Running running(*this, true);
    call_->again();
    RAMET_CHECK(running.next_ == values_.size(), "checkpoint",
                "run again, the function saved fewer tensors: got ", running.next_, ", expected ",
                values_.size(), " as in the forward pass");
    running.draws_.check_end();
    contexts.leave();
  } catch (...) {
    for (Value& v : values_) v.computed = Saved();
    throw;
  }
  return std::exchange(call_, nullptr);
}

const Tensor& CheckpointFrame::value(size_t number, const Node& asking) {
  {
    std::unique_ptr<Call> done;  // freed when the lock is gone: that may run a user's code
    const std::lock_guard lock(mutex_);
    if (call_) done = compute_again(asking);
  }
  return values_[number].computed.get(asking);
}

const Tensor* CheckpointFrame::value_of(const Saved& saved, const Node& asking) {
  StandIn* const stand_in = StandIn::of(saved.t_);
  return stand_in ? &stand_in->frame->value(stand_in->number, asking) : nullptr;
}

void CheckpointFrame::drop(size_t number) {
  Saved dropped;  // freed when the lock is gone: that may end further nodes
  const std::lock_guard lock(mutex_);
  values_[number].holder = nullptr;
  std::swap(dropped, values_[number].computed);
}

}  // namespace autograd
}  // namespace ramet
