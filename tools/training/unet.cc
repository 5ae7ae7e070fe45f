// "unet": which shape each pixel of a picture is of (Ronneberger, Fischer, Brox 2015).
#include <algorithm>

#include "autograd/ops.h"
#include "nn/layers/basic/activation.h"
#include "nn/layers/basic/dropout.h"
#include "nn/layers/image/conv.h"
#include "nn/layers/image/conv_transpose.h"
#include "nn/layers/norm/batchnorm.h"
#include "tools/training/image_data.h"
#include "tools/training/made_images.h"

namespace ramet::training {

namespace {

constexpr int64_t kWidth = 16, kClasses = 4;

/// Down to a half and a quarter of the size and up again. On the way up each level also gets the
/// values that its level had on the way down. Convolutions keep the size.
struct UNetImpl : nn::Cloneable<UNetImpl> {
  UNetImpl(int64_t channels_, double dropout_) : channels(channels_), dropout(dropout_) {
    UNetImpl::reset();
  }
  void reset() override {
    const auto level = [&](const char* name, int64_t in, int64_t out) {
      const auto conv = [](int64_t from, int64_t to) {
        return nn::Conv2d(nn::Conv2dOptions(from, to, 3).padding(1).bias(false));
      };
      return register_module(
          name, nn::Sequential(conv(in, out), nn::BatchNorm2d(out), nn::ReLU(), conv(out, out),
                               nn::BatchNorm2d(out), nn::ReLU()));
    };
    const auto up = [&](const char* name, int64_t in, int64_t out) {
      return register_module(name,
                             nn::ConvTranspose2d(nn::ConvTranspose2dOptions(in, out, 2).stride(2)));
    };
    down1 = level("down1", channels, kWidth);
    down2 = level("down2", kWidth, 2 * kWidth);
    lowest = level("lowest", 2 * kWidth, 4 * kWidth);
    drop = register_module("drop", nn::Dropout(dropout));
    widen2 = up("widen2", 4 * kWidth, 2 * kWidth);
    up2 = level("up2", 4 * kWidth, 2 * kWidth);
    widen1 = up("widen1", 2 * kWidth, kWidth);
    up1 = level("up1", 2 * kWidth, kWidth);
    out = register_module("out", nn::Conv2d(nn::Conv2dOptions(kWidth, kClasses, 1)));
  }
  Tensor forward(const Tensor& pictures) {
    const Tensor whole = down1->forward(pictures);
    const Tensor half = down2->forward(max_pool2d(whole, {2, 2}));
    const Tensor quarter = drop(lowest->forward(max_pool2d(half, {2, 2})));
    const Tensor half_again = up2->forward(cat({half, widen2(quarter)}, 1));
    return out(up1->forward(cat({whole, widen1(half_again)}, 1)));
  }
  int64_t channels;
  double dropout;
  nn::Sequential down1{nullptr}, down2{nullptr}, lowest{nullptr}, up2{nullptr}, up1{nullptr};
  nn::ConvTranspose2d widen2{nullptr}, widen1{nullptr};
  nn::Dropout drop{nullptr};
  nn::Conv2d out{nullptr};
};
RAMET_MODULE(UNet);

class Segmenter : public Job {
 public:
  explicit Segmenter(const Options& options) : Job(scenes(options)) {}

  nn::Sequential make_model(double dropout) const override {
    nn::Sequential model;
    model->push_back("unet", UNet(data_.train_rows.size(1), dropout));
    return model;
  }

  // The mean over the classes, the background among them, of intersection over union; of all pixels
  // of the test together.
  Tested test(nn::Sequential& model, Device device) const override {
    std::vector<int64_t> both(kClasses), either(kClasses);
    Tested tested = test_classes(model, device, [&](const Tensor& output, const Tensor& targets) {
      const Tensor said = output.argmax(1);
      for (int64_t c = 0; c < kClasses; ++c) {
        const Tensor is = targets.eq(c), called = said.eq(c);
        both[static_cast<size_t>(c)] += is.logical_and(called).sum().item<int64_t>();
        either[static_cast<size_t>(c)] += is.logical_or(called).sum().item<int64_t>();
      }
    });
    double sum = 0;
    int64_t classes = 0;
    for (size_t c = 0; c < both.size(); ++c) {
      if (either[c] == 0) continue;  // in neither
      sum += static_cast<double>(both[c]) / static_cast<double>(either[c]);
      ++classes;
    }
    tested.more = {{"iou", sum / static_cast<double>(classes)}};
    return tested;
  }
  std::string score() const override { return "iou"; }

  // Pictures of the test, below each its true classes, and the model's answer.
  std::string pictures(nn::Sequential& model, Device device) const override {
    const int64_t n = std::min<int64_t>(8, data_.test_rows.size(0));
    const Tensor rows = data_.test_rows.slice(0, 0, n), targets = data_.test_targets.slice(0, 0, n);
    std::vector<size_t> first(static_cast<size_t>(n));
    for (size_t i = 0; i < first.size(); ++i) first[i] = i;
    const Tensor seen = data_.batches(rows, targets).get_batch(first).data;
    const Tensor said = model->forward(seen.to(device)).argmax(1).to(Device(kCPU, 0));
    const Tensor colours =
        tensor({0.15f, 0.17f, 0.2f, 0.15f, 0.39f, 0.75f, 0.83f, 0.33f, 0.15f, 0.95f, 0.8f, 0.3f})
            .view({kClasses, 3});
    const auto coloured = [&](const Tensor& classes) {
      return colours.index_select(0, classes.to(kLong).flatten())
          .view({n, classes.size(1), classes.size(2), 3})
          .permute({0, 3, 1, 2});
    };
    return picture_grid(cat({rows.to(kFloat) / 255, coloured(targets), coloured(said)}, 0), n);
  }

 private:
  static TrainingData scenes(const Options& o) {
    RAMET_CHECK(o.data == "shapes", "train", "--data: got \"", o.data,
                "\", expected shapes for --model unet");
    const auto count = [&](int64_t all) { return o.limit > 0 ? std::min(o.limit, all) : all; };
    const LabelledImages train = made_scenes(count(2000), o.seed, 0),
                         test = made_scenes(count(400), o.seed, 1);
    TrainingData d{o.data, train.images, train.labels, test.images, test.labels};
    measure(d);
    return d;
  }
};

}  // namespace

std::unique_ptr<Job> make_unet(const Options& options) {
  return std::make_unique<Segmenter>(options);
}

}  // namespace ramet::training
