#pragma once
#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>

namespace retrograd::cli {

/// An option whose value is a size such as 100K or 2 GiB (core/base/byte_size.h).
CLI::Option* addSize(CLI::App& app, const std::string& names, std::function<void(std::int64_t)> set, const std::string& help);

/// A number above 0, and one that is 0 or more.
CLI::Validator isAboveZero();
CLI::Validator isZeroOrMore();

/// A whole number from 0 to 2^64 - 1; refuses -1, which would otherwise count from the other end.
CLI::Validator isSeed();

}  // namespace retrograd::cli
