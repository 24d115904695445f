#include "app/cli/parsing/parser.h"

#include <CLI/CLI.hpp>

#include "core/base/byte_size.h"
#include "core/base/number_text.h"

namespace retrograd::cli {
namespace {

template <class Number, class Accepts>
CLI::Validator numberThat(Accepts accepts, const char* typeName, const char* expected) {
  const auto check = [accepts, expected](const std::string& text) {
    const auto number = numberIn<Number>(text);
    return number && accepts(*number) ? std::string() : std::string(expected) + ", not '" + text + "'";
  };
  return CLI::Validator(check, typeName);
}

}  // namespace

Option Option::required() const { return Option(option_->required()); }
Option Option::excludes(Option other) const { return Option(option_->excludes(other.option_)); }
Option Option::excludes(const std::string& name) const { return Option(option_->excludes(name)); }
Option Option::needs(Option other) const { return Option(option_->needs(other.option_)); }

Option Option::oneOf(const std::vector<std::string>& values) const {
  return Option(option_->check(CLI::IsMember(values)));
}
Option Option::range(int least, int most) const { return Option(option_->check(CLI::Range(least, most))); }
Option Option::range(double least, double most) const { return Option(option_->check(CLI::Range(least, most))); }

Option Option::aboveZero() const {
  return Option(
      option_->check(numberThat<double>([](double x) { return x > 0; }, "POSITIVE", "expected a number above 0")));
}

Option Option::zeroOrMore() const {
  return Option(option_->check(
      numberThat<double>([](double x) { return x >= 0; }, "NONNEGATIVE", "expected 0 or a number above it")));
}

Option Option::seed() const {
  const auto check = [](const std::string& text) {
    return numberIn<std::uint64_t>(text)
               ? std::string()
               : "'" + text + "' is not a seed; expected a whole number from 0 to 18446744073709551615";
  };
  return Option(option_->check(CLI::Validator(check, "")));
}

Option Option::repeatable() const { return Option(option_->allow_extra_args(false)); }
Option Option::commaSeparated() const { return Option(option_->delimiter(',')); }
Option Option::optionalValue() const { return Option(option_->expected(0, 1)); }

Option Option::showDefault() const { return Option(option_->capture_default_str()); }
Option Option::showDefault(const std::string& text) const { return Option(option_->default_str(text)); }
Option Option::typeName(const std::string& name) const { return Option(option_->type_name(name)); }
Option Option::group(const std::string& name) const { return Option(option_->group(name)); }
Option Option::hidden() const { return group(""); }

bool Option::given() const { return option_->count() > 0; }
const std::vector<std::string>& Option::values() const { return option_->results(); }

template <class Value>
Option Parser::add(const std::string& names, Value& value, const std::string& help) const {
  return Option(app_->add_option(names, value, help));
}
template Option Parser::add(const std::string&, std::string&, const std::string&) const;
template Option Parser::add(const std::string&, int&, const std::string&) const;
template Option Parser::add(const std::string&, std::size_t&, const std::string&) const;
template Option Parser::add(const std::string&, double&, const std::string&) const;
template Option Parser::add(const std::string&, std::optional<std::string>&, const std::string&) const;
template Option Parser::add(const std::string&, std::optional<int>&, const std::string&) const;
template Option Parser::add(const std::string&, std::optional<std::int64_t>&, const std::string&) const;
template Option Parser::add(const std::string&, std::optional<std::uint64_t>&, const std::string&) const;
template Option Parser::add(const std::string&, std::optional<double>&, const std::string&) const;
template Option Parser::add(const std::string&, std::vector<std::string>&, const std::string&) const;
template Option Parser::add(const std::string&, std::optional<std::vector<std::string>>&, const std::string&) const;

Option Parser::add(const std::string& names, const std::string& help,
                   const std::function<void(const std::string&)>& read) const {
  return Option(app_->add_option_function<std::string>(names, read, help));
}

Option Parser::add(const std::string& names, const std::string& help,
                   const std::function<void(const std::vector<std::string>&)>& read) const {
  return Option(app_->add_option_function<std::vector<std::string>>(names, read, help));
}

Option Parser::addSize(const std::string& names, const std::string& help,
                       std::function<void(std::int64_t)> read) const {
  const auto readText = [names, read = std::move(read)](const std::string& text) {
    const auto bytes = byteSizeIn(text);
    if (!bytes) refuseValue(names, "'" + text + "' is not a size; expected " + byteSizeForms);
    read(*bytes);
  };
  return add(names, help, readText).typeName("SIZE");
}

Option Parser::flag(const std::string& names, bool& value, const std::string& help) const {
  return Option(app_->add_flag(names, value, help));
}
Option Parser::flag(const std::string& names, const std::string& help, std::function<void()> read) const {
  return Option(app_->add_flag_callback(names, std::move(read), help));
}

std::vector<Option> Parser::options() const {
  std::vector<Option> all;
  for (auto* option : app_->get_options()) all.emplace_back(option);
  return all;
}

Option Parser::option(const std::string& name) const { return Option(app_->get_option(name)); }

void Parser::footer(const std::string& text) const { app_->footer(text); }
void Parser::footer(std::function<std::string()> text) const { app_->footer(std::move(text)); }
std::string Parser::footer() const { return app_->get_footer(); }
void Parser::hide() const { app_->group(""); }

std::string Parser::name() const { return app_->get_name(); }

Parser Parser::addCommand(const std::string& name, const std::string& description) const {
  app_->require_subcommand(1);
  return Parser(*app_->add_subcommand(name, description));
}

bool Parser::hasCommands() const { return !app_->get_subcommands({}).empty(); }

std::optional<Parser> Parser::chosen() const {
  const auto called = app_->get_subcommands();
  return called.empty() ? std::nullopt : std::optional<Parser>(*called.front());
}

Parser Parser::parent() const { return Parser(*app_->get_parent()); }

void refuseValue(const std::string& value, const std::string& why) { throw CLI::ValidationError(value, why); }

}  // namespace retrograd::cli
