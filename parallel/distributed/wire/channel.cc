#include "parallel/distributed/wire/channel_internal.h"

#include <algorithm>

#include "parallel/distributed/meet/meeting_internal.h"

namespace ramet::distributed::detail {

void Channel::fail(const Failure& failure) const {
  tell_(failure);
  throw failure;
}

void Channel::lost(const PeerLost& lost) const {
  fail({CommError::Kind::lost,
        {lost.rank},
        "rank " + std::to_string(lost.rank) +
            " is gone: the connection to it broke (its process ended, or the link is "
            "down; " +
            lost.why + ")"});
}

void Channel::start(Round& round, uint64_t tag, const std::vector<Outgoing>& out,
                    const std::vector<Incoming>& in) {
  for (const Incoming& m : in)
    if (m.bytes) round.started.push_back({m.from, engine_.recv(m.from, tag, m.data, m.bytes)});
  round.receives = round.started.size();
  // Each rank begins with its successor, so that not all begin with rank 0.
  std::vector<const Outgoing*> order;
  for (const Outgoing& m : out)
    if (m.bytes) order.push_back(&m);
  std::ranges::sort(order, {}, [&](const Outgoing* m) { return (m->to - rank_ + size_) % size_; });
  for (const Outgoing* m : order)
    round.started.push_back({m->to, engine_.send(m->to, tag, m->data, m->bytes)});
}

// A message that does not arrive names the late rank. A message that is not taken proves less: its
// receiver may be waiting for a third rank.
void Channel::finish(const Round& round, const char* who_is_late) {
  std::vector<int> late;
  for (size_t i = 0; i < round.started.size(); ++i) {
    if (i >= round.receives && !late.empty()) break;
    if (!round.started[i].transfer->wait(deadline_)) late.push_back(round.started[i].peer);
  }
  if (late.empty()) return;
  std::ranges::sort(late);
  fail({CommError::Kind::timeout, late, rank_list(late) + " " + who_is_late});
}

Round Channel::begin(const std::vector<Outgoing>& out, const std::vector<Incoming>& in) {
  Round round;
  if (card_) {
    exchange(out, in);
  } else {
    try {
      if (compared_ || arrived_) {
        start(round, tag_++, out, in);
      } else {
        std::vector<Outgoing> rest_out = out;
        std::vector<Incoming> rest_in = in;
        begin_to_show(rest_out, rest_in);
        start(round, tag_++, rest_out, rest_in);
      }
    } catch (const PeerLost& peer) { lost(peer); }
  }
  for (const Outgoing& m : out)
    if (sent_) *sent_ += m.bytes;
  return round;
}

void Channel::end(const Round& round, const char* who_is_late) {
  if (card_) return;
  headers();
  try {
    finish(round, who_is_late);
  } catch (const PeerLost& peer) { lost(peer); }
}

void Channel::move(const std::vector<Outgoing>& out, const std::vector<Incoming>& in,
                   const char* who_is_late) {
  end(begin(out, in), who_is_late);
}

void Channel::begin_to_show(std::vector<Outgoing>& out, std::vector<Incoming>& in) {
  arrived_ = &inbox_->expect(tag_);
  inbox_->expect(next_tag_);
  for (int i = 0; i < size_; ++i) {
    const auto* header = reinterpret_cast<const char*>(&shown_[static_cast<size_t>(i)]);
    header_messages_.emplace_back(header, header + (i == rank_ ? 0 : sizeof(Header)));
  }
  std::erase_if(out, [&](const Outgoing& m) {
    if (m.bytes > Inbox::kRoom) return false;
    const char* from = static_cast<const char*>(m.data);
    auto& message = header_messages_[static_cast<size_t>(m.to)];
    message.insert(message.end(), from, from + m.bytes);
    return true;
  });
  std::erase_if(in, [&](const Incoming& m) {
    if (m.bytes > Inbox::kRoom) return false;
    if (m.bytes) after_headers_.push_back(m);
    return true;
  });
  std::vector<Outgoing> sends;
  for (int i = 0; i < size_; ++i) {
    const auto k = static_cast<size_t>(i);
    if (i == rank_) continue;
    sends.push_back({i, header_messages_[k].data(), header_messages_[k].size()});
    showing_.started.push_back({i, std::move(arrived_->transfers[k])});
  }
  Round sending;
  start(sending, tag_++, sends, {});
  showing_.receives = showing_.started.size();
  for (Round::Started& s : sending.started) showing_.started.push_back(std::move(s));
  tag_ |= shown_[static_cast<size_t>(rank_)].fingerprint() << kFingerprintAt;
}

const std::vector<Header>& Channel::headers() {
  if (compared_) return all_;
  try {
    if (!arrived_) {
      std::vector<Outgoing> out;
      std::vector<Incoming> in;
      begin_to_show(out, in);
    }
    finish(showing_, "did not take part");
  } catch (const PeerLost& peer) { lost(peer); }
  showing_ = {};
  for (int i = 0; i < size_; ++i) {
    const auto k = static_cast<size_t>(i);
    if (i != rank_) std::memcpy(&all_[k], arrived_->memory[k].data(), sizeof(Header));
  }
  compare_headers();
  for (const Incoming& m : after_headers_)
    std::memcpy(m.data, arrived_->memory[static_cast<size_t>(m.from)].data() + sizeof(Header),
                m.bytes);
  compared_ = true;
  return all_;
}

void Channel::compare_headers() {
  const Disagreement d = compare(all_);
  if (!d.text.empty()) fail({CommError::Kind::mismatch, d.ranks, d.text});
  // What differs from pair to pair: both ranks of a pair report the same, the lower rank's values
  // first.
  for (size_t k = 0; k < all_.size(); ++k) {
    const auto peer = static_cast<int>(k), low = std::min(rank_, peer),
               high = std::max(rank_, peer);
    const Header &of_low = low == rank_ ? shown_[k] : all_[k],
                 &of_high = low == rank_ ? all_[k] : shown_[k];
    const auto compare = [&](int to, const Header& wants, int from, const Header& gives) {
      if (wants.wants == gives.gives) return;
      fail({CommError::Kind::mismatch,
            {low, high},
            "Detected mismatch between collectives on ranks. Rank " + std::to_string(to) +
                " expects " + std::to_string(wants.wants) + " bytes of rank " +
                std::to_string(from) + ", which gives it " + std::to_string(gives.gives) + ": " +
                wants.text() + " and " + gives.text()});
    };
    compare(low, of_low, high, of_high);
    compare(high, of_high, low, of_low);
  }
}

}  // namespace ramet::distributed::detail
