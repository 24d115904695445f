#pragma once
// Parts of the page. Each is HTML that says what it has to say without a script.
#include <string>
#include <string_view>
#include <vector>

#include "core/page/page.h"

namespace retrograd {

/// A stretch of the run that belongs together, for the timeline and the headings of the listings: "forward",
/// "backward", "optimizer" of a recorded step, forward and backward of a model.
struct PageStretch {
  std::size_t begin = 0, end = 0;  ///< positions in the joint
  std::string title;               ///< "step 0, backward"
  std::string lane;                ///< "backward"
};
std::vector<PageStretch> stretchesOf(const Analysis& analysis);

/// What the two listings show: the forward, or the whole computation where nothing was derived; and all that ran after
/// it.
struct PageListings {
  std::vector<BoundSymbolId> left, right;
  std::string leftTitle, rightTitle;
};
PageListings listingsOf(const Analysis& analysis);
/// The op of a listing that stands for `op`: itself, or what was derived of an op of the computation.
BoundSymbolId shownOp(const Analysis& analysis, BoundSymbolId op);

/// Ops over the time of the step, marks where findings are, live bytes below them. Empty where there is no joint.
std::string timelineSection(const Page& page);
/// The listings and what is said of a chosen op; the script fills them from listingData().
std::string listingSection(const Page& page);
/// JSON of ops, values, numbers and places, read by the script.
std::string listingData(const Page& page, const Progress& progress);
/// "memory": the peak and the modules that hold it.
std::vector<PageTable> memoryTables(const Analysis& analysis);

}  // namespace retrograd
