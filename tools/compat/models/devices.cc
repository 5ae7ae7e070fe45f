// Training over cut batches: on 1, 2 and 4 devices, and on 1, 2 and 4 ranks.
#include <exception>
#include <functional>
#include <thread>

#include "parallel/distributed/ddp/data_parallel.h"
#include "parallel/distributed/group/process_group.h"
#include "tools/compat/models/values.h"
#define XXH_INLINE_ALL
#include "xxhash.h"

namespace ramet::models {

namespace {

constexpr int kShards = 4;
constexpr int kSteps = 3;

std::string digest_of(const nn::Module& net) {
  std::string bytes;
  for (const Tensor& p : net.parameters()) {
    const Tensor t = p.detach().to(Device(kCPU, 0)).contiguous();
    const size_t size = static_cast<size_t>(t.numel() * t.element_size());
    bytes.append(static_cast<const char*>(t.data_ptr()), size);
  }
  char text[17];
  std::snprintf(text, sizeof(text), "%016llx",
                static_cast<unsigned long long>(XXH3_64bits(bytes.data(), bytes.size())));
  return text;
}

// A batch of eight rows, made of the model's input: other numbers, or the same words moved.
Tensor batch_of(const Values& values, int step, Device device) {
  const Tensor x = values.inputs(kFloat)[0].toTensor();
  std::vector<Tensor> parts;
  for (int64_t i = 0; parts.size() * static_cast<size_t>(x.size(0)) < 8; ++i) {
    const int64_t k = 3 * i + step;
    parts.push_back(x.is_floating_point() ? x * (1 + 0.1 * static_cast<double>(k)) : x.roll(k, 1));
  }
  return cat(parts).narrow(0, 0, 8).to(device);
}

// A sum, so that a rank's part of it needs no factor.
Tensor loss_of(const Tensor& y) { return (y - 0.25).square().sum() * 1e-3; }

std::shared_ptr<script::ScriptModule> loaded(const std::string& file, Device device) {
  script::LoadOptions options;
  options.device = device;
  return script::load(file, options);
}

void as_ranks(int n, const std::function<void(int)>& body) {
  std::vector<std::exception_ptr> failed(static_cast<size_t>(n));
  std::vector<std::thread> threads;
  for (int r = 0; r < n; ++r)
    threads.emplace_back([&, r] {
      try {
        body(r);
      } catch (...) { failed[static_cast<size_t>(r)] = std::current_exception(); }
    });
  for (std::thread& t : threads) t.join();
  for (const std::exception_ptr& e : failed)
    if (e) std::rethrow_exception(e);
}

}  // namespace

std::vector<Digest> digests_of_devices(const std::string& file, const Values& values, bool gpus) {
  std::vector<Digest> all;
  for (const int n : {1, 2, 4}) {
    std::vector<Device> devices;
    for (int i = 0; i < n; ++i)
      devices.emplace_back(gpus ? kCUDA : kCPU, static_cast<DeviceIndex>(i));
    const auto net = loaded(file, devices[0]);
    nn::parallel::DataParallelOptions options(devices);
    options.order = nn::parallel::ReduceOrder::tree(kShards);
    nn::parallel::DataParallel<std::shared_ptr<script::ScriptModule>> parallel(net, options);
    optim::SGD sgd(net->parameters(), optim::SGDOptions(values.rate).momentum(0.9));
    for (int step = 0; step < kSteps; ++step) {
      sgd.zero_grad();
      loss_of(parallel(batch_of(values, step, devices[0]))).backward();
      sgd.step();
    }
    all.push_back({std::to_string(n) + (gpus ? " GPUs" : " devices"), digest_of(*net)});
  }
  return all;
}

std::vector<Digest> digests_of_ranks(const std::string& file, const Values& values) {
  std::vector<Digest> all;
  for (const int n : {1, 2, 4}) {
    std::vector<std::string> digests(static_cast<size_t>(n));
    auto groups = distributed::make_local_groups(n);
    as_ranks(n, [&](int rank) {
      const auto group = std::move(groups[static_cast<size_t>(rank)]);
      const auto net = loaded(file, Device(kCPU, 0));
      distributed::DdpOptions options;
      options.order = nn::parallel::ReduceOrder::tree(kShards);
      options.batch = distributed::Batch::whole;
      options.average = distributed::Average::sum;
      distributed::DistributedDataParallel<std::shared_ptr<script::ScriptModule>> ddp(net, group,
                                                                                      options);
      optim::SGD sgd(net->parameters(), optim::SGDOptions(values.rate).momentum(0.9));
      for (int step = 0; step < kSteps; ++step) {
        sgd.zero_grad();
        loss_of(ddp(batch_of(values, step, Device(kCPU, 0)))).backward();
        sgd.step();
      }
      digests[static_cast<size_t>(rank)] = digest_of(*net);
    });
    for (const std::string& d : digests) all.push_back({std::to_string(n) + " ranks", d});
  }
  return all;
}

}  // namespace ramet::models
