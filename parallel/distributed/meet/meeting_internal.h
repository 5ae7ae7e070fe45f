// Lets ranks announce in a store that they are there.
#pragma once
#include <string>
#include <vector>

#include "parallel/distributed/meet/store.h"

namespace ramet::distributed::detail {

/// "rank 3", "ranks 1, 3".
std::string rank_list(const std::vector<int>& ranks);

/// Each rank of a new group announces itself in the store and waits for the others. Returns the
/// `told` of each rank, by rank. An Error names the ranks that do not come by the deadline.
std::vector<std::string> meet(Store& store, int rank, int size, Deadline deadline,
                              const std::string& told = "");

}  // namespace ramet::distributed::detail
