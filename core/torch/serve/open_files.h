#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/judge/report.h"
#include "core/questions/memory_join/recorded_memory.h"
#include "core/serve/serve.h"
#include "core/torch/opening/open_request.h"
#include "core/torch/script/script.h"

namespace retrograd {

/// A file that is open, with what was asked of it so far.
struct OpenFile {
  OpenRequest request;
  std::string kind;                              ///< as pages have it: "model", "recorded step"
  std::shared_ptr<const Analysis> analysis;      ///< null for a snapshot
  std::unique_ptr<DebugScript> script;           ///< null until it is asked
  std::unique_ptr<const RecordedMemory> memory;  ///< of a snapshot
  std::optional<Report> report;
};

/// The files that are open, numbered from 1 as they were opened.
class OpenFiles {
 public:
  explicit OpenFiles(OpenRequest request) : request_(std::move(request)) {}

  /// A file that is open already is not opened again. Throws as openModel().
  OpenFile& open(const std::string& path, const Progress& progress);
  /// The one of this number, or the last that was opened or asked where it is absent. Throws Error(badUse).
  OpenFile& at(const Method::Json& arguments);
  std::size_t numberOf(const OpenFile& file) const;

  /// Throws Error(badUse) for a snapshot, which has no ops.
  const std::shared_ptr<const Analysis>& analysis(OpenFile& file) const;
  /// A command of the debugger, answered as data. `line` has no word of the asker's before its first space.
  Method::Json command(OpenFile& file, const std::string& line, const Progress& progress) const;
  DebugScript& script(OpenFile& file) const;

 private:
  OpenRequest request_;
  std::vector<std::unique_ptr<OpenFile>> files_;
  std::size_t last_ = 0;
};

/// A text among the arguments; `otherwise` where it is absent.
std::string textIn(const Method::Json& arguments, const char* name, const std::string& otherwise = {});
std::size_t countIn(const Method::Json& arguments, const char* name, std::size_t otherwise);

/// An op for an answer: id, call, module, line of Python, role, id of its origin.
Method::Json opAnswer(const Analysis& analysis, BoundSymbolId op);

/// Methods by subject: of files, of ops and values, of explanations.
std::vector<Method> fileMethods(const std::shared_ptr<OpenFiles>& files);
std::vector<Method> opMethods(const std::shared_ptr<OpenFiles>& files);
std::vector<Method> whyMethods(const std::shared_ptr<OpenFiles>& files);

}  // namespace retrograd
