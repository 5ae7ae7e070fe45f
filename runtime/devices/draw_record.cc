#include "runtime/devices/draw_record.h"

#include <utility>

#include "runtime/base/error.h"
#include "runtime/devices/mersenne.h"

namespace ramet {

namespace {
__thread DrawRecordGuard* t_guard = nullptr;
}

DrawRecordGuard::DrawRecordGuard(DrawRecord& record, bool repeat)
    : record_(record), repeat_(repeat), outer_(t_guard) {
  t_guard = this;
}
DrawRecordGuard::~DrawRecordGuard() { t_guard = outer_; }

DrawRecordGuard* DrawRecordGuard::innermost() { return t_guard; }

bool DrawRecordGuard::repeats() {
  for (const DrawRecordGuard* g = t_guard; g; g = g->outer_)
    if (g->repeat_) return true;
  return false;
}

std::shared_ptr<const Mersenne> DrawRecordGuard::draw_from(DrawRecordGuard* guard,
                                                           const Mersenne& engine) {
  if (!guard) return nullptr;
  if (guard->repeat_) return guard->next(true).engine;
  std::shared_ptr<const Mersenne> again = draw_from(guard->outer_, engine);
  guard->record_.push_back({{}, again ? again : std::make_shared<const Mersenne>(engine)});
  return again;
}

const DrawnNumbers& DrawRecordGuard::next(bool from_engine) {
  RAMET_CHECK(next_ < record_.size(), "checkpoint",
              "run again, the function draws random numbers once more: got ", next_ + 1,
              " draws, expected ", record_.size(), " as in the forward pass");
  const DrawnNumbers& drawn = record_[next_++];
  RAMET_CHECK((drawn.engine != nullptr) == from_engine, "checkpoint",
              "run again, the function draws from a generator of another kind: got ",
              from_engine ? "kMersenne" : "kPhilox", " at draw ", next_,
              ", expected that of the forward pass");
  return drawn;
}

void DrawRecordGuard::check_end() const {
  RAMET_CHECK(!repeat_ || next_ == record_.size(), "checkpoint",
              "run again, the function draws fewer random numbers: got ", next_,
              " draws, expected ", record_.size(), " as in the forward pass");
}

DrawRecordPause::DrawRecordPause() : before_(std::exchange(t_guard, nullptr)) {}
DrawRecordPause::~DrawRecordPause() { t_guard = before_; }

}  // namespace ramet
