#include "core/formats/torchscript/torchscript_archive.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "core/base/error.h"
#include "core/base/number_text.h"

namespace retrograd {
namespace {

constexpr std::string_view blanks = " \t\r\n";

using Kind = PickleValue::Kind;

std::uint64_t readVersion(const Archive& archive) {
  const std::string record = archive.has(".data/version") ? ".data/version" : "version";
  const auto bytes = archive.read(record);
  const auto text = trimmed(bytes.text(), blanks);
  const auto version = numberIn<std::uint64_t>(text);
  if (!version) badInput("is not a version number", record);
  return *version;
}

/// "/src/model.py(31): forward", a line of the stack that tracing left.
std::optional<SourceFrame> tracedFrame(std::string_view line) {
  line = trimmed(line, blanks);
  const auto colon = line.rfind("): ");
  const auto bracket = colon == std::string_view::npos ? colon : line.rfind('(', colon);
  if (bracket == std::string_view::npos) return std::nullopt;
  SourceFrame frame;
  const auto number = line.substr(bracket + 1, colon - bracket - 1);
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), frame.line);
  if (error != std::errc() || end != number.data() + number.size()) return std::nullopt;
  frame.file = line.substr(0, bracket);
  frame.function = line.substr(colon + 3);
  return frame;
}

/// Frames of the machinery between one module's forward and the next.
bool isCallMachinery(const SourceFrame& frame) {
  return frame.file.ends_with("torch/nn/modules/module.py") &&
         (frame.function == "_slow_forward" || frame.function == "_call_impl" ||
          frame.function == "_wrapped_call_impl");
}

/// A stack as tracing wrote it, innermost line first; what lies outside of torch.jit.trace is the script that made the
/// file.
SourceStack tracedStack(const std::vector<std::string_view>& lines) {
  SourceStack stack;
  for (const auto line : lines) {
    auto frame = tracedFrame(line);
    if (!frame) continue;
    if (frame->file.ends_with("torch/jit/_trace.py")) break;
    if (!isCallMachinery(*frame)) stack.push_back(*std::move(frame));
  }
  std::reverse(stack.begin(), stack.end());
  return stack;
}

/// "forward" of "def forward(self, x):".
std::string functionName(std::string_view line) {
  line = trimmed(line, blanks);
  if (!line.starts_with("def ")) return {};
  return std::string(trimmed(line.substr(4, line.find('(') - 4), blanks));
}

/// Reads ".debug_pkl": ("FORMAT_WITH_STRING_TABLE", texts, ((offset, ((lines, file, first line), begin, end), tag),
/// ...)), or, before PyTorch 1.11, the last part alone with texts instead of their numbers.
class OriginsReader {
 public:
  explicit OriginsReader(const Pickle& pickle) : pickle_(pickle) {
    const auto& root = tuple(pickle.root);
    const bool hasTable = root.items.size() == 3 && at(root.items[0]).kind == Kind::string;
    table_ = hasTable ? &tuple(root.items[1]) : nullptr;
    records_ = hasTable ? &tuple(root.items[2]) : &root;
  }

  template <class Visit>
  void forEach(Visit&& visit) {
    for (const auto index : records_->items) {
      const auto& record = tuple(index);
      if (record.items.size() < 2) badInput("a source range without a source");
      visit(integer(record.items[0]), frames(tuple(record.items[1])));
    }
  }

 private:
  const PickleValue& at(std::uint32_t index) const { return pickle_.at(index); }
  const PickleValue& tuple(std::uint32_t index) const {
    if (at(index).kind != Kind::tuple) badInput("a source range is not a tuple");
    return at(index);
  }
  std::int64_t integer(std::uint32_t index) const {
    if (at(index).kind != Kind::integer || at(index).integer < 0) badInput("a source range without numbers");
    return at(index).integer;
  }
  std::string_view text(std::uint32_t index) const {
    const auto& value = at(index);
    if (value.kind == Kind::string) return value.text;
    if (value.kind != Kind::integer || !table_) return {};
    const std::size_t i = integer(index);
    if (i >= table_->items.size()) badInput("a source text that is not there");
    return at(table_->items[i]).text;
  }

