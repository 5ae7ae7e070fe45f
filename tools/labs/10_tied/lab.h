// Lab 10: what the grader calls.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "ramet.h"
#include "tools/labs/grader.h"

namespace ramet::labs {

/// What a module holds: its parameters by name. The same tensor may be there under two names.
struct NamedParameters {
  std::vector<std::pair<std::string, Tensor>> list;
  Tensor& operator[](const std::string& name) {
    for (auto& [key, tensor] : list)
      if (key == name) return tensor;
    wrong("there is no parameter \"", name, "\" in a replica");
  }
};

struct TiedLab {
  std::vector<NamedParameters> (*replicate)(const NamedParameters& source,
                                            const std::vector<Device>& devices);
};
void grade(const TiedLab& answer, Report& report);

}  // namespace ramet::labs

#define LAB_ANSWER(space) \
  ramet::labs::TiedLab { &space::replicate }
