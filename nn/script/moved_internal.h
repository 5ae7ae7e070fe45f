// Devices and tensors of the code, for modules that were moved after load().
//
// Note [Moved modules]
// A text names devices, and has tensors that tracing found: constants of its programs, on the
// device of load(). A ScriptModule may be on another device: after to(), or as a replica. Then
// constants on the device of load() mean the device where the module is, and so do attributes.
// Programs are shared by all replicas and never change. So a frame reads its constants from a copy
// for that device. Where no module was moved this costs one comparison a call of a function.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "autograd/ivalue.h"

namespace ramet::script {

/// The device of load(), and the one where the module is.
struct Move {
  Device from, to;
};

/// Does a device of the code or of an attribute mean the device of load()? "cuda" means a GPU of
/// any index.
bool means(Device device, Device home);

/// Calls from outside that begin while this exists, in this thread, are of a moved module.
class MoveGuard {
 public:
  explicit MoveGuard(std::optional<Move> move);
  ~MoveGuard();
  MoveGuard(const MoveGuard&) = delete;
  MoveGuard& operator=(const MoveGuard&) = delete;
  /// Null where the module was not moved.
  static const Move* current();

 private:
  const std::optional<Move> move_;
  const Move* const before_;
};

/// A program's constants on other devices. Several threads may ask.
class MovedConstants {
 public:
  /// Null where they are the same there.
  std::shared_ptr<const std::vector<IValue>> get(const std::vector<IValue>& constants,
                                                 const Move& move) const;

 private:
  mutable std::mutex mutex_;
  mutable std::map<std::pair<int, int>, std::shared_ptr<const std::vector<IValue>>> made_;
};

}  // namespace ramet::script
