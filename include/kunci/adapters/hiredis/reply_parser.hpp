#pragma once

#include <kunci/connection/reply.hpp>

#include <hiredis/hiredis.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kunci::hiredis_detail {

/// Puts a reply together from the pieces in which hiredis reports it, depth first. hiredis is given no
/// objects to hold, so it has none to free.
class ReplyBuilder {
  public:
    /// A sound server nests two or three levels; without a bound, a broken one could overflow the stack.
    static constexpr std::size_t max_depth = 32;

    void begin_array(std::size_t size) {
        if (open_.size() == max_depth) throw std::bad_alloc{};
        OpenArray array{{}, size};
        // The size is only what the peer claims: room for all of it is made as the elements come.
        array.elements.reserve(std::min<std::size_t>(size, 64));
        open_.push_back(std::move(array));
        close_full_arrays();
    }

    void add(Reply reply) {
        if (open_.empty()) {
            complete_ = std::move(reply);
        } else {
            open_.back().elements.push_back(std::move(reply));
            close_full_arrays();
        }
    }

    [[nodiscard]] Reply take() {
        Reply reply = std::move(complete_).value();
        complete_.reset();
        return reply;
    }

  private:
    struct OpenArray {
        std::vector<Reply> elements;
        std::size_t size;
    };

    void close_full_arrays() {
        while (!open_.empty() && open_.back().elements.size() == open_.back().size) {
            Reply array = Reply::array(std::move(open_.back().elements));
            open_.pop_back();
            if (open_.empty()) {
                complete_ = std::move(array);
            } else {
                open_.back().elements.push_back(std::move(array));
            }
        }
    }

    std::vector<OpenArray> open_;
    std::optional<Reply> complete_;
};

/// What hiredis calls for each piece. No exception may cross its C frames: a null pointer tells it that
/// memory ran out, and any other pointer that all is well.
struct ReaderCallbacks {
    template <typename Action>
    static void* build(const redisReadTask* task, Action action) noexcept {
        try {
            action(*static_cast<ReplyBuilder*>(task->privdata));
            return task->privdata;
        } catch (...) {
            return nullptr;
        }
    }

    static void* on_string(const redisReadTask* task, char* bytes, std::size_t size) noexcept {
        return build(task, [&](ReplyBuilder& builder) {
            builder.add(text_reply(task->type, {bytes, size}));
        });
    }

    static Reply text_reply(int type, std::string_view bytes) {
        if (type == REDIS_REPLY_ERROR) return Reply::error(std::string{bytes});
        if (type == REDIS_REPLY_STATUS) return Reply::status(std::string{bytes});
#ifdef REDIS_REPLY_VERB
        if (type == REDIS_REPLY_VERB) bytes.remove_prefix(4);  // "txt:", checked by hiredis
#endif
        return Reply::string(std::string{bytes});
    }

    static void* on_integer(const redisReadTask* task, long long value) noexcept {
        return build(task, [&](ReplyBuilder& builder) { builder.add(Reply::integer(value)); });
    }

    static void* on_nil(const redisReadTask* task) noexcept {
        return build(task, [](ReplyBuilder& builder) { builder.add(Reply::nil()); });
    }

    static void on_free(void* /*builder*/) noexcept {}  // the parser owns it

#if HIREDIS_MAJOR >= 1
    static void* on_array(const redisReadTask* task, std::size_t size) noexcept {
        return build(task, [&](ReplyBuilder& builder) { builder.begin_array(size); });
    }
    static void* on_double(const redisReadTask* task, double /*value*/, char* text,
                           std::size_t size) noexcept {
        return on_string(task, text, size);
    }
    static void* on_bool(const redisReadTask* task, int value) noexcept {
        return on_integer(task, value);
    }

    static redisReplyObjectFunctions table() {
        return {on_string, on_array, on_integer, on_double, on_nil, on_bool, on_free};
    }
#else
    static void* on_array(const redisReadTask* task, int size) noexcept {
        return build(task,
                     [&](ReplyBuilder& builder) { builder.begin_array(static_cast<std::size_t>(size)); });
    }

    static redisReplyObjectFunctions table() {
        return {on_string, on_array, on_integer, on_nil, on_free};
    }
#endif
};

/// Turns the bytes of a server into replies: hiredis reads them, and no redisReply is ever made.
/// One thread at a time; stays where it is made.
class ReplyParser {
  public:
    enum class Progress {
        incomplete,  ///< More bytes are needed.
        complete,    ///< `take()` gives a reply.
        malformed,   ///< `error()` says why; the parser, and the stream behind it, are of no use any more.
    };

    ReplyParser() : reader_{redisReaderCreateWithFunctions(&functions_)} {
        if (!reader_) throw std::bad_alloc{};
        reader_->privdata = &builder_;
    }
    ReplyParser(const ReplyParser&) = delete;
    ReplyParser& operator=(const ReplyParser&) = delete;
    ~ReplyParser() = default;

    /// Takes in more bytes, if any, and looks whether a reply is complete.
    [[nodiscard]] Progress advance(std::string_view bytes) {
        void* object = nullptr;
        if (redisReaderFeed(reader_.get(), bytes.data(), bytes.size()) != REDIS_OK ||
            redisReaderGetReply(reader_.get(), &object) != REDIS_OK) {
            return Progress::malformed;
        }
        return object != nullptr ? Progress::complete : Progress::incomplete;
    }

    /// The reply. REQUIRES: the last `advance()` was complete, and the reply has not been taken yet.
    [[nodiscard]] Reply take() { return builder_.take(); }

    /// Bytes beyond the last reply have come in already.
    [[nodiscard]] bool has_more() const noexcept { return reader_->pos != reader_->len; }

    [[nodiscard]] std::string error() const { return static_cast<const char*>(reader_->errstr); }

  private:
    struct FreeReader {
        void operator()(redisReader* reader) const noexcept { redisReaderFree(reader); }
    };

    ReplyBuilder builder_;
    redisReplyObjectFunctions functions_ = ReaderCallbacks::table();
    std::unique_ptr<redisReader, FreeReader> reader_;  // last: it uses the others
};

}  // namespace kunci::hiredis_detail
