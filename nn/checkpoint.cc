#include "nn/checkpoint.h"

#include "runtime/device.h"
#include "runtime/generator.h"

namespace ramet {

namespace {
constexpr const char* kGenerators = "generators";

std::string key_of(int device) { return "cpu_" + std::to_string(device); }

void save_generators(serialize::OutputArchive& archive) {
  serialize::OutputArchive nested;
  for (int i = 0; i < cpu_device_count(); ++i) {
    const GeneratorState state =
        default_generator(Device(kCPU, static_cast<DeviceIndex>(i))).get_state();
    nested.write(key_of(i), IValue(std::vector<int64_t>{static_cast<int64_t>(state.seed),
                                                        static_cast<int64_t>(state.offset)}));
  }
  archive.write(kGenerators, nested);
}

void load_generators(serialize::InputArchive& archive) {
  serialize::InputArchive nested;
  archive.read(kGenerators, nested);
  for (int i = 0; i < cpu_device_count(); ++i) {
    IValue value;
    // The other machine may have had fewer devices: theirs then stay as they are.
    if (!nested.try_read(key_of(i), value)) continue;
    const std::vector<int64_t>& state = value.toIntVector();
    RAMET_CHECK(state.size() == 2, "Checkpoint", "generator of cpu:", i, ": got ", state.size(),
                " numbers, expected 2");
    default_generator(Device(kCPU, static_cast<DeviceIndex>(i)))
        .set_state({static_cast<uint64_t>(state[0]), static_cast<uint64_t>(state[1])});
  }
}
}  // namespace

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
