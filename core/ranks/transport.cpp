#include "core/ranks/transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "core/base/error.h"
#include "core/base/number_text.h"

namespace retrograd {
namespace {

constexpr char separator = '\n';

bool isGpu(const LinkOffer& offer) { return offer.device && offer.device->type == Device::Type::cuda; }

std::string variable(const char* name) {
  const auto* value = std::getenv(name);
  if (!value || !*value)
    badUse(
        "is not set: a rank finds the others by RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as torchrun sets them",
        name);
  return value;
}

int number(const char* name, int least, int most) {
  const auto text = variable(name);
  const auto value = numberIn<int>(text);
  if (!value || *value < least || *value > most)
    badUse(fmt::format("'{}' is not a number from {} to {}", text, least, most), name);
  return *value;
}

}  // namespace

std::string text(const LinkOffer& offer) {
  return fmt::format("{}{}{}{}{}", offer.device ? toString(*offer.device) : "", separator, offer.unit, separator,
                     offer.trouble);
}

LinkOffer linkOffer(const std::string& text) {
  const auto first = text.find(separator), second = first == text.npos ? first : text.find(separator, first + 1);
  if (second == text.npos) badInput("what another rank offers is damaged");
  LinkOffer offer;
  if (first > 0) offer.device = deviceFromString(text.substr(0, first));
  offer.unit = text.substr(first + 1, second - first - 1);
  offer.trouble = text.substr(second + 1);
  return offer;
}

std::string linkRefusal(const std::vector<LinkOffer>& offers) {
  const bool someOnGpu = std::any_of(offers.begin(), offers.end(), isGpu);
  std::map<std::string, std::size_t> users;
  for (std::size_t rank = 0; rank < offers.size(); ++rank) {
    const auto& offer = offers[rank];
    if (!offer.device) return fmt::format("the stages of rank {} run on several devices", rank);
    if (!offer.trouble.empty()) return fmt::format("rank {}: {}", rank, offer.trouble);
    if (isGpu(offer) != someOnGpu) return fmt::format("rank {} computes on the CPU, others on a GPU", rank);
    if (const auto [it, isFirst] = users.try_emplace(offer.unit, rank); someOnGpu && !isFirst)
      return fmt::format("ranks {} and {} share a GPU, and NCCL needs one for each", it->second, rank);
  }
  return {};
}

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
