// Random sizes: every integer argument of a public function is drawn from ordinary numbers and from
// those at which arithmetic wraps.
//
// A row is a function: it draws arguments, says which shape is right (a formula of its own, in 128
// bits), and calls. The call may give that shape. It may throw an Error if the formula says that
// the arguments are wrong, or if the result exceeds the memory limit of 256 MiB. It may do nothing
// else: no exception of another type, no crash, no draw of more than 2 seconds of processor time.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "autograd/tensor.h"
#include "tests/fuzz.h"

namespace ramet {
namespace fuzz {

using Wide = __int128;
using WideShape = std::vector<Wide>;
/// The right shapes, one for each tensor that a call gives; nothing: the arguments are wrong.
using Right = std::optional<std::vector<WideShape>>;

class SizeDraw {
 public:
  explicit SizeDraw(Tape& tape) : tape_(tape) {}
  Tape& tape() { return tape_; }

  /// Any number, from one that is usual in a shape to INT64_MIN.
  int64_t number(const char* name);
  /// Mostly one from low to high.
  int64_t mostly(const char* name, int64_t low, int64_t high);
  /// Mostly a dimension of a tensor of that rank.
  int64_t dim(const char* name, int64_t rank);
  std::vector<int64_t> numbers(const char* name, int64_t least, int64_t most);
  std::vector<int64_t> dims(const char* name, int64_t rank);
  bool flag(const char* name);
  /// float32 of extents 0 to 4 (from `smallest` on), not always contiguous.
  Tensor tensor(int64_t least_rank = 0, int64_t most_rank = 4, int64_t smallest = 0);
  /// One that may be expanded to more elements than a loop could visit.
  Tensor view_source(int64_t least_rank = 0, int64_t most_rank = 4);
  /// Adds a value to the text of the draw.
  template <class T> const T& note(const char* name, const T& value) {
    told_ += detail::join(told_.empty() ? "" : ", ", name, " = ", value);
    return value;
  }
  const std::string& told() const { return told_; }
  /// The call gave the right shapes; false: it was refused, as it should be.
  bool compared() const { return compared_; }

  /// From here on an Error is allowed as well as the shape.
  void may_refuse() { may_refuse_ = true; }
  /// call() gives a tensor or a list of them. `cost`: bytes that it takes, as multiples of its
  /// result as float64.
  template <class F> void expect(const Right& right, const F& call, double cost = 1) {
    check(right, cost, [&] { return list_of(call()); });
  }
  /// The same for views, which take no memory.
  template <class F> void expect_view(const Right& right, const F& call) { expect(right, call, 0); }

 private:
  static std::vector<Tensor> list_of(Tensor t) { return {std::move(t)}; }
  static std::vector<Tensor> list_of(std::vector<Tensor> list) { return list; }
  static std::vector<Tensor> list_of(std::tuple<Tensor, Tensor> t) {
    return {std::get<0>(t), std::get<1>(t)};
  }
  void check(const Right& right, double cost, const std::function<std::vector<Tensor>()>& call);

  Tape& tape_;
  std::string told_;
  bool compared_ = false, may_refuse_ = false;
};

struct SizeRow {
  const char* name;
  std::function<void(SizeDraw&)> run;
};

/// Draws of random rows, each under the memory limit and the time limit. If there are enough draws,
/// each row must have compared shapes at least once.
void check_sizes(const std::vector<SizeRow>& rows, int default_rounds);

// ---- what formulas share ------------------------------------------------------------------------

WideShape wide(IntArrayRef sizes);
inline Right one(WideShape shape) { return std::vector<WideShape>{std::move(shape)}; }
/// As indices of a shape: nothing outside [-rank, rank), where rank 0 counts as 1.
std::optional<size_t> place_of(int64_t dim, int64_t rank);
/// 0 or more each, and not too many elements for an int64, zeros left out.
bool possible(const WideShape& shape);
/// Rounded up and down, b > 0.
Wide above(Wide a, Wide b);
Wide below(Wide a, Wide b);

}  // namespace fuzz
}  // namespace ramet
