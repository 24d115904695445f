#include "core/trace/argument.h"

#include <functional>

namespace retrograd {
namespace {

void mix(std::size_t& seed, std::size_t h) { seed ^= h + 0x9e3779b97f4a7c15ULL + (seed << 6) + (seed >> 2); }

void mixArgument(std::size_t& seed, const Argument& a) {
  mix(seed, static_cast<std::size_t>(a.kind));
  mix(seed, a.integer);
  if (a.real != 0) mix(seed, std::hash<double>()(a.real));
  if (a.imaginary != 0) mix(seed, std::hash<double>()(a.imaginary));
  if (!a.text.empty()) mix(seed, std::hash<std::string>()(a.text));
  for (const auto& item : a.items) mixArgument(seed, item);
}

}  // namespace

std::size_t hashOf(const CallPattern& pattern) {
  std::size_t seed = pattern.operandCount;
  for (const auto& a : pattern.arguments) mixArgument(seed, a);
  for (const auto& n : pattern.names) mix(seed, std::hash<std::string>()(n));
  for (auto r : pattern.returns) mix(seed, r);
  return seed;
}

}  // namespace retrograd
