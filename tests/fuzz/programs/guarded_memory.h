#pragma once
#include <string>

namespace retrograd::fuzz {

/// From now on each tensor's memory on the CPU lies between guards, and is filled with another byte each time: a kernel
/// that reads what nobody wrote does not give the same twice, and one that writes beyond its memory is caught when the
/// memory is freed, instead of changing the next program's numbers.
void guardMemory();

/// What was found written beyond a tensor since the last call; empty where nothing was.
std::string takeDamage();

}  // namespace retrograd::fuzz
