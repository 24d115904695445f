// Structured trace logs: a line of JSON behind an envelope, and a payload of lines that begin with a tab.
#include <fmt/format.h>

#include "core/formats/jobs/log_builder.h"
#include "core/formats/jobs/md5.h"

namespace retrograd::jobs {
namespace {

constexpr std::size_t releaseEvery = 32U << 20, mostOfAnArtifact = 64U << 10;

/// The lines of a mapped file, whose pages are given back behind the reader.
class Lines {
 public:
  Lines(const LogFile& file, const Progress& progress) : file_(file), progress_(progress), text_(file.bytes.text()) {}
  bool atEnd() const { return at_ >= text_.size(); }
  std::uint64_t offset() const { return at_; }
  int number() const { return number_; }
  char first() const { return text_[at_]; }
  std::string_view peek() const { return text_.substr(at_, text_.find('\n', at_) - at_); }
  std::string_view take() {
    const auto end = text_.find('\n', at_);
    auto line = text_.substr(at_, end == std::string_view::npos ? end : end - at_);
    at_ = end == std::string_view::npos ? text_.size() : end + 1;
    ++number_;
    if (at_ - released_ >= releaseEvery) release();
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
  }

 private:
  void release() {
    progress_.at("reading the log", static_cast<double>(at_) / static_cast<double>(text_.size()));
    // The rest of the last page is still to be read.
    const auto upTo = at_ & ~std::size_t{0xffff};
    releasePages(file_.bytes, released_, upTo - released_);
    released_ = upTo;
  }

  const LogFile& file_;
  const Progress& progress_;
  std::string_view text_;
  std::size_t at_ = 0, released_ = 0;
  int number_ = 1;
};

bool isSkipped(std::string_view json) {
  return json.starts_with("{\"chromium_event\"") || json.starts_with("{\"describe_storage\"") ||
         json.starts_with("{\"guard_added");
}

class Scan {
 public:
  Scan(const JobLog& log, std::size_t file, LogBuilder& builder, const Progress& progress)
      : log_(log), file_(file), builder_(builder), lines_(log.files[file], progress) {}

  void run() {
    while (!lines_.atEnd()) {
      const auto offset = lines_.offset();
      const int number = lines_.number();
      const auto line = lines_.take();
      const auto envelope = readEnvelope(line);
      if (!envelope || !envelope->content.starts_with('{')) {
        if (!line.empty()) unreadable(number);
        continue;
      }
      lastPid_ = envelope->pid;
      if (isSkipped(envelope->content)) {
        skipPayload();
      } else {
        readRecord(*envelope, offset, number);
      }
    }
    if (unreadable_ > 0) {
      auto& process = builder_.process(file_, lastPid_);
      process.problems.push_back({Problem::Severity::warning,
                                  fmt::format("{} lines belong to no record; they are left out", unreadable_),
                                  place(firstUnreadable_), -1});
    }
  }

 private:
  std::string place(int line) const { return fmt::format("{}:{}", log_.files[file_].path, line); }
  void unreadable(int line) {
    if (unreadable_++ == 0) firstUnreadable_ = line;
  }
  void skipPayload() {
    while (!lines_.atEnd() && lines_.first() == '\t') lines_.take();
  }

  void readRecord(const Envelope& envelope, std::uint64_t offset, int number) {
    std::optional<JsonTree> tree;
    try {
      tree.emplace(envelope.content);
    } catch (const Error& e) {
      if (e.code() != ErrorCode::badInput) throw;
    }
    auto& process = builder_.process(file_, envelope.pid);
    if (!tree || !tree->root().isObject()) {
      process.problems.push_back(
          {Problem::Severity::warning, "a record that is not whole JSON; it is left out", place(number), -1});
      return skipPayload();
    }
    const auto& record = tree->root();
    builder_.addRecord(process, record, offset, envelope.time);
    const std::string checksum(record.textAt("has_payload"));
    if (const auto kind = record.find("has_payload") ? LogBuilder::graphOf(record) : std::nullopt)
      return readGraph(process, record, *kind, {}, checksum);
    if (const auto* code = record.find("inductor_output_code")) return readCode(process, record, *code);
    const auto* artifact = record.find("artifact");
    const auto named = artifact != nullptr ? artifact->textAt("name") : std::string_view();
    if (lines_.atEnd() || lines_.first() != '\t') return;
    if (beginsGraph(lines_.peek().substr(1)))  // whatever its record is called
      return readGraph(process, record, GraphKind::other, nameOfRecord(record, named), checksum);
    if (named == "torch_version" || named == "dynamo_graph_break_reason" || named == "recompile_reasons")
      readArtifact(process, record, named);
    skipPayload();
  }

