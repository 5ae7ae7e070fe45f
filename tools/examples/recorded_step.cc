// What happens in a step: recorded, and shown on a page that a browser opens.
#include <filesystem>
#include <iostream>

#include "ramet.h"
#include "tools/see/see.h"

namespace torch = ramet;
namespace see = ramet::see;

int main(int argc, char** argv) {
  torch::manual_seed(1);
  const std::filesystem::path folder =
      argc > 1 ? argv[1] : std::filesystem::temp_directory_path() / "ramet_recorded_step";
  std::filesystem::create_directories(folder);
  const auto file = [&](const char* name) { return (folder / name).string(); };

  torch::nn::Sequential net(torch::nn::Linear(8, 16), torch::nn::ReLU(), torch::nn::Linear(16, 3));
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.1));
  const torch::Tensor x = torch::randn({32, 8}), y = torch::arange(32) % 3;

  // All that this thread does from here on. With source_lines, and -g, also where in the program.
  see::RecordingOptions options;
  options.title = "one step";
  options.statistics = true;
  see::Recording recording(options);
  recording.watch(net);  // names of parameters and modules
  sgd.zero_grad();
  torch::cross_entropy_loss(net->forward(x), y).backward();
  sgd.step();
  see::RecordingData data = recording.data();  // the end of the recording

  see::find(data);  // dead units, gradients that vanish, what keeps memory ... in words
  for (const see::FindingRow& finding : data.findings) std::cout << finding.text << '\n';
  std::cout << see::summary(data);
  see::explore(data, file("step.html"));    // the page
  see::write(data, file("step.ramet.gz"));  // to show later, or next to another: see::read
  std::cout << "open " << file("step.html") << '\n';

  // The same backward, a node at a time.
  const torch::Tensor loss = torch::cross_entropy_loss(net->forward(x), y);
  see::Stepper stepper(loss, *net);
  stepper.break_at("0.weight");
  while (stepper.run()) std::cout << stepper;
  return data.nodes.empty() ? 1 : 0;
}
