#include "core/questions/ranks/forwards.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/formats/recording/recording.h"

namespace retrograd {
namespace {

struct Forward {
  std::vector<BoundSymbolId> ops;  ///< that lead to a loss
  std::size_t asksDataAt = 0;      ///< index of the first op of the recording that asks; its size: none does
};

Forward forwardOf(const RankStep& rank) {
  const auto& document = rank.document();
  const auto& recording = rank.recording();
  const auto& ops = rank.analysis->joint.ops;
  Forward forward{.asksDataAt = ops.size()};
  std::vector<char> leads(document.valueCount(), 0);
  for (const auto loss : recording.losses) leads[loss.index] = 1;
  for (auto i = ops.size(); i-- > 0;) {
    const auto phase = recording.op(ops[i]).phase;
    if (phase != Phase::forward && phase != Phase::loss) continue;
    if (document.symbol(ops[i]).needsData) forward.asksDataAt = i;
    const auto outputs = document.outputs(ops[i]);
    if (std::ranges::none_of(outputs, [&](ValueId value) { return value && leads[value.index]; })) continue;
    for (const auto operand : document.operands(ops[i]))
      if (operand) leads[operand.index] = 1;
    const bool isReaders = recording.op(ops[i]).number < 0;  // it puts bytes there, or makes a view
    if (!isReaders && !(document.boundSymbol(ops[i]).effects & effect::view)) forward.ops.push_back(ops[i]);
  }
  std::ranges::reverse(forward.ops);
  return forward;
}

}  // namespace

std::vector<Claim> partingForwards(const RankStep& one, const RankStep& other) {
  if (one.recording().losses.empty() || other.recording().losses.empty()) return {};
  const auto mine = forwardOf(one), yours = forwardOf(other);
  const auto isSame = [&](BoundSymbolId a, BoundSymbolId b) {
    return one.document().symbol(a).name == other.document().symbol(b).name;
  };
  const auto [a, b] = std::ranges::mismatch(mine.ops, yours.ops, isSame);
  if (a == mine.ops.end() && b == yours.ops.end()) return {};
  const auto textOf = [](const RankStep& rank, const auto& at, const auto& end) {
    if (at == end) return std::string("no further op");
    const auto line = recordedLine(rank.document(), *at);
    return rank.document().symbol(*at).name + (line.empty() ? "" : " (" + line + ")");
  };
  const bool isLonger = a != mine.ops.end() && (b == yours.ops.end() || mine.ops.size() >= yours.ops.size());
  const auto& at = isLonger ? *a : *b;
  const auto& rank = isLonger ? one : other;
  const bool mayBeData =
      mine.asksDataAt < one.analysis->joint.ops.size() || yours.asksDataAt < other.analysis->joint.ops.size();
  return {{.by = Producer::rank,
           .severity = mayBeData ? Severity::suspicion : Severity::fault,
           .kind = "forwards-part",
           .sentence = fmt::format("the forward of rank {} runs {}, where that of rank {} runs {}", one.rank,
                                   textOf(one, a, mine.ops.end()), other.rank, textOf(other, b, yours.ops.end())),
           .remedy = "what one rank alone computes goes into its part of each gradient",
           .line = recordedLine(rank.document(), at),
           .op = at}};
}

}  // namespace retrograd
