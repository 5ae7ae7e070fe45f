#include "autograd/grad_mode.h"
#include "autograd/ops/make/copy.h"
#include "nn/script/moved_internal.h"
#include "runtime/capture/capture.h"

namespace ramet::script {
namespace {

// A pointer, since memory of threads is short where a library is loaded late.
thread_local const Move* t_move = nullptr;

Device definite(Device device) {
  return device.is_cpu() && !device.has_index() ? Device(kCPU, 0) : device;
}

// The value on the other device. `tensors` becomes true where a tensor was copied.
IValue moved(const IValue& value, const Move& move, bool& tensors) {
  if (value.isDevice()) return means(value.toDevice(), move.from) ? IValue(move.to) : value;
  if (value.isTensor()) {
    const Tensor& t = value.toTensor();
    if (!t.defined() || t.device() != move.from) return value;
    tensors = true;
    const NoGradGuard off;
    return t.to(move.to);
  }
  if (value.isTensorList()) {
    std::vector<Tensor> made;
    for (const Tensor& t : value.toTensorVector())
      made.push_back(moved(t, move, tensors).toTensor());
    return made;
  }
  return value;
}

}  // namespace

bool means(Device device, Device home) {
  return device == home || (!device.has_index() && device.type() == home.type());
}

MoveGuard::MoveGuard(std::optional<Move> move)
    : move_(std::move(move)), before_(std::exchange(t_move, move_ ? &*move_ : nullptr)) {}
MoveGuard::~MoveGuard() { t_move = before_; }
const Move* MoveGuard::current() { return t_move; }

std::shared_ptr<const std::vector<IValue>> MovedConstants::get(const std::vector<IValue>& constants,
                                                               const Move& move) const {
  const std::pair<int, int> key(definite(move.from).ordinal(), definite(move.to).ordinal());
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const auto at = made_.find(key); at != made_.end()) return at->second;
  }
  // Without the lock: a copy may wait for a GPU. Other threads may get the copies before they are
  // finished: their work for the device is queued later, into the same stream.
  bool tensors = false, any = false;
  auto made = std::make_shared<std::vector<IValue>>();
  for (const IValue& value : constants) {
    made->push_back(moved(value, move, tensors));
    any = any || value.isDevice() || value.isTensor() || value.isTensorList();
  }
  if (!any) made = nullptr;
  if (tensors && capture::active()) return made;  // the copies belong to the capture
  const std::lock_guard<std::mutex> lock(mutex_);
  return made_.emplace(key, std::move(made)).first->second;
}

}  // namespace ramet::script
