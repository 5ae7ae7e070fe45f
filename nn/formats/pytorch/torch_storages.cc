#include "autograd/grad_mode.h"
#include "nn/formats/numpy/npy_internal.h"
#include "nn/formats/pytorch/torch_storages_internal.h"

namespace ramet::formats::detail {

Storages::Storages(Pickle& pickle, bool swapped, std::optional<Device> device, Read read)
    : pickle_(pickle),
      swapped_(swapped),
      device_(device ? std::optional(resolve(*device)) : std::nullopt),
      read_(std::move(read)),
      memory_(pickle.storages().size()) {
  for (const StorageNote& note : pickle.storages()) {
    if (note.bools && note.mixed) {  // which of its bytes have to be 0 or 1?
      pickle.place().bad(note.at, "got storage \"", note.key,
                         "\" with bools and elements of other sizes, expected one size");
    }
    if (swapped && note.mixed) {
      pickle.place().bad(note.at, "got storage \"", note.key,
                         "\" with elements of several sizes in the other byte order, expected one "
                         "size");
    }
  }
}

void Storages::fill(size_t number) {
  NoGradGuard no_grad;
  const StorageNote& note = pickle_.storages()[number];
  Tensor t(TensorBase::empty({static_cast<int64_t>(note.bytes)}, kByte, Device(kCPU, 0)));
  read_(number, t.data_ptr());
  if (swapped_ && note.item > 1) swap_bytes(t.data_ptr(), note.bytes, note.item);
  if (note.bools) {
    check_bools(pickle_.place().op, pickle_.place().name + ", storage \"" + note.key + "\"",
                Tensor(TensorBase::over(t.storage_impl(), 0, t.sizes(), t.raw_strides(), kBool)));
  }
  if (!device_ && located_ && note.location != "cpu") {
    try {
      memory_[number] = t.to(resolve(Device(note.location)));
      return;
    } catch (const Error& error) {
      pickle_.place().bad(note.at, "got storage \"", note.key, "\" on the device \"", note.location,
                          "\" (", error.what(), "), expected one that this machine has: give a ",
                          "device to load to");
    }
  }
  memory_[number] = device_ ? t.to(*device_) : t;
}

Tensor Storages::tensor(const TensorNote& note) {
  if (!memory_[note.storage].defined()) fill(note.storage);
  const Tensor& memory = memory_[note.storage];
  Tensor t(TensorBase::over(memory.storage_impl(),
                            note.offset * static_cast<int64_t>(item_size(note.dtype)), note.sizes,
                            note.strides, note.dtype));
  if (note.requires_grad && is_floating(note.dtype)) t.set_requires_grad(true);
  return t;
}

}  // namespace ramet::formats::detail
