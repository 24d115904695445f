#pragma once
#include <map>
#include <sstream>
#include <string>

#include "core/trace/symbol.h"

namespace retrograd::test {

/// Splits "a, b[1, 2], c" at the commas that are in no bracket.
inline std::vector<std::string> splitList(const std::string& text) {
  std::vector<std::string> parts;
  int depth = 0;
  std::string part;
  for (const char c : text) {
    depth += c == '[' || c == '(' ? 1 : c == ']' || c == ')' ? -1 : 0;
    if (c == ',' && depth == 0) {
      parts.push_back(part);
      part.clear();
    } else if (c != ' ' || !part.empty()) {
      part += c;
    }
  }
  if (!part.empty()) parts.push_back(part);
  return parts;
}

inline SchemaEntry parseEntry(std::string text) {
  SchemaEntry entry;
  if (const auto equals = text.find('='); equals != std::string::npos) {
    entry.defaultValue = Argument::ofNone();
    text.resize(equals);
  }
  if (const auto open = text.find('('); open != std::string::npos) {
    const auto close = text.find(')', open);
    entry.isWrite = text.find('!', open) < close;
    entry.aliasSet = text[open + 1] - 'a';
    text.erase(open, close - open + 1);
  }
  const auto space = text.find(' ');
  entry.type = text.substr(0, space);
  if (space != std::string::npos) entry.name = text.substr(space + 1);
  return entry;
}

/// A symbol from the text of its schema, for tests that run without LibTorch.
inline Symbol parseSymbol(const std::string& name, const std::string& schema) {
  Symbol symbol;
  symbol.name = name;
  symbol.schema = schema;
  symbol.known = true;
  const auto open = schema.find('('), arrow = schema.rfind(" -> "), close = schema.rfind(')', arrow);
  bool keywordOnly = false;
  for (const auto& text : splitList(schema.substr(open + 1, close - open - 1))) {
    if (text == "*") {
      keywordOnly = true;
      continue;
    }
    symbol.arguments.push_back(parseEntry(text));
    symbol.arguments.back().keywordOnly = keywordOnly;
    symbol.isMutable |= symbol.arguments.back().isWrite;
  }
  std::string returns = schema.substr(arrow + 4);
  if (returns.starts_with('(')) returns = returns.substr(1, returns.size() - 2);
  for (const auto& text : splitList(returns)) {
    symbol.returns.push_back(parseEntry(text));
    symbol.isView |= symbol.returns.back().aliasSet >= 0 && !symbol.returns.back().isWrite;
  }
  return symbol;
}

/// The ops of the models and sessions kept with the tests.
inline std::optional<Symbol> stubLookup(std::string_view name) {
  static const std::map<std::string, std::string, std::less<>> schemas{
      {"aten.linear.default", "aten::linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor"},
      {"aten.relu.default", "aten::relu(Tensor self) -> Tensor"},
      {"aten.gelu.default", "aten::gelu(Tensor self, *, str approximate='none') -> Tensor"},
      {"aten.tanh.default", "aten::tanh(Tensor self) -> Tensor"},
      {"aten.sin.default", "aten::sin(Tensor self) -> Tensor"},
      {"aten.cos.default", "aten::cos(Tensor self) -> Tensor"},
      {"aten.sum.default", "aten::sum(Tensor self, *, ScalarType? dtype=None) -> Tensor"},
      {"aten.sum.dim_IntList",
       "aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor"},
      {"aten.gt.Scalar", "aten::gt.Scalar(Tensor self, Scalar other) -> Tensor"},
      {"aten.max.dim", "aten::max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)"},
      {"aten.var.correction",
       "aten::var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor"},
      {"aten.std.correction",
       "aten::std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor"},
      {"aten.add.Tensor", "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"},
      {"aten.add_.Tensor", "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)"},
      {"aten.permute.default", "aten::permute(Tensor(a) self, int[] dims) -> Tensor(a)"},
      {"aten.addmm.default",
       "aten::addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor"},
      {"aten.chunk.default", "aten::chunk(Tensor(a) self, int chunks, int dim=0) -> Tensor(a)[]"},
      {"aten.cat.default", "aten::cat(Tensor[] tensors, int dim=0) -> Tensor"},
      {"aten.index.Tensor", "aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor"},
      {"aten.conv1d.default",
       "aten::conv1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=1, SymInt[1] padding=0, "
       "SymInt[1] dilation=1, SymInt "
       "groups=1) -> Tensor"},
      {"aten.flatten.using_ints",
       "aten::flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)"},
      {"aten.batch_norm.default",
       "aten::batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool "
       "training, float "
       "momentum, "
       "float eps, bool cudnn_enabled) -> Tensor"},
      {"aten.to.dtype",
       "aten::to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? "
       "memory_format=None) "
       "-> Tensor(a)"},
      {"aten.full.default",
       "aten::full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? "
       "device=None, bool? "
       "pin_memory=None) "
       "-> Tensor"},
      // of derived traces
      {"aten.div.Tensor", "aten::div.Tensor(Tensor self, Tensor other) -> Tensor"},
      {"aten.eq.Scalar", "aten::eq.Scalar(Tensor self, Scalar other) -> Tensor"},
      {"aten.masked_fill_.Scalar",
       "aten::masked_fill_.Scalar(Tensor(a!) self, Tensor mask, Scalar value) -> Tensor(a!)"},
      {"aten.mean.default", "aten::mean(Tensor self, *, ScalarType? dtype=None) -> Tensor"},
      {"aten.mm.default", "aten::mm(Tensor self, Tensor mat2) -> Tensor"},
      {"aten.mul.Scalar", "aten::mul.Scalar(Tensor self, Scalar other) -> Tensor"},
      {"aten.mul.Tensor", "aten::mul.Tensor(Tensor self, Tensor other) -> Tensor"},
      {"aten.neg.default", "aten::neg(Tensor self) -> Tensor"},
      {"aten.new_zeros.default",
       "aten::new_zeros(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? "
       "device=None, bool? pin_memory=None) -> Tensor"},
      {"aten.scatter.src", "aten::scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor"},
      {"aten.sub.Tensor", "aten::sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"},
      {"aten.t.default", "aten::t(Tensor(a) self) -> Tensor(a)"},
      {"aten.tanh_backward.default", "aten::tanh_backward(Tensor grad_output, Tensor output) -> Tensor"},
      {"aten.threshold_backward.default",
       "aten::threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor"},
      {"aten.unsqueeze.default", "aten::unsqueeze(Tensor(a) self, int dim) -> Tensor(a)"},
      {"aten.view.default", "aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)"},
      {"aten.mul_.Tensor", "aten::mul_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)"},
      {"aten.exp.default", "aten::exp(Tensor self) -> Tensor"},
      {"aten.neg_.default", "aten::neg_(Tensor(a!) self) -> Tensor(a!)"},
      {"aten.sin_.default", "aten::sin_(Tensor(a!) self) -> Tensor(a!)"},
      {"aten.clone.default", "aten::clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor"},
      {"aten.alias.default", "aten::alias(Tensor(a) self) -> Tensor(a)"},
      {"aten.copy_.default", "aten::copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)"},
      {"aten.expand.default", "aten::expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)"},
      {"aten.select.int", "aten::select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)"},
      {"aten.slice.Tensor",
       "aten::slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> "
       "Tensor(a)"},
      {"aten.reshape.default", "aten::reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)"},
      {"aten.contiguous.default",
       "aten::contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a)"},
      {"aten.split.Tensor", "aten::split.Tensor(Tensor(a) self, SymInt split_size, int dim=0) -> Tensor(a)[]"},
      {"aten.rand_like.default", "aten::rand_like(Tensor self, *, ScalarType? dtype=None) -> Tensor"},
      {"aten.ones_like.default",
       "aten::ones_like(Tensor self, *, ScalarType? dtype=None, bool? pin_memory=None, MemoryFormat? "
       "memory_format=None) -> Tensor"},
      {"aten.empty_like.default", "aten::empty_like(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor"},
      {"aten.bernoulli_.float",
       "aten::bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None) -> Tensor(a!)"},
      {"aten.div_.Scalar", "aten::div_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)"},
      {"aten.dropout.default", "aten::dropout(Tensor input, float p, bool train) -> Tensor"},
      {"aten.slice_backward.default",
       "aten::slice_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt start, SymInt end, SymInt step) "
       "-> Tensor"},
      {"aten._assert_async.default", "aten::_assert_async(Tensor self) -> ()"},
      {"aten.sym_size.int", "aten::sym_size.int(Tensor self, int dim) -> SymInt"},
  };
  const auto it = schemas.find(name);
  if (it == schemas.end()) return std::nullopt;
  auto symbol = parseSymbol(it->first, it->second);
  symbol.isRandom = name.find("bernoulli") != std::string_view::npos ||
                    name.find("rand_like") != std::string_view::npos || name.find("dropout") != std::string_view::npos;
  return symbol;
}

}  // namespace retrograd::test
