#include "parallel/distributed/meet/meeting_internal.h"

#include <algorithm>

namespace ramet::distributed::detail {

std::string rank_list(const std::vector<int>& ranks) {
  std::string out = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) out += (i ? ", " : "") + std::to_string(ranks[i]);
  return out;
}

std::vector<std::string> meet(Store& store, int rank, int size, Deadline deadline,
                              const std::string& told) {
  store.set("here/" + std::to_string(rank), told);
  std::vector<int> missing;
  std::vector<std::string> all;
  for (int i = 0; i < size; ++i) {
    const auto found = store.find("here/" + std::to_string(i), deadline);
    if (!found) missing.push_back(i);
    all.push_back(found.value_or(""));
  }
  RAMET_CHECK(missing.empty(), "process_group", "Timeout: of the ", size,
              " ranks of the group these did not come: ", rank_list(missing), " (store ",
              store.where(), ")");
  // Rank 0's process may serve the store, and may end right after this. So rank 0 returns last,
  // unless the others have failed.
  if (rank == 0) {
    const Deadline soon = std::min(deadline, deadline_in(std::chrono::seconds(5)));
    for (int i = 1; i < size; ++i) (void)store.find("seen/" + std::to_string(i), soon);
  } else {
    try {
      store.set("seen/" + std::to_string(rank), "");
    } catch (const Error&) {}  // the store has ended: the code that follows reports it
  }
  return all;
}

}  // namespace ramet::distributed::detail
