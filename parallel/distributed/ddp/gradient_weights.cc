// What a leaf's gradient contains before it is reduced, and the weight of this rank's part.
#include <algorithm>
#include <cmath>

#include "parallel/distributed/ddp/gradient_reducer_internal.h"

namespace ramet::distributed::detail {

void GradientReducer::set_rows(size_t unit, std::optional<int64_t> rows) {
  RAMET_CHECK(rows || options_.average != Average::weighted, "ddp",
              "average: weighted by the rows of each rank's batch, but got no argument that has "
              "rows");
  const std::lock_guard lock(mutex_);
  units_[unit].forward = {unit, ++forwards_, static_cast<double>(rows.value_or(1))};
}
GradientReducer::Forward GradientReducer::last_forward(size_t unit) const {
  const std::lock_guard lock(mutex_);
  return units_[unit].forward;
}

void GradientReducer::on_backward_through(autograd::GraphTask& task, const Forward& forward) {
  const std::lock_guard lock(mutex_);
  begin_backward(task);
  Unit& unit = units_[forward.unit];
  if (std::ranges::find(unit.in, forward.number) != unit.in.end()) return;
  // An inner backward goes through the module again, with the same rows.
  if (&task != task_ && !unit.in.empty()) return;
  RAMET_CHECK(
      !is_weighted() || next_ == 0, "ddp",
      "average: weighted: a backward inside a backward goes through a forward of the module "
      "when gradients without its rows are being reduced already");
  unit.in.push_back(forward.number);
  unit.rows += forward.rows;
}

bool GradientReducer::is_weighted() const { return options_.average == Average::weighted; }

// Modules that share the reducer process parts of one batch.
double GradientReducer::rows() const {
  double through = 0, last = 0;
  uint64_t number = 0;
  bool any = false;
  for (const Unit& unit : units_) {
    if (!unit.in.empty()) any = true, through = std::max(through, unit.rows);
    if (unit.forward.number >= number) number = unit.forward.number, last = unit.forward.rows;
  }
  return any ? through : last;  // a backward from within a module goes through none of its results
}

// A backward without synchronisation has reached the leaf.
void GradientReducer::note_unsynchronised(Leaf& leaf) const {
  const std::lock_guard its(leaf.sink->mutex);
  uint8_t& mark = leaf.sink->mark;
  const double now = rows();
  if (!leaf.sink->grad.defined() || mark == autograd::AccumulateGrad::kZeroed)
    mark = collected, leaf.rows = now;
  else if (mark == common) mark = both, leaf.rows = now;
  else if (leaf.rows != now) leaf.rows = -1;
}

// Gradients that only this rank has collected are about to be reduced with the rest.
void GradientReducer::check_unsynchronised(const Leaf& leaf) const {
  const uint8_t mark = leaf.sink->mark;
  RAMET_CHECK(
      mark != both || options_.average != Average::sum, "ddp", "average: sum: '", leaf.name,
      "' has the sum over the ranks of one backward and this rank's gradient of a later one "
      "without synchronisation, which cannot be told apart any more: expected zero_grad() "
      "between them");
  RAMET_CHECK(!is_weighted() || (mark != collected && mark != both) || leaf.rows == rows(), "ddp",
              "average: weighted: '", leaf.name,
              "' has gradients of backwards without synchronisation, of ",
              leaf.rows < 0 ? "different numbers of" : std::to_string(std::llround(leaf.rows)),
              " rows, and this backward is of ", rows(), " rows: expected the same in each");
}

// A mean divides before the sum, after it, or by the square root both times.
double GradientReducer::divisor_before() const {
  if (options_.average != Average::mean || options_.division == Division::post) return 1;
  const double ranks = group_->size();
  return options_.division == Division::pre ? ranks : std::sqrt(ranks);
}
double GradientReducer::divisor_after(const MemberReport& report) const {
  if (stages_.computes()) return 1;  // the communication hooks divide
  double rows = 0, active = 0;
  for (double n : report.notes)
    if (n >= 0) rows += n, active += 1;
  if (is_weighted()) return rows > 0 ? rows : 1;
  if (options_.average == Average::sum) return 1;
  if (options_.division == Division::post && !by_active_) return 1;  // ReduceOp::average did it
  return (by_active_ ? active : group_->size()) / divisor_before();
}

}  // namespace ramet::distributed::detail
