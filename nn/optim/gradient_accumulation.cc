#include "nn/optim/gradient_accumulation.h"

#include "autograd/ops/pointwise/arithmetic.h"

namespace ramet::optim {

GradientAccumulation::GradientAccumulation(int64_t k, Sync sync) : k_(k), sync_(std::move(sync)) {
  RAMET_CHECK(k >= 1, "GradientAccumulation", "k: got ", k, ", expected at least 1");
}

bool GradientAccumulation::backward(const Tensor& loss) {
  const bool last = done_ + 1 == k_;
  if (RAMET_UNLIKELY(capture::active())) {
    const std::weak_ptr<const void> life = life_.token();
    capture::guard(this, "position in an accumulation",
                   [this, life, at = done_] { return !life.expired() && done_ == at; });
  }
  {
    const struct On {
      const Sync& sync;
      ~On() {
        if (sync) sync(true);
      }
    } afterwards{sync_};
    if (sync_) sync_(last);
    (k_ == 1 ? loss : loss.div(k_)).backward();
  }
  const int64_t before = std::exchange(done_, last ? 0 : done_ + 1);
  if (RAMET_UNLIKELY(capture::active()))
    capture::effect([this, now = done_] { done_ = now; }, [this, before] { done_ = before; });
  return last;
}

}  // namespace ramet::optim
