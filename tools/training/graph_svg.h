// graph.svg: an autograd graph drawn in layers, the loss on top, the parameters where they enter.
#pragma once
#include <string>

#include "autograd/graph_print.h"

namespace ramet::training {

/// A complete SVG document. Colours show devices; reductions across devices stand out. Meant for
/// graphs of up to a few hundred vertices; the time grows with the square of the widest layer.
std::string draw_graph(const autograd::GraphPicture& graph, const std::string& title);

}  // namespace ramet::training
