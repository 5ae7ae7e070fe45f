// Other libraries' memory, matrices and files. The program trains on a batch of another library in
// place (DLPack), views weights as Eigen's matrices and logs to TensorBoard. It exports the trained
// network for programs that run ONNX.
#include <cmath>
#include <filesystem>
#include <iostream>
#include <vector>

#include "nn/formats/dlpack.h"
#include "nn/formats/eigen.h"
#include "nn/formats/onnx/onnx.h"
#include "nn/formats/tensorboard/tensorboard.h"
#include "ramet.h"

namespace torch = ramet;

int main() {
  torch::manual_seed(1);
  const auto folder = std::filesystem::temp_directory_path() / "ramet_exchange";

  // Memory of one's own, with strides: every second column. The last user frees it.
  auto* numbers = new std::vector<float>(64 * 4);
  for (size_t i = 0; i < numbers->size(); ++i)
    (*numbers)[i] = static_cast<float>(std::sin(static_cast<double>(i)));
  torch::Tensor x =
      torch::from_blob(numbers->data(), {64, 2}, {4, 2}, [numbers](void*) { delete numbers; });
  // To another library and back, still the same memory. NumPy, PyTorch, JAX, CuPy and TVM take and
  // give this struct.
  DLManagedTensor* out = torch::to_dlpack(x);
  const float* memory = x.data_ptr<float>();
  x = torch::from_dlpack(out);
  if (x.data_ptr<float>() != memory) return 1;
  const torch::Tensor y = (x.sum(1, true) * 2).tanh();

  torch::nn::Sequential net(torch::nn::Linear(2, 16), torch::nn::GELU(), torch::nn::Linear(16, 1));
  torch::optim::Adam adam(net->parameters(), torch::optim::AdamOptions(0.02));
  torch::EventWriter events(folder.string());  // tensorboard --logdir FOLDER
  float loss = 0;
  for (int step = 0; step < 200; ++step) {
    adam.zero_grad();
    const torch::Tensor error = torch::mse_loss(net->forward(x), y);
    if (step == 0) {
      std::vector<std::pair<std::string, torch::Tensor>> names;
      for (const auto& item : net->named_parameters()) names.emplace_back(item.key(), item.value());
      events.add_graph(torch::autograd::collect_graph({error}, names));
    }
    error.backward();
    adam.step();
    loss = error.item<float>();
    events.add_scalar("loss", loss, step);
    if (step % 50 == 0) events.add_histogram("0.weight", net->named_parameters()["0.weight"], step);
  }
  events.add_image("outputs", net->forward(x).detach().view({8, 8}) * 0.5 + 0.5, 200);
  events.flush();

  // Eigen sees the weight where it is: row i, column j, row-major as the name says.
  const auto weight = torch::as_eigen_row_major<const float>(net->named_parameters()["0.weight"]);
  std::cout << "norm of the first weight: " << weight.norm() << '\n';

  // Any number of rows from here on. The other program uses these names.
  const std::string file = (folder / "net.onnx").string();
  torch::export_onnx(net, x, file,
                     torch::OnnxOptions().batch_dim(0).input_names({"x"}).output_names({"y"}));
  std::cout << "loss " << loss << ", " << std::filesystem::file_size(file) << " bytes of ONNX, "
            << std::filesystem::file_size(events.path()) << " of events\n";
  std::filesystem::remove_all(folder);
  return loss < 0.05f ? 0 : 1;
}
