// The GPUs that the logical devices cuda:0, cuda:1, ... use.
#pragma once
#include <string>
#include <vector>

#include "runtime/base/error.h"

namespace ramet {
namespace cuda {

struct DeviceList {
  std::vector<int> cards;  // GPU of cuda:k
  std::string why_none;    // where `cards` is empty
};

/// `text` is a list of GPUs, "0,0,1": cuda:0 and cuda:1 share GPU 0. Null: each of the `count` GPUs
/// once, eight at most. "": none. An Error names a number that is no GPU, and more than eight of
/// them.
RAMET_API std::vector<int> parse_device_list(const char* text, int count);

/// Made once, from RAMET_CUDA_DEVICES and the driver. An Error for an invalid list.
RAMET_API const DeviceList& device_list();
/// The next use makes it again. No caller may hold a reference to the list.
RAMET_API void forget_device_list();

}  // namespace cuda
}  // namespace ramet
