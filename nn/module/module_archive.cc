// Saving and loading of modules: one entry per parameter and buffer, one nested archive per child.
#include "nn/module/module.h"
#include "nn/serialize/archive.h"

namespace ramet::nn {

void Module::save(serialize::OutputArchive& archive) const {
  for (const auto& item : parameters_)
    if (item.value().defined()) archive.write(item.key(), item.value());
  for (const auto& item : buffers_)
    if (item.value().defined()) archive.write(item.key(), item.value(), /*is_buffer=*/true);
  for (const auto& child : children_) {
    if (!child.value() || !child.value()->is_serializable()) continue;
    serialize::OutputArchive nested;
    child.value()->save(nested);
    archive.write(child.key(), nested);
  }
}

void Module::load(serialize::InputArchive& archive) {
  for (const auto& item : parameters_)
    if (item.value().defined()) archive.read_values(item.key(), item.value());
  for (const auto& item : buffers_)
    if (item.value().defined()) archive.read_values(item.key(), item.value());
  for (const auto& child : children_) {
    if (!child.value() || !child.value()->is_serializable()) continue;
    serialize::InputArchive nested;
    archive.read(child.key(), nested);
    child.value()->load(nested);
  }
}

serialize::OutputArchive& operator<<(serialize::OutputArchive& archive,
                                     const std::shared_ptr<Module>& module) {
  RAMET_CHECK(module, "save", "got an empty module");
  module->save(archive);
  return archive;
}
serialize::InputArchive& operator>>(serialize::InputArchive& archive,
                                    const std::shared_ptr<Module>& module) {
  RAMET_CHECK(module, "load", "got an empty module");
  module->load(archive);
  return archive;
}

}  // namespace ramet::nn
