// Makes groups: of processes, of threads, and of some ranks of a group.
#include <algorithm>
#include <numeric>
#include <sstream>
#include <thread>

#include "parallel/distributed/group/group_state_internal.h"
#include "parallel/distributed/meet/meeting_internal.h"
#include "parallel/distributed/wire/channel_internal.h"
#include "parallel/distributed/wire/gloo_engine_internal.h"
#include "parallel/distributed/wire/inproc_engine_internal.h"

namespace ramet::distributed {

class GroupMaker {
 public:
  /// Makes a group over a store in which only this group's ranks use the prefix. All ranks have
  /// arrived when it returns.
  static std::shared_ptr<ProcessGroup> make(std::unique_ptr<detail::Engine> engine, int rank,
                                            int size, const GroupOptions& options,
                                            std::shared_ptr<Store> store, std::string address) {
    check(options);
    auto state = std::make_unique<ProcessGroup::State>(std::move(engine), rank, size, options);
    state->store = std::move(store);
    state->address = std::move(address);
    return std::shared_ptr<ProcessGroup>(new ProcessGroup(std::move(state)));
  }

  /// Checks the options before this rank meets the others.
  static void check(const GroupOptions& options) {
    RAMET_CHECK(options.timeout.count() > 0, "process_group", "timeout: got ",
                options.timeout.count(), " ms, expected more than 0");
    detail::asks_for_nccl(options.backend);
    detail::shared_memory_wanted();
  }

  static std::shared_ptr<ProcessGroup> further(const ProcessGroup& of, const std::string& prefix,
                                               const std::vector<int>& ranks,
                                               const GroupOptions& options, Deadline deadline) {
    const ProcessGroup::State& s = *of.state_;
    const auto at = std::ranges::find(ranks, s.rank);
    const int rank = static_cast<int>(at - ranks.begin()), size = static_cast<int>(ranks.size());
    const auto store = std::make_shared<PrefixStore>(s.store, prefix);
    std::unique_ptr<detail::Engine> engine;
    if (std::string(s.engine->backend()) == "inproc")
      engine = detail::join_inproc(*store, rank, size, deadline);
    else engine = detail::gloo_engine(store, rank, size, s.address, deadline);
    return make(std::move(engine), rank, size, options, store, s.address);
  }

