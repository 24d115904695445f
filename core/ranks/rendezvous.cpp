#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "core/base/error.h"
#include "core/base/number_text.h"
#include "core/ranks/transport.h"

namespace retrograd {
namespace {

std::string variable(const char* name) {
  const auto* value = std::getenv(name);
  if (!value || !*value)
    throw Error(
        ErrorCode::badUse,
        "is not set: a rank finds the others by RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as torchrun sets them",
        name);
  return value;
}

int number(const char* name, int least, int most) {
  const auto text = variable(name);
  const auto value = numberIn<int>(text);
  if (!value || *value < least || *value > most)
    throw Error(ErrorCode::badUse, fmt::format("'{}' is not a number from {} to {}", text, least, most), name);
  return *value;
}

}  // namespace

Rendezvous rendezvousFromEnvironment() {
  Rendezvous where;
  where.size = number("WORLD_SIZE", 1, 100'000);
  where.rank = number("RANK", 0, where.size - 1);
  where.localRank = std::getenv("LOCAL_RANK") ? number("LOCAL_RANK", 0, 100'000) : where.rank;
  where.address = variable("MASTER_ADDR");
  where.port = number("MASTER_PORT", 1, 65'535);
  return where;
}

}  // namespace retrograd
