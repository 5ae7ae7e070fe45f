// Networks for images as their authors' programs have them: LibTorch programs.
#pragma once
#include <torch/torch.h>

#include <vector>

namespace real {

namespace nn = torch::nn;
namespace F = torch::nn::functional;
using torch::Tensor;

inline nn::Conv2d conv(int64_t from, int64_t to, int64_t size, int64_t stride = 1,
                       int64_t padding = 0, int64_t groups = 1, bool bias = false) {
  return nn::Conv2d(
      nn::Conv2dOptions(from, to, size).stride(stride).padding(padding).groups(groups).bias(bias));
}

// ---- ResNet-18 ----------------------------------------------------------------------------------

struct BasicBlockImpl : nn::Module {
  BasicBlockImpl(int64_t from, int64_t to, int64_t stride)
      : conv1(register_module("conv1", conv(from, to, 3, stride, 1))),
        bn1(register_module("bn1", nn::BatchNorm2d(to))),
        conv2(register_module("conv2", conv(to, to, 3, 1, 1))),
        bn2(register_module("bn2", nn::BatchNorm2d(to))) {
    if (stride == 1 && from == to) return;
    downsample = register_module("downsample",
                                 nn::Sequential(conv(from, to, 1, stride), nn::BatchNorm2d(to)));
  }
  Tensor forward(const Tensor& x) {
    Tensor y = torch::relu(bn1(conv1(x)));
    y = bn2(conv2(y));
    y += downsample ? downsample->forward(x) : x;
    return torch::relu(y);
  }
  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::Conv2d conv2;
  nn::BatchNorm2d bn2;
  nn::Sequential downsample{nullptr};
};
TORCH_MODULE(BasicBlock);

struct ResNet18Impl : nn::Module {
  ResNet18Impl()
      : conv1(register_module("conv1", conv(3, 64, 7, 2, 3))),
        bn1(register_module("bn1", nn::BatchNorm2d(64))),
        layers(register_module("layers", nn::Sequential())),
        fc(register_module("fc", nn::Linear(512, 1000))) {
    int64_t width = 64;
    for (const int64_t to : {64, 128, 256, 512}) {
      layers->push_back(BasicBlock(width, to, to == 64 ? 1 : 2));
      layers->push_back(BasicBlock(to, to, 1));
      width = to;
    }
  }
  Tensor forward(Tensor x) {
    x = torch::max_pool2d(torch::relu(bn1(conv1(x))), 3, 2, 1);
    x = layers->forward(x);
    x = torch::adaptive_avg_pool2d(x, {1, 1});
    return fc(torch::flatten(x, 1));
  }
  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::Sequential layers;
  nn::Linear fc;
};
TORCH_MODULE(ResNet18);

// ---- MobileNetV2 --------------------------------------------------------------------------------

inline void conv_bn_relu6(nn::Sequential& to, int64_t in, int64_t out, int64_t size, int64_t stride,
                          int64_t groups = 1) {
  to->push_back(conv(in, out, size, stride, (size - 1) / 2, groups));
  to->push_back(nn::BatchNorm2d(out));
  to->push_back(nn::ReLU6());
}

struct InvertedResidualImpl : nn::Module {
  InvertedResidualImpl(int64_t from, int64_t to, int64_t stride, int64_t expand)
      : adds(stride == 1 && from == to), path(register_module("path", nn::Sequential())) {
    const int64_t hidden = from * expand;
    if (expand != 1) conv_bn_relu6(path, from, hidden, 1, 1);
    conv_bn_relu6(path, hidden, hidden, 3, stride, hidden);
    path->push_back(conv(hidden, to, 1));
    path->push_back(nn::BatchNorm2d(to));
  }
  Tensor forward(const Tensor& x) { return adds ? x + path->forward(x) : path->forward(x); }
  bool adds;
  nn::Sequential path;
};
TORCH_MODULE(InvertedResidual);

struct MobileNetV2Impl : nn::Module {
  MobileNetV2Impl()
      : features(register_module("features", nn::Sequential())),
        classifier(register_module("classifier", nn::Linear(1280, 1000))) {
    conv_bn_relu6(features, 3, 32, 3, 2);
    int64_t from = 32;
    const std::vector<std::vector<int64_t>> table = {{1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2},
                                                     {6, 64, 4, 2}, {6, 96, 3, 1}, {6, 160, 3, 2},
                                                     {6, 320, 1, 1}};
    for (const auto& row : table) {
      for (int64_t i = 0; i < row[2]; ++i) {
        features->push_back(InvertedResidual(from, row[1], i == 0 ? row[3] : 1, row[0]));
        from = row[1];
      }
    }
    conv_bn_relu6(features, from, 1280, 1, 1);
  }
  Tensor forward(const Tensor& x) { return classifier(features->forward(x).mean({2, 3})); }
  nn::Sequential features;
  nn::Linear classifier;
};
TORCH_MODULE(MobileNetV2);

// ---- DenseNet-121 -------------------------------------------------------------------------------

struct DenseLayerImpl : nn::Module {
  explicit DenseLayerImpl(int64_t from)
      : norm1(register_module("norm1", nn::BatchNorm2d(from))),
        conv1(register_module("conv1", conv(from, 128, 1))),
        norm2(register_module("norm2", nn::BatchNorm2d(128))),
        conv2(register_module("conv2", conv(128, 32, 3, 1, 1))) {}
  Tensor forward(const Tensor& x) {
    const Tensor y = conv2(torch::relu(norm2(conv1(torch::relu(norm1(x))))));
    return torch::cat({x, y}, 1);
  }
  nn::BatchNorm2d norm1;
  nn::Conv2d conv1;
  nn::BatchNorm2d norm2;
  nn::Conv2d conv2;
};
TORCH_MODULE(DenseLayer);

struct DenseNet121Impl : nn::Module {
  DenseNet121Impl()
      : features(register_module(
            "features", nn::Sequential(conv(3, 64, 7, 2, 3), nn::BatchNorm2d(64), nn::ReLU()))),
        classifier(register_module("classifier", nn::Linear(1024, 1000))) {
    features->push_back(nn::MaxPool2d(nn::MaxPool2dOptions(3).stride(2).padding(1)));
    int64_t width = 64;
    for (const int64_t layers : {6, 12, 24, 16}) {
      for (int64_t i = 0; i < layers; ++i, width += 32) features->push_back(DenseLayer(width));
      features->push_back(nn::BatchNorm2d(width));
      if (layers == 16) break;
      features->push_back(nn::ReLU());
      features->push_back(conv(width, width / 2, 1));
      features->push_back(nn::AvgPool2d(nn::AvgPool2dOptions(2)));
      width /= 2;
    }
  }
  Tensor forward(const Tensor& x) {
    const Tensor y = torch::relu(features->forward(x));
    const auto one = F::AdaptiveAvgPool2dFuncOptions(1);
    return classifier(F::adaptive_avg_pool2d(y, one).view({y.size(0), -1}));
  }
  nn::Sequential features;
  nn::Linear classifier;
};
TORCH_MODULE(DenseNet121);

// ---- VGG-11 -------------------------------------------------------------------------------------

struct Vgg11Impl : nn::Module {
  Vgg11Impl()
      : features(register_module("features", nn::Sequential())),
        pool(register_module("pool", nn::AdaptiveAvgPool2d(7))),
        classifier(register_module(
            "classifier", nn::Sequential(nn::Linear(512 * 7 * 7, 4096), nn::ReLU(), nn::Dropout(0.),
                                         nn::Linear(4096, 4096), nn::ReLU(), nn::Dropout(0.),
                                         nn::Linear(4096, 1000)))) {
    int64_t width = 3;
    for (const int64_t to : {64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0}) {
      if (to == 0) {
        features->push_back(nn::MaxPool2d(2));
        continue;
      }
      features->push_back(conv(width, to, 3, 1, 1, 1, true));
      features->push_back(nn::ReLU());
      width = to;
    }
  }
  Tensor forward(const Tensor& x) {
    const Tensor y = pool(features->forward(x));
    return classifier->forward(y.flatten(1));
  }
  nn::Sequential features;
  nn::AdaptiveAvgPool2d pool;
  nn::Sequential classifier;
};
TORCH_MODULE(Vgg11);

// ---- U-Net --------------------------------------------------------------------------------------

inline nn::Sequential double_conv(int64_t from, int64_t to) {
  return nn::Sequential(conv(from, to, 3, 1, 1), nn::BatchNorm2d(to), nn::ReLU(),
                        conv(to, to, 3, 1, 1), nn::BatchNorm2d(to), nn::ReLU());
}

struct UNetImpl : nn::Module {
  UNetImpl() : last(register_module("last", conv(64, 2, 1, 1, 0, 1, true))) {
    int64_t from = 3;
    for (const int64_t to : {64, 128, 256, 512, 512}) {
      down.push_back(register_module("down" + std::to_string(down.size()), double_conv(from, to)));
      from = to;
    }
    for (const int64_t to : {256, 128, 64, 64}) {
      const int64_t joined = 2 * from;
      up.push_back(register_module("up" + std::to_string(up.size()), double_conv(joined, to)));
      from = to;
    }
  }
  Tensor forward(Tensor x) {
    std::vector<Tensor> sides;
    for (size_t i = 0; i < down.size(); ++i) {
      if (i > 0) x = torch::max_pool2d(x, 2);
      x = down[i]->forward(x);
      sides.push_back(x);
    }
    const auto twice = F::InterpolateFuncOptions()
                           .scale_factor(std::vector<double>{2, 2})
                           .mode(torch::kBilinear)
                           .align_corners(true);
    for (size_t i = 0; i < up.size(); ++i) {
      const Tensor& side = sides[sides.size() - 2 - i];
      x = up[i]->forward(torch::cat({side, F::interpolate(x, twice)}, 1));
    }
    return last(x);
  }
  std::vector<nn::Sequential> down, up;
  nn::Conv2d last;
};
TORCH_MODULE(UNet);

// ---- DCGAN --------------------------------------------------------------------------------------

inline nn::ConvTranspose2d upward(int64_t from, int64_t to, int64_t stride, int64_t padding) {
  return nn::ConvTranspose2d(
      nn::ConvTranspose2dOptions(from, to, 4).stride(stride).padding(padding).bias(false));
}

struct DcganImpl : nn::Module {
  DcganImpl()
      : generator(register_module(
            "generator", nn::Sequential(upward(100, 512, 1, 0), nn::BatchNorm2d(512), nn::ReLU(),
                                        upward(512, 256, 2, 1), nn::BatchNorm2d(256), nn::ReLU(),
                                        upward(256, 128, 2, 1), nn::BatchNorm2d(128), nn::ReLU(),
                                        upward(128, 64, 2, 1), nn::BatchNorm2d(64), nn::ReLU(),
                                        upward(64, 3, 2, 1), nn::Tanh()))),
        judge(register_module(
            "judge",
            nn::Sequential(conv(3, 64, 4, 2, 1), leaky(), conv(64, 128, 4, 2, 1),
                           nn::BatchNorm2d(128), leaky(), conv(128, 256, 4, 2, 1),
                           nn::BatchNorm2d(256), leaky(), conv(256, 512, 4, 2, 1),
                           nn::BatchNorm2d(512), leaky(), conv(512, 1, 4), nn::Flatten()))) {}
  static nn::LeakyReLU leaky() { return nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(.2)); }
  Tensor forward(const Tensor& noise) { return judge->forward(generator->forward(noise)); }
  nn::Sequential generator, judge;
};
TORCH_MODULE(Dcgan);

}  // namespace real
