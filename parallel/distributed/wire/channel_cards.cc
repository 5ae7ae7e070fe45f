// An operation between GPUs: Note [Groups of GPUs].
#include <cstring>
#include <thread>

#include "autograd/ops.h"
#include "autograd/ops/make/copy.h"
#include "parallel/distributed/wire/channel_internal.h"

namespace ramet::distributed::detail {
namespace {

constexpr Milliseconds kProbe(500);
// How long the ranks' connections may take to show which rank NCCL has lost.
constexpr Milliseconds kNameDelay(500);

}  // namespace

Card::Card(std::unique_ptr<gpu::Link> made, Device where)
    : link(std::move(made)),
      device(where),
      pool(
          where, [this] { link->come_after_kernels(); }, [this] { link->come_before_kernels(); }) {}

void Channel::use_card(Card& card) {
  headers();
  card_ = &card;
  if (place_.ready) card.link->come_after(*place_.ready);
}

void Channel::copy(void* to, const void* from, size_t bytes) const {
  if (bytes == 0) return;
  if (!card_) {
    std::memcpy(to, from, bytes);
    return;
  }
  compute([&] { gpu::library()->copy(to, card_->device, from, card_->device, bytes); });
}

void Channel::clear(void* memory, int64_t bytes) const {
  const Tensor t = from_blob(memory, {bytes}, TensorOptions(kByte).device(device()));
  compute([&] { autograd::fill_values(t, 0); });
}

void Channel::probe_others() {
  try {
    for (int r = 0; r < size_; ++r)
      if (r != rank_ && (peer_ < 0 || peer_ == r)) engine_.probe(r);
  } catch (const PeerLost& peer) { lost(peer); }
}

void Channel::wait_until(const std::function<bool()>& done, const char* late,
                         const std::vector<int>& by) {
  Deadline look = deadline_in(kProbe);
  try {
    for (int turn = 0; !done(); ++turn) {
      if (const auto note = engine_.ended()) throw GroupEnded{*note};
      const Deadline now = std::chrono::steady_clock::now();
      if (now > deadline_) fail({CommError::Kind::timeout, by, late});
      if (now > look) {
        probe_others();
        look = deadline_in(kProbe);
      }
      if (turn < 200) std::this_thread::yield();
      else std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  } catch (const gpu::LinkError& e) {
    if (!e.of_another_rank) fail({CommError::Kind::aborted, {rank_}, e.what()});
    for (const Deadline end = deadline_in(kNameDelay); std::chrono::steady_clock::now() < end;) {
      if (const auto note = engine_.ended()) throw GroupEnded{*note};
      probe_others();
      std::this_thread::sleep_for(Milliseconds(20));
    }
    fail({CommError::Kind::lost, {}, std::string("a rank is gone: ") + e.what()});
  }
}

void Channel::wait_for_tensors() {
  if (!place_.ready) return;
  wait_until([&] { return place_.ready->query(); },
             "what its GPU was given before did not end in time", {rank_});
}

void Channel::exchange(const std::vector<Outgoing>& out, const std::vector<Incoming>& in) {
  const auto there = [&](int r) { return card_->peer < 0 ? r : card_->peer; };
  std::vector<Outgoing> sends;
  std::vector<Incoming> receives;
  for (const Outgoing& m : out)
    if (m.bytes) sends.push_back({there(m.to), m.data, m.bytes});
  for (const Incoming& m : in)
    if (m.bytes) receives.push_back({there(m.from), m.data, m.bytes});
  if (sends.empty() && receives.empty()) return;
  queued_ = true;
  bool begun = false;
  wait_until(
      [&] {
        if (!std::exchange(begun, true)) card_->link->exchange(sends, receives);
        return card_->link->settled();
      },
      "NCCL did not take the messages over in time");
}

bool Channel::sum_in_any_order(void* data, int64_t n, ScalarType dtype) {
  if (!card_->link->can_sum(dtype)) return false;
  if (n == 0) return true;
  if (sent_) *sent_ += static_cast<size_t>(n) * item_size(dtype);
  queued_ = true;
  bool begun = false;
  wait_until(
      [&] {
        if (!std::exchange(begun, true)) card_->link->sum(data, n, dtype);
        return card_->link->settled();
      },
      "NCCL did not take the sum over in time");
  return true;
}

void Channel::complete() {
  if (!std::exchange(queued_, false)) return;
  card_->link->mark();
  wait_until([&] { return card_->link->reached(); },
             "the messages between the cards did not arrive");
  if (place_.ready)
    place_.ready->synchronize();  // throws errors that earlier kernels found in their data
}

void Channel::close() {
  if (!card_) return;
  complete();
  card_->link->come_before_kernels();
}

}  // namespace ramet::distributed::detail
