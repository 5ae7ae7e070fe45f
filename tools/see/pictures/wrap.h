// Text in lines.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace ramet {
namespace see {

/// Lines that `fits` says yes to, broken behind a comma, colon or semicolon where that is possible,
/// else between words. A word alone is a line even where it does not fit.
std::vector<std::string> wrap(const std::string& text,
                              const std::function<bool(const std::string&)>& fits);

}  // namespace see
}  // namespace ramet
