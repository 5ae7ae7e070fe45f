// Note [Operators of old files]
// A file states the version of its operators, 3 to 10. PyTorch rewrites calls in older files to
// operators of today (its upgraders). Here such a call gets an operator of its own, with the old
// schema and meaning. Where only the schema changed and today's takes the old calls, there is none:
// gelu() without `approximate` (before version 10), full() into `out` (before version 5).
#include <map>
#include <optional>
#include <string>

#include "autograd/ops.h"
#include "autograd/schema/values_internal.h"
#include "nn/script/upgraders_internal.h"

namespace ramet::script {
namespace {

constexpr int64_t kOldest = 3;
// Before version 4 a quotient of integers was an integer: rounded towards zero.
constexpr const char* kTrunc = "trunc";

bool is_real(const Call& a, size_t i) {
  return a[i].isTensor() ? a.tensor(i).is_floating_point() : a[i].isDouble();
}
template <class Other> Tensor divided(const Call& a, const Other& other) {
  return is_real(a, 0) || is_real(a, 1) ? div(a.tensor(0), other) : div(a.tensor(0), other, kTrunc);
}
template <class Other> Tensor divided_in_place(const Call& a, const Other& other) {
  Tensor self = a.tensor(0);
  return is_real(a, 0) || is_real(a, 1) ? self.div_(other) : self.div_(other, kTrunc);
}
Tensor divided_into(const Call& a) {
  return is_real(a, 0) || is_real(a, 1) || is_real(a, 2)
             ? div_out(a.written(2), a.tensor(0), a.tensor(1))
             : div_out(a.written(2), a.tensor(0), a.tensor(1), kTrunc);
}

// Before version 5 an integer or a bool gave a tensor of the default floating-point dtype.
Tensor filled(const Call& a) {
  return full(a.integers(0), a.none(2) ? Scalar(a.number(1).toDouble()) : a.number(1),
              a.options(2));
}

// Before version 8, and 9, the number of steps had a default.
int64_t steps(const Call& a) { return a.may_integer(2).value_or(100); }

struct Old {
  int64_t last;  // version in which it was so
  Line line;
};
const Old kOld[] = {
    {3,
     RAMET_LINE("aten::div.Tensor(Tensor self, Tensor other) -> Tensor", divided(a, a.tensor(1)))},
    {3,
     RAMET_LINE("aten::div.Scalar(Tensor self, Scalar other) -> Tensor", divided(a, a.number(1)))},
    {3, RAMET_LINE("aten::div.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
                   divided_into(a))},
    {3, RAMET_LINE("aten::div_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
                   divided_in_place(a, a.tensor(1)))},
    {3, RAMET_LINE("aten::div_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
                   divided_in_place(a, a.number(1)))},
    {4, RAMET_LINE("aten::full(int[] size, Scalar fill_value, *, " RAMET_OPTIONS ") -> Tensor",
                   filled(a))},
    {7, RAMET_LINE("aten::linspace(Scalar start, Scalar end, int? steps=None, *, " RAMET_OPTIONS
                   ") -> Tensor",
                   linspace(a.number(0), a.number(1), steps(a), a.options(3)))},
    {8, RAMET_LINE("aten::logspace(Scalar start, Scalar end, int? steps=None, float base=10., "
                   "*, " RAMET_OPTIONS ") -> Tensor",
                   logspace(a.number(0), a.number(1), steps(a), a.real(3), a.options(4)))},
};

using Overloads = std::vector<const Operator*>;

// For each version the names that differ from today's.
std::map<int64_t, std::map<std::string, Overloads, std::less<>>> make_table() {
  std::map<int64_t, std::map<std::string, Overloads, std::less<>>> table;
  for (const Old& old : kOld) {
    // It lives as long as the table, which is static.
    const auto* const op = new Operator(parse_schema(old.line.text, old.line.function));
    for (int64_t version = kOldest; version <= old.last; ++version)
      table[version][op->name].push_back(op);
  }
  for (auto& [version, names] : table)
    for (auto& [name, overloads] : names)
      for (const Operator* op : operators_named(name)) overloads.push_back(op);
  return table;
}

}  // namespace

const std::vector<const Operator*>& operators_of_version(std::string_view name, int64_t version) {
  static const auto& table = *new auto(make_table());
  if (const auto names = table.find(version); names != table.end())
    if (const auto old = names->second.find(name); old != names->second.end()) return old->second;
  return operators_named(name);
}

}  // namespace ramet::script