  std::vector<std::string_view> lines(const PickleValue& value) const {
    std::vector<std::string_view> found;
    if (value.kind == Kind::list || value.kind == Kind::tuple) {
      for (const auto item : value.items) found.push_back(text(item));
      return found;
    }
    std::string_view rest = value.text;
    while (!rest.empty()) {
      const auto end = std::min(rest.find('\n'), rest.size() - 1) + 1;
      found.push_back(rest.substr(0, end));
      rest.remove_prefix(end);
    }
    return found;
  }

  const SourceStack& frames(const PickleValue& range) {
    if (range.items.size() < 2) badInput("a source range without a place");
    const auto begin = integer(range.items[1]);
    auto [it, isNew] = known_.try_emplace({range.items[0], begin});
    if (isNew) it->second = makeFrames(tuple(range.items[0]), begin);
    return it->second;
  }

  SourceStack makeFrames(const PickleValue& source, std::size_t begin) const {
    if (source.items.size() < 3) badInput("a source without a file");
    const auto all = lines(at(source.items[0]));
    if (all.empty()) return {};
    if (tracedFrame(all.front())) return tracedStack(all);
    SourceFrame frame;
    frame.file = text(source.items[1]);
    frame.line = static_cast<int>(integer(source.items[2])) + 1;
    frame.function = functionName(all.front());
    if (frame.file.empty()) return {};
    std::size_t line = 0;
    for (; line + 1 < all.size() && begin >= all[line].size(); ++line) begin -= all[line].size();
    frame.line += static_cast<int>(line);
    frame.code = trimmed(all[line], blanks);
    return {frame};
  }

  const Pickle& pickle_;
  const PickleValue *table_, *records_;
  std::map<std::pair<std::uint32_t, std::int64_t>, SourceStack> known_;
};

}  // namespace

bool isTorchScript(const Archive& archive) {
  return archive.has("constants.pkl") || std::any_of(archive.entries().begin(), archive.entries().end(),
                                                     [](const ZipEntry& e) { return e.name.starts_with("code/"); });
}

std::string TorchScriptArchive::codeRecord(std::string_view module) const {
  std::string record = "code/" + std::string(module);
  std::replace(record.begin(), record.end(), '.', '/');
  record += ".py";
  return archive->has(record) ? record : std::string();
}

TorchScriptArchive readTorchScript(std::shared_ptr<const Archive> archive) {
  TorchScriptArchive parts;
  if (archive->has("byteorder") && trimmed(archive->read("byteorder").text(), blanks) != "little")
    badInput("written on a big-endian machine; weights are read as little-endian", "byteorder");
  if (archive->has("model.json"))
    badInput(
        "written before PyTorch 1.4; load and save it once with a newer one: torch.jit.save(torch.jit.load(...), ...)",
        "model.json");
  parts.version = readVersion(*archive);
  parts.constants = readPickle(archive, {"constants.pkl", "constants/", true, false});
  parts.module = readPickle(archive, {"data.pkl", "data/", true, false});
  if (parts.constants.at(parts.constants.root).kind != Kind::tuple) badInput("is not a tuple", "constants.pkl");
  if (parts.module.at(parts.module.root).kind != Kind::object) badInput("is not a module", "data.pkl");
  if (archive->has("traced_inputs.pkl"))
    parts.tracedInputs = readPickle(archive, {"traced_inputs.pkl", "traced_inputs/", true, true});
  parts.archive = std::move(archive);
  return parts;
}

CodeOrigins::CodeOrigins(const std::shared_ptr<const Archive>& archive, const std::string& codeRecord) {
  const std::string record = codeRecord + ".debug_pkl";
  if (!archive->has(record)) return;
  try {
    const auto pickle = readPickle(archive, {record, "", true, false});
    OriginsReader(pickle).forEach(
        [&](std::size_t offset, const SourceStack& frames) { ranges_.push_back({offset, frames}); });
    std::stable_sort(ranges_.begin(), ranges_.end(),
                     [](const Range& a, const Range& b) { return a.offset < b.offset; });
  } catch (const Error&) {
    ranges_.clear();
  }
}

SourceStack CodeOrigins::at(std::size_t offset) const {
  const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), offset,
                                      [](std::size_t o, const Range& r) { return o < r.offset; });
  return after == ranges_.begin() ? SourceStack() : std::prev(after)->frames;
}

}  // namespace retrograd
