// LibTorch's own headers include this one, and programs do not. Written by tools/compat/names.py.
#error "a header of a real LibTorch in a unit with Ramet's door: take one of the two off the include path"
#include <a_real_LibTorch_and_the_door_in_one_unit>  // stops here
