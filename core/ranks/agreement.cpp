#include "core/ranks/agreement.h"

#include <algorithm>
#include <cstdint>
#include <span>

namespace retrograd {
namespace {

/// Rank 0's bytes: all others add zeros.
void fromFirst(Transport& transport, std::vector<std::int64_t>& numbers) {
  if (transport.rank() > 0) std::fill(numbers.begin(), numbers.end(), 0);
  transport.sumOverRanks(std::as_writable_bytes(std::span(numbers)), DType::i64);
}

}  // namespace

std::vector<std::size_t> fromFirstRank(Transport& transport, const std::vector<std::size_t>& numbers) {
  std::vector<std::int64_t> count{std::ssize(numbers)};
  fromFirst(transport, count);
  std::vector<std::int64_t> shared(numbers.begin(), numbers.end());
  shared.resize(count.front());
  if (!shared.empty()) fromFirst(transport, shared);
  return {shared.begin(), shared.end()};
}

}  // namespace retrograd
