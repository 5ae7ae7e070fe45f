// `with torch.autocast(...)` in a script.
//
// The class of such a block is printed with empty methods. PyTorch finds it by its name, and casts
// in the block. So does this.
#include <algorithm>

#include "autograd/schema/arguments_internal.h"
#include "nn/script/interpreter_internal.h"

namespace ramet::script {
namespace {

constexpr const char* kClasses[] = {"__torch__.torch.amp.autocast_mode.autocast",
                                    "__torch__.torch.autocast_mode.autocast",
                                    "__torch__.torch.cpu.amp.autocast_mode.autocast",
                                    "__torch__.torch.cuda.amp.autocast_mode.autocast"};

}  // namespace

std::string unmangled(std::string name) {
  constexpr const char* kMangle = "___torch_mangle_";
  for (size_t at = name.find(kMangle); at != std::string::npos; at = name.find(kMangle)) {
    const size_t dot = name.find('.', at);
    if (dot == std::string::npos) break;
    name.erase(at, dot + 1 - at);
  }
  return name;
}

bool is_autocast_class(const std::string& name) {
  const std::string plain = unmangled(name);
  return std::any_of(std::begin(kClasses), std::end(kClasses),
                     [&](const char* known) { return plain == known; });
}

std::unique_ptr<AutocastGuard> autocast_of(const Object& object) {
  const ClassInfo& info = *object.info();
  const int64_t device = info.slot("device"), type = info.slot("fast_dtype"),
                on = info.slot("_enabled");
  if (device < 0 || type < 0 || on < 0) return nullptr;
  if (!is_autocast_class(info.name)) return nullptr;
  const auto value = [&](int64_t slot) -> const IValue& {
    return object.slots.at(static_cast<size_t>(slot));
  };
  const DeviceType kind = Device(value(device).toStringRef()).type();
  const ScalarType dtype = dtype_of(value(type).toInt());
  return std::make_unique<AutocastGuard>(kind, dtype, value(on).toBool());
}

}  // namespace ramet::script
