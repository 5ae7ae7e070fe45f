// Where does a NaN come from, what will backward visit, where does the time go?
#include <iostream>

#include "ramet.h"

namespace torch = ramet;

torch::Tensor distance(const torch::Tensor& a, const torch::Tensor& b) {
  torch::RecordScope scope("distance");  // a name of one's own, for errors and traces
  return (a - b).pow(2).sum().sqrt();
}

int main() {
  bool right = true;
  const torch::Tensor a = torch::ones({3}).requires_grad_();

  // The derivative of sqrt at 0 is infinite, and 0 times infinity is NaN. Anomaly mode stops there
  // and names the operation and the scopes around its forward call.
  try {
    torch::autograd::DetectAnomalyGuard anomaly;
    distance(a, torch::ones({3})).backward();
    right = false;
  } catch (const torch::Error& error) {
    std::cout << error.what() << "\n\n";
    right = right && std::string(error.what()).find("distance") != std::string::npos;
  }

  // The graph that computed a tensor, as text; dot() gives the same for a picture.
  const torch::Tensor loss = distance(a, torch::zeros({3}));
  const auto graph = torch::autograd::collect_graph({loss}, {{"a", a}});
  std::cout << graph.text() << '\n';
  right = right && graph.text().find("SqrtBackward0") != std::string::npos;

  // A timeline for chrome://tracing or Perfetto: write(path) makes a file of it.
  torch::ChromeTrace trace;
  trace.start();
  loss.backward();
  trace.stop();
  std::cout << trace.size() << " events in " << trace.json().size() << " bytes of trace\n";
  return right && trace.size() > 0 ? 0 : 1;
}
