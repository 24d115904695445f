#pragma once
// Questions answered over a pipe: the same table of methods as JSON-RPC and as a Model Context Protocol server.
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/serve/messages.h"

namespace retrograd {

/// A question that can be asked. None of them changes anything outside of this process.
struct Method {
  using Json = nlohmann::ordered_json;
  struct Parameter {
    std::string name, type, help;  ///< type as in a JSON schema: "string", "integer", "boolean"
    bool required = false;
  };
  std::string name, help;
  std::vector<Parameter> parameters;
  /// The answer, of any size. Throws Error, which is answered too.
  std::function<Json(const Json& arguments, const Progress&)> answer;

  /// JSON schema of its parameters.
  Json schema() const;
};

struct ServeOptions {
  bool agents = false;                ///< Model Context Protocol, else plain JSON-RPC
  std::string version;                ///< of the program
  std::size_t mostBytes = 24 * 1024;  ///< of an answer: longer lists and texts in it are shortened, and say so
};

/// Answers until the input ends. Throws Error where the connection cannot go on: a giant or half message, nobody reads.
void serve(MessageReader& in, MessageWriter& out, const std::vector<Method>& methods, const ServeOptions& options,
           const Progress& progress = {});

/// The answer in at most so many bytes of JSON: the longest lists and texts are cut, with a word on how much is left
/// out.
nlohmann::ordered_json bounded(nlohmann::ordered_json answer, std::size_t mostBytes);

}  // namespace retrograd
