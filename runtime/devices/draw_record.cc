#include "runtime/devices/draw_record.h"

#include <utility>

#include "runtime/base/error.h"

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

PhiloxKey DrawRecordGuard::next() {
  RAMET_CHECK(next_ < record_.size(), "checkpoint",
              "run again, the function draws random numbers once more: got ", next_ + 1,
              " draws, expected ", record_.size(), " as in the forward pass");
  return record_[next_++];
}

void DrawRecordGuard::check_end() const {
  RAMET_CHECK(!repeat_ || next_ == record_.size(), "checkpoint",
              "run again, the function draws fewer random numbers: got ", next_,
              " draws, expected ", record_.size(), " as in the forward pass");
}

DrawRecordPause::DrawRecordPause() : before_(std::exchange(t_guard, nullptr)) {}
DrawRecordPause::~DrawRecordPause() { t_guard = before_; }

}  // namespace ramet
