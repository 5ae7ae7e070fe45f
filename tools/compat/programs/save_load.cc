// Files. Styles: torch::save and torch::load of a tensor, a list, a holder, a shared_ptr module and
// an optimizer, in files, streams and memory. Nested archives by keys, save() and load() of a
// module. Training that continues after an interruption with the same bits.
#include <torch/torch.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

struct NetImpl : torch::nn::Module {
  explicit NetImpl(double start = 0) {
    fc1 = register_module("fc1", torch::nn::Linear(2, 4));
    norm = register_module("norm", torch::nn::BatchNorm1d(4));
    fc2 = register_module("fc2", torch::nn::Linear(torch::nn::LinearOptions(4, 1).bias(false)));
    temperature = register_buffer("temperature", torch::full({1}, start));
    torch::NoGradGuard no_grad;
    for (auto& p : parameters())
      p.copy_((torch::arange(p.numel(), torch::kDouble) + start).cos().view_as(p));
  }
  torch::Tensor forward(const torch::Tensor& x) { return fc2(norm(fc1(x)).relu()) + temperature; }
  torch::nn::Linear fc1{nullptr}, fc2{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
  torch::Tensor temperature;
};
TORCH_MODULE(Net);

// A name in the temporary folder, and nothing there afterwards.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& name) {
    const char* folder = std::getenv("TEST_TMPDIR");
    path_ = std::string(folder != nullptr ? folder : "/tmp") + "/ramet_program_" + name +
            std::to_string(::getpid()) + ".pt";
  }
  ~TemporaryFile() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

template <typename Model>
double train(Model& model, torch::optim::Optimizer& optimizer, int steps) {
  const auto x = torch::arange(12, torch::kFloat).view({6, 2}).sin(), y = x.sum(1, true);
  double last = 0;
  for (int i = 0; i < steps; ++i) {
    optimizer.zero_grad();
    auto loss = torch::mse_loss(model->forward(x), y);
    loss.backward();
    optimizer.step();
    last = loss.template item<double>();
  }
  return last;
}

bool same(const torch::nn::Module& a, const torch::nn::Module& b) {
  const auto left = a.named_parameters(), right = b.named_parameters();
  for (const auto& pair : left)
    if (!torch::equal(pair.value(), right[pair.key()])) return false;
  for (const auto& pair : a.named_buffers())
    if (!pair.value().equal(b.named_buffers()[pair.key()])) return false;
  return left.size() == right.size();
}

void tensors() {
  const TemporaryFile file("tensor"), list("list");
  const auto x = torch::arange(6, torch::kDouble).view({2, 3});
  torch::save(x, file.path());
  torch::Tensor y;
  torch::load(y, file.path());
  std::cout << y << "\n" << (x.data_ptr() == y.data_ptr()) << "\n";
  torch::save({torch::ones({2}), torch::zeros({1}, torch::kLong), x.t()}, list.path());
  std::vector<torch::Tensor> read;
  torch::load(read, list.path());
  for (const auto& t : read) std::cout << t.sizes() << t.dtype() << " ";
  std::cout << read[2].equal(x.t()) << "\n";
  for (const auto dtype : {torch::kBool, torch::kUInt8, torch::kInt8, torch::kInt16, torch::kInt32,
                           torch::kFloat16, torch::kBFloat16}) {
    std::stringstream stream;
    torch::save(torch::ones({3}, dtype), stream);
    torch::Tensor t;
    torch::load(t, stream);
    std::cout << t.scalar_type() << t.sum().item<int>() << " ";
  }
  std::cout << "\n";
}

void models() {
  const TemporaryFile file("model");
  Net net(1.0), other(2.0);
  std::cout << same(*net, *other);
  torch::optim::SGD sgd(net->parameters(), 0.01);
  train(net, sgd, 2);
  torch::save(net, file.path());
  torch::load(other, file.path());
  std::cout << same(*net, *other) << " " << other->norm->num_batches_tracked.item<int64_t>() << " "
            << other->temperature.item<float>() << "\n";

  auto shared = std::make_shared<NetImpl>(3.0);
  torch::load(shared, file.path(), torch::kCPU);
  std::cout << same(*net, *shared);
  std::ostringstream out;
  torch::save(shared, out);
  std::istringstream in(out.str());
  Net third;
  torch::load(third, in);
  std::cout << same(*net, *third);

  torch::nn::Sequential sequential(torch::nn::Linear(1, 2), torch::nn::ReLU(),
                                   torch::nn::Linear(2, 1)),
      twin(torch::nn::Linear(1, 2), torch::nn::ReLU(), torch::nn::Linear(2, 1));
  std::stringstream memory;
  torch::save(sequential, memory);
  torch::load(twin, memory);
  std::cout << same(*sequential, *twin) << "\n";
}

void archives() {
  const TemporaryFile file("archive");
  Net net(0.5);
  torch::serialize::OutputArchive archive, inner;
  archive.write("epoch", torch::tensor(7));
  archive.write("running", torch::ones({2}), /*is_buffer=*/true);
  inner.write("rate", torch::tensor(0.125));
  archive.write("nested", inner);
  torch::serialize::OutputArchive model;
  net->save(model);
  archive.write("model", model);
  archive.save_to(file.path());

  torch::serialize::InputArchive input, nested, net_archive;
  input.load_from(file.path());
  torch::Tensor epoch, rate, running, missing;
  input.read("epoch", epoch);
  input.read("running", running, /*is_buffer=*/true);
  input.read("nested", nested);
  nested.read("rate", rate);
  std::cout << epoch.item<int64_t>() << " " << rate.item<float>() << running.sizes()
            << input.try_read("missing", missing) << "\n";
  Net copy(9.0);
  input.read("model", net_archive);
  copy->load(net_archive);
  std::cout << same(*net, *copy) << "\n";
  try {
    input.read("missing", missing);
    std::cout << "found\n";
  } catch (const c10::Error&) { std::cout << "missing\n"; }
  try {
    torch::load(missing, std::string("/does/not/exist.pt"));
  } catch (const std::exception&) { std::cout << "no such file\n"; }
}

// Five steps in a row are three, a break, and two.
void resume() {
  const TemporaryFile model_file("resume_model"), optimizer_file("resume_optimizer");
  Net whole(0.2), first(0.2), second(5.0);
  torch::optim::Adam whole_adam(whole->parameters(),
                                torch::optim::AdamOptions(0.02).weight_decay(1e-3));
  train(whole, whole_adam, 5);
  {
    torch::optim::Adam adam(first->parameters(),
                            torch::optim::AdamOptions(0.02).weight_decay(1e-3));
    train(first, adam, 3);
    torch::save(first, model_file.path());
    torch::save(adam, optimizer_file.path());
  }
  torch::load(second, model_file.path());
  torch::optim::Adam adam(second->parameters(), torch::optim::AdamOptions(1.0));
  torch::load(adam, optimizer_file.path());
  std::cout << "rate "
            << static_cast<torch::optim::AdamOptions&>(adam.param_groups()[0].options()).lr()
            << "\n";
  train(second, adam, 2);
  std::cout << (same(*whole, *second) ? "the same bits" : "other numbers") << "\n";
}

int main() {
  tensors();
  models();
  archives();
  resume();
  std::ifstream none("/does/not/exist");
  return none.good() ? 1 : 0;
}
