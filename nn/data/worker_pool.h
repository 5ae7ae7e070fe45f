// The threads of a DataLoader, without types: requests go in, batches or exceptions come out.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/base/error.h"

namespace ramet {
namespace data {
namespace detail {

/// What keys the random numbers that a batch draws: of one epoch, the number of the batch. Drawn
/// with it, the same batch gets the same numbers whoever makes it, so augmentation does not depend
/// on the number of workers.
struct BatchRandom {
  uint64_t seed = 0, batch = 0;
};
/// Runs `work` with the default generators keyed by `random`.
RAMET_API void with_batch_random(const BatchRandom& random, const std::function<void()>& work);
/// A seed for an epoch, from the current cpu device's generator (one operation of it).
RAMET_API uint64_t draw_epoch_seed();

class RAMET_API WorkerPool {
 public:
  using Work = std::function<std::shared_ptr<void>(void* request)>;
  struct Result {
    std::shared_ptr<void> batch;
    std::exception_ptr exception;
  };

  /// One thread for each of `work`. `ordered`: results come in the order of their requests.
  WorkerPool(std::vector<Work> work, bool ordered);
  /// Drops what is queued and waits for what runs; in a child of fork(), which has none of the
  /// threads, it does neither, and all that follows is an Error there.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// The thread-local state of the caller (grad mode and the like) goes along.
  void push(std::shared_ptr<void> request, BatchRandom random);
  /// Requests whose result was not taken yet.
  size_t in_flight() const;
  /// The next result. REQUIRES in_flight() > 0. An Error after `timeout`; the result may still be
  /// taken later.
  Result pop(std::optional<std::chrono::milliseconds> timeout);
  /// Forgets everything in flight, and waits until no thread works any more: the caller may change
  /// what they share.
  void drain();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace detail
}  // namespace data
}  // namespace ramet
