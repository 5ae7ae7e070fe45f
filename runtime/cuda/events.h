// Points in the work of a device: gpu::Event.
#pragma once
#include <memory>
#include <vector>

#include "runtime/cuda/device_state.h"
#include "runtime/devices/gpu.h"

namespace ramet {
namespace cuda {

class RAMET_API CardEvent final : public gpu::Event {
 public:
  explicit CardEvent(int device, bool timing = false);
  void record() override;
  bool query() override;
  void synchronize() override;
  void wait(Stream later) override;
  double elapsed_time(gpu::Event& end) override;
  void wait_on(DeviceState& state, Queue later);
  int device() const { return device_; }
  /// Throws the faults that kernels before it reported. The caller knows that it is reached.
  void raise() const { raise_faults(looks_); }

 private:
  template <class F> void for_each(const F& f) const;

  const int device_;
  const EventHandle event_;
  std::vector<EventHandle> copies_;  // after copies concurrent with the host and the kernels
  Looks looks_;
};

/// An event of cuda:k, not yet recorded.
RAMET_API std::unique_ptr<gpu::Event> make_event(int device, bool timing);

}  // namespace cuda
}  // namespace ramet
