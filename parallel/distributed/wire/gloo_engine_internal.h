// Connects ranks that are processes by Gloo's TCP pairs.
#pragma once
#include <memory>
#include <string>

#include "parallel/distributed/wire/engine_internal.h"

namespace ramet::distributed::detail {

/// All ranks call it with the same store prefix, each with its own address (empty: derived from the
/// host's name). Errors: a rank does not come by the deadline, or cannot be reached.
std::unique_ptr<Engine> gloo_engine(const std::shared_ptr<Store>& store, int rank, int size,
                                    const std::string& address, Deadline deadline);

}  // namespace ramet::distributed::detail
