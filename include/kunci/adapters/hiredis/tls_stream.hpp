#pragma once

// Included by stream.hpp, where hiredis offers TLS.

#include <kunci/adapters/hiredis/options.hpp>
#include <kunci/adapters/hiredis/redis_url.hpp>
#include <kunci/adapters/hiredis/sigpipe.hpp>
#include <kunci/adapters/hiredis/socket.hpp>
#include <kunci/adapters/hiredis/wait.hpp>
#include <kunci/time.hpp>

#include <arpa/inet.h>
#include <errno.h>
#include <hiredis/hiredis.h>
#include <hiredis/hiredis_ssl.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace kunci::hiredis_detail {

struct FreeTlsContext {
    void operator()(redisSSLContext* context) const noexcept { redisFreeSSLContext(context); }
};
using TlsContext = std::unique_ptr<redisSSLContext, FreeTlsContext>;

/// Reads the certificates. Throws `std::invalid_argument` if they cannot be used.
[[nodiscard]] inline TlsContext make_tls_context(const HiredisOptions& options,
                                                 const std::string& server_name) {
    [[maybe_unused]] static const int initialised = redisInitOpenSSL();
    const auto text = [](const std::string& value) { return value.empty() ? nullptr : value.c_str(); };
    redisSSLContextError error = REDIS_SSL_CTX_NONE;
#ifdef REDIS_SSL_VERIFY_NONE
    redisSSLOptions wanted{};
    wanted.cacert_filename = text(options.tls_ca_file);
    wanted.capath = text(options.tls_ca_directory);
    wanted.cert_filename = text(options.tls_cert_file);
    wanted.private_key_filename = text(options.tls_key_file);
    wanted.server_name = text(server_name);
    wanted.verify_mode = options.tls_verify ? REDIS_SSL_VERIFY_PEER : REDIS_SSL_VERIFY_NONE;
    TlsContext context{redisCreateSSLContextWithOptions(&wanted, &error)};
#else
    if (!options.tls_verify) throw std::invalid_argument("kunci: tls_verify = false needs hiredis 1.1");
    TlsContext context{redisCreateSSLContext(text(options.tls_ca_file), text(options.tls_ca_directory),
                                             text(options.tls_cert_file), text(options.tls_key_file),
                                             text(server_name), &error)};
#endif
    if (!context) {
        throw std::invalid_argument(std::string{"kunci: the tls_ options cannot be used: "} +
                                    redisSSLContextGetError(error));
    }
    return context;
}

/// TLS over a connected socket that somebody else owns. hiredis hides the TLS object, so it cannot be asked
/// whether the handshake is over nor what it waits for; until the first bytes have been received both are
/// guessed, and what goes wrong until then must not be taken for more than "not connected".
/// One thread at a time.
class TlsLayer {
  public:
    /// An error text, empty on success.
    [[nodiscard]] std::string start(int fd, redisSSLContext* tls) {
        context_.reset(redisConnectFd(fd));
        if (!context_) throw std::bad_alloc{};
        context_->flags &= ~REDIS_BLOCK;
        const SigpipeSwallowed swallowed;
        errno = 0;
        return redisInitiateSSLWithContext(context_.get(), tls) == REDIS_OK ? std::string{} : error();
    }

    /// All or nothing is reported as sent. REQUIRES: after "again", the same bytes once more.
    [[nodiscard]] IoResult send(std::string_view first, std::string_view second) {
        if (accepted_ == 0) {
            append(first);
            append(second);
            accepted_ = first.size() + second.size();
        }
        int finished = 0;
        const SigpipeSwallowed swallowed;
        errno = 0;
        const bool sound = redisBufferWrite(context_.get(), &finished) == REDIS_OK;
        if (sound && finished != 0) return IoResult::done(std::exchange(accepted_, 0));
        IoResult result = sound ? IoResult::again() : IoResult::failed(error());
        result.in_doubt = true;  // some records may be out
        return result;
    }

    [[nodiscard]] IoResult receive(char* buffer, std::size_t size) {
        const SigpipeSwallowed swallowed;
        errno = 0;
        const ssize_t got = context_->funcs->read(context_.get(), buffer, size);
        if (got > 0) {
            established_ = true;
            return IoResult::done(static_cast<std::size_t>(got));
        }
        if (got == 0) return IoResult::again();
        return context_->err == REDIS_ERR_EOF ? IoResult::closed() : IoResult::failed(error());
    }

    [[nodiscard]] bool wait_to_send(Deadline deadline) const { return wait(POLLOUT, deadline); }
    [[nodiscard]] bool wait_to_receive(Deadline deadline) const { return wait(POLLIN, deadline); }

