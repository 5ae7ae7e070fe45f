#include "nn/module/checkpoint.h"

#include <cstring>

#include "runtime/base/device.h"
#include "runtime/devices/mersenne.h"

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
    std::vector<int64_t> numbers{static_cast<int64_t>(state.seed),
                                 static_cast<int64_t>(state.offset)};
    if (state.mersenne) {
      // The bytes of its engine follow, eight in a number.
      const std::vector<uint8_t> bytes = state.mersenne->bytes();
      numbers.resize(2 + bytes.size() / sizeof(int64_t));
      std::memcpy(numbers.data() + 2, bytes.data(), bytes.size());
    }
    nested.write(name, IValue(numbers));
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
    const std::vector<int64_t>& numbers = value.toIntVector();
    constexpr size_t kOfEngine = Mersenne::kBytes / sizeof(int64_t);
    RAMET_CHECK(numbers.size() == 2 || numbers.size() == 2 + kOfEngine, "Checkpoint",
                "generator of ", device.str(), ": got ", numbers.size(),
                " numbers, expected 2, or ", 2 + kOfEngine, " of kind kMersenne");
    GeneratorState state{static_cast<uint64_t>(numbers[0]), static_cast<uint64_t>(numbers[1])};
    if (numbers.size() > 2) {
      std::vector<uint8_t> bytes(Mersenne::kBytes);
      std::memcpy(bytes.data(), numbers.data() + 2, bytes.size());
      state.mersenne =
          std::make_shared<const Mersenne>(Mersenne::from_bytes(bytes.data(), bytes.size()));
    }
    // A device that this state's kind is not for goes on with its Philox numbers.
    if (device.ordinal() != 0) state.mersenne = nullptr;
    default_generator(device).set_state(state);
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
