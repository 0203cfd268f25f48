#pragma once

#include <stdexcept>
#include <string>

namespace kunci {

/// What a URL does not say about a connection; an aggregate for designated initialisers. The `tls_` options
/// belong to `rediss://` URLs and are refused with any other.
///
/// hiredis checks that the server's certificate is signed by a trusted authority; it does *not* compare the
/// name in the certificate with the host. Where that matters, trust an authority (`tls_ca_file`) that signs
/// nothing but your Redis servers.
struct HiredisOptions {
    /// PEM file with the certificates of the authorities to trust. Empty, and no `tls_ca_directory`: those
    /// that the system trusts.
    std::string tls_ca_file = {};

    /// Directory with such certificates, named by their hashes (`openssl rehash`).
    std::string tls_ca_directory = {};

    /// PEM file with the certificate (chain) that this client shows; needs `tls_key_file`.
    std::string tls_cert_file = {};

    /// PEM file with the private key to `tls_cert_file`.
    std::string tls_key_file = {};

    /// The name sent as server name indication. Empty: the host of the URL, unless that is an address.
    std::string tls_server_name = {};

    /// Whether the server's certificate must be valid. False is for tests only: anybody in between can then
    /// read and change everything. Needs hiredis 1.1.
    bool tls_verify = true;
};

namespace hiredis_detail {

/// For a connection without TLS: an option that nothing reads would leave its user in a false safety.
inline void reject_tls_options(const HiredisOptions& options) {
    if (!options.tls_ca_file.empty() || !options.tls_ca_directory.empty() || !options.tls_cert_file.empty() ||
        !options.tls_key_file.empty() || !options.tls_server_name.empty() || !options.tls_verify) {
        throw std::invalid_argument("kunci: a tls_ option is set, but the URL does not begin with rediss://");
    }
}

}  // namespace hiredis_detail

}  // namespace kunci
