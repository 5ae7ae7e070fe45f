// The choice between two ways of an operation on a GPU, where only a measurement can decide.
//
// Note [Measured choices]
// Some operations have two ways, and the GPU decides which one is quicker. An example is a
// convolution as an implicit product, or by columns and cuBLASLt. The results differ in rounding,
// so a choice by timing alone would break "the same bits from run to run". Hence an estimate in the
// source decides by default. A program may name a table of measurements (set_measurements(), or
// RAMET_CUDA_MEASUREMENTS=FILE). Then the table's entry for this GPU, operation, dtype and shape
// decides. If there is no entry, the first call measures both ways, which waits for the device, and
// adds the entry to the file. With the same complete table the bits are the same. Several processes
// that begin with an incomplete table may measure differently: let one run first. Calls that are
// captured measure nothing.
#pragma once
#include <cstdint>
#include <string>

#include "runtime/base/dtype.h"
#include "runtime/base/error.h"

namespace ramet {
namespace cuda {

/// The file of measurements that decides from now on. It is read at once, and made if it does not
/// exist. Empty: none. Throws an Error that names the file, and the line that is no measurement.
RAMET_API void set_measurements(const std::string& path);
/// Is there one?
RAMET_API bool has_measurements();
/// Choices measured since the start. Tests check that results are kept.
RAMET_API uint64_t measurements_made();

/// The case for which a way is chosen: `op` on `shape`, which holds all that the time depends on.
struct Measured {
  const char* op;
  int device;  // cuda:k
  ScalarType dtype;
  const int64_t* shape;
  int numbers;
};
/// One way of an operation: queues it on the compute stream. Both have the same results, up to
/// rounding.
struct Way {
  void (*queue)(void* with);
  void* with;
};

/// Should the second way be used? Returns `estimate` if there is no table or it cannot be used.
RAMET_API bool second_is_quicker(const Measured& what, bool estimate, Way first, Way second);

}  // namespace cuda
}  // namespace ramet
