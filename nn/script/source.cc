#include <algorithm>

#include "nn/script/ast_internal.h"

namespace ramet::script {

namespace {

// The last origin that begins at or before the offset, or null.
const Source::Origin* origin_of(const Source& source, size_t offset) {
  const auto after =
      std::upper_bound(source.origins.begin(), source.origins.end(), offset,
                       [](size_t at, const Source::Origin& o) { return at < o.offset; });
  return after == source.origins.begin() || (after - 1)->file.empty() ? nullptr : &*(after - 1);
}

std::string text_of(const Source::Origin& origin) {
  return origin.file + ":" + std::to_string(origin.line);
}

std::string archive_line(const Source& source, size_t offset) {
  return source.name + ":" + std::to_string(1 + source.ends.before(source.text, offset));
}

}  // namespace

int64_t LineEnds::before(const std::string& text, size_t offset) const {
  // Not by std::call_once: Note [Own thread-local memory] in runtime/observe/thread_local_state.cc.
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!found_)
    for (size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 1))
      ends_.push_back(at);
  found_ = true;
  return std::lower_bound(ends_.begin(), ends_.end(), offset) - ends_.begin();
}

std::string Source::place(size_t offset) const {
  const std::string here = archive_line(*this, offset);
  const Origin* const origin = origin_of(*this, offset);
  return origin ? text_of(*origin) + " (" + here + ")" : here;
}

std::string Source::line(size_t offset) const {
  const Origin* const origin = origin_of(*this, offset);
  return origin ? text_of(*origin) : archive_line(*this, offset);
}

}  // namespace ramet::script
