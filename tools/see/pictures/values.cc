#include "tools/see/pictures/values.h"

#include <algorithm>
#include <cmath>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "runtime/capture/capture.h"
#include "tools/see/pictures/axis.h"

namespace ramet::see {

void check_shown(const char* op, const Tensor& x, int64_t lowest, int64_t highest) {
  RAMET_CHECK(x.defined(), op, "x: got an undefined tensor, expected numbers");
  RAMET_CHECK(x.dim() >= lowest && x.dim() <= highest, op, "x: got ", describe(x), ", expected ",
              lowest, lowest == highest ? "" : " to ",
              lowest == highest ? "" : std::to_string(highest).c_str(),
              highest == 1 ? " dimension" : " dimensions");
  RAMET_CHECK(x.numel() > 0, op, "x: got ", describe(x), ", expected at least one element");
  capture::refuse(op, "the host reads values");
}

void each_value(const Tensor& x, const std::function<void(const double*, int64_t)>& f) {
  constexpr int64_t kPiece = 1 << 16;
  const NoGradGuard off;
  const Tensor flat = x.shallow().to(Device(kCPU, 0)).contiguous().view({-1});
  for (int64_t at = 0; at < flat.numel(); at += kPiece) {
    const Tensor piece =
        flat.slice(0, at, std::min(at + kPiece, flat.numel())).to(kDouble).contiguous();
    f(piece.data_ptr<double>(), piece.numel());
  }
}

std::vector<double> vector_of(const char* op, const char* name, const Tensor& x) {
  RAMET_CHECK(x.defined(), op, name, ": got an undefined tensor, expected numbers");
  RAMET_CHECK(x.dim() == 1, op, name, ": got ", describe(x), ", expected 1 dimension");
  std::vector<double> values;
  if (x.numel() == 0) return values;
  capture::refuse(op, "the host reads values");
  values.reserve(static_cast<size_t>(x.numel()));
  each_value(x, [&](const double* v, int64_t n) { values.insert(values.end(), v, v + n); });
  return values;
}

std::string described(const Tensor& x) { return describe(x); }
bool is_whole(const Tensor& x) { return !is_floating(x.scalar_type()); }

Facts facts_of(const Tensor& x) {
  Facts facts;
  int64_t n = 0;
  double squares = 0;  // of distances from the mean (Welford 1962)
  each_value(x, [&](const double* v, int64_t count) {
    facts.count += count;
    for (int64_t i = 0; i < count; ++i) {
      if (!std::isfinite(v[i])) {
        ++(std::isnan(v[i]) ? facts.nans : facts.infinities);
        continue;
      }
      facts.zeros += v[i] == 0;
      facts.min = n == 0 ? v[i] : std::min(facts.min, v[i]);
      facts.max = n == 0 ? v[i] : std::max(facts.max, v[i]);
      const double away = v[i] - facts.mean;
      facts.mean += away / static_cast<double>(++n);
      squares += away * (v[i] - facts.mean);
    }
  });
  if (n > 0) facts.deviation = std::sqrt(squares / static_cast<double>(n));
  return facts;
}

std::string text_of(const Facts& facts) {
  std::string text = "no finite number";
  if (facts.finite())
    text = "min " + short_number(facts.min) + ", mean " + short_number(facts.mean) + ", max " +
           short_number(facts.max);
  if (facts.nans > 0) text += ", " + std::to_string(facts.nans) + " NaN";
  if (facts.infinities > 0) text += ", " + std::to_string(facts.infinities) + " infinite";
  return text;
}

Cells cells_of(const Tensor& matrix, int64_t most_rows, int64_t most_columns) {
  const int64_t rows = matrix.size(0), columns = matrix.size(1);
  Cells cells;
  cells.high = (rows + most_rows - 1) / most_rows;
  cells.wide = (columns + most_columns - 1) / most_columns;
  cells.rows = (rows + cells.high - 1) / cells.high;
  cells.columns = (columns + cells.wide - 1) / cells.wide;
  cells.values.assign(static_cast<size_t>(cells.rows * cells.columns), 0);
  int64_t at = 0;
  each_value(matrix, [&](const double* v, int64_t n) {
    for (int64_t i = 0; i < n; ++i, ++at) {
      const int64_t row = at / columns / cells.high, column = at % columns / cells.wide;
      const int64_t high = std::min(cells.high, rows - row * cells.high),
                    wide = std::min(cells.wide, columns - column * cells.wide);
      // Divided first, so that no sum overflows.
      cells.values[static_cast<size_t>(row * cells.columns + column)] +=
          v[i] / static_cast<double>(high * wide);
    }
  });
  return cells;
}

}  // namespace ramet::see
