// Checkpoint: everything a training run needs to go on, in one file.
//
//   Checkpoint checkpoint;
//   checkpoint.add("model", *model).add("optimizer", optimizer).add("schedule", schedule)
//             .add("loader", *loader).add("epoch", epoch).add("step", step);
//   checkpoint.save("runs/checkpoint");      // at any time, in the middle of an epoch too
//   checkpoint.load("runs/checkpoint");      // in a new process, into parts made in the same way
//
// A resumed run computes the same bits as one that was never interrupted. For this the file also
// holds the state of the default generators, and a DataLoader's position with the order of the
// current epoch. The file is an archive (nn/serialize/archive.h), so any program that reads
// safetensors can read its tensors ("model.fc.weight"). It is written whole or not at all: a
// program killed at any moment leaves the old file or the new one.
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
  /// Adds a part: any object with save(OutputArchive&) const and load(InputArchive&), such as a
  /// module, optimizer, scheduler, DataLoader or sampler. A part may also be an int64_t, double,
  /// bool or std::string variable. Each name is used once and holds no dot.
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

  /// By default a checkpoint saves the generators of CPU devices and of all GPUs, by number. With
  /// this call it saves those of the GPUs in `devices`'s list instead of all GPUs', by position in
  /// the list. Every save and load calls `devices`, so a resumed run may use other GPUs.
  Checkpoint& generators_of(std::function<std::vector<Device>()> devices);

  void save(const std::string& path) const;
  /// An Error where the file is damaged (it has a checksum; nothing is loaded then). Also an Error
  /// where it lacks a part or holds it in another shape; parts may then be half loaded. Entries of
  /// the file without a part added here are ignored.
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
