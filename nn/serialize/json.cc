#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "nn/serialize/json_internal.h"
#include "runtime/base/error.h"

namespace ramet {
namespace serialize {

using Json = nlohmann::json;

Json detail::parse_json(const char* op, const std::string& what, const std::string& text,
                        int max_depth) {
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  std::string twice;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& value) {
    RAMET_CHECK(depth <= max_depth, op, what, ": got JSON nested deeper than ", max_depth,
                ", expected fewer levels");
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second)
      twice = value.get<std::string>();
    return true;
  };
  Json json;
  try {
    json = Json::parse(text, watch);
  } catch (const Json::exception& e) {
    std::string why = e.what();
    why.resize(std::min(why.size(), why.find("; last read")));  // which may be the whole text
    fail(op, what, " is no valid JSON (", why, ")");
  }
  RAMET_CHECK(twice.empty(), op, what, ": got the key \"", twice, "\" twice, expected once");
  return json;
}

}  // namespace serialize
}  // namespace ramet
