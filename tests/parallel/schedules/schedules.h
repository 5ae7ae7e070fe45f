// Many schedules: the same work again and again, while random pauses change which thread comes
// first. The pauses are at kernel calls, in forwards, in hooks and in the producers of pending
// tensors. The results must not change.
#pragma once
#include <functional>
#include <random>

namespace ramet {
namespace testing {

/// round(random) with generators seeded RAMET_SEED, RAMET_SEED + 1, ...: RAMET_ROUNDS of them, each
/// of them printed where it fails. Under ThreadSanitizer, where everything takes ten times as long,
/// an eighth of `default_rounds`.
void many_schedules(int default_rounds, const std::function<void(std::mt19937&)>& round);

/// Training of data-parallel replicas. Parameters, buffers and gradients are the same, bit for bit,
/// under one order of sums; under tree(4) for any number of devices and threads.
void check_training(std::mt19937& random);
/// Replicas fail somewhere in forward or backward. The error is the same every time, and the
/// training afterwards is the same as without the failure.
void check_errors(std::mt19937& random);
/// Chains of movements after pending operands.
void check_movements(std::mt19937& random);
/// Loaders with any number of workers, left early, resumed, with a sample that cannot be read: the
/// same batches and errors as without workers.
void check_loaders(std::mt19937& random);

}  // namespace testing
}  // namespace ramet
