// Moved. This name stays for one release.
#pragma once
#include "nn/formats/numpy/npy.h"
