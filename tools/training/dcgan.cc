// "dcgan": a generator that learns to draw images, and a discriminator that learns to distinguish
// them from real ones (Radford, Metz, Chintala 2016).
#include <algorithm>
#include <cmath>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "nn/init.h"
#include "nn/layers/basic/activation.h"
#include "nn/layers/basic/flatten.h"
#include "nn/layers/basic/linear.h"
#include "nn/layers/image/conv.h"
#include "nn/layers/image/conv_transpose.h"
#include "nn/layers/norm/batchnorm.h"
#include "tools/training/image_data.h"

namespace ramet::training {

namespace {

constexpr int64_t kNoise = 64, kWidth = 32;

/// Both networks as one module, which is the replicated module. Each halving of the image is a
/// convolution of 4 x 4 with stride 2, as in the paper. The generator begins, and the discriminator
/// ends, at an image of a quarter of the size.
struct GanImpl : nn::Cloneable<GanImpl> {
  explicit GanImpl(const ImageShape& shape_) : shape(shape_) { GanImpl::reset(); }
  void reset() override {
    const int64_t height = shape.height / 4, width = shape.width / 4, wide = 2 * kWidth;
    const auto options = [](auto made) { return made.stride(2).padding(1).bias(false); };
    const auto down = [&](int64_t in, int64_t out) {
      return nn::Conv2d(options(nn::Conv2dOptions(in, out, 4)));
    };
    const auto up = [&](int64_t in, int64_t out) {
      return nn::ConvTranspose2d(options(nn::ConvTranspose2dOptions(in, out, 4)));
    };
    const auto leaky = [] { return nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.2)); };
    generator = register_module(
        "generator",
        nn::Sequential(nn::Linear(nn::LinearOptions(kNoise, wide * height * width).bias(false)),
                       nn::Unflatten(nn::UnflattenOptions(1, {wide, height, width})),
                       nn::BatchNorm2d(wide), nn::ReLU(), up(wide, kWidth), nn::BatchNorm2d(kWidth),
                       nn::ReLU(), up(kWidth, shape.channels), nn::Tanh()));
    discriminator = register_module(
        "discriminator", nn::Sequential(down(shape.channels, kWidth), leaky(), down(kWidth, wide),
                                        nn::BatchNorm2d(wide), leaky(), nn::Flatten(),
                                        nn::Linear(wide * height * width, 1)));
    const NoGradGuard off;
    for (const auto& p : named_parameters()) {
      const bool of_norm = p.value().dim() == 1 && p.key().find("weight") != std::string::npos;
      if (of_norm) nn::init::normal_(p.value(), 1, 0.02);
      else if (p.value().dim() > 1) nn::init::normal_(p.value(), 0, 0.02);
    }
  }
  /// Logits of the discriminator that the images drawn from `noise` are real, (N, 1). With `real`
  /// also those of real images, in front, (N, 2); the generator gets no gradient then.
  Tensor forward(const Tensor& noise, const Tensor& real) {
    if (!real.defined()) return discriminator->forward(generator->forward(noise));
    Tensor drawn;
    {
      const NoGradGuard off;
      drawn = generator->forward(noise);
    }
    return cat({discriminator->forward(real), discriminator->forward(drawn)}, 1);
  }
  ImageShape shape;
  nn::Sequential generator{nullptr}, discriminator{nullptr};

 protected:
  RAMET_FORWARD_HAS_DEFAULT_ARGS({1, nn::AnyValue(Tensor())})
};
RAMET_MODULE(Gan);

/// The distance of two sets of pictures (N, 1 or more, H, W): Fréchet's distance between the normal
/// distributions with their means and covariances. It is |m - n|^2 + tr(A + B - 2 (A B)^1/2),
/// computed on small pictures of 7 x 7. It is 0 for equal sets, NaN where a picture has a NaN. (FID
/// is the same distance of a network's features.)
double frechet(const Tensor& a, const Tensor& b) {
  if (!isfinite(a).all().item<bool>() || !isfinite(b).all().item<bool>()) return std::nan("");
  struct Normal {
    Tensor mean, root;  // root root^T is the covariance
  };
  const auto fit = [](const Tensor& pictures) {
    const Tensor x = adaptive_avg_pool2d(pictures, {7, 7}).flatten(1).to(Device(kCPU, 0), kDouble),
                 mean = x.mean(0), away = x - mean;
    const double n = static_cast<double>(std::max<int64_t>(1, x.size(0) - 1));
    const Tensor covariance = matmul(away.t(), away) / n + 1e-8 * eye(x.size(1), kDouble);
    return Normal{mean, linalg_cholesky(covariance)};
  };
  const Normal m = fit(a), n = fit(b);
  return ((m.mean - n.mean).square().sum() + m.root.square().sum() + n.root.square().sum() -
          2 * linalg_svdvals(matmul(m.root.t(), n.root)).sum())
      .item<double>();
}

