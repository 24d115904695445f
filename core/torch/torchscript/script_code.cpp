#include "core/torch/torchscript/script_code.h"

#include <fmt/format.h>
#include <torch/csrc/jit/frontend/lexer.h>
#include <torch/csrc/jit/frontend/parser.h>
#include <torch/csrc/jit/frontend/tree_views.h>

#include <filesystem>

#include "core/base/error.h"
#include "core/trace/source.h"

namespace retrograd {
namespace {

namespace jit = torch::jit;

/// Goes over the syntax tree of a record.
class Inspection {
 public:
  explicit Inspection(const ScriptCode& code) : code_(code) {}

  void inspect(const jit::TreeRef& tree) {
    switch (tree->kind()) {
      case jit::TK_PARAM: {
        const auto value = jit::Param(tree).defaultValue();
        if (value.present()) requireLiteral(value.get().tree(), "the default of an argument");
        break;
      }
      case jit::TK_CLASS_DEF:
        for (const auto& statement : jit::ClassDef(tree).body())
          if (statement.kind() == jit::TK_ASSIGN) {
            const auto value = jit::Assign(statement).rhs();
            if (value.present()) requireLiteral(value.get().tree(), "a constant of a class");
          }
        break;
      case '.':
        if (isClassesOfCpp(tree))
          refuse(tree, "the code uses a class of C++ (torch.classes), whose methods are programs of their own");
        break;
      default: break;
    }
    for (const auto& part : tree->trees()) inspect(part);
  }

 private:
  [[noreturn]] void refuse(const jit::TreeRef& tree, const std::string& what) const {
    throw Error(ErrorCode::badInput, what + "; export the Python module with torch.export instead",
                code_.place(tree->range()));
  }

  /// torch.classes, __torch__.torch.classes
  static bool isClassesOfCpp(const jit::TreeRef& tree) {
    const jit::Select select(tree);
    if (select.selector().name() != "classes") return false;
    const jit::Expr value = select.value();
    if (value.kind() == jit::TK_VAR) return jit::Var(value).name().name() == "torch";
    return value.kind() == '.' && jit::Select(value).selector().name() == "torch";
  }

  /// annotate(T, ...), torch.device("cpu")
  static bool isHarmlessCall(const jit::TreeRef& tree) {
    const jit::Expr callee = jit::Apply(tree).callee();
    if (callee.kind() == jit::TK_VAR) return jit::Var(callee).name().name() == "annotate";
    if (callee.kind() != '.') return false;
    const jit::Select select(callee);
    return select.selector().name() == "device" && select.value().kind() == jit::TK_VAR &&
           jit::Var(select.value()).name().name() == "torch";
  }

  void requireLiteral(const jit::TreeRef& tree, const char* what) const {
    switch (tree->kind()) {
      case jit::TK_CONST:
      case jit::TK_STRINGLITERAL:
      case jit::TK_TRUE:
      case jit::TK_FALSE:
      case jit::TK_NONE:
      case jit::TK_NONE_TYPE:
      case jit::TK_LIST:
      case jit::TK_LIST_LITERAL:
      case jit::TK_TUPLE_LITERAL:
      case jit::TK_DICT_LITERAL:
      case jit::TK_UNARY_MINUS:
      case jit::TK_VAR:
      case jit::TK_IDENT:
      case jit::TK_STRING:
      case jit::TK_SUBSCRIPT:
      case '.': break;
      case jit::TK_APPLY:
        if (isHarmlessCall(tree)) break;
        [[fallthrough]];
      default:
        refuse(tree, fmt::format("{} is more than a literal: LibTorch would run it while it reads the file", what));
    }
    for (const auto& part : tree->trees()) requireLiteral(part, what);
  }

  const ScriptCode& code_;
};

/// As SourceImporter reads a record: what old versions put first, then functions and classes.
void inspectSource(const std::shared_ptr<jit::Source>& source, Inspection& inspection) {
  jit::Parser parser(source);
  auto& lexer = parser.lexer();
  if (lexer.cur().kind == jit::TK_IDENT && lexer.cur().text() == "op_version_set")
    while (lexer.cur().kind != jit::TK_NEWLINE && lexer.cur().kind != jit::TK_EOF) lexer.next();
  lexer.nextIf(jit::TK_NEWLINE);
  while (lexer.nextIf(jit::TK_IMPORT)) {
    while (lexer.cur().kind != jit::TK_NEWLINE && lexer.cur().kind != jit::TK_EOF) lexer.next();
    lexer.nextIf(jit::TK_NEWLINE);
  }
  while (lexer.cur().kind != jit::TK_EOF)
    inspection.inspect(lexer.cur().kind == jit::TK_CLASS_DEF ? parser.parseClass()
                                                             : parser.parseFunction(/*is_method=*/false));
}

}  // namespace

std::shared_ptr<jit::Source> ScriptCode::source(const std::string& module) {
  if (const auto it = records_.find(module); it != records_.end()) return it->second.source;
  const auto name = parts_.codeRecord(module);
  if (name.empty()) return nullptr;
  const auto bytes = parts_.archive->read(name);
  auto source = std::make_shared<jit::Source>(bytes.text(), name, 1);
  const auto& record = records_.emplace(module, Record{name, source, CodeOrigins(parts_.archive, name)}).first->second;
  bySource_[source.get()] = &record;
  Inspection inspection(*this);
  inspectSource(source, inspection);
  return source;
}

SourceStack ScriptCode::origin(const jit::SourceRange& range) const {
  const auto it = range.source() ? bySource_.find(range.source().get()) : bySource_.end();
  if (it == bySource_.end()) return {};
  if (auto frames = it->second->origins.at(range.start()); !frames.empty()) return frames;
  const auto line = range.source()->lineno_for_offset(range.start());
  SourceFrame frame{
      .file = it->second->name, .line = static_cast<int>(line) + 1, .code = range.source()->get_line(line).str()};
  frame.code.erase(0, frame.code.find_first_not_of(" \t"));
  while (!frame.code.empty() && std::isspace(static_cast<unsigned char>(frame.code.back()))) frame.code.pop_back();
  return {frame};
}

std::string ScriptCode::place(const jit::SourceRange& range) const {
  const auto stack = origin(range);
  const auto* frame = shownFrame(stack);
  return frame ? fmt::format("{}:{}", std::filesystem::path(frame->file).filename().string(), frame->line)
               : std::string();
}

}  // namespace retrograd