  static void check_further(const char* op, const ProcessGroup& of, const std::vector<int>& ranks,
                            GroupOptions& options) {
    if (options.backend.empty()) options.backend = of.state_->options.backend;
    check(options);
    std::vector<int> sorted = ranks;
    std::ranges::sort(sorted);
    RAMET_CHECK(!ranks.empty() && sorted.front() >= 0 && sorted.back() < of.size() &&
                    std::ranges::adjacent_find(sorted) == sorted.end(),
                op, "ranks: got ", IntArrayRef(std::vector<int64_t>(ranks.begin(), ranks.end())),
                ", expected some of 0 to ", of.size() - 1, ", each once");
  }
};

namespace {
std::string joined(const std::vector<int>& ranks) {
  std::string out;
  for (int r : ranks) out += (out.empty() ? "" : ",") + std::to_string(r);
  return out;
}

// Returns the attempt number of each rank in the attempt in which they meet, the same text on all
// ranks. Numbers are needed because ranks may have tried in vain before, with this list or another.
// The first rank of the list decides which ranks are present.
std::string try_together(Store& store, const std::vector<int>& ranks, size_t me,
                         Deadline deadline) {
  const auto key = [](size_t i) { return "try/" + std::to_string(i); };
  struct Here {
    Store& store;
    const std::string key;
    ~Here() {
      try {
        store.erase(key);
      } catch (const Error&) {}  // the store has ended
    }
  } here{store, key(me)};
  const std::string mine = std::to_string(store.add("tries", 1));
  store.set(here.key, mine);
  std::vector<int> missing;
  if (me == 0) {
    std::string all = mine;
    for (size_t i = 1; i < ranks.size(); ++i) {
      const auto theirs = store.find(key(i), deadline);
      if (theirs) all += "," + *theirs;
      else missing.push_back(ranks[i]);
    }
    if (missing.empty()) {
      store.set("together", all);
      return all;
    }
  } else {
    do {
      const std::string all = store.find("together", deadline).value_or("");
      auto numbers = ramet::detail::classic<std::istringstream>(all);
      std::string number;
      for (size_t i = 0; i <= me && std::getline(numbers, number, ','); ++i)
        if (i == me && number == mine) return all;
      std::this_thread::sleep_for(Milliseconds(5));  // that one was of an earlier attempt
    } while (time_left(deadline).count() > 0);
    for (size_t i = 0; i < ranks.size(); ++i)
      if (!store.check({key(i)})) missing.push_back(ranks[i]);
  }
  fail("regroup", "Timeout: of the ranks ", joined(ranks),
       " these did not come: ", missing.empty() ? "all came too late" : detail::rank_list(missing),
       " (store ", store.where(), ")");
}
}  // namespace

std::shared_ptr<ProcessGroup> ProcessGroup::subgroup(const std::vector<int>& ranks,
                                                     GroupOptions options) {
  GroupMaker::check_further("subgroup", *this, ranks, options);
  const std::string id = std::to_string(++state_->subgroups) + ":" + joined(ranks);
  barrier(CollectiveOptions("subgroup [" + joined(ranks) + "]")).wait();
  if (std::ranges::find(ranks, rank()) == ranks.end()) return nullptr;
  if (options.name == "world") options.name = "ranks " + joined(ranks) + " of " + name();
  return GroupMaker::further(*this, "subgroup/" + id, ranks, options, deadline_in(options.timeout));
}

std::shared_ptr<ProcessGroup> ProcessGroup::regroup(const std::vector<int>& survivors,
                                                    GroupOptions options) {
  GroupMaker::check_further("regroup", *this, survivors, options);
  RAMET_CHECK(std::ranges::find(survivors, rank()) != survivors.end(), "regroup", "got the ranks ",
              joined(survivors), ", expected this rank, ", rank(), ", to be one of them");
  const std::string prefix = "regroup/" + joined(survivors);
  const auto me = std::ranges::find(survivors, rank()) - survivors.begin();
  const Deadline deadline = deadline_in(options.timeout);
  PrefixStore store(state_->store, prefix);
  const std::string id = try_together(store, survivors, static_cast<size_t>(me), deadline);
  return GroupMaker::further(*this, prefix + "/" + id, survivors, options, deadline);
}

std::shared_ptr<ProcessGroup> make_group(const Rendezvous& r, const GroupOptions& options) {
  GroupMaker::check(options);
  RAMET_CHECK(r.store, "make_group", "the rendezvous has no store");
  RAMET_CHECK(r.rank >= 0 && r.rank < r.world_size, "make_group", "rank: got ", r.rank,
              ", expected 0 to ", r.world_size - 1);
  // A second group of the same name must not meet the first one's keys.
  const int64_t number =
      r.store->add("groups/" + options.name + "/rank " + std::to_string(r.rank), 1);
  const auto store = std::make_shared<PrefixStore>(
      r.store, "group/" + options.name + "/" + std::to_string(number));
  const Deadline deadline = deadline_in(options.timeout);
  auto engine = r.threads ? detail::join_inproc(*store, r.rank, r.world_size, deadline)
                          : detail::gloo_engine(store, r.rank, r.world_size, r.address, deadline);
  return GroupMaker::make(std::move(engine), r.rank, r.world_size, options, store, r.address);
}

std::shared_ptr<ProcessGroup> init_process_group(const std::string& url,
                                                 const GroupOptions& options,
                                                 const RendezvousOptions& how) {
  GroupMaker::check(options);
  return make_group(rendezvous(url, how), options);
}

std::vector<std::shared_ptr<ProcessGroup>> make_local_groups(int size,
                                                             const GroupOptions& options) {
  RAMET_CHECK(size > 0, "make_local_groups", "size: got ", size, ", expected at least 1");
  const auto store = std::make_shared<MemoryStore>();
  auto engines = detail::inproc_engines(size);
  std::vector<std::shared_ptr<ProcessGroup>> out;
  for (int i = 0; i < size; ++i)
    out.push_back(
        GroupMaker::make(std::move(engines[static_cast<size_t>(i)]), i, size, options, store, ""));
  return out;
}

std::shared_ptr<ProcessGroup> detail::twin_of(ProcessGroup& group, const std::string& name) {
  std::vector<int> all(static_cast<size_t>(group.size()));
  std::iota(all.begin(), all.end(), 0);
  GroupOptions o;
  o.name = name;
  o.timeout = group.timeout();
  return group.subgroup(all, o);
}

int64_t detail::next_number(ProcessGroup& group, const std::string& kind) {
  if (group.size() == 1) return 1;
  return group.store()->add(kind + "/rank " + std::to_string(group.rank()), 1);
}

}  // namespace ramet::distributed
