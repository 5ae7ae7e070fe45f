// One of LibTorch's headers that the door does not have.
#pragma once
#include <c10/core/SymInt.h>
