// The explorer's page, which the build puts together from tools/docs/explorer.
#pragma once
#include <map>
#include <string>
#include <string_view>

namespace ramet {
namespace see {
namespace detail {

/// HTML with one place for the data, kDataMark.
extern const std::string_view kPage;
inline constexpr std::string_view kDataMark = "@RECORDING@";

/// What an operation computes and how its gradient goes, as the code says it. Plain pointers: of
/// texts this long a string_view would be made before main().
struct FormulaRow {
  const char* node;   // "ReluBackward0"; without the number: of every number
  const char* where;  // "kernels/pointwise/rows/unary.h:120"
  const char* code;
};
extern const FormulaRow kFormulas[];
extern const size_t kFormulaCount;

}  // namespace detail
}  // namespace see
}  // namespace ramet
