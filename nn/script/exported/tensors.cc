// The tensors of a .pt2 archive: each storage an entry of its own, or all in a pickle.
#include "autograd/grad_mode.h"
#include "nn/formats/numpy/npy_internal.h"
#include "nn/formats/pytorch/pt.h"
#include "nn/script/exported/tensors_internal.h"
#include "runtime/base/device.h"

namespace ramet::script {
namespace {

using formats::detail::ZipReader;

// torch.export's numbers of dtypes.
ScalarType dtype_of(const Field& at) {
  switch (at.integer()) {
    case 1: return kByte;
    case 2: return kChar;
    case 3: return kShort;
    case 4: return kInt;
    case 5: return kLong;
    case 6: return kHalf;
    case 7: return kFloat;
    case 8: return kDouble;
    case 12: return kBool;
    case 13: return kBFloat16;
    default: break;
  }
  at.bad("got the dtype ", at.integer(),
         ", expected 1 to 8 (uint8, int8, int16, int32, int64, float16, float32, float64), 12 "
         "(bool) or 13 (bfloat16)");
}

int64_t number_of(const Field& at) {
  const auto [kind, value] = at.only();
  if (kind != "as_int") at.bad("got \"", kind, "\", expected as_int");
  return value.integer();
}

struct Layout {
  ScalarType dtype;
  int64_t offset;
  std::vector<int64_t> sizes, strides;
};

// What a tensor says of itself, compared with the bytes of its storage.
Layout layout_of(const Field& meta, uint64_t bytes) {
  Layout made{dtype_of(meta["dtype"]), number_of(meta["storage_offset"]), {}, {}};
  if (const auto layout = meta.find("layout"))
    if (layout->integer() != 7)
      layout->bad("got the layout ", layout->integer(), ", expected 7, strided");
  for (const Field& size : meta["sizes"].items()) made.sizes.push_back(number_of(size));
  for (const Field& stride : meta["strides"].items()) made.strides.push_back(number_of(stride));
  const auto item = static_cast<int64_t>(item_size(made.dtype));
  int64_t last = made.offset, all = 1, end = 0;
  bool fits = made.sizes.size() == made.strides.size() && made.offset >= 0;
  bool empty = false;
  for (size_t i = 0; fits && i < made.sizes.size(); ++i) {
    int64_t span = 0;
    fits =
        made.sizes[i] >= 0 && made.strides[i] >= 0 &&
        !__builtin_mul_overflow(all, std::max<int64_t>(made.sizes[i], 1), &all) &&
        !__builtin_mul_overflow(std::max<int64_t>(made.sizes[i], 1) - 1, made.strides[i], &span) &&
        !__builtin_add_overflow(last, span, &last);
    empty = empty || made.sizes[i] == 0;
  }
  fits = fits && !__builtin_add_overflow(last, empty ? 0 : 1, &end) &&
         !__builtin_mul_overflow(end, item, &end) &&
         (empty ? made.offset == 0 || static_cast<uint64_t>(made.offset * item) <= bytes
                : static_cast<uint64_t>(end) <= bytes);
  if (!fits) {
    meta.bad("got the size ", IntArrayRef(made.sizes), ", strides ", IntArrayRef(made.strides),
             " and offset ", made.offset, ", expected a part of a storage of ", bytes, " bytes");
  }
  return made;
}

Device device_of(const Field& meta) {
  const Field device = meta["device"];
  std::string name = device["type"].text();
  if (const auto index = device.find("index")) name += ":" + std::to_string(index->integer());
  try {
    return resolve(Device(name));
  } catch (const Error& error) {
    device.bad("got the device \"", name.substr(0, 60), "\" (", error.what(),
               "), expected one that this machine has: give load() a device");
  }
}

}  // namespace

void ExportedTensors::read_config(const std::string& entry, const std::string& folder) {
  const ZipReader::Entry* const found = zip_.find(entry);
  if (!found) return;
  const std::string file = place(zip_, entry);
  const Json json = read_json(zip_, *found, options_.depth);
  for (const auto& [name, payload] : Field(json, file)["config"].members()) {
    const std::string path = folder + payload["path_name"].text();
    const ZipReader::Entry* const data = zip_.find(path);
    if (!data) payload.bad("got no entry \"", path, "\"");
    const auto meta = payload.find("tensor_meta");
    if (!meta) payload.bad("got \"", name, "\", which is an object, expected tensors alone");
    if (payload["use_pickle"].truth()) {
      const std::string text = zip_.text(*data);
      const IValue value = formats::load_pt(text.data(), text.size(), place(zip_, path), device_);
      if (!value.isTensor())
        payload.bad("got ", value.tagKind(), " in its pickle, expected Tensor");
      add(payload, name, value.toTensor());
    } else {
      add(payload, name, raw(*data, *meta));
    }
    if (payload["is_param"].truth()) parameters_.insert(name);
    if (meta->find("requires_grad") && (*meta)["requires_grad"].truth()) trained_.insert(name);
  }
}

// Tensors of one entry share its memory.
Tensor ExportedTensors::raw(const ZipReader::Entry& entry, const Field& meta) {
  const Layout layout = layout_of(meta, entry.bytes);
  Tensor& memory = memory_[entry.name];
  const size_t item = item_size(layout.dtype);
  if (!memory.defined()) {
    const NoGradGuard no_grad;
    memory = Tensor(TensorBase::empty({static_cast<int64_t>(entry.bytes)}, kByte, Device(kCPU, 0)));
    zip_.read(entry, memory.data_ptr());
    if (big_ && item > 1)
      formats::detail::swap_bytes(memory.data_ptr(), entry.bytes / item * item, item);
    items_[entry.name] = item;
    memory = memory.to(device_ ? *device_ : device_of(meta));
  }
  if (big_ && items_[entry.name] != item)
    meta.bad("got elements of several sizes in the other byte order, expected one size");
  Tensor made(TensorBase::over(memory.storage_impl(), layout.offset * static_cast<int64_t>(item),
                               layout.sizes, layout.strides, layout.dtype));
  if (layout.dtype == kBool)
    formats::detail::check_bools(zip_.op(), place(zip_, entry.name), made.contiguous());
  return made;
}

void ExportedTensors::read_pickle(const std::string& entry) {
  const ZipReader::Entry* const found = zip_.find(entry);
  if (!found) return;
  const std::string text = zip_.text(*found);
  if (text.empty()) return;
  const std::string name = place(zip_, entry);
  const IValue value = formats::load_pt(text.data(), text.size(), name, device_);
  RAMET_CHECK(value.isGenericDict(), zip_.op(), name, ": got ", value.tagKind(),
              ", expected a dictionary");
  const Json none;
  const std::string file = name;
  for (const auto& item : value.toGenericDict()) {
    RAMET_CHECK(item.key().isString(), zip_.op(), name, ": got a key that is no text");
    const std::string& key = item.key().toStringRef();
    if (!item.value().isTensor()) continue;  // an object, which only matters where it is used
    const Tensor t = item.value().toTensor();
    add(Field(none, file, key), key, t);
    if (t.defined() && t.requires_grad()) trained_.insert(key), parameters_.insert(key);
  }
}

void ExportedTensors::add(const Field& at, const std::string& name, const Tensor& tensor) {
  if (!by_name_.emplace(name, tensor.detach()).second)
    at.bad("got \"", name, "\" twice, expected once");
}

// Handles of one tensor are one: what the file aliases is one parameter.
Tensor ExportedTensors::take(const Field& at, const std::string& name, bool parameter,
                             bool trained) {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) at.bad("got \"", name, "\", which the file's tensors lack");
  const Tensor& t = found->second;
  const Key key{t.storage_impl(), t.scalar_type(),   t.storage_offset(),
                t.sizes().vec(),  t.strides().vec(), parameter && trained};
  Tensor& made = taken_[key];
  if (!made.defined()) {
    made = t;
    if (parameter && trained) {
      if (!isFloatingType(t.scalar_type()))
        at.bad("got \"", name, "\" of ", t.scalar_type(), ", expected a parameter to be trained");
      made.set_requires_grad(true);
    }
  }
  used_.insert(name);
  return made;
}

std::vector<std::string> ExportedTensors::others() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : by_name_)
    if (used_.count(name) == 0) names.push_back(name);
  return names;
}

}  // namespace ramet::script
