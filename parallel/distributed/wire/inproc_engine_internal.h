// Ranks that are threads of one process.
#pragma once
#include <memory>
#include <vector>

#include "parallel/distributed/wire/engine_internal.h"

namespace ramet::distributed::detail {

/// One engine a rank.
std::vector<std::unique_ptr<Engine>> inproc_engines(int size);

/// The same for ranks that make their own, and find each other by a store of this process. Errors:
/// one does not come until the deadline.
std::unique_ptr<Engine> join_inproc(Store& store, int rank, int size, Deadline deadline);

}  // namespace ramet::distributed::detail