  private:
    struct FreeContext {
        void operator()(redisContext* context) const noexcept {
            context->fd = REDIS_INVALID_FD;  // the socket's owner closes it
            redisFree(context);
        }
    };

    void append(std::string_view bytes) {
        if (redisAppendFormattedCommand(context_.get(), bytes.data(), bytes.size()) != REDIS_OK) {
            throw std::bad_alloc{};
        }
    }

    /// Until the handshake is over, whether a full socket or the peer is to be waited for is guessed from the
    /// socket, and because the guess may be wrong, not for long.
    [[nodiscard]] bool wait(short event, Deadline deadline) const {
        if (established_) return wait_ready(context_->fd, event, deadline);
        constexpr Duration slice = std::chrono::milliseconds{20};
        const auto events = static_cast<short>(is_ready(context_->fd, POLLOUT) ? POLLIN : POLLIN | POLLOUT);
        const Deadline soon = std::min(deadline, saturating_add(SteadyClock::now(), slice));
        return wait_ready(context_->fd, events, soon) || SteadyClock::now() < deadline;
    }

    /// hiredis reports errno also where OpenSSL alone knows the reason; errno is 0 then.
    [[nodiscard]] std::string error() const {
        if (errno != 0) return "TLS: " + error_text(errno);
        if (established_) return "TLS: the stream is damaged or was cut off";
        return "TLS: the handshake failed: the other side is not TLS, or one side does not accept the "
               "other's "
               "certificate";
    }

    std::unique_ptr<redisContext, FreeContext> context_;
    std::size_t accepted_ = 0;  // bytes in hiredis's buffer that are not reported as sent yet
    bool established_ = false;
};

/// What a session talks through: the socket itself, or TLS over it. One thread at a time.
class Stream {
  public:
    explicit Stream(Socket socket, std::unique_ptr<TlsLayer> tls = nullptr)
        : socket_{std::move(socket)}, tls_{std::move(tls)} {}

    [[nodiscard]] int fd() const noexcept { return socket_.fd(); }
    [[nodiscard]] bool buffers_input() const noexcept { return tls_ != nullptr; }

    [[nodiscard]] IoResult send(std::string_view first, std::string_view second) {
        return tls_ ? tls_->send(first, second) : socket_.send(first, second);
    }
    [[nodiscard]] IoResult receive(char* buffer, std::size_t size) {
        return tls_ ? tls_->receive(buffer, size) : socket_.receive(buffer, size);
    }
    [[nodiscard]] bool wait_to_send(Deadline deadline) const {
        return tls_ ? tls_->wait_to_send(deadline) : socket_.wait_to_send(deadline);
    }
    [[nodiscard]] bool wait_to_receive(Deadline deadline) const {
        return tls_ ? tls_->wait_to_receive(deadline) : socket_.wait_to_receive(deadline);
    }
    [[nodiscard]] bool is_quiet() {
        if (!tls_) return socket_.is_quiet();
        char byte = 0;  // bytes in the socket may be TLS's own, so it must have a look at them
        return tls_->receive(&byte, 1).status == IoResult::Status::again;
    }
    void finish() { socket_.finish(); }

  private:
    Socket socket_;
    std::unique_ptr<TlsLayer> tls_;  // null: plain
};

/// Makes streams of connected sockets.
class StreamFactory {
  public:
    /// Throws `std::invalid_argument` if the options do not fit the URL, or the certificates are of no use.
    StreamFactory(const RedisUrl& url, const HiredisOptions& options) {
        if (url.tls) {
            tls_ = make_tls_context(options, server_name(url, options));
        } else {
            reject_tls_options(options);
        }
    }

    /// The stream, or an error text and no stream.
    [[nodiscard]] std::string open(Socket socket, std::optional<Stream>& stream) const {
        std::unique_ptr<TlsLayer> layer;
        std::string error;
        if (tls_) {
            layer = std::make_unique<TlsLayer>();
            error = layer->start(socket.fd(), tls_.get());
        }
        if (error.empty()) stream.emplace(std::move(socket), std::move(layer));
        return error;
    }

    /// Whether only an answer of the server shows that the stream is established.
    [[nodiscard]] bool needs_greeting() const noexcept { return tls_ != nullptr; }

  private:
    static std::string server_name(const RedisUrl& url, const HiredisOptions& options) {
        if (!options.tls_server_name.empty()) return options.tls_server_name;
        in_addr ignored{};  // RFC 6066: an address is no server name
        const bool numeric =
            url.host.find(':') != std::string::npos || ::inet_pton(AF_INET, url.host.c_str(), &ignored) == 1;
        return numeric ? std::string{} : url.host;
    }

    TlsContext tls_;  // null: plain
};

}  // namespace kunci::hiredis_detail
