// Which cards the logical devices cuda:0, cuda:1, ... are.
#pragma once
#include <string>
#include <vector>

#include "runtime/base/error.h"

namespace ramet {
namespace cuda {

struct DeviceList {
  std::vector<int> cards;  // card of cuda:k
  std::string why_none;    // where `cards` is empty
};

/// `text` is a list of cards, "0,0,1": cuda:0 and cuda:1 share card 0. Null: each of the `count`
/// cards once, eight at most. "": none. An Error names a number that is no card, and more than
/// eight of them.
RAMET_API std::vector<int> parse_device_list(const char* text, int count);

/// Asked once, from RAMET_CUDA_DEVICES and the driver. An Error for a list that is not understood.
RAMET_API const DeviceList& device_list();
/// Asks again at the next use. Nobody may hold the list.
RAMET_API void forget_device_list();

}  // namespace cuda
}  // namespace ramet
