#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace retrograd {

/// Of `known`, the names that a person who typed `wanted` may have meant, the nearest first, three at most: few letters
/// differ, or `wanted` is a part of the name. Cost: the sum of the names' lengths times that of `wanted`, of which the
/// first 64 letters count.
std::vector<std::string> nearNames(std::string_view wanted, const std::vector<std::string>& known);

/// "; did you mean 'trace'?", to put behind a message; empty where no name is near.
std::string didYouMean(std::string_view wanted, const std::vector<std::string>& known);

}  // namespace retrograd
