// Graphs of random shape, with every kind of backward pass that the engine has.
#pragma once
#include "tests/fuzz.h"

namespace ramet {
namespace fuzz {

/// Builds a graph of small vectors and compares all ways of the engine, bit for bit. The graph has
/// diamonds, long arms, nodes of several results, unused results, and inputs used many times. The
/// ways are backward(), grad(), both with retained and recorded graphs, and the pass over several
/// devices.
void check_graph(Tape& tape);

}  // namespace fuzz
}  // namespace ramet
