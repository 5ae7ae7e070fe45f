#include "tools/see/pictures/wrap.h"

#include <algorithm>

namespace ramet::see {
namespace {

// Parts of the text with a blank between each two: words, or all up to a comma, colon or semicolon.
std::vector<std::string> parts(const std::string& text, bool words) {
  std::vector<std::string> out;
  bool open = false;
  long brackets = 0;  // nothing is broken between them: "float32[2, 3]"
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    at = end + 1;
    if (open) out.back() += " " + word;
    else out.push_back(word);
    brackets +=
        std::count(word.begin(), word.end(), '[') - std::count(word.begin(), word.end(), ']');
    open = brackets > 0 ||
           (!words && (word.empty() || std::string(",;:").find(word.back()) == std::string::npos));
  }
  return out;
}

}  // namespace

std::vector<std::string> wrap(const std::string& text,
                              const std::function<bool(const std::string&)>& fits) {
  std::vector<std::string> lines;
  const auto add = [&](const std::string& part, bool whole) {
    if (!lines.empty() && fits(lines.back() + " " + part)) lines.back() += " " + part;
    else if (whole || fits(part)) lines.push_back(part);
    else return false;
    return true;
  };
  for (const std::string& part : parts(text, false)) {
    if (add(part, false)) continue;
    for (const std::string& word : parts(part, true)) add(word, true);
  }
  return lines;
}

}  // namespace ramet::see
