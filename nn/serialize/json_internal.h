// JSON of files that others may have written.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace ramet {
namespace serialize {
namespace detail {

/// The value of `text`, which `what` says in errors ("header of \"x\""; they are `op`'s): of no
/// more than `max_depth` levels, since what shows values calls itself for each, and without a key
/// twice in an object, of which most parsers keep the last one silently.
nlohmann::json parse_json(const char* op, const std::string& what, const std::string& text,
                          int max_depth);

}  // namespace detail
}  // namespace serialize
}  // namespace ramet
