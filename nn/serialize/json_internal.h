// JSON of files that others may have written.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace ramet {
namespace serialize {
namespace detail {

/// Parses `text`. Errors are those of `op` and call the text `what` ("header of \"x\""). At most
/// `max_depth` levels are allowed, because functions that show values recurse once a level. A key
/// may not stand twice in an object: most parsers silently keep the last one.
nlohmann::json parse_json(const char* op, const std::string& what, const std::string& text,
                          int max_depth);

}  // namespace detail
}  // namespace serialize
}  // namespace ramet
