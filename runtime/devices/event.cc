#include <utility>

#include "runtime/capture/capture.h"
#include "runtime/devices/devices_internal.h"
#include "runtime/devices/gpu.h"
#include "runtime/observe/observer.h"

namespace ramet {
namespace {
double milliseconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(now).count();
}
}  // namespace

void Event::record(Device device) {
  device = resolve(device);
  std::shared_ptr<gpu::Event> point;
  if (!device.is_cpu()) {
    capture::refuse("Event", "an event of a GPU");
    point = gpu::required("Event", device).event(device.index(), timing_);
  }
  device_ = device;
  host_time_ = timing_ && !point ? std::make_shared<double>() : nullptr;
  const int d = device.ordinal();
  std::vector<uint64_t> parked;  // tasks posted earlier that are not in the queue yet
  bool idle;
  {
    auto& p = devices::workers();
    std::lock_guard lock(p.mutex);
    for (auto& t : p.parked)
      if (t.device == d) parked.push_back(static_cast<uint64_t>(t.device) << 56 | t.task.number);
    const auto& w = p.of[d];
    idle = w.posted.load() == w.finished.load() ||
           (devices::t_worker == d && w.queue.empty() && parked.empty());
  }
  if (point && idle) {  // all work of the device is in its stream
    point->record();
    ticket_ = 0;
  } else {
    ticket_ = devices::post_after(device, std::move(parked), [point, time = host_time_] {
      if (time) *time = milliseconds();
      if (!point) return;
      try {
        point->record();
      } catch (const Error&) {}  // a lost device; a wait for the event reports the same
    });
  }
  on_gpu_ = std::move(point);
}

bool Event::query() const {
  return (ticket_ == 0 || devices::done(ticket_)) && (!on_gpu_ || on_gpu_->query());
}

void Event::synchronize() const {
  if (ticket_) devices::wait(ticket_);
  if (!on_gpu_) return;
  const RecordWait wait("synchronize", device_);
  on_gpu_->synchronize();
}

void Event::wait(Device later) const {
  later = resolve(later);
  if (!on_gpu_ || later.is_cpu()) return synchronize();
  capture::refuse("Event", "an event of a GPU");
  if (ticket_) devices::wait(ticket_);
  on_gpu_->wait({later, gpu::kCompute});
}

double Event::elapsed_time(const Event& end) const {
  constexpr const char* op = "Event.elapsed_time";
  for (const Event* e : {this, &end}) {
    const char* which = e == this ? "the first" : "the second";
    RAMET_CHECK(e->timing_, op, which, " event has no times, expected Event(true)");
    RAMET_CHECK(e->host_time_ || e->on_gpu_, op, which, " event was never recorded");
    RAMET_CHECK(e->query(), op, which, " event is not done yet: synchronize() waits for it");
  }
  RAMET_CHECK(device_ == end.device_, op, "got events of ", device_, " and ", end.device_,
              ", expected one device");
  return on_gpu_ ? on_gpu_->elapsed_time(*end.on_gpu_) : *end.host_time_ - *host_time_;
}

}  // namespace ramet
