#pragma once

#include <kunci/adapters/hiredis/options.hpp>
#include <kunci/adapters/hiredis/redis_url.hpp>
#include <kunci/adapters/hiredis/socket.hpp>

#include <hiredis/hiredis.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

// The build defines KUNCI_HIREDIS_TLS where it links hiredis_ssl.
#if defined(KUNCI_HIREDIS_TLS) && HIREDIS_MAJOR >= 1 && __has_include(<hiredis/hiredis_ssl.h>)
#include <kunci/adapters/hiredis/tls_stream.hpp>
#else

namespace kunci::hiredis_detail {

/// What a session talks through. Without TLS it is the socket itself.
using Stream = Socket;

/// Makes streams of connected sockets.
class StreamFactory {
  public:
    /// Throws `std::invalid_argument` if the URL or an option asks for TLS.
    StreamFactory(const RedisUrl& url, const HiredisOptions& options) {
        if (url.tls) {
            throw std::invalid_argument(
                "kunci: rediss:// needs TLS, and this build of hiredis has none (it takes hiredis 1.0 or "
                "later "
                "with hiredis_ssl)");
        }
        reject_tls_options(options);
    }

    /// The stream, or an error text and no stream.
    [[nodiscard]] std::string open(Socket socket, std::optional<Stream>& stream) const {
        stream.emplace(std::move(socket));
        return {};
    }

    /// Whether only an answer of the server shows that the stream is established.
    [[nodiscard]] bool needs_greeting() const noexcept { return false; }
};

}  // namespace kunci::hiredis_detail
#endif
