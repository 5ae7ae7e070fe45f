#include <algorithm>

#include "nn/script/ast_internal.h"

namespace ramet::script {

std::string Source::place(size_t offset) const {
  const size_t end = std::min(offset, text.size());
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(end), '\n');
  const std::string here = name + ":" + std::to_string(line);
  // The last origin that begins at or before the offset.
  const auto after = std::upper_bound(origins.begin(), origins.end(), offset,
                                      [](size_t at, const Origin& o) { return at < o.offset; });
  if (after == origins.begin() || (after - 1)->file.empty()) return here;
  const Origin& origin = *(after - 1);
  return origin.file + ":" + std::to_string(origin.line) + " (" + here + ")";
}

}  // namespace ramet::script
