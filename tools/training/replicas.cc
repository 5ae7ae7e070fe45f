#include "tools/training/replicas.h"

#include <algorithm>
#include <cstdlib>

#include "runtime/devices/gpu.h"

namespace ramet::training {

std::vector<Device> parse_devices(const std::string& list, int own_gpu) {
  std::vector<Device> devices;
  for (size_t at = 0; at <= list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    const std::string one = list.substr(at, end - at);
    RAMET_CHECK(!one.empty(), "train", "--devices: got \"", list,
                "\", expected names separated by commas, such as cpu:0,cpu:1");
    try {
      const Device named(one);
      RAMET_CHECK(!named.is_cuda() || gpu::linked, "device", "device ", one,
                  " does not exist: this program is linked without CUDA support; expected what "
                  "./tools/train builds for such --devices (//tools/training:train_gpus)");
      const bool own = named.is_cuda() && !named.has_index() && own_gpu >= 0;
      devices.push_back(own ? resolve(Device(kCUDA, static_cast<DeviceIndex>(own_gpu)))
                            : resolve(named));
    } catch (const Error& e) { fail("train", "--devices: got \"", list, "\": ", e.what()); }
    at = end + 1;
  }
  return devices;
}

parallel::ReduceOrder parse_order(const std::string& text) {
  if (text == "fixed") return parallel::ReduceOrder::fixed();
  if (text == "any") return parallel::ReduceOrder::any();
  if (text.compare(0, 5, "tree:") == 0) {
    char* end = nullptr;
    const long leaves = std::strtol(text.c_str() + 5, &end, 10);
    if (end != text.c_str() + 5 && *end == 0 && leaves >= 1 && leaves <= parallel::kMaxLeaves &&
        (leaves & (leaves - 1)) == 0) {
      return parallel::ReduceOrder::tree(static_cast<int>(leaves));
    }
  }
  fail("train", "--reduce: got \"", text,
       "\", expected fixed, any, or tree:V with V = 1, 2, 4, 8 or 16");
}

std::vector<int64_t> shares_of(int64_t rows, size_t devices, int processes,
                               const std::string& reduce) {
  const parallel::ReduceOrder order = parse_order(reduce);
  const auto all = static_cast<size_t>(std::max(1, processes)) * devices,
             replicas = order.is_tree() ? static_cast<size_t>(order.leaves()) : all;
  RAMET_CHECK(processes == 0 || rows >= static_cast<int64_t>(replicas), "train",
              "--batch: got a batch of ", rows, ", expected at least one for each of ", replicas,
              " replicas");
  const bool even = order.is_tree() || processes > 0;
  return (even ? parallel::Split::balanced() : parallel::Split::chunk())
      .cut("train", rows, replicas);
}

std::unique_ptr<Replicas> make_replicas(const nn::Sequential& model,
                                        const std::vector<Device>& devices,
                                        const std::string& reduce) {
  nn::parallel::DataParallelOptions options(devices);
  options.order = parse_order(reduce);
  auto replicas = std::make_unique<Replicas>(model, options);
  // made now rather than at the first step
  if (devices.size() > 1 || options.order.is_tree()) replicas->replicas();
  return replicas;
}

}  // namespace ramet::training
