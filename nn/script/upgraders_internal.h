// Operators that meant something else in older files.
#pragma once
#include <string_view>
#include <vector>

#include "autograd/schema/operators_internal.h"

namespace ramet::script {

/// The overloads that a name has in files of a version, in the order in which they are tried. Those
/// that meant something else then come before today's.
const std::vector<const Operator*>& operators_of_version(std::string_view name, int64_t version);

}  // namespace ramet::script
