// Commands that show values, change them and write them to files.
#include <fmt/format.h>

#include <algorithm>

#include "core/derivation/gradient_of.h"
#include "core/formats/safetensors/npy.h"
#include "core/formats/safetensors/safetensors.h"
#include "core/stepping/bad_places.h"
#include "core/stepping/tensor_slice.h"
#include "core/torch/execution/cuda/summaries.h"
#include "core/torch/script/script_state.h"
#include "core/torch/session/tensor_text.h"
#include "core/torch/tracing/drawn_input.h"

namespace retrograd {
namespace {

using Json = ScriptState::Json;

/// Where its NaN and infinities are, for what has any.
void addBadPlaces(const TensorData& contents, CommandAnswer& answer) {
  const auto& statistics = answer.json["statistics"];
  const auto count = statistics["nan"].get<std::size_t>() + statistics["inf"].get<std::size_t>();
  answer.json["not_finite"] = Json::array();
  if (count == 0) return;
  const auto places = badPlaces(contents);
  for (const auto& place : places)
    answer.json["not_finite"].push_back({{"index", place.index}, {"number", place.number}});
  answer.text += "\n" + describe(places, count);
}

/// Type and statistics, and the contents where it is there: all of them or a slice.
CommandAnswer contentsOf(ScriptState& s, const NamedValue& named) {
  auto answer = s.summary(named.value);
  const auto state = s.session.state(named.value);
  if (!state.present || state.number) return answer;
  auto contents = s.session.contents(named.value);
  const auto whole = contents;
  if (!named.slice.empty()) {
    contents = sliced(contents, named.slice);
    answer.text += "\n[" + named.slice + "]: " + typeComment(contents.meta);
  }
  answer.text += "\n" + tensorText(contents);
  answer.json["contents"] = tensorJson(contents);
  addBadPlaces(whole, answer);
  return answer;
}

/// `both W` shows W and its gradient, with the same slice.
CommandAnswer print(ScriptState& s, const Words& words, const Progress&) {
  if (words.all.empty() || words.all[0] != "both") return contentsOf(s, s.namedValue(words.rest));
  const auto named = s.namedValue(words.rest.substr(words.rest.find("both") + 4));
  auto answer = contentsOf(s, named);
  const auto gradient = gradientOf(*s.analysis, named.value);
  answer.json["gradient"] = nullptr;
  if (!gradient) {
    answer.text += "\nno gradient" + s.noGradientText(whyNoGradient(*s.analysis, named.value));
    return answer;
  }
  const auto beside = contentsOf(s, {gradient, named.slice});
  answer.text += "\ngradient " + beside.text;
  answer.json["gradient"] = beside.json;
  return answer;
}

bool endsWith(const std::string& text, std::string_view end) { return text.size() > end.size() && text.ends_with(end); }

CommandAnswer saveValue(ScriptState& s, const Words& words, const Progress&) {
  const auto path = words.all.empty() ? std::string() : words.all.back();
  if (words.all.size() < 2 || !(endsWith(path, ".npy") || endsWith(path, ".safetensors")))
    throw Error(ErrorCode::badUse, "expected a value and a file that ends in .npy or .safetensors");
  const auto text = words.rest.substr(0, words.rest.rfind(path));
  const auto named = s.namedValue(text);
  auto contents = s.session.contents(named.value);
  if (!named.slice.empty()) contents = sliced(contents, named.slice);
  if (endsWith(path, ".npy")) writeNpy(path, contents);
  else writeSafetensors(path, {{s.valueName(named.value), contents}});
  return {fmt::format("{}: {}, {} bytes of data", path, typeComment(contents.meta), contents.meta.bytes()),
          {{"file", path},
           {"value", s.valueName(named.value)},
           {"sizes", contents.meta.sizes},
           {"dtype", torchName(contents.meta.dtype)}}};
}

CommandAnswer set(ScriptState& s, const Words& words, const Progress&) {
  const auto id = s.value(words);
  auto contents = s.session.contents(id);
  contents = filledTensor(contents.meta, words.number(1, "a number to fill it with"));
  s.session.setContents(id, contents);
  return s.summary(id);
}

CommandAnswer watch(ScriptState& s, const Words& words, const Progress&) {
  if (!words.all.empty()) s.watches.push_back(s.valueOrGradient(words));
  CommandAnswer answer{.json = {{"watches", Json::array()}}};
  for (auto watched : s.watches) {
    const auto shown = s.summary(watched);
    answer.text += (answer.text.empty() ? "" : "\n") + shown.text;
    answer.json["watches"].push_back(shown.json);
  }
  return answer;
}

CommandAnswer histogram(ScriptState& s, const Words& words, const Progress&) {
  const auto id = s.valueOrGradient(words);
  const auto counts = s.session.histogram(id, 16);
  CommandAnswer answer = s.summary(id);
  answer.json["histogram"] = counts;
  const auto most = *std::ranges::max_element(counts);
  for (auto count : counts)
    answer.text += fmt::format("\n{:>10} {}", count, std::string(most ? 40 * count / most : 0, '*'));
  return answer;
}

CommandAnswer magnitudes(ScriptState& s, const Words& words, const Progress&) {
  const auto id = s.valueOrGradient(words);
  const auto counts = s.session.magnitudes(id);
  CommandAnswer answer = s.summary(id);
  answer.json["magnitudes"] = Json::array();
  const auto most = *std::ranges::max_element(counts);
  for (int cell = 0; cell < cuda::magnitudeCells; ++cell) {
    const auto count = counts[cell];
    if (count == 0) continue;
    const auto text = cuda::magnitudeText(cell);
    answer.json["magnitudes"].push_back({{"cell", text}, {"count", count}});
    answer.text += fmt::format("\n{:>10} {:>10} {}", text, count, std::string(40 * count / most, '*'));
  }
  return answer;
}

}  // namespace

std::vector<ScriptCommand> valueCommands() {
  return {
      {"print [grad|both] VALUE[SLICE]",
       "contents and statistics (p); a slice as in Python: t12[0, :4, ..., -1]; both: its gradient too",
       print,
       {"p"}},
      {"histogram [grad] VALUE", "count the elements of a value in equal cells", histogram},
      {"magnitudes [grad] VALUE", "count the elements by power of two; shows what lower precision would lose",
       magnitudes},
      {"watch [[grad] VALUE]", "show a value at each stop", watch},
      {"set VALUE NUMBER", "fill a value with a number; the run continues from there", set},
      {"save-value [grad] VALUE[SLICE] FILE.npy|FILE.safetensors", "write the contents of a value to a file",
       saveValue},
  };
}

}  // namespace retrograd
