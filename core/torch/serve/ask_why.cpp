// Questions that explain.
#include "core/torch/serve/open_files.h"

namespace retrograd {
namespace {

using Json = Method::Json;

const Method::Parameter fileParameter{"file", "integer", "number that `open` gave; absent: the file asked about last"};

/// What the debugger says of an op, with its call and line.
void spellOut(const Analysis& analysis, Json& op) {
  if (op.is_object() && op.contains("id")) op = opAnswer(analysis, BoundSymbolId(op["id"].get<std::int64_t>()));
}

Json nanAnswer(OpenFiles& files, const Json& arguments, const Progress& progress) {
  auto& file = files.at(arguments);
  auto answer = files.command(file, "walk-nan " + textIn(arguments, "value"), progress);
  for (const char* word : {"root", "forward", "nan_from"})
    if (answer.contains(word)) spellOut(*file.analysis, answer[word]);
  if (answer.contains("path"))
    for (auto& way : answer["path"]) spellOut(*file.analysis, way["op"]);
  return answer;
}

Json savedAnswer(OpenFiles& files, const Json& arguments, const Progress& progress) {
  auto& file = files.at(arguments);
  const auto value = textIn(arguments, "value");
  auto answer = files.command(file, value.empty() ? "saved" : "why-saved " + value, progress);
  if (answer.contains("maker")) spellOut(*file.analysis, answer["maker"]);
  if (answer.contains("readers"))
    for (auto& reader : answer["readers"]) {
      spellOut(*file.analysis, reader["op"]);
      spellOut(*file.analysis, reader["origin"]);
    }
  return answer;
}

Json noGradientAnswer(OpenFiles& files, const Json& arguments, const Progress& progress) {
  auto& file = files.at(arguments);
  auto answer = files.command(file, "why-no-gradient " + textIn(arguments, "value"), progress);
  for (auto& stop : answer["stops"]) spellOut(*file.analysis, stop["op"]);
  return answer;
}

}  // namespace

std::vector<Method> whyMethods(const std::shared_ptr<OpenFiles>& files) {
  return {
      {"find_nan",
       "Run it, and walk from a NaN or infinity back to the op that made it of finite numbers, with module, line of "
       "Python and why (a division by 0, the log of 0). `bad` is false where all values are finite.",
       {{"value", "string", "begin at this value; absent: at a bad result, gradient or buffer"}, fileParameter},
       [files](const Json& arguments, const Progress& progress) { return nanAnswer(*files, arguments, progress); }},
      {"why_saved",
       "Why a value is kept for the backward: which backward ops read it, its bytes, what recomputing it would cost. "
       "Without a value: all that is saved, the largest first.",
       {{"value", "string", "name of a value; absent: the list"}, fileParameter},
       [files](const Json& arguments, const Progress& progress) { return savedAnswer(*files, arguments, progress); }},
      {"why_no_gradient",
       "Each place where the gradient of a parameter or value is cut off: detach, no_grad, an integer op, never read.",
       {{"value", "string", "name of a parameter or value", true}, fileParameter},
       [files](const Json& arguments, const Progress& progress) {
         return noGradientAnswer(*files, arguments, progress);
       }},
  };
}

}  // namespace retrograd
