// Stands in for LibTorch's header of this name, with the mark by which the LibTorch compatibility
// headers recognise it.
#pragma once
#include <c10/macros/Export.h>
