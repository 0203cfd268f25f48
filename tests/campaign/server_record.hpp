#pragma once

#include "history.hpp"
#include "support/resp_framer.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kunci::campaign {

/// The settings by which a server records every write that took effect, in order: in a file that survives its
/// being killed, and such that an expired key (UNLINK) can be told from a deleted one (DEL).
[[nodiscard]] inline std::vector<std::string> recording_server() {
    return {"--appendonly",
            "yes",
            "--appendfsync",
            "no",
            "--aof-use-rdb-preamble",
            "no",
            "--auto-aof-rewrite-percentage",
            "0",
            "--lazyfree-lazy-expire",
            "yes"};
}

/// Puts tenures together from the writes.
class RecordReader {
  public:
    void apply(const std::vector<std::string>& write) {
        const std::string name = upper(write.at(0));
        if (name == "SET") return set(write);
        if (name == "PEXPIREAT") return expire(write);
        if (name == "DEL") return end(write, End::deleted);
        if (name == "UNLINK") return end(write, End::expired);
        if (name != "SELECT" && name != "MULTI" && name != "EXEC") odd("an unexpected write", write);
    }

    [[nodiscard]] ServerRecord take() { return std::move(record_); }

  private:
    [[nodiscard]] static std::string upper(std::string text) {
        std::ranges::transform(text, text.begin(), [](char c) {
            return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
        });
        return text;
    }

    // SET key token PXAT ms
    void set(const std::vector<std::string>& write) {
        if (write.size() != 5 || upper(write[3]) != "PXAT") return odd("a lock without expiry", write);
        if (auto* current = find(write[1])) current->end = End::overwritten;
        current_[write[1]] = record_.tenures.size();
        record_.tenures.push_back({write[1], write[2], std::atoll(write[4].c_str())});
    }

    void expire(const std::vector<std::string>& write) {
        auto* current = find(write.at(1));
        if (current == nullptr) return odd("a refresh of what is not there", write);
        const auto expiry = std::atoll(write.at(2).c_str());
        if (expiry < current->last_expiry) odd("a refresh that shortens", write);
        current->last_expiry = expiry;
    }

    void end(const std::vector<std::string>& write, End how) {
        auto* current = find(write.at(1));
        if (current == nullptr) return odd("an end of what is not there", write);
        current->end = how;
        current_.erase(write[1]);
    }

    [[nodiscard]] ServerTenure* find(const std::string& key) {
        const auto found = current_.find(key);
        return found != current_.end() ? &record_.tenures[found->second] : nullptr;
    }

    void odd(const std::string& what, const std::vector<std::string>& write) {
        std::string text = what + ':';
        for (const auto& word : write) text += ' ' + word;
        record_.oddities.push_back(std::move(text));
    }

    ServerRecord record_;
    std::map<std::string, std::size_t> current_;  // by key
};

/// The words of one request of RESP.
[[nodiscard]] inline std::vector<std::string> words_of(std::string_view request) {
    std::vector<std::string> words;
    std::size_t at = request.find("\r\n");
    while (at != std::string_view::npos && at + 2 < request.size()) {
        const std::size_t line_end = request.find("\r\n", at + 2);
        const auto length = static_cast<std::size_t>(std::atol(std::string{request.substr(at + 3)}.c_str()));
        words.emplace_back(request.substr(line_end + 2, length));
        at = line_end + 2 + length;
    }
    return words;
}

/// Reads what a server with the settings above has written in its directory.
[[nodiscard]] inline ServerRecord read_server_record(const std::string& directory) {
    std::map<int, std::filesystem::path> parts;  // "appendonly.aof.<number>.incr.aof"
    for (const auto& entry : std::filesystem::directory_iterator{directory + "/appendonlydir"}) {
        const std::string name = entry.path().filename();
        if (name.find(".incr.") != std::string::npos) parts[std::atoi(name.c_str() + 15)] = entry.path();
    }
    RecordReader reader;
    test::RespFramer framer;
    for (const auto& [number, path] : parts) {
        std::ostringstream text;
        text << std::ifstream{path, std::ios::binary}.rdbuf();
        framer.feed(text.str());
        while (const auto write = framer.next()) reader.apply(words_of(*write));
    }
    return reader.take();
}

}  // namespace kunci::campaign