  void readCode(Process& process, const Json& record, const Json& code) {
    OutputCodeRecord found;
    const auto path = code.textAt("filename");
    found.file = path.substr(path.rfind('/') + 1);
    found.payload = {file_, lines_.offset(), 0, Payload::Lines::tabbed, lines_.number()};
    skipPayload();
    found.payload.bytes = lines_.offset() - found.payload.offset;
    if (!found.file.empty()) builder_.addCode(process, record, std::move(found));
  }

  /// The artifact's name, else the record's own key.
  static std::string nameOfRecord(const Json& record, std::string_view artifact) {
    if (!artifact.empty()) return std::string(artifact);
    for (const auto& member : record.members())
      if (member.value.isObject()) return std::string(member.key);
    return "graph";
  }

  void readArtifact(Process& process, const Json& record, std::string_view name) {
    std::string text;
    while (!lines_.atEnd() && lines_.first() == '\t' && text.size() < mostOfAnArtifact)
      text.append(lines_.take().substr(1)).append(1, '\n');
    if (name == "dynamo_graph_break_reason") {
      const auto reason = text.find("Graph Break Reason: ");
      const auto from = reason == std::string::npos ? 0 : reason + 20;
      return builder_.addBreakReason(process, record,
                                     std::string_view(text).substr(from, text.find('\n', from) - from));
    }
    if (name == "recompile_reasons")
      return builder_.addRecompileReasons(process, LogBuilder::idOf(record), LogBuilder::attemptOf(record), text);
    // {"torch": "2.15.0+cu132", ...}, or the version alone.
    for (const std::string_view key :
         {"\"pytorch_version\": \"", "\"torch_version\": \"", "\"torch\": \"", "\"version\": \""}) {
      const auto at = text.find(key);
      if (at == std::string::npos) continue;
      const auto begin = at + key.size();
      process.torchVersion = text.substr(begin, text.find('"', begin) - begin);
      return;
    }
  }

  void readGraph(Process& process, const Json& record, GraphKind kind, std::string name, const std::string& hash) {
    GraphRecord graph;
    graph.kind = kind;
    graph.record = std::move(name);
    graph.payload = {file_, lines_.offset(), 0, Payload::Lines::tabbed, lines_.number()};
    Md5 md5;
    OpCounter counter;
    bool isFirst = true;
    while (!lines_.atEnd() && lines_.first() == '\t') {
      const auto line = lines_.take().substr(1);
      if (!std::exchange(isFirst, false)) md5.add("\n");
      md5.add(line);
      counter.line(line);
    }
    graph.payload.bytes = lines_.offset() - graph.payload.offset;
    graph.ops = counter.ops();
    graph.damaged = isFirst || (!hash.empty() && md5.digest() != hash);
    builder_.addGraph(process, LogBuilder::idOf(record), LogBuilder::attemptOf(record), graph);
  }

  const JobLog& log_;
  std::size_t file_;
  LogBuilder& builder_;
  Lines lines_;
  std::string_view lastPid_;
  std::size_t unreadable_ = 0;
  int firstUnreadable_ = 0;
};

}  // namespace

void scanStructured(const JobLog& log, std::size_t file, LogBuilder& builder, const Progress& progress) {
  Scan(log, file, builder, progress).run();
}

}  // namespace retrograd::jobs
