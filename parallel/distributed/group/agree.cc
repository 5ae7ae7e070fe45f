#include "parallel/distributed/group/agree_internal.h"

#include <map>

namespace ramet::distributed::detail {

std::vector<std::string> agree(ProcessGroup& group, const char* op, const std::string& what,
                               std::optional<Milliseconds> timeout,
                               const std::function<std::string()>& mine) {
  std::string message;
  try {
    message = "+" + mine();
  } catch (const std::exception& e) { message = std::string("-") + e.what(); }
  CollectiveOptions options(std::string(op) + ": " + what);
  options.timeout = timeout;
  std::vector<std::string> all = group.exchange(message, options);
  std::map<std::string, std::vector<size_t>> errors;  // the ranks of each error text
  for (size_t r = 0; r < all.size(); ++r) {
    if (all[r][0] == '-') errors[all[r].substr(1)].push_back(r);
    all[r].erase(0, 1);
  }
  if (errors.empty()) return all;
  if (errors.begin()->second.size() == all.size()) throw Error(errors.begin()->first);
  std::string text;
  for (const auto& [error, ranks] : errors) {
    text += text.empty() ? "rank" : "; rank";
    for (const size_t r : ranks) text += (r == ranks[0] ? " " : ", ") + std::to_string(r);
    text += ": " + error;
  }
  fail(op, text);
}

}  // namespace ramet::distributed::detail
