#pragma once
// Names of a session file's records; only session_*.cpp include this.
#include <algorithm>
#include <string>
#include <string_view>

namespace retrograd::session {

/// The first member, stored: gives the file's kind at a fixed place of its bytes, as in EPUB and OpenDocument.
inline constexpr const char* typeRecord = "mimetype";
inline constexpr std::string_view mediaType = "application/x-retrograd-session";

inline constexpr const char* sessionRecord = "session.json";
inline constexpr const char* modelRecord = "model.json";
inline constexpr const char* computationRecord = "computation.json";
inline constexpr const char* tracesRecord = "traces.json";
inline constexpr const char* analysisRecord = "analysis.json";
inline constexpr const char* valuesRecord = "values.json";
/// Before the records of the session that was differentiated; of that one's own, twice, and so on.
inline constexpr const char* differentiatedFolder = "of/";
inline constexpr std::string_view marksFolder = "marks/", jsonEnding = ".json";

inline std::string markRecord(std::string_view name) {
  return std::string(marksFolder) + std::string(name) + std::string(jsonEnding);
}

inline bool isMarkName(std::string_view name) {
  const auto isPart = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  };
  return !name.empty() && std::all_of(name.begin(), name.end(), isPart);
}

}  // namespace retrograd::session
