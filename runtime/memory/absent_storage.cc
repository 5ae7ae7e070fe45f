#include "runtime/memory/absent_storage.h"

#include <utility>

#include "runtime/memory/pool.h"

namespace ramet {
namespace {

struct AbsentStorage : StorageImpl {
  std::function<void()> touched;
  AbsentStorage(Device d, std::function<void()> f)
      : StorageImpl(0, d.ordinal()), touched(std::move(f)) {
    data = nullptr;
    external = StorageImpl::kAbsent;
    pending = 1;  // a ticket that is done
  }
};

}  // namespace

StorageImpl* absent_storage(Device device, std::function<void()> touched) {
  return new (pool::allocate(sizeof(AbsentStorage))) AbsentStorage(device, std::move(touched));
}

void detail::touch_absent(StorageImpl& storage) {
  const auto touched =
      static_cast<AbsentStorage&>(storage).touched;  // the call may release the storage
  touched();
}

void detail::destroy_absent(StorageImpl& storage) {
  auto* self = static_cast<AbsentStorage*>(&storage);
  self->~AbsentStorage();
  pool::deallocate(self, sizeof(AbsentStorage));
}

}  // namespace ramet
