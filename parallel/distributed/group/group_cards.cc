// The links between the ranks' GPUs, made at the first operation that needs them: Note [Groups of
// cards].
//
// The collectives of a group run one after the other, over one link of all ranks. Messages between
// two ranks may overtake each other and collectives. So each direction of a pair has a link of its
// own. The receiver checks that both sides mean the same message, then says which message is next.
#include <cstring>

#include "parallel/distributed/group/caps_table_internal.h"
#include "parallel/distributed/group/group_state_internal.h"
#include "parallel/distributed/meet/meeting_internal.h"

namespace ramet::distributed {

using detail::Card;
using detail::Channel;
using detail::Failure;
using detail::Header;

namespace {

std::string cuda_name(int device) { return "cuda:" + std::to_string(device); }

// Checks what all these ranks must agree on before anything is queued.
void check_cards(const Channel& channel, const std::vector<Header>& headers) {
  std::vector<int> without;
  for (const Header& h : headers)
    if (h.card == 0) without.push_back(h.rank);
  if (!without.empty()) {
    std::string what =
        detail::rank_list(without) + " cannot use NCCL, which the group's backend " + "asks for";
    const std::string why = backend_caps("nccl").why_not();
    if (!why.empty()) what += ": on this rank, " + why;
    channel.fail({CommError::Kind::aborted, without, what});
  }
  for (size_t i = 0; i < headers.size(); ++i)
    for (size_t j = i + 1; j < headers.size(); ++j) {
      if (headers[i].card != headers[j].card) continue;
      const std::vector<int> both{headers[i].rank, headers[j].rank};
      channel.fail({CommError::Kind::aborted, both,
                    detail::rank_list(both) + " are on one card (" + cuda_name(headers[i].device) +
                        " and " + cuda_name(headers[j].device) +
                        "): NCCL wants a card for each rank, expected that or the backend "
                        "\"gloo\""});
    }
}

// What the receiver sends to the sender before a message.
struct Next {
  int32_t device = 0;   // the receiver's
  uint32_t is_new = 0;  // must both make a link?
  char id[gpu::kLinkId] = {};
};

}  // namespace

bool detail::asks_for_nccl(const std::string& backend) {
  if (backend.empty() || backend == "gloo" || backend == "cpu:gloo" ||
      backend == "cpu:gloo,cuda:gloo")
    return false;
  RAMET_CHECK(backend == "nccl" || backend == "cpu:gloo,cuda:nccl", "process_group",
              "backend: got \"", backend,
              "\", expected \"gloo\", \"nccl\" or \"cpu:gloo,cuda:nccl\"");
  return true;
}

void ProcessGroup::State::begin_on_gpu(detail::TensorPlace& place, Header& header) const {
  if (!place.device.is_cuda()) return;
  const char* const op = name_of(header.op);
  place.ready = gpu::required(op, place.device).event(place.device.index());
  place.ready->record();
  if (!nccl || !detail::goes_over_cards(header.op)) return;
  header.over_cards = true;
  header.device = place.device.index();
  if (backend_caps("nccl").why_not().empty())
    header.card = gpu::card_identity(place.device.index());
}

Card& ProcessGroup::State::card_of_all(Channel& channel, const detail::TensorPlace& place) {
  const std::vector<Header>& headers = channel.headers();
  check_cards(channel, headers);
  std::vector<int> devices;
  for (const Header& h : headers) devices.push_back(h.device);
  std::unique_ptr<Card>& card = cards_[devices];
  if (card) return *card;
  std::string id(gpu::kLinkId, 0);
  std::vector<detail::Outgoing> out;
  if (rank == 0) {
    id = gpu::make_link_id();
    for (int r = 1; r < size; ++r) out.push_back({r, id.data(), id.size()});
    channel.move(out, {});
  } else {
    channel.move({}, {{0, id.data(), id.size()}});
  }
  card = std::make_unique<Card>(gpu::make_link(id, place.device.index(), rank, size), place.device);
  channel.wait_until([&] { return card->link->settled(); },
                     "NCCL did not connect the ranks in time");
  return *card;
}

void ProcessGroup::State::run_over_cards(Channel& channel, const detail::Message& m,
                                         const Header& theirs) {
  const char* const late = m.sends ? "did not receive it" : "did not send it";
  Next next;
  if (m.sends) {
    channel.move({}, {{m.peer, &next, sizeof(next)}}, late);
  } else {
    const bool first = theirs.rank < rank;
    check_cards(channel, first ? std::vector{theirs, m.header} : std::vector{m.header, theirs});
  }
  Pair* pair;
  {
    const std::lock_guard lock(pairs_mutex_);
    pair = &pairs_[{m.peer, m.sends}];
  }
  const std::lock_guard one_at_a_time(pair->mutex);
  const int mine = m.place.device.index();
  std::unique_ptr<Card>& card = pair->cards[{mine, m.sends ? next.device : theirs.device}];
  if (!m.sends) {
    next.device = mine;
    next.is_new = card == nullptr;
    if (next.is_new) std::memcpy(next.id, gpu::make_link_id().data(), sizeof(next.id));
    channel.move({{m.peer, &next, sizeof(next)}}, {}, late);
  }
  try {
    if (next.is_new) {
      card = std::make_unique<Card>(
          gpu::make_link(std::string(next.id, sizeof(next.id)), mine, m.sends ? 0 : 1, 2),
          m.place.device);
      card->peer = m.sends ? 1 : 0;
      channel.wait_until([&] { return card->link->settled(); },
                         "NCCL did not connect the two ranks in time");
    }
    channel.use_card(*card);
    if (m.sends) {
      channel.move({{m.peer, m.tensor.data(channel), m.tensor.bytes()}}, {}, late);
    } else {
      const detail::Staging staging = channel.staging(m.tensor.bytes());
      channel.move({}, {{m.peer, staging.data(), m.tensor.bytes()}}, late);
      m.tensor.write(channel, "recv", staging.data());
    }
    channel.close();
  } catch (...) {
    if (card) card->link->abort(deadline_in(gpu::kLinkAbortTakes));
    throw;
  }
}

void ProcessGroup::State::abort_cards() {
  const Deadline deadline = deadline_in(gpu::kLinkAbortTakes);  // one deadline for all links
  std::vector<gpu::Link*> links;
  for (const auto& [devices, card] : cards_)
    if (card) links.push_back(card->link.get());
  const std::lock_guard lock(pairs_mutex_);
  std::vector<std::unique_lock<std::mutex>> free;
  for (auto& [which, pair] : pairs_) {
    // A link that is in use is aborted by the thread that uses it.
    std::unique_lock one(pair.mutex, std::try_to_lock);
    if (!one) continue;
    free.push_back(std::move(one));
    for (const auto& [devices, card] : pair.cards)
      if (card) links.push_back(card->link.get());
  }
  for (gpu::Link* link : links) link->begin_abort();
  for (gpu::Link* link : links) link->abort(deadline);
}

}  // namespace ramet::distributed
