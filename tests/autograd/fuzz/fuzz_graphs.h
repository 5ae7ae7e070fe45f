// Graphs of random shape, walked in every way that the engine has.
#pragma once
#include "tests/fuzz.h"

namespace ramet {
namespace fuzz {

/// Builds a graph of small vectors (diamonds, long arms, nodes of several results, results that
/// nobody uses, inputs used many times) and compares backward's walk, grad()'s, both with retained
/// and recorded graphs, and the walk of several devices, bit for bit.
void check_graph(Tape& tape);

}  // namespace fuzz
}  // namespace ramet
