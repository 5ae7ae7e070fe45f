// Connects ranks that are threads of one process.
#pragma once
#include <memory>
#include <vector>

#include "parallel/distributed/wire/engine_internal.h"

namespace ramet::distributed::detail {

/// Makes one engine for each rank.
std::vector<std::unique_ptr<Engine>> inproc_engines(int size);

/// The same for ranks that each make their own engine, and find each other by a store of this
/// process. Errors: a rank does not come by the deadline.
std::unique_ptr<Engine> join_inproc(Store& store, int rank, int size, Deadline deadline);

}  // namespace ramet::distributed::detail