class Dcgan : public Job {
 public:
  explicit Dcgan(Images images) : Job(as_tanh(std::move(images.data))), shape_(images.shape) {
    RAMET_CHECK(shape_.height % 4 == 0 && shape_.width % 4 == 0, "train",
                "--model dcgan: got images of ", shape_.height, " x ", shape_.width,
                ", expected multiples of 4");
  }

  nn::Sequential make_model(double /*dropout*/) const override {
    nn::Sequential model;
    model->push_back("gan", Gan(shape_));
    return model;
  }
  int64_t least_rows() const override { return shape_.height == 4 && shape_.width == 4 ? 2 : 1; }
  optim::AdamWOptions optimizer(double lr) const override {
    return optim::AdamWOptions(lr).betas({0.5, 0.999}).weight_decay(0);
  }

  // First the discriminator's pass, then the generator's, with its loss as Goodfellow et al. 2014
  // advise: drawn images should be taken for real.
  std::vector<std::string> further_passes() const override { return {"generator_loss"}; }
  Pass pass(int number, Replicas& model, const Processes& /*processes*/,
            const data::Example<>& batch) const override {
    const int64_t n = batch.data.size(0);
    const auto rows = static_cast<double>(n);
    const Tensor noise = randn({n, kNoise}, TensorOptions(kFloat).device(batch.data.device()));
    if (number == 0) {
      const Tensor said = model.forward(noise, batch.data);
      return {wrong(said).sum() / rows, right(said), 2 * rows};
    }
    return {softplus(-model.forward(noise)).sum() / rows};
  }
  void before_step(int pass, nn::Sequential& model) const override {
    if (pass == 1) gan(model).discriminator->zero_grad();
  }

  Tested test(nn::Sequential& model, Device device) const override {
    Generator generator(Device(kCPU, 0), kTestSeed);
    double loss = 0, generator_loss = 0;
    int64_t answers = 0;
    std::vector<Tensor> reals, drawns;
    for_test_batches(device, [&](const data::Example<>& batch) {
      const Tensor drawn = draw(model, batch.data.size(0), generator, device);
      auto& judge = gan(model).discriminator;
      const Tensor said = cat({judge->forward(batch.data), judge->forward(drawn)}, 1);
      loss += wrong(said).sum().item<double>();
      answers += right(said).item<int64_t>();
      generator_loss += softplus(-said.select(1, 1)).sum().item<double>();
      reals.push_back(batch.data), drawns.push_back(drawn);
    });
    const auto n = static_cast<double>(data_.test_rows.size(0));
    return {loss / n,
            static_cast<double>(answers) / (2 * n),
            {{"generator_loss", generator_loss / n},
             {"frechet", frechet(cat(reals, 0), cat(drawns, 0))}}};
  }

  // Always from the same noise.
  std::string pictures(nn::Sequential& model, Device device) const override {
    Generator generator(Device(kCPU, 0), kTestSeed);
    return picture_grid((draw(model, 64, generator, device) + 1) / 2, 8);
  }

 private:
  static constexpr uint64_t kTestSeed = 1;

  // From -1 to 1, as tanh.
  static TrainingData as_tanh(TrainingData data) {
    data.mean = data.stddev = {0.5};
    return data;
  }
  static GanImpl& gan(nn::Sequential& model) { return model->at<GanImpl>(0); }
  static Tensor draw(nn::Sequential& model, int64_t n, Generator& generator, Device device) {
    const Tensor noise = normal(0, 1, {n, kNoise}, generator);
    return gan(model).generator->forward(noise.to(device));
  }
  // Takes logits of real and of drawn images, next to each other. Gives the cross entropies, and
  // how many logits have the right sign.
  static Tensor wrong(const Tensor& said) {
    return softplus(-said.select(1, 0)) + softplus(said.select(1, 1));
  }
  static Tensor right(const Tensor& said) {
    return said.select(1, 0).gt(0).sum() + said.select(1, 1).lt(0).sum();
  }

  const ImageShape shape_;
};

}  // namespace

std::unique_ptr<Job> make_dcgan(const Options& options) {
  return std::make_unique<Dcgan>(load_images(options));
}

}  // namespace ramet::training
