// Lets the ranks of a group exchange one text each, and agree on an error where one rank fails.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "parallel/distributed/group/process_group.h"

namespace ramet::distributed::detail {

/// Returns what mine() returned on every rank, by rank. Where mine() throws on some rank, every
/// rank throws an Error with that text.
std::vector<std::string> agree(ProcessGroup& group, const char* op, const std::string& what,
                               std::optional<Milliseconds> timeout,
                               const std::function<std::string()>& mine);

}  // namespace ramet::distributed::detail
