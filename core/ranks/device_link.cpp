#include "core/ranks/device_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/base/error.h"

namespace retrograd {
namespace {

constexpr char separator = '\n';

bool isGpu(const LinkOffer& offer) { return offer.device && offer.device->type == Device::Type::cuda; }

}  // namespace

std::string text(const LinkOffer& offer) {
  return fmt::format("{}{}{}{}{}", offer.device ? toString(*offer.device) : "", separator, offer.unit, separator,
                     offer.trouble);
}

LinkOffer linkOffer(const std::string& text) {
  const auto first = text.find(separator), second = first == text.npos ? first : text.find(separator, first + 1);
  if (second == text.npos) throw Error(ErrorCode::badInput, "what another rank offers is damaged");
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

}  // namespace retrograd
