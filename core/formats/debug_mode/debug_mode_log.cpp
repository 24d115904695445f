#include "core/formats/debug_mode/debug_mode_log.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "core/base/error.h"
#include "core/base/memory_account.h"
#include "core/formats/files/mapped_file.h"
#include "core/formats/files/mapping_watch.h"
#include "core/formats/json/json_tree.h"

namespace retrograd {
namespace {

constexpr std::string_view formatName = "torch.utils._debug_mode.DebugMode.logs";

bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isWord(char c) { return isDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

/// One number of a hash, or that there is none in its place.
struct HashLeaf {
  bool present = false, whole = false;
  double number = 0;
};

double nonFinite(std::string_view text) {
  if (text.starts_with('-')) return -std::numeric_limits<double>::infinity();
  return text.find("nf") != std::string_view::npos ? std::numeric_limits<double>::infinity()
                                                   : std::numeric_limits<double>::quiet_NaN();
}

/// The leaves of a value as save_logs encodes it: scalar, nonfinite_float, tuple, list, dict.
void addLeaves(const Json& value, std::vector<HashLeaf>& leaves, int depth = 0) {
  constexpr int maxDepth = 100;
  if (depth > maxDepth) badInput("values nested deeper than 100 levels");
  const auto kind = value.kind();
  if (kind == Json::Kind::integer || kind == Json::Kind::real)
    return void(leaves.push_back({true, kind == Json::Kind::integer, value.number()}));
  if (value.isNull() || !value.isObject()) return void(leaves.emplace_back());
  if (!value.find("type")) {
    for (const auto& [key, member] : value.members()) addLeaves(member, leaves, depth + 1);
    return;
  }
  const auto type = value.at("type").text();
  if (type == "tuple" || type == "list") {
    for (const auto& item : value.at("items").items()) addLeaves(item, leaves, depth + 1);
  } else if (type == "dict") {
    for (const auto& pair : value.at("items").items())
      if (pair.items().size() == 2) addLeaves(pair.items()[1], leaves, depth + 1);
  } else if (type == "nonfinite_float") {
    const auto& number = value.at("value");
    leaves.push_back({true, false, number.isString() ? nonFinite(number.text()) : number.number()});
  } else if (type == "scalar") {
    const auto& number = value.at("value");
    const bool isNumber = number.kind() == Json::Kind::integer || number.kind() == Json::Kind::real;
    leaves.push_back(isNumber ? HashLeaf{true, number.kind() == Json::Kind::integer, number.number()} : HashLeaf());
  } else {
    badInput("a value of type '" + std::string(type) + "', which is not known here");
  }
}

/// The entry of a dict value by its key; null where it has none.
const Json* entryOf(const Json* dict, std::string_view key) {
  if (!dict || !dict->isObject() || dict->textAt("type") != "dict") return nullptr;
  for (const auto& pair : dict->at("items").items())
    if (pair.isArray() && pair.items().size() == 2 && pair.items()[0].isString() && pair.items()[0].text() == key)
      return &pair.items()[1];
  return nullptr;
}

/// The tensors that a printed call names: "t$56: f32[2, 3]", "dt: bf16[8]| S(0)".
std::vector<DebugModeTensor> tensorsIn(std::string_view text) {
  std::vector<DebugModeTensor> tensors;
  for (std::size_t at = text.find(": "); at != std::string_view::npos; at = text.find(": ", at + 1)) {
    DebugModeTensor tensor;
    auto begin = at;
    while (begin > 0 && isDigit(text[begin - 1])) --begin;
    if (begin < at && begin > 0 && text[begin - 1] == '$') {
      std::from_chars(text.data() + begin, text.data() + at, tensor.id);
      --begin;
    } else {
      begin = at;
    }
    if (begin == 0 || text[begin - 1] != 't') continue;
    auto end = at + 2;
    while (end < text.size() && isWord(text[end])) ++end;
    const auto close = end < text.size() && text[end] == '[' ? text.find(']', end) : std::string_view::npos;
    if (close == std::string_view::npos || end == at + 2) continue;
    tensor.type = text.substr(at + 2, close + 1 - (at + 2));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

/// "train.py:19 in forward": the innermost frame of the user's own files.
std::string userLine(std::string_view stack) {
  std::string line;
  for (std::size_t at = stack.find("File \""); at != std::string_view::npos; at = stack.find("File \"", at + 1)) {
    const auto begin = at + 6, end = stack.find('"', begin);
    if (end == std::string_view::npos) break;
    const auto path = stack.substr(begin, end - begin);
    if (path.find("/site-packages/") != std::string_view::npos ||
        path.find("/dist-packages/") != std::string_view::npos || path.starts_with('<'))
      continue;
    const auto newline = std::min(stack.find('\n', end), stack.size());
    auto rest = stack.substr(end, newline - end);  // ", line 19, in forward
    const auto number = rest.find("line ");
    if (number == std::string_view::npos) continue;
    rest.remove_prefix(number + 5);
    const auto digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    const auto in = rest.find(" in ");
    line = std::string(path.substr(path.rfind('/') + 1)) + ":" + std::string(rest.substr(0, digits));
    if (in != std::string_view::npos) line += std::string(rest.substr(in));
  }
  return line;
}

class RecordingReader {
 public:
  explicit RecordingReader(DebugModeRun& run) : run_(run) {}

  void read(const Json& root) {
    if (root.textAt("format") != formatName) badInput("is not a recording of DebugMode");
    if (const auto version = root.at("version").integer(); version != 1)
      badInput("is a recording of DebugMode in version " + std::to_string(version) + "; version 1 is known here");
    for (const auto& entry : root.at("logs").items()) {
      try {
        add(entry);
      } catch (const Error& e) {
        throw e.at("entry " + std::to_string(count_));
      }
      ++count_;
    }
    if (hasNorm_ || !hasWhole_) return;
    run_.hashes = true;
  }

 private:
  void add(const Json& entry) {
    const auto type = entry.textAt("type");
    const auto level = entry.integerAt("call_depth");
    while (!modules_.empty() && modules_.back().first >= level) modules_.pop_back();
    if (type == "annotate" && !entry.textAt("tag").empty()) modules_.emplace_back(level, entry.textAt("tag"));
    const bool kernel = type.find("triton") != std::string_view::npos;
    if (type != "op" && !kernel) ++run_.others[std::string(type)];
    if (type == "op" || kernel) addCall(entry, kernel);
  }

  void addCall(const Json& entry, bool kernel) {
    DebugModeCall call;
    call.op = kernel ? entry.textAt("kernel_name") : entry.textAt("op_name");
    if (call.op.empty()) badInput("a call without a name");
    call.arguments = std::string(entry.textAt("args_str")) + std::string(entry.textAt("kwargs_str"));
    call.inputs = tensorsIn(call.arguments);
    call.outputs = tensorsIn(entry.textAt("output_str"));
    const auto forward = entry.textAt("fwd_stack_trace");
    call.backward = !forward.empty();
    call.line = userLine(call.backward ? forward : entry.textAt("stack_trace"));
    if (!modules_.empty()) call.module = modules_.back().second;
    const auto* log = entry.find("log");
    give(call.outputs, kernel ? entry.find("post_hashes") : firstOf(entryOf(log, "hash"), entryOf(log, "hash_tensor")));
    give(call.inputs,
         kernel ? entry.find("pre_hashes") : firstOf(entryOf(log, "input_hash"), entryOf(log, "input_hash_tensor")));
    run_.calls.push_back(std::move(call));
  }
  static const Json* firstOf(const Json* a, const Json* b) { return a ? a : b; }

  /// Numbers go to tensors in their order. Where several hashes were taken of each tensor, a norm goes before a hash.
  void give(std::vector<DebugModeTensor>& tensors, const Json* hashes) {
    if (!hashes || hashes->isNull()) return;
    std::vector<HashLeaf> leaves;
    addLeaves(*hashes, leaves);
    const bool anyNorm =
        std::any_of(leaves.begin(), leaves.end(), [](const HashLeaf& leaf) { return leaf.present && !leaf.whole; });
    std::vector<double> numbers;
    for (const auto& leaf : leaves)
      if (leaf.present && leaf.whole != anyNorm) numbers.push_back(leaf.number);
    hasNorm_ |= anyNorm;
    hasWhole_ |= !anyNorm && !numbers.empty();
    if (tensors.empty()) tensors.resize(numbers.size());
    if (numbers.size() != tensors.size()) return;  // not one for each: which is whose cannot be said
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      tensors[i].hasNorm = true;
      tensors[i].norm = numbers[i];
    }
  }

  DebugModeRun& run_;
  std::vector<std::pair<std::int64_t, std::string>> modules_;  // entered, with their depth
  std::size_t count_ = 0;
  bool hasNorm_ = false, hasWhole_ = false;
};

}  // namespace

bool looksLikeDebugMode(std::string_view bytes) {
  const auto begin = bytes.substr(0, 4096);
  const auto first = begin.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && begin[first] == '{' && begin.find(formatName) != std::string_view::npos;
}

DebugModeRun readDebugMode(std::string_view bytes, const std::string& name) {
  return readingFile(name, [&] {
    DebugModeRun run;
    run.path = name;
    const JsonTree tree(bytes);
    RecordingReader(run).read(tree.root());
    const auto hasNorm = [](const DebugModeCall& call) {
      return std::any_of(call.outputs.begin(), call.outputs.end(), [](const DebugModeTensor& t) { return t.hasNorm; });
    };
    if (!run.calls.empty() && std::none_of(run.calls.begin(), run.calls.end(), hasNorm))
      badInput("holds no numbers: record it within DebugMode.log_tensor_hashes(hash_fn=\"norm\", hash_inputs=True)");
    return run;
  });
}

DebugModeRun readDebugMode(const std::string& path, const Progress& progress) {
  const auto bytes = mapFile(path);
  const ReadingScope scope(bytes.size);
  progress.at("Read recording", 0);
  return readUnchanged(bytes.data, [&] { return readDebugMode(bytes.text(), path); });
}

}  // namespace retrograd
