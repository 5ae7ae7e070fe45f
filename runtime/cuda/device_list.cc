#include "runtime/cuda/device_list.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>

#include "runtime/base/device.h"
#include "runtime/cuda/check.h"

namespace ramet {
namespace cuda {

std::vector<int> parse_device_list(const char* text, int count) {
  constexpr const char* kName = "RAMET_CUDA_DEVICES";
  std::vector<int> cards;
  if (!text) {
    for (int i = 0; i < std::min(count, kMaxDevicesPerType); ++i) cards.push_back(i);
    return cards;
  }
  const std::string all = text;
  for (size_t at = 0; !all.empty() && at <= all.size();) {
    const size_t end = std::min(all.find(',', at), all.size());
    const std::string part = all.substr(at, end - at);
    const bool number = !part.empty() && part.size() <= 3 &&
                        part.find_first_not_of("0123456789") == std::string::npos;
    RAMET_CHECK(number, kName, "got '", all, "', expected numbers of cards with commas between");
    const int card = std::stoi(part);
    RAMET_CHECK(card < count, kName, "got '", all, "', but there is no card ", card, ": ", count,
                count == 1 ? " card" : " cards", " found");
    cards.push_back(card);
    at = end + 1;
  }
  RAMET_CHECK(cards.size() <= static_cast<size_t>(kMaxDevicesPerType), kName, "got ", cards.size(),
              " devices, expected at most ", kMaxDevicesPerType);
  return cards;
}

namespace {

DeviceList found_devices() {
  DeviceList l;
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code != cudaSuccess) {
    (void)cudaGetLastError();  // clears the error, so that no other code gets it
    count = 0;
    // If there is no driver, the runtime reports that the driver is too old.
    int driver = 0;
    const bool none = cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0;
    l.why_none = std::string(none ? "no NVIDIA driver was found" : cudaGetErrorString(code)) +
                 " (" + cudaGetErrorName(code) + ")";
  }
  const char* named = std::getenv("RAMET_CUDA_DEVICES");
  if (code != cudaSuccess && named) {
    // The fault is the driver's, unless the list itself is invalid.
    (void)parse_device_list(named, 1000);
    return l;
  }
  l.cards = parse_device_list(named, count);
  if (l.cards.empty() && l.why_none.empty())
    l.why_none = count ? "RAMET_CUDA_DEVICES names none" : "no card found";
  return l;
}

std::mutex list_mutex;
std::atomic<const DeviceList*> list;

}  // namespace

const DeviceList& device_list() {
  const DeviceList* found = list.load(std::memory_order_acquire);
  if (RAMET_LIKELY(found != nullptr)) return *found;
  std::lock_guard lock(list_mutex);
  found = list.load(std::memory_order_relaxed);
  if (!found) list.store(found = new DeviceList(found_devices()), std::memory_order_release);
  return *found;
}

void forget_device_list() {
  std::lock_guard lock(list_mutex);
  delete list.exchange(nullptr);
}

}  // namespace cuda
}  // namespace ramet
