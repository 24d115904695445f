#pragma once
#include <string>
#include <vector>

#include "core/layout/graph_tree.h"

namespace retrograd::layout {

/// Something an op reads that no op of the trace makes, or a result of the trace that it makes.
struct Badge {
  enum class Kind : std::uint8_t { parameter, buffer, constant, input, cotangent, saved, gradient, output };
  Kind kind;
  std::string text;
  ValueId value;
};

/// What a box says.
struct BoxText {
  std::string title;   ///< "convolution", "layer1.0", "linear backward"
  std::string brief;   ///< of a run of equal modules, where its title has no room: "0…10 ×11"; else the title
  std::string detail;  ///< type of the first output, number of ops
  std::vector<Badge> badges;
};

/// The text of a node's box in a lane. For an operation of one op in that lane, the op's.
BoxText boxText(const GraphTree& tree, std::int32_t node, Lane lane);
/// The only op that a box represents; none where there are several or none.
BoundSymbolId onlyOp(const GraphTree& tree, std::int32_t node, Lane lane);

/// Measures of a box in pixels at scale 1, for a fixed-width font.
namespace box {
inline constexpr float titleChar = 7.3f, detailChar = 6.1f;
inline constexpr float titleHeight = 17, detailHeight = 14, badgeHeight = 16;
inline constexpr float padX = 10, padY = 6, chevron = 16;
inline constexpr std::size_t mostBadges = 3, mostBadgeText = 14;
inline constexpr float step = 12, least = 84,
                       most = 420;  ///< widths are multiples of a step, so that like boxes are equal
}  // namespace box

}  // namespace retrograd::layout
