// Ranks that show in a store that they are there.
#pragma once
#include <string>
#include <vector>

#include "parallel/distributed/meet/store.h"

namespace ramet::distributed::detail {

/// "rank 3", "ranks 1, 3".
std::string rank_list(const std::vector<int>& ranks);

/// Ranks of a new group show in the store that they are there, and wait for the others. Returns
/// what each of them told, by rank. An Error that names those that did not come until the deadline.
std::vector<std::string> meet(Store& store, int rank, int size, Deadline deadline,
                              const std::string& told = "");

}  // namespace ramet::distributed::detail
