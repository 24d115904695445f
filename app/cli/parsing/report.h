#pragma once
#include "core/judge/report.h"

namespace retrograd::cli {

/// Prints a report as text: the verdict's line, coloured, and the lines below it. With --quiet a pass says nothing.
void printReport(const Report& report, const Decision& decision, bool brief = false);

}  // namespace retrograd::cli
