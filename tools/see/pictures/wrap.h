// Text in lines.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace ramet {
namespace see {

/// Breaks a text into lines that `fits` accepts: after a comma, colon or semicolon where possible,
/// otherwise between words. A single word is a line even where it does not fit.
std::vector<std::string> wrap(const std::string& text,
                              const std::function<bool(const std::string&)>& fits);

}  // namespace see
}  // namespace ramet
