#pragma once
// The page to send: one HTML file with verdict, findings, timeline, values, memory and both listings. It loads nothing
// and says so (Content-Security-Policy); what an opened file holds is text in it and never markup.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/progress.h"
#include "core/derivation/analysis.h"
#include "core/judge/report.h"
#include "core/questions/run_record.h"

namespace retrograd {

/// A table of the page, in words.
struct PageTable {
  std::string title, note;
  std::vector<std::string> columns;  ///< those after the first are numbers, aligned to the right
  std::vector<std::vector<std::string>> rows;
};

/// What a page says of one subject.
struct Page {
  std::string title;                                       ///< name of the file or folder
  std::string kind;                                        ///< "recorded step", "model", "memory snapshot"
  std::vector<std::pair<std::string, std::string>> facts;  ///< "PyTorch", "2.15.0"
  Report report;                                           ///< findings are its claims
  std::optional<Decision> decision;                        ///< none: the subject has nothing to judge; of `report`
  const Analysis* analysis = nullptr;                      ///< for listings, timeline and memory; may be null
  const RunRecord* values = nullptr;                       ///< numbers of its values; null: it was not run
  std::vector<PageTable> tables;
  std::vector<std::string> notes;  ///< for people
};

/// The file. Throws Error(cancelled).
std::string pageText(const Page& page, const Progress& progress = {});

}  // namespace retrograd
