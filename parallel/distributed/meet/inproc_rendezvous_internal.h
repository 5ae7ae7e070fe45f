// Ranks that are threads of one process find each other by a name.
#pragma once
#include <memory>
#include <string>

#include "parallel/distributed/meet/store.h"

namespace ramet::distributed::detail {

/// All ranks of the run `name` are there when it returns, or none gets a store. Theirs lasts as
/// long as somebody holds it; a rank that has let go of it may come again, for another run of that
/// name. Errors: a rank is there twice, or was given another world size (then every rank that
/// waits gets the error, and those that come until the deadline); ranks that do not come until the
/// deadline, which it names.
std::shared_ptr<Store> meet_inproc(const std::string& name, int rank, int world_size,
                                   Deadline deadline);

}  // namespace ramet::distributed::detail
