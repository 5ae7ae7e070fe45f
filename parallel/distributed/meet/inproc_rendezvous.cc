#include "parallel/distributed/meet/inproc_rendezvous_internal.h"

#include <algorithm>
#include <set>

#include "parallel/distributed/meet/meeting_internal.h"

namespace ramet::distributed::detail {
namespace {

// Note [Ranks that meet in a process]
// A name stands for one meeting at a time. While it is incomplete, ranks that give up are removed
// from it, so that later ranks do not count them. A rank has left when it has released the store or
// has received the meeting's error. When such a rank comes again it begins the next meeting,
// whatever the others do.
struct Meeting {
  int world_size;
  std::set<int> here, left;
  bool complete = false;
  std::string failure;  // why an incomplete meeting failed
  Deadline told_until;  // until then, ranks that come get the error
  MemoryStore store;

  explicit Meeting(int ranks) : world_size(ranks) {}
  bool over_for(int rank) const {
    return left.count(rank) || (!failure.empty() && std::chrono::steady_clock::now() > told_until);
  }
};

struct Lobby {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::shared_ptr<Meeting>> meetings;

  // The caller holds the mutex.
  void leave(const std::string& name, const std::shared_ptr<Meeting>& m, int rank) {
    m->left.insert(rank);
    if (m->left.size() == static_cast<size_t>(m->world_size)) forget(name, m);
  }
  void forget(const std::string& name, const std::shared_ptr<Meeting>& m) {
    const auto at = meetings.find(name);
    if (at != meetings.end() && at->second == m) meetings.erase(at);
  }
};
// Never destroyed: groups in static variables may end later than a static object would.
Lobby& lobby() {
  static auto* l = new Lobby;
  return *l;
}

// One rank's reference to the store.
struct Seat {
  std::string name;
  std::shared_ptr<Meeting> meeting;
  int rank;
  Seat(std::string n, std::shared_ptr<Meeting> m, int r)
      : name(std::move(n)), meeting(std::move(m)), rank(r) {}
  Seat(const Seat&) = delete;
  ~Seat() {
    const std::lock_guard lock(lobby().mutex);
    lobby().leave(name, meeting, rank);
  }
};

// Returns an empty text, or why the rank cannot join the meeting.
std::string enter(Meeting& m, int rank, int world_size) {
  if (world_size != m.world_size)
    return ramet::detail::join("world size: rank ", rank, " was given ", world_size,
                               ", the first to come was given ", m.world_size);
  if (m.here.insert(rank).second) return {};
  return ramet::detail::join("rank ", rank, " is there twice: two threads were started with it");
}

}  // namespace

std::shared_ptr<Store> meet_inproc(const std::string& name, int rank, int world_size,
                                   Deadline deadline) {
  Lobby& l = lobby();
  std::unique_lock lock(l.mutex);
  std::shared_ptr<Meeting>& of_name = l.meetings[name];
  if (!of_name || of_name->over_for(rank)) of_name = std::make_shared<Meeting>(world_size);
  const std::shared_ptr<Meeting> m = of_name;
  if (m->failure.empty()) {
    std::string why = enter(*m, rank, world_size);
    if (!why.empty()) {
      why = "[rendezvous] inproc://" + name + ": " + why;
      // Ranks that have met continue; only the extra rank gets the error.
      if (m->complete) throw Error(why);
      m->failure = why;
      m->told_until = deadline;
    } else {
      m->complete = m->here.size() == static_cast<size_t>(world_size);
    }
    l.changed.notify_all();
  }
  l.changed.wait_until(lock, deadline, [&] { return m->complete || !m->failure.empty(); });
  if (m->complete) return {std::make_shared<Seat>(name, m, rank), &m->store};
  if (!m->failure.empty()) {
    m->world_size = std::max(m->world_size, world_size);  // so many ranks must get the error
    l.leave(name, m, rank);
    throw Error(m->failure);
  }
  std::vector<int> missing;
  for (int r = 0; r < world_size; ++r)
    if (!m->here.count(r)) missing.push_back(r);
  m->here.erase(rank);
  if (m->here.empty()) l.forget(name, m);
  fail("rendezvous", "Timeout: of the ", world_size, " ranks of inproc://", name,
       " these did not come: ", rank_list(missing));
}

}  // namespace ramet::distributed::detail
