// Random numbers that are drawn a second time: a record of the keys that generators gave a thread.
#pragma once
#include <vector>

#include "runtime/devices/generator.h"

namespace ramet {

/// What an operation drew: Philox numbers by a key, or LibTorch's from an engine in this state.
struct DrawnNumbers {
  PhiloxKey key;
  std::shared_ptr<const Mersenne> engine;
};
/// What a thread drew, in order. See Note [Random numbers] in generator.h.
using DrawRecord = std::vector<DrawnNumbers>;

/// While it lives, draws of this thread from any generator are added to `record`. With `repeat`
/// they get the record's keys instead, in order: no generator advances, and one draw more is an
/// Error. Guards nest. What replicas draw inside a region of random numbers follows from the
/// region's begin, which is a draw.
class RAMET_API DrawRecordGuard {
 public:
  DrawRecordGuard(DrawRecord& record, bool repeat);
  ~DrawRecordGuard();
  DrawRecordGuard(const DrawRecordGuard&) = delete;
  DrawRecordGuard& operator=(const DrawRecordGuard&) = delete;

  /// Repeating: an Error where fewer keys were drawn than the record has.
  void check_end() const;
  /// Does this thread repeat what it has drawn?
  static bool repeats();
  /// The key of a draw for which fresh() asks a generator.
  template <class Fresh> static PhiloxKey draw(const Fresh& fresh) {
    return draw_in(innermost(), fresh);
  }
  /// A draw from `engine`: the state to draw from instead, where it is repeated; else null.
  static std::shared_ptr<const Mersenne> draw_from(const Mersenne& engine) {
    return draw_from(innermost(), engine);
  }

 private:
  friend class DrawRecordPause;
  static DrawRecordGuard* innermost();
  template <class Fresh> static PhiloxKey draw_in(DrawRecordGuard* guard, const Fresh& fresh) {
    if (RAMET_LIKELY(!guard)) return fresh();
    if (guard->repeat_) return guard->next(false).key;
    const PhiloxKey key = draw_in(guard->outer_, fresh);
    guard->record_.push_back({key, nullptr});
    return key;
  }
  static std::shared_ptr<const Mersenne> draw_from(DrawRecordGuard* guard, const Mersenne& engine);
  const DrawnNumbers& next(bool from_engine);

  DrawRecord& record_;
  const bool repeat_;
  size_t next_ = 0;
  DrawRecordGuard* const outer_;
};

/// While it lives, this thread's draws are neither recorded nor repeated. They belong to something
/// that a second run does not do again, such as making replicas.
class RAMET_API DrawRecordPause {
 public:
  DrawRecordPause();
  ~DrawRecordPause();
  DrawRecordPause(const DrawRecordPause&) = delete;
  DrawRecordPause& operator=(const DrawRecordPause&) = delete;

 private:
  DrawRecordGuard* const before_;
};

}  // namespace ramet
