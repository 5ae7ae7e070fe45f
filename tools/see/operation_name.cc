#include "tools/see/operation_name.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "runtime/base/classic.h"

namespace ramet {
namespace see {

// A node's name has a capital for each word of the function's name, and for each letter after a
// digit. Examples: max_pool2d -> MaxPool2D, log1p -> Log1P, smooth_l1_loss -> SmoothL1Loss. So a
// capital begins a word where it stands before or after small letters.
std::string operation_name(const std::string& node) {
  const size_t end = node.rfind("Backward");
  if (end == std::string::npos || end == 0) return node;
  // No rule shows a digit in the middle of a word. And LibTorch's _to_copy is to().
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kOthers{
      {{"Col2Im", "col2im"},
       {"Im2Col", "im2col"},
       {"Deg2Rad", "deg2rad"},
       {"Rad2Deg", "rad2deg"},
       {"ToCopy", "to"}}};
  const std::string_view words(node.data(), end);
  for (const auto& [known, name] : kOthers)
    if (words == known) return std::string(name);
  const auto small = [&](size_t i) { return i < end && node[i] >= 'a' && node[i] <= 'z'; };
  std::string out;
  for (size_t i = 0; i < end; ++i) {
    const char c = ramet::detail::lower(node[i]);
    if (c != node[i] && i > 0 && node[i - 1] != '_' && (small(i - 1) || small(i + 1))) out += '_';
    out += c;
  }
  return out;
}

}  // namespace see
}  // namespace ramet
