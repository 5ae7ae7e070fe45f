#include "nn/module/checkpoint.h"

#include "runtime/base/device.h"
#include "runtime/devices/generator.h"

namespace ramet {

namespace {
constexpr const char* kGenerators = "generators";

}  // namespace

std::vector<std::pair<std::string, Device>> Checkpoint::generators() const {
  std::vector<std::pair<std::string, Device>> all;
  const auto add = [&](const char* kind, Device device, size_t number) {
    all.emplace_back(kind + std::to_string(number), device);
  };
  for (int i = 0; i < cpu_device_count(); ++i)
    add("cpu_", Device(kCPU, static_cast<DeviceIndex>(i)), static_cast<size_t>(i));
  if (devices_) {
    const std::vector<Device> listed = devices_();
    for (size_t i = 0; i < listed.size(); ++i) add("place_", listed[i], i);
  } else {
    for (DeviceIndex i = 0; i < cuda::device_count(); ++i)
      add("cuda_", Device(kCUDA, i), static_cast<size_t>(i));
  }
  return all;
}

void Checkpoint::save_generators(serialize::OutputArchive& archive) const {
  serialize::OutputArchive nested;
  for (const auto& [name, device] : generators()) {
    const GeneratorState state = default_generator(device).get_state();
    nested.write(name, IValue(std::vector<int64_t>{static_cast<int64_t>(state.seed),
                                                   static_cast<int64_t>(state.offset)}));
  }
  archive.write(kGenerators, nested);
}

void Checkpoint::load_generators(serialize::InputArchive& archive) const {
  serialize::InputArchive nested;
  archive.read(kGenerators, nested);
  for (const auto& [name, device] : generators()) {
    IValue value;
    // The other machine may have had fewer devices. The generators of further devices stay as they
    // are.
    if (!nested.try_read(name, value)) continue;
    const std::vector<int64_t>& state = value.toIntVector();
    RAMET_CHECK(state.size() == 2, "Checkpoint", "generator of ", device.str(), ": got ",
                state.size(), " numbers, expected 2");
    default_generator(device).set_state(
        {static_cast<uint64_t>(state[0]), static_cast<uint64_t>(state[1])});
  }
}

Checkpoint& Checkpoint::generators_of(std::function<std::vector<Device>()> devices) {
  devices_ = std::move(devices);
  return *this;
}

Checkpoint& Checkpoint::add_part(const std::string& name, Save save, Load load) {
  RAMET_CHECK(!name.empty() && name.find('.') == std::string::npos && name != kGenerators,
              "Checkpoint", "name of a part: got \"", name,
              "\", expected one without a dot, not \"", kGenerators, "\"");
  for (const Part& part : parts_)
    RAMET_CHECK(part.name != name, "Checkpoint", "name of a part: got \"", name, "\" twice");
  parts_.push_back({name, std::move(save), std::move(load)});
  return *this;
}

void Checkpoint::save(const std::string& path) const {
  serialize::OutputArchive archive;
  save(archive);
  archive.save_to(path);
}

void Checkpoint::save(serialize::OutputArchive& archive) const {
  for (const Part& part : parts_) part.save(archive);
  save_generators(archive);
}

void Checkpoint::load(const std::string& path) {
  serialize::InputArchive archive;
  archive.load_from(path);
  load(archive);
}

void Checkpoint::load(serialize::InputArchive& archive) {
  for (const Part& part : parts_) part.load(archive);
  load_generators(archive);  // last: a part that draws while it loads does not count
}

}  // namespace ramet
