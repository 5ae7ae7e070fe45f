// A step that is recorded, its page, pictures. The folder has the name of one of Ramet's: the lines
// that a recording names are still the program's.
#include <ramet.h>
#include <ramet/see.h>

#include <cstdio>

#include "ramet/nn/formats/tensorboard/tensorboard.h"

namespace see = ramet::see;

int main() {
  ramet::manual_seed(1);
  ramet::nn::Sequential net(ramet::nn::Linear(4, 3), ramet::nn::ReLU(), ramet::nn::Linear(3, 1));
  see::RecordingOptions options;
  options.statistics = options.source_lines = true;
  see::Recording recording(options);
  recording.watch(net);
  ramet::Tensor loss = net->forward(ramet::ones({2, 4})).square().mean();  // line 19
  loss.backward();
  see::RecordingData data = recording.data();
  see::find(data);
  see::explore(data, "step.html");
  see::write(data, "step.ramet.gz");
  if (!(see::read("step.ramet.gz") == data)) return 1;
  bool found = false;
  for (const see::SourceRow& row : data.sources) {
    std::printf("%s:%d %s\n", row.file.c_str(), row.line, row.function.c_str());
    found = found || (row.file == "nn/recorded.cc" && row.line == 19);
  }
  if (!found) return 2;

  see::Stepper stepper(net->forward(ramet::ones({2, 4})).sum(), *net);
  int64_t steps = 0;
  while (stepper.next()) ++steps;
  if (steps == 0 || steps != stepper.steps()) return 3;
  see::plot({see::Curve("loss", std::vector<double>{3, 2, 1})}, "curve.png");
  see::show(net->parameters()[0], "weight.svg");
  // Its pictures are made by the same code.
  ramet::EventWriter writer("events");
  writer.add_image("x", ramet::rand({3, 4, 4}), 0);
  return 0;
}
