// Classes with members that ramet_gdb.py knows by their offsets. Compiled with debug information of
// all classes (-femit-class-debug-always), and not run.
#include "ramet.h"

namespace {
[[gnu::used]] ramet::TensorImpl* tensor;
[[gnu::used]] ramet::StorageImpl* storage;
[[gnu::used]] ramet::autograd::Node* node;
[[gnu::used]] ramet::autograd::RawEdge* edge;
[[gnu::used]] ramet::autograd::AccumulateGrad* leaf;
[[gnu::used]] ramet::nn::Module* module;
[[gnu::used]] ramet::OrderedDict<std::string, ramet::Tensor>* parameters;
}  // namespace

int main() {}
