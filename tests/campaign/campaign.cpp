// Proves mutual exclusion under faults: processes and threads contend for locks while faults are injected; then what
// they have seen, and what the server has recorded, is checked against the rules of a lock. See --help.
#include "checker.hpp"
#include "faults.hpp"
#include "support/slack.hpp"
#include "worker.hpp"
#include "world.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace kunci::campaign {
namespace {

constexpr std::string_view usage =
    R"(usage: kunci_campaign [--class NAME]... [--seconds N] [--seed S] [--markdown]

Runs a campaign for each class of faults that is named (or for all of them), N seconds each (20), with the
faults that the seed S (1) decides. Exits with 1 if a rule of a lock was broken; then it says which, and how to
run the same campaign again. --markdown prints a table.
)";

struct Settings {
    std::vector<const FaultClass*> classes;
    std::chrono::seconds time{20};
    std::uint64_t seed = 1;
    bool markdown = false;
};

std::uint64_t number(std::string_view text) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) {
        throw std::invalid_argument("not a number: " + std::string{text});
    }
    return value;
}

const FaultClass* class_named(std::string_view name) {
    const auto* found = std::ranges::find(fault_classes, name, &FaultClass::name);
    if (found == fault_classes.end()) throw std::invalid_argument("no class of faults: " + std::string{name});
    return found;
}

Settings parse(const std::vector<std::string>& arguments) {
    Settings settings;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const auto value = [&]() -> std::string_view {
            if (i + 1 == arguments.size()) throw std::invalid_argument(arguments[i] + " needs a value");
            return arguments[++i];
        };
        if (arguments[i] == "--class") {
            settings.classes.push_back(class_named(value()));
        } else if (arguments[i] == "--seconds") {
            settings.time = std::chrono::seconds{number(value())};
        } else if (arguments[i] == "--seed") {
            settings.seed = number(value());
        } else if (arguments[i] == "--markdown") {
            settings.markdown = true;
        } else {
            throw std::invalid_argument("unknown argument: " + arguments[i]);
        }
    }
    if (settings.classes.empty()) {
        for (const auto& each : fault_classes) settings.classes.push_back(&each);
    }
    return settings;
}

void print(const Settings& settings, const FaultClass& faults, const History& history, const Log& log,
           std::size_t injected, std::size_t violations) {
    const auto losses =
        std::ranges::count_if(history.tenures, [](const Tenure& each) { return each.losses > 0; });
    if (settings.markdown) {
        std::cout << "| " << faults.name << " | " << faults.what << " | " << history.tenures.size() << " | "
                  << log.refused << " | " << log.failed << " | " << injected << " | " << losses << " | "
                  << violations << " |\n";
    } else {
        std::cout << faults.name << ": " << history.tenures.size() << " acquired, " << log.refused
                  << " refused, " << log.failed << " failed, " << log.cancelled << " cancelled; " << injected
                  << " faults, " << losses << " losses told; " << violations << " violations\n";
    }
}

/// Returns whether no rule was broken.
bool run(const Settings& settings, const FaultClass& faults, const std::string& program) {
    World world{program, {}, settings.seed};
    FaultSchedule schedule{world, settings.seed};
    schedule.run(faults.kinds(schedule), settings.time);
    world.settle();
    History history = world.history();
    history.replies_lost = faults.replies_lost;
    history.longest_stall = std::chrono::nanoseconds{longest_stall + test::slack}.count();
    constexpr std::chrono::nanoseconds loss_delay = std::chrono::milliseconds{20} + test::slack;
    auto violations = check(history, loss_delay.count());
    if (history.tenures.size() < 20) {
        violations.push_back({"campaign", "hardly a lock was acquired, so nothing is proved"});
    }
    print(settings, faults, history, world.log(), schedule.injected(), violations.size());
    constexpr std::size_t most = 20;
    for (std::size_t i = 0; i < std::min(most, violations.size()); ++i) {
        std::cout << "  " << violations[i].rule << ": " << violations[i].what << '\n';
    }
    if (!violations.empty()) {
        std::cout << "  again: kunci_campaign --class " << faults.name << " --seconds "
                  << settings.time.count() << " --seed " << settings.seed << '\n';
    }
    return violations.empty();
}

void work(const std::vector<std::string>& arguments) {
    const SharedLog log{arguments.at(0)};
    Worker{{.url = arguments.at(1),
            .process = static_cast<int>(number(arguments.at(2))),
            .threads = static_cast<int>(number(arguments.at(3))),
            .locks = static_cast<int>(number(arguments.at(4))),
            .ttl = std::chrono::milliseconds{number(arguments.at(5))},
            .seed = number(arguments.at(6))},
           *log}
        .run();
}

int main_of(std::vector<std::string> arguments) {
    const std::string program = std::filesystem::read_symlink("/proc/self/exe");
    if (!arguments.empty() && arguments[0] == "--worker") {
        work({arguments.begin() + 1, arguments.end()});
        return EXIT_SUCCESS;
    }
    if (!arguments.empty() && arguments[0] == "--help") {
        std::cout << usage;
        for (const auto& each : fault_classes) std::cout << "  " << each.name << ": " << each.what << '\n';
        return EXIT_SUCCESS;
    }
    const Settings settings = parse(arguments);
    if (settings.markdown) {
        std::cout << "| class | faults | acquired | refused | failed | faults injected | losses told | "
                     "violations |\n"
                     "|---|---|---|---|---|---|---|---|\n";
    }
    bool sound = true;
    for (const auto* faults : settings.classes) sound = run(settings, *faults, program) && sound;
    return sound ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace kunci::campaign

int main(int argc, char** argv) {
    try {
        return kunci::campaign::main_of({argv + 1, argv + argc});
    } catch (const std::exception& e) {
        std::cerr << "kunci_campaign: " << e.what() << '\n';
        return 2;
    }
}
