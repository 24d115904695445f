#pragma once
#include <QString>
#include <optional>

#include "core/judge/claim.h"
#include "views/findings/finding_board.h"

namespace retrograd::views {

/// What a colour and a shape say: of a file as a whole, and of each finding.
enum class Light : std::uint8_t { unknown, good, suspicion, fault };
Light lightOf(Severity severity);
/// "Fault", "Suspicion", "Good", "Not judged": for those who see neither.
QString wordOf(Light light);

/// The one line that says what is known of the open file, from all that is on the board.
struct VerdictLine {
  Light light = Light::unknown;
  QString sentence;            ///< the claim that decides; what was judged, where all is good; else what was not
  std::optional<Claim> claim;  ///< that decides; none where nothing is wrong
  QString command;             ///< of a file that is not judged: what judges it; may be empty
  std::size_t more = 0;        ///< further findings
};
VerdictLine verdictLine(const FindingBoard& board);

}  // namespace retrograd::views
