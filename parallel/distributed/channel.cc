#include <algorithm>

#include "parallel/distributed/channel_internal.h"

namespace ramet::distributed::detail {

std::string rank_list(const std::vector<int>& ranks) {
  std::string out = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) out += (i ? ", " : "") + std::to_string(ranks[i]);
  return out;
}

void meet(Store& store, int rank, int size, Deadline deadline) {
  store.set("here/" + std::to_string(rank), "");
  std::vector<int> missing;
  for (int i = 0; i < size; ++i)
    if (!store.find("here/" + std::to_string(i), deadline)) missing.push_back(i);
  RAMET_CHECK(missing.empty(), "process_group", "Timeout: of the ", size,
              " ranks of the group these did not come: ", rank_list(missing), " (store ",
              store.where(), ")");
}

void Channel::move(const std::vector<Outgoing>& out, const std::vector<Incoming>& in,
                   const char* who_is_late) {
  const uint64_t tag = tag_++;
  struct Started {
    int peer;
    TransferPtr transfer;
  };
  std::vector<Started> started;
  try {
    for (const Incoming& m : in)
      if (m.bytes) started.push_back({m.from, engine_.recv(m.from, tag, m.data, m.bytes)});
    // Each rank begins with its successor: not all with rank 0.
    std::vector<const Outgoing*> order;
    for (const Outgoing& m : out)
      if (m.bytes) order.push_back(&m);
    std::ranges::sort(order, {},
                      [&](const Outgoing* m) { return (m->to - rank_ + size_) % size_; });
    for (const Outgoing* m : order)
      started.push_back({m->to, engine_.send(m->to, tag, m->data, m->bytes)});
    // What does not come names who is late. What is not taken says less: its receiver may be
    // waiting for a third rank.
    std::vector<int> late;
    const size_t receives = started.size() - order.size();
    for (size_t i = 0; i < started.size(); ++i) {
      if (i >= receives && !late.empty()) break;
      if (!started[i].transfer->wait(deadline_)) late.push_back(started[i].peer);
    }
    if (late.empty()) return;
    std::ranges::sort(late);
    const Failure failure{CommError::Kind::timeout, late, rank_list(late) + " " + who_is_late};
    tell_(failure);
    throw failure;
  } catch (const PeerLost& lost) {
    const Failure failure{
        CommError::Kind::lost,
        {lost.rank},
        "rank " + std::to_string(lost.rank) +
            " is gone: the connection to it broke (its process ended, or the link is "
            "down; " +
            lost.why + ")"};
    tell_(failure);
    throw failure;
  }
}

std::vector<Header> Channel::show_all(const std::vector<Header>& out) {
  std::vector<Header> all(out.size());
  std::vector<Outgoing> sends;
  std::vector<Incoming> receives;
  for (int i = 0; i < size_; ++i) {
    const auto k = static_cast<size_t>(i);
    if (i == rank_) {
      all[k] = out[k];
      continue;
    }
    sends.push_back({i, &out[k], sizeof(Header)});
    receives.push_back({i, &all[k], sizeof(Header)});
  }
  move(sends, receives, "did not take part");
  const Disagreement d = compare(all);
  if (!d.text.empty()) throw Failure{CommError::Kind::mismatch, d.ranks, d.text};
  // What differs from pair to pair.
  for (size_t k = 0; k < all.size(); ++k) {
    const uint64_t wanted = out[k].wants, given = all[k].gives;
    if (wanted == given) continue;
    const auto peer = static_cast<int>(k);
    throw Failure{CommError::Kind::mismatch,
                  {std::min(rank_, peer), std::max(rank_, peer)},
                  "Detected mismatch between collectives on ranks. Rank " + std::to_string(rank_) +
                      " expects " + std::to_string(wanted) + " bytes of rank " +
                      std::to_string(peer) + ", which gives it " + std::to_string(given) + ": " +
                      out[k].text() + " and " + all[k].text()};
  }
  return all;
}

}  // namespace ramet::distributed::detail
