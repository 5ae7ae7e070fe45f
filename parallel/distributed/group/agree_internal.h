// Ranks that say what each has, or that it failed.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "parallel/distributed/group/process_group.h"

namespace ramet::distributed::detail {

/// What mine() returned on every rank. Where it threw on some rank, an Error with its text on all.
std::vector<std::string> agree(ProcessGroup& group, const char* op, const std::string& what,
                               std::optional<Milliseconds> timeout,
                               const std::function<std::string()>& mine);

}  // namespace ramet::distributed::detail
