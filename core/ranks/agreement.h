#pragma once
#include <cstddef>
#include <vector>

#include "core/ranks/transport.h"

namespace retrograd {

/// The numbers that rank 0 has; those of the others count for nothing. All ranks call it in one order. Throws as
/// Transport.
std::vector<std::size_t> fromFirstRank(Transport& transport, const std::vector<std::size_t>& numbers);

}  // namespace retrograd
