// Lets threads of one process that are ranks find each other by a name.
#pragma once
#include <memory>
#include <string>

#include "parallel/distributed/meet/store.h"

namespace ramet::distributed::detail {

/// When it returns, all ranks of the run `name` are there; otherwise no rank gets a store. The
/// store lives as long as any rank holds it. A rank that has released it may come again, for
/// another run of that name. Errors: a rank is there twice, or was given another world size. In
/// these cases every waiting rank gets the error, and so do ranks that come before the deadline. If
/// ranks do not come by the deadline, the Error names them.
std::shared_ptr<Store> meet_inproc(const std::string& name, int rank, int world_size,
                                   Deadline deadline);

}  // namespace ramet::distributed::detail
