#include "runtime/absent_storage.h"

#include <utility>

#include "runtime/pool.h"

namespace ramet {
namespace {

struct AbsentStorage : Storage {
  std::function<void()> touched;
  AbsentStorage(Device d, std::function<void()> f)
      : Storage(0, d.ordinal()), touched(std::move(f)) {
    data = nullptr;
    external = Storage::kAbsent;
    pending = 1;  // a ticket that was done long ago
  }
};

}  // namespace

Storage* absent_storage(Device device, std::function<void()> touched) {
  return new (pool::allocate(sizeof(AbsentStorage))) AbsentStorage(device, std::move(touched));
}

void detail::touch_absent(Storage& storage) {
  const auto touched =
      static_cast<AbsentStorage&>(storage).touched;  // it may let go of the storage
  touched();
}

void detail::destroy_absent(Storage& storage) {
  auto* self = static_cast<AbsentStorage*>(&storage);
  self->~AbsentStorage();
  pool::deallocate(self, sizeof(AbsentStorage));
}

}  // namespace ramet
