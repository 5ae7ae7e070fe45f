// The modules that a JSON description may name.
#pragma once
#include <string>
#include <vector>

#include "nn/c/reader_internal.h"

namespace ramet::c {

struct Layer {
  const char* type;
  nn::AnyModule (*make)(Reader& options);
};
/// The layers are split over two files to shorten compilation: layers that work on single elements
/// or rows, and layers that work on planes.
const std::vector<Layer>& row_layers();
const std::vector<Layer>& plane_layers();

/// Makes a batch or instance norm. Both have the same list of options.
template <class Options, class Impl> nn::AnyModule norm_of_channels(Reader& r) {
  Options o{r.count("num_features")};
  r.read("eps", o.eps());
  r.read("momentum", o.momentum());
  r.read("affine", o.affine());
  r.read("track_running_stats", o.track_running_stats());
  return r.make<Impl>(o);
}

/// The module of a description; Errors of `op`. It is settled: cast to its "dtype", its parameters
/// in flat stores.
nn::AnyModule module_of_json(const char* op, const std::string& json);

// A line of such a list: the body has `r`, the options.
#define RAMET_LAYER(Name, ...) {#Name, [](Reader& r) -> nn::AnyModule { __VA_ARGS__ }},

}  // namespace ramet::c
