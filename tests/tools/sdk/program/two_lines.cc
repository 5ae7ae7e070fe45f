#include <ramet.h>
int main() { return ramet::ones({2}).sum().item<int>() - 2; }
