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

/// The key of the random numbers that a batch draws: its epoch's seed and the number of the batch.
/// A batch draws the same numbers on every worker, so augmentation does not depend on the number of
/// workers.
struct BatchRandom {
  uint64_t seed = 0, batch = 0;
};
/// Runs `work` with the default generators keyed by `random`.
RAMET_API void with_batch_random(const BatchRandom& random, const std::function<void()>& work);
/// A seed for an epoch, from the current cpu device's generator (one operation of it).
RAMET_API uint64_t draw_epoch_seed();
/// with_batch_random() for a loader without workers. Where the generator is of kind kMersenne, work
/// draws LibTorch's numbers in the order of the program.
RAMET_API void with_program_random(const BatchRandom& random, const std::function<void()>& work);

class RAMET_API WorkerPool {
 public:
  using Work = std::function<std::shared_ptr<void>(void* request)>;
  struct Result {
    std::shared_ptr<void> batch;
    std::exception_ptr exception;
  };

  /// One thread for each of `work`. `ordered`: results come in the order of their requests.
  WorkerPool(std::vector<Work> work, bool ordered);
  /// Drops queued requests and waits for running ones. A child of fork() has none of the threads:
  /// there the destructor does neither, and every later call is an Error.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// The thread-local state of the caller (grad mode and the like) goes along.
  void push(std::shared_ptr<void> request, BatchRandom random);
  /// The number of requests still without a result taken by pop().
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
