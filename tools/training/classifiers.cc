// The classifiers: cnn, mlp and resnet.
#include "nn/layers/basic/activation.h"
#include "nn/layers/basic/dropout.h"
#include "nn/layers/basic/flatten.h"
#include "nn/layers/basic/linear.h"
#include "nn/layers/image/conv.h"
#include "nn/layers/image/pooling.h"
#include "nn/layers/norm/batchnorm.h"
#include "tools/training/image_data.h"

namespace ramet::training {

namespace {

nn::Conv2d conv3x3(int64_t in, int64_t out, int64_t stride) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, 3).stride(stride).padding(1).bias(false));
}

/// A residual block (He et al. 2016) of two convolutions. Where it halves the image its input comes
/// to the sum through one of 1 x 1.
struct ResidualImpl : nn::Cloneable<ResidualImpl> {
  ResidualImpl(int64_t in_, int64_t out_) : in(in_), out(out_) { ResidualImpl::reset(); }
  void reset() override {
    const int64_t stride = in == out ? 1 : 2;
    conv1 = register_module("conv1", conv3x3(in, out, stride));
    norm1 = register_module("norm1", nn::BatchNorm2d(out));
    conv2 = register_module("conv2", conv3x3(out, out, 1));
    norm2 = register_module("norm2", nn::BatchNorm2d(out));
    if (in == out) return;
    shortcut = register_module(
        "shortcut",
        nn::Sequential(nn::Conv2d(nn::Conv2dOptions(in, out, 1).stride(stride).bias(false)),
                       nn::BatchNorm2d(out)));
  }
  Tensor forward(const Tensor& x) {
    const Tensor y = norm2(conv2(norm1(conv1(x)).relu()));
    return (y + (shortcut ? shortcut->forward(x) : x)).relu();
  }
  int64_t in, out;
  nn::Conv2d conv1{nullptr}, conv2{nullptr};
  nn::BatchNorm2d norm1{nullptr}, norm2{nullptr};
  nn::Sequential shortcut{nullptr};
};
RAMET_MODULE(Residual);

/// "cnn": conv 1-32 and 32-64 (3x3, padding 1), each with BatchNorm, ReLU and 2x2 max pool, then
/// Linear 3136-128, ReLU, 128-10. "mlp": 784-128-10. "resnet": ResNet-8, that is conv 3-16, blocks
/// of 16, 32 and 64 channels, the mean over the image, Linear 64-10. Numbers for images of (1, 28,
/// 28) and (3, 32, 32) and 10 classes; they follow the shape. With `dropout` > 0 a Dropout stands
/// before the last layer.
class Classifier : public Job {
 public:
  Classifier(std::string model, Images images)
      : Job(std::move(images.data)), name_(std::move(model)), shape_(images.shape) {
    const int64_t least = name_ == "mlp" ? 1 : 4;
    RAMET_CHECK(shape_.height >= least && shape_.width >= least, "train", "--model ", name_,
                ": got images of ", shape_.height, " x ", shape_.width,
                ", expected at least 4 x 4");
  }

  nn::Sequential make_model(double dropout) const override {
    nn::Sequential model;
    const int64_t features = name_ == "cnn"      ? push_cnn(model)
                             : name_ == "resnet" ? push_resnet(model)
                                                 : push_mlp(model);
    if (dropout > 0) model->push_back("dropout", nn::Dropout(dropout));
    model->push_back(name_ == "resnet" ? "fc" : "fc2", nn::Linear(features, shape_.classes));
    return model;
  }
  int64_t least_rows() const override {  // two of ResNet's blocks halve the image
    return name_ == "resnet" && shape_.height <= 4 && shape_.width <= 4 ? 2 : 1;
  }

 private:
  int64_t push_cnn(nn::Sequential& model) const {
    const auto block = [&](const std::string& number, int64_t in, int64_t out) {
      model->push_back("conv" + number, nn::Conv2d(nn::Conv2dOptions(in, out, 3).padding(1)));
      model->push_back("norm" + number, nn::BatchNormReLUMaxPool2d(out));
    };
    block("1", shape_.channels, 32);
    block("2", 32, 64);
    return push_hidden(model, 64 * (shape_.height / 4) * (shape_.width / 4));
  }
  int64_t push_mlp(nn::Sequential& model) const {
    return push_hidden(model, shape_.channels * shape_.height * shape_.width);
  }
  static int64_t push_hidden(nn::Sequential& model, int64_t features) {
    model->push_back("flatten", nn::Flatten());
    model->push_back("fc1", nn::Linear(features, 128));
    model->push_back("relu3", nn::ReLU());
    return 128;
  }
  int64_t push_resnet(nn::Sequential& model) const {
    model->push_back("conv", conv3x3(shape_.channels, 16, 1));
    model->push_back("norm", nn::BatchNorm2d(16));
    model->push_back("relu", nn::ReLU());
    model->push_back("block1", Residual(16, 16));
    model->push_back("block2", Residual(16, 32));
    model->push_back("block3", Residual(32, 64));
    model->push_back("mean", nn::AdaptiveAvgPool2d(1));
    model->push_back("flatten", nn::Flatten());
    return 64;
  }

  const std::string name_;
  const ImageShape shape_;
};

}  // namespace

std::unique_ptr<Job> make_classifier(const Options& options) {
  return std::make_unique<Classifier>(options.model, load_images(options));
}

}  // namespace ramet::training
