// Which of two ways an operation takes on a card, where only a measurement can say.
//
// Note [Measured choices]
// Some operations have two ways, and which one is quicker depends on the card: a convolution as an
// implicit product, or by columns and cuBLASLt. Their results differ in rounding, so a choice by
// timing alone would break "the same bits from run to run". Hence an estimate in the source
// decides, unless the program names a table of measurements (set_measurements(), or
// RAMET_CUDA_MEASUREMENTS=FILE): then what the table has for this card, operation, dtype and shape
// decides; what it has not is measured at the first call, which waits for the device, and added to
// the file. With the same complete table the bits are the same. Where several processes begin with
// an incomplete one they may measure differently: let one run first. Calls that are captured
// measure nothing.
#pragma once
#include <cstdint>
#include <string>

#include "runtime/base/dtype.h"
#include "runtime/base/error.h"

namespace ramet {
namespace cuda {

/// The file of measurements that decides from now on; it is read at once, and made where it is not
/// there. Empty: none. Throws an Error that names the file, and the line that is no measurement.
RAMET_API void set_measurements(const std::string& path);
/// Is there one?
RAMET_API bool has_measurements();
/// Choices measured since the start: tests see that they are kept.
RAMET_API uint64_t measurements_made();

/// What is chosen for: `op` on `shape`, in which all stands that the time depends on.
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

/// Is the second way to be taken? `estimate` where there is no table, or it cannot be asked.
RAMET_API bool second_is_quicker(const Measured& what, bool estimate, Way first, Way second);

}  // namespace cuda
}  // namespace ramet
