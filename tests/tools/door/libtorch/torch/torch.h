// Stands in for LibTorch's header of this name, with what the door knows it by.
#pragma once
#include <c10/macros/Export.h>
