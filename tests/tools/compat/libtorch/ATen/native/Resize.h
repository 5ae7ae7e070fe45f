// One of LibTorch's headers that the LibTorch compatibility headers do not have.
#pragma once
#include <c10/core/SymInt.h>
