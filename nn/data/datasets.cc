#include "nn/data/datasets.h"

#include <mutex>

#include "nn/data/idx.h"
#include "nn/data/mnist.h"
#include "nn/data/transforms.h"

namespace ramet {
namespace data {
namespace datasets {

// ---- TensorDataset ------------------------------------------------------------------------------

namespace {
size_t rows_of(const Tensor& t) {
  RAMET_CHECK(t.defined() && t.dim() > 0, "TensorDataset", "tensor: got ",
              t.defined() ? "a 0-dim one" : "an undefined one", ", expected rows");
  return static_cast<size_t>(t.size(0));
}
}  // namespace

TensorDataset::TensorDataset(Tensor rows) : tensor(std::move(rows)), rows_(rows_of(tensor)) {}
TensorDataset::TensorDataset(const std::vector<Tensor>& tensors)
    : TensorDataset(transforms::detail::stack_examples(tensors)) {}
TensorExample TensorDataset::get(size_t index) {
  const size_t rows = *size();
  if (index >= rows)
    throw IndexError(ramet::detail::join("[TensorDataset] index out of range: got ", index,
                                         ", expected less than ", rows));
  return tensor[static_cast<int64_t>(index)];
}
std::optional<size_t> TensorDataset::size() const {
  return tensor.defined() ? static_cast<size_t>(tensor.size(0)) : rows_;
}

// ---- MNIST --------------------------------------------------------------------------------------

struct MNIST::Data {
  Tensor raw_images, targets;
  std::mutex converting;
  Tensor images;  // undefined before the first call of images()
};

MNIST::MNIST(const std::string& root, Mode mode) : data_(std::make_shared<Data>()), mode_(mode) {
  const std::string part = mode == Mode::kTrain ? "train" : "t10k";
  const std::string image_file = find_idx(root, part + "-images-idx3-ubyte");
  const std::string label_file = find_idx(root, part + "-labels-idx1-ubyte");
  // Reads the headers first: a wrong pair is found before 47 MB are unpacked.
  const IdxHeader images = read_idx_header(image_file), labels = read_idx_header(label_file);
  const size_t rank = images.sizes.size();
  RAMET_CHECK((rank == 3 || rank == 4) && images.dtype == kByte, "MNIST", "images in \"",
              image_file, "\": got ", short_name_of(images.dtype), IntArrayRef(images.sizes),
              ", expected uint8 of 3 or 4 dimensions");
  RAMET_CHECK(labels.sizes.size() == 1 && is_integral(labels.dtype), "MNIST", "labels in \"",
              label_file, "\": got ", short_name_of(labels.dtype), IntArrayRef(labels.sizes),
              ", expected integers of 1 dimension");
  RAMET_CHECK(images.sizes[0] == labels.sizes[0], "MNIST", "labels in \"", label_file, "\": got ",
              labels.sizes[0], ", expected ", images.sizes[0], ", one for each image of \"",
              image_file, "\"");

  const Tensor stored = read_idx(image_file), raw_labels = read_idx(label_file);
  data_->raw_images =
      rank == 4 ? stored : stored.view({images.sizes[0], 1, images.sizes[1], images.sizes[2]});
  Tensor targets(TensorBase::empty(labels.sizes, kLong, Device(kCPU, 0)));
  int64_t* to = targets.data_ptr<int64_t>();
  const auto widen = [&](const auto* from) {
    for (int64_t i = 0; i < labels.sizes[0]; ++i) to[i] = from[i];
  };
  if (labels.dtype == kByte) widen(raw_labels.data_ptr<uint8_t>());
  else if (labels.dtype == kChar) widen(raw_labels.data_ptr<int8_t>());
  else if (labels.dtype == kShort) widen(raw_labels.data_ptr<int16_t>());
  else widen(raw_labels.data_ptr<int32_t>());
  data_->targets = targets;
  size_ = static_cast<size_t>(images.sizes[0]);
}

namespace {
void to_unit_range(const uint8_t* from, float* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(from[i]) / 255.0f;
}
}  // namespace

Example<> MNIST::get(size_t index) {
  if (index >= size_) {
    throw IndexError(ramet::detail::join("[MNIST] index out of range: got ", index,
                                         ", expected less than ", size_));
  }
  const Tensor& raw = data_->raw_images;
  Tensor image(TensorBase::empty(raw.sizes().slice(1), kFloat, Device(kCPU, 0)));
  const auto at = static_cast<int64_t>(index);
  to_unit_range(raw.data_ptr<uint8_t>() + at * image.numel(), image.data_ptr<float>(),
                image.numel());
  return {image, data_->targets[at]};
}

const Tensor& MNIST::images() const {
  // Not by std::call_once: Note [Own thread-local memory] in runtime/observe/thread_local_state.cc.
  const std::lock_guard lock(data_->converting);
  if (!data_->images.defined()) {
    const Tensor& raw = data_->raw_images;
    Tensor all(TensorBase::empty(raw.sizes(), kFloat, Device(kCPU, 0)));
    to_unit_range(raw.data_ptr<uint8_t>(), all.data_ptr<float>(), all.numel());
    data_->images = all;
  }
  return data_->images;
}
const Tensor& MNIST::targets() const { return data_->targets; }
const Tensor& MNIST::raw_images() const { return data_->raw_images; }

}  // namespace datasets
}  // namespace data
}  // namespace ramet
