#include "core/questions/memory_join/output_code.h"

#include <optional>
#include <unordered_map>
#include <utility>

#include "core/base/number_text.h"

namespace retrograd {
namespace {

constexpr std::string_view blanks = " \r";

bool isNameChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

std::string_view nameAt(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() && isNameChar(text[end])) ++end;
  return text.substr(0, end);
}

/// The parts of a text between commas that are in no bracket, up to the bracket that closes one before the text.
std::vector<std::string_view> parts(std::string_view text) {
  std::vector<std::string_view> found;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(' || text[i] == '[') ++depth;
    else if (text[i] == ')' || text[i] == ']') --depth;
    const bool isEnd = depth < 0;
    if (!isEnd && (text[i] != ',' || depth > 0)) continue;
    if (const auto part = trimmed(text.substr(begin, i - begin), blanks); !part.empty()) found.push_back(part);
    if (isEnd) return found;
    begin = i + 1;
  }
  if (const auto last = trimmed(text.substr(begin), blanks); !last.empty()) found.push_back(last);
  return found;
}

class CodeReader {
 public:
  OutputCode run(std::string_view text) {
    bool inside = false;
    for (std::int32_t number = 1; !text.empty(); ++number) {
      const auto line = trimmed(takePart(text, '\n'), blanks);
      if (!inside) {
        inside = line.starts_with("def call(");
        continue;
      }
      if (line.starts_with("return (")) {
        readReturn(line.substr(8));
        break;
      }
      readLine(line, number);
    }
    return std::move(code_);
  }

 private:
  using Names = std::unordered_map<std::string, std::size_t>;

  void readLine(std::string_view line, std::int32_t number) {
    if (line.starts_with("# Topologically Sorted Source Nodes:")) return readComment(line);
    if (line.starts_with("#") || line.starts_with("del ") || line.starts_with("assert_")) return;
    const auto target = nameAt(line);
    if (!target.empty() && line.substr(target.size()).starts_with(" = "))
      return readAssignment(std::string(target), line.substr(target.size() + 3), number);
    nameWritten(line);
  }

  /// "... Original ATen: [aten.t, aten.addmm]": the last is what the kernel is for.
  void readComment(std::string_view line) {
    constexpr std::string_view key = "Original ATen: [";
    const auto at = line.find(key);
    if (at == std::string_view::npos) return;
    const auto ops = parts(line.substr(at + key.size()));
    op_ = ops.empty() ? std::string() : std::string(ops.back());
  }

  std::optional<std::size_t> bufferOf(std::string_view name) const {
    const auto found = names_.find(std::string(name));
    return found == names_.end() ? std::nullopt : std::optional(found->second);
  }

  void readAssignment(const std::string& target, std::string_view value, std::int32_t number) {
    constexpr std::string_view view = "reinterpret_tensor(";
    if (value.starts_with("empty_strided_") && !value.starts_with("empty_strided_p2p")) {
      take(target, number, {});
    } else if (value.starts_with("torch.ops.") || value.starts_with("extern_kernels.") || value.starts_with("aten.")) {
      nameWritten(value);
      take(target, number, value.starts_with("torch.ops.") ? opOf(value.substr(10)) : std::exchange(op_, {}));
    } else if (const auto source = nameAt(value.starts_with(view) ? value.substr(view.size()) : value);
               const auto buffer = bufferOf(source)) {
      const auto rest = value.substr(value.starts_with(view) ? view.size() + source.size() : source.size());
      if (rest.starts_with("[")) return takeResult(target, *buffer, source);
      names_[target] = *buffer;
      // Memory under another name has other values, unless nobody had written it yet.
      if (value.find("# reuse") != std::string_view::npos && !code_.buffers[*buffer].op.empty())
        code_.buffers[*buffer].isReused = true;
    } else {
      nameWritten(value);
    }
  }

  static std::string opOf(std::string_view call) {
    const auto name = call.substr(0, call.find('('));
    const auto overload = name.rfind('.');
    return std::string(name.ends_with(".default") ? name.substr(0, overload) : name);
  }

  void take(const std::string& target, std::int32_t line, std::string op) {
    names_[target] = code_.buffers.size();
    code_.buffers.push_back({line, std::move(op), {}, false});
  }

  /// One of several results of a call: each has memory of its own, taken on the line of the call.
  void takeResult(const std::string& target, std::size_t call, std::string_view source) {
    if (results_.insert_or_assign(std::string(source), call).second) {
      names_[target] = call;
      return;
    }
    const auto& first = code_.buffers[call];
    take(target, first.line, first.op);
  }

  /// A kernel writes what it names first.
  void nameWritten(std::string_view call) {
    const auto kernel = call.substr(0, call.find('('));
    bool wrote = false;
    for (std::size_t i = kernel.size(); i < call.size();) {
      if (!isNameChar(call[i])) {
        ++i;
        continue;
      }
      const auto name = nameAt(call.substr(i));
      i += name.size();
      const auto buffer = bufferOf(name);
      if (!buffer || !code_.buffers[*buffer].op.empty()) continue;
      code_.buffers[*buffer].op = op_.empty() ? std::string(kernel) : op_;
      wrote = true;
    }
    if (wrote || kernel.ends_with(".run") || kernel.starts_with("extern_kernels.")) op_.clear();
  }

  void readReturn(std::string_view values) {
    constexpr std::string_view view = "reinterpret_tensor(";
    const auto all = parts(values);
    code_.outputCount = all.size();
    for (std::size_t i = 0; i < all.size(); ++i)
      if (const auto buffer = bufferOf(nameAt(all[i].starts_with(view) ? all[i].substr(view.size()) : all[i])))
        code_.buffers[*buffer].outputs.push_back(i);
  }

  OutputCode code_;
  Names names_, results_;  // buffers by the names that they have now; calls whose first result was taken
  std::string op_;         // of the last comment
};

}  // namespace

OutputCode readOutputCode(std::string_view text) { return CodeReader().run(text); }

}  // namespace retrograd
