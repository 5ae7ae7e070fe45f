// Checkpoint: everything a training run needs to go on, in one file.
//
//   Checkpoint checkpoint;
//   checkpoint.add("model", *model).add("optimizer", optimizer).add("schedule", schedule)
//             .add("loader", *loader).add("epoch", epoch).add("step", step);
//   checkpoint.save("runs/checkpoint");      // at any time, in the middle of an epoch too
//   checkpoint.load("runs/checkpoint");      // in a new process, into parts made in the same way
//
// A run that is resumed computes the same bits as one that was never interrupted: the file also
// holds the state of the default generators, and a DataLoader's position with the order of the
// epoch under way. The file is an archive (nn/serialize/archive.h), so its tensors
// ("model.fc.weight") can be read by whatever reads safetensors. It is written whole or not at all:
// killed at any moment, the program leaves the old file or the new one.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "nn/serialize/archive.h"
#include "runtime/base/device.h"

namespace ramet {

/// Keeps references: the parts must outlive it. Belongs to one thread, the one that trains.
class RAMET_API Checkpoint {
 public:
  /// A part with save(OutputArchive&) const and load(InputArchive&): module, optimizer, scheduler,
  /// DataLoader, sampler, or your own; or an int64_t, double, bool or std::string variable. Names
  /// are used once and hold no dot.
  template <class Part> Checkpoint& add(const std::string& name, Part& part) {
    static_assert(!std::is_const<Part>::value, "load() writes into the part");
    if constexpr (kIsValue<Part>) {
      return add_part(
          name,
          [name, &part](serialize::OutputArchive& archive) { archive.write(name, IValue(part)); },
          [name, &part](serialize::InputArchive& archive) {
            IValue value;
            archive.read(name, value);
            if constexpr (std::is_same<Part, int64_t>::value) part = value.toInt();
            else if constexpr (std::is_same<Part, double>::value) part = value.toDouble();
            else if constexpr (std::is_same<Part, bool>::value) part = value.toBool();
            else part = value.toStringRef();
          });
    } else {
      return add_part(
          name,
          [name, &part](serialize::OutputArchive& archive) {
            serialize::OutputArchive nested;
            part.save(nested);
            archive.write(name, nested);
          },
          [name, &part](serialize::InputArchive& archive) {
            serialize::InputArchive nested;
            archive.read(name, nested);
            part.load(nested);
          });
    }
  }

  /// Whose generators are saved besides those of CPU devices. By default all GPUs', by number, and
  /// they come back by number. With `devices` those in its list, by place: it is asked for at every
  /// save and load, so that a run may go on with others.
  Checkpoint& generators_of(std::function<std::vector<Device>()> devices);

  void save(const std::string& path) const;
  /// An Error where the file is damaged (it has a checksum; nothing is loaded then), lacks a part,
  /// or holds it in another shape; parts may then be half loaded. What the file holds beyond the
  /// parts added here is left alone.
  void load(const std::string& path);
  /// The same into and out of an archive.
  void save(serialize::OutputArchive& archive) const;
  void load(serialize::InputArchive& archive);

 private:
  using Save = std::function<void(serialize::OutputArchive&)>;
  using Load = std::function<void(serialize::InputArchive&)>;
  template <class T>
  static constexpr bool kIsValue =
      std::is_same<T, int64_t>::value || std::is_same<T, double>::value ||
      std::is_same<T, bool>::value || std::is_same<T, std::string>::value;
  void save_generators(serialize::OutputArchive& archive) const;
  void load_generators(serialize::InputArchive& archive) const;
  // With the names they are saved under.
  std::vector<std::pair<std::string, Device>> generators() const;

  struct Part {
    std::string name;
    Save save;
    Load load;
  };
  Checkpoint& add_part(const std::string& name, Save save, Load load);

  std::vector<Part> parts_;
  std::function<std::vector<Device>()> devices_;  // generators_of()
};

}  // namespace ramet
