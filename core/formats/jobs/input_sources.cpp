#include "core/formats/jobs/input_sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "core/base/number_text.h"
#include "core/formats/fx/fx_reader.h"
#include "core/formats/jobs/log_builder.h"
#include "core/formats/json/json_tree.h"

namespace retrograd::jobs {
namespace {

/// A record of an attempt once more; nullopt where it cannot be read, which was said when the log was opened.
template <class Use>
void forEachDescription(const JobLog& log, const Attempt& attempt, Use&& use) {
  const auto all = log.files.at(attempt.file).bytes.text();
  for (const auto offset : attempt.descriptions) {
    if (offset >= all.size()) continue;
    auto line = all.substr(offset, all.find('\n', offset) - offset);
    if (const auto envelope = readEnvelope(line)) line = envelope->content;
    try {
      const JsonTree tree(line);
      use(tree.root());
    } catch (const Error& e) {
      if (e.code() != ErrorCode::badInput) throw;
    }
  }
}

using Kind = fx::Expression::Kind;

/// The keys along a source: "L", "model", "_modules", "emb", ...; `isSource` is false for anything but subscripts and
/// attributes.
void collect(const fx::Expression& e, std::vector<std::string>& keys, bool& isSource) {
  if (e.is(Kind::path)) {
    std::size_t begin = 0;
    for (auto dot = e.text.find('.'); dot != std::string::npos; begin = dot + 1, dot = e.text.find('.', begin))
      keys.push_back(e.text.substr(begin, dot - begin));
    keys.push_back(e.text.substr(begin));
  } else if (e.is(Kind::attribute)) {
    collect(e.items.front(), keys, isSource);
    keys.push_back(e.text);
  } else if (e.is(Kind::item) && (e.items[1].is(Kind::string) || e.items[1].is(Kind::integer))) {
    collect(e.items.front(), keys, isSource);
    keys.push_back(e.items[1].is(Kind::string) ? e.items[1].text : std::to_string(e.items[1].integer));
  } else {
    isSource = false;
  }
}

std::string joined(const std::vector<std::string>& keys, std::size_t from) {
  std::string text;
  for (auto i = from; i < keys.size(); ++i) text += (text.empty() ? "" : ".") + keys[i];
  return text;
}

/// Modules of several holders may give one name: L['blocks'][0]._modules['lin'] and L['blocks'][1]._modules['lin']. As
/// much of the holders is taken as distinguishes them.
void tellApart(std::vector<InputSource>& inputs) {
  constexpr int rounds = 16;  // holders within holders
  bool isDone = false;
  for (int round = 0; round < rounds && !isDone; ++round) {
    isDone = true;
    std::map<std::string, std::vector<InputSource*>> byName;
    for (auto& input : inputs)
      if (input.kind == InputSource::Kind::parameter || input.kind == InputSource::Kind::buffer)
        byName[input.name].push_back(&input);
    for (auto& [name, same] : byName) {
      const auto isOther = [&](const InputSource* input) { return input->source != same.front()->source; };
      if (std::none_of(same.begin(), same.end(), isOther)) continue;
      for (auto* input : same) {
        if (input->held == 0) continue;
        input->name = joined(input->path, --input->held);
        isDone = false;
      }
    }
  }
}

/// The source that a placeholder without a description is named after: L['v6'] of "L_v6_". Dynamo describes no tensor
/// that it met before as the base of a view. Nothing for what is below a module, whose name does not say where its
/// parts begin.
std::optional<InputSource> ofLocal(std::string_view target) {
  if (!target.starts_with("L_") || !target.ends_with('_') || target.size() < 4 ||
      target.find("_modules_") != std::string_view::npos || target.find("_parameters_") != std::string_view::npos)
    return std::nullopt;
  return readInputSource(fmt::format("L['{}']", target.substr(2, target.size() - 3)));
}

/// As Dynamo makes a name of a source: any other character than a letter or digit becomes one '_'.
std::string placeholderName(std::string_view source) {
  std::string name;
  for (const char c : source) {
    const bool isPlain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (isPlain) {
      name += c;
    } else if (!name.ends_with('_')) {
      name += '_';
    }
  }
  return name;
}

}  // namespace

InputSource readInputSource(std::string_view source) {
  InputSource result;
  result.source = source;
  result.name = source;
  std::vector<std::string> keys;
  bool isSource = true;
  try {
    collect(fx::readExpression(source, "source"), keys, isSource);
  } catch (const Error&) {
    isSource = false;
  }
  if (!isSource || keys.size() < 2) {
    if (source.starts_with("___as_tensor(")) result.kind = InputSource::Kind::number;
    return result;
  }
  const auto isStructure = [](const std::string& key) {
    return key == "_modules" || key == "_parameters" || key == "_buffers";
  };
  const auto module = std::find_if(keys.begin(), keys.end(), isStructure);
  const bool isOfModule = module != keys.end();
  // L['model']._modules['emb'], L['args'][0]._modules['emb'], L['self'].model._modules['emb']: whatever holds the
  // module is not part of the name. A function's own keywords are not either; of L['ids'] the name is all there is.
  const auto before = std::max<std::ptrdiff_t>(module - keys.begin(), 1);
  if (isOfModule) result.held = static_cast<std::size_t>(before) - 1;
  else if (keys[1] == "kwargs" && keys.size() > 2) result.held = 1;
  if (std::find(module, keys.end(), "_parameters") != keys.end()) result.kind = InputSource::Kind::parameter;
  if (std::find(module, keys.end(), "_buffers") != keys.end()) result.kind = InputSource::Kind::buffer;
  keys.erase(std::remove_if(keys.begin(), keys.end(), isStructure), keys.end());
  keys.erase(keys.begin());  // "L" or "G"
  result.path = std::move(keys);
  result.held = std::min(result.held, result.path.empty() ? 0 : result.path.size() - 1);
  result.name = joined(result.path, result.held);
  return result;
}

std::vector<std::string> namesOf(const InputSource& source) {
  if (source.path.empty()) return {source.name};
  std::vector<std::string> names;
  const auto last = source.kind == InputSource::Kind::input ? source.path.size() - 1 : source.held;
  for (std::size_t from = 0; from <= last; ++from) names.push_back(plainName(joined(source.path, from)));
  return names;
}

std::vector<InputSource> describedInputs(const JobLog& log, const Attempt& attempt) {
  std::vector<InputSource> inputs;
  std::map<std::pair<std::int64_t, std::int64_t>, InputSource> tensors;  // by describer and id
  const auto key = [](const Json& record) {
    return std::pair(record.at("describer_id").integer(), record.at("id").integer());
  };
  forEachDescription(log, attempt, [&](const Json& record) {
    if (const auto* tensor = record.find("describe_tensor"); tensor != nullptr && tensor->isObject()) {
      auto& described = tensors[key(*tensor)];
      if (const auto* dtype = tensor->find("dtype"); dtype != nullptr && dtype->isString())
        described.dtype = dtype->text();
      if (const auto* size = tensor->find("size"); size != nullptr && size->isArray()) {
        described.sizes.clear();
        for (const auto& n : size->items())
          described.sizes.push_back(n.kind() == Json::Kind::integer ? n.integer() : 0);
      }
      if (const auto* grad = tensor->find("requires_grad"); grad != nullptr && grad->kind() == Json::Kind::boolean)
        described.requiresGrad = grad->boolean();
      if (tensor->isTrue("is_parameter")) described.kind = InputSource::Kind::parameter;
    } else if (const auto* source = record.find("describe_source"); source != nullptr && source->isObject()) {
      auto input = readInputSource(source->at("source").text());
      const auto& described = tensors[key(*source)];
      if (described.kind == InputSource::Kind::parameter) input.kind = InputSource::Kind::parameter;
      input.dtype = described.dtype;
      input.sizes = described.sizes;
      input.requiresGrad = described.requiresGrad;
      inputs.push_back(std::move(input));
    }
  });
  tellApart(inputs);
  return inputs;
}

std::map<std::string, std::int64_t> sizeHints(const JobLog& log, const Attempt& attempt) {
  std::map<std::string, std::int64_t> hints;
  forEachDescription(log, attempt, [&](const Json& record) {
    const auto* symbol = record.find("create_symbol");
    if (symbol == nullptr || !symbol->isObject()) return;
    if (const auto number = numberIn<std::int64_t>(symbol->textAt("val")))
      hints[std::string(symbol->at("symbol").text())] = *number;
  });
  return hints;
}

std::vector<std::optional<InputSource>> bindInputs(const fx::Graph& dynamo, const std::vector<InputSource>& described) {
  std::unordered_map<std::string, std::vector<const InputSource*>> byName;
  std::unordered_map<std::string, bool> met;
  for (const auto& input : described) {
    if (!met.try_emplace(input.source, true).second) continue;  // an attempt may describe an input more than once
    auto text = std::string_view(input.source);
    if (text.starts_with("___as_tensor(") && text.ends_with(")")) text = text.substr(13, text.size() - 14);
    byName[placeholderName(text)].push_back(&input);
  }
  std::vector<std::optional<InputSource>> bound;
  for (const auto& input : dynamo.inputs) {
    const auto& target = input.target.empty() ? input.name : input.target;
    auto found = byName.find(target);
    std::size_t which = 0;
    if (found == byName.end()) {  // "L_x__1": the second source of that name
      const auto underscore = target.rfind('_');
      const auto number = underscore == std::string::npos
                              ? std::nullopt
                              : numberIn<std::size_t>(std::string_view(target).substr(underscore + 1));
      if (number) found = byName.find(target.substr(0, underscore)), which = *number;
    }
    const bool isThere = found != byName.end() && which < found->second.size();
    bound.push_back(isThere ? std::optional(*found->second[which]) : ofLocal(target));
  }
  return bound;
}

std::string plainName(std::string_view name) {
  std::string plain;
  while (!name.empty()) {
    const auto dot = name.find('.');
    const auto part = name.substr(0, dot);
    const bool isWrapper =
        dot != std::string_view::npos && (part == "_orig_mod" || part == "module" || part == "_fsdp_wrapped_module");
    if (!isWrapper) plain.append(plain.empty() ? "" : ".").append(part);
    name = dot == std::string_view::npos ? std::string_view() : name.substr(dot + 1);
  }
  return plain;
}

}  // namespace retrograd::jobs
