// make_weights FILE: what a training program would leave, the network and a picture's answer.
#include <iostream>

#include "segmenter.h"

int main(int argc, char** argv) {
  if (argc != 2) return std::cerr << "usage: make_weights FILE\n", 2;
  torch::manual_seed(11);
  Segmenter net(4);
  torch::optim::Adam optimizer(net->parameters(), 1e-2);
  const auto images = torch::randn({4, 1, 8, 8});
  const auto labels = (images.squeeze(1) > 0).to(torch::kLong);
  for (int step = 0; step < 30; ++step) {
    optimizer.zero_grad();
    torch::nn::functional::cross_entropy(net->forward(images), labels).backward();
    optimizer.step();
  }
  net->eval();
  torch::serialize::OutputArchive archive;
  net->save(archive);
  {
    torch::NoGradGuard no_grad;
    archive.write("images", images, /*is_buffer=*/true);
    archive.write("answers", net->forward(images), /*is_buffer=*/true);
  }
  archive.save_to(argv[1]);
  torch::save(net->parameters(), std::string(argv[1]) + ".parameters");
}
