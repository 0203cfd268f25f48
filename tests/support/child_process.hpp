#pragma once

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <queue>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace kunci::test {

/// Asks `done` again every millisecond, for what the system offers no event for; false if `patience` passed
/// first.
template <typename Predicate>
bool poll_until(Predicate done, std::chrono::milliseconds patience) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (!done()) {
        if (std::chrono::steady_clock::now() >= deadline) return false;
        ::poll(nullptr, 0, 1);
    }
    return true;
}

namespace detail {

/// Runs what forks on one thread that lives as long as the process: PR_SET_PDEATHSIG is about the *thread*
/// that forked, so a child started by a short-lived thread would die with it.
class LastingThread {
  public:
    static LastingThread& instance() {
        static LastingThread thread;
        return thread;
    }

    pid_t run(std::function<pid_t()> task) {
        std::packaged_task<pid_t()> packaged{std::move(task)};
        std::future<pid_t> result = packaged.get_future();
        {
            const std::lock_guard lock{mutex_};
            tasks_.push(std::move(packaged));
        }
        changed_.notify_one();
        return result.get();
    }

  private:
    void serve(const std::stop_token& stop) {
        std::unique_lock lock{mutex_};
        while (changed_.wait(lock, stop, [this] { return !tasks_.empty(); })) {
            std::packaged_task<pid_t()> task = std::move(tasks_.front());
            tasks_.pop();
            lock.unlock();
            task();
            lock.lock();
        }
    }

    std::mutex mutex_;
    std::condition_variable_any changed_;
    std::queue<std::packaged_task<pid_t()>> tasks_;
    std::jthread thread_{[this](const std::stop_token& stop) { serve(stop); }};  // last: it uses the others
};

}  // namespace detail

/// How a child process is started.
struct ChildSettings {
    /// Added to the environment: "NAME=value".
    std::vector<std::string> environment = {};
    /// Whether its input and output are written and read here. Its error output is then this process's.
    bool piped = false;
};

/// A child process that dies with this process, however that ends. Its signal mask is empty, and it inherits no
/// descriptor but its standard ones, which are /dev/null or, if asked for, a channel to this process.
/// One thread at a time.
class ChildProcess {
  public:
    /// Starts `arguments[0]`, looked up in PATH. Throws `std::runtime_error` if there is no such program.
    explicit ChildProcess(std::vector<std::string> arguments, const ChildSettings& settings = {})
        : name_{arguments.at(0)} {
        int pipe_ends[2];
        if (::pipe2(pipe_ends, O_CLOEXEC) != 0) throw std::runtime_error("child process: pipe2");
        int channel[2] = {-1, -1};
        if (settings.piped && ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel) != 0) {
            throw std::runtime_error("child process: socketpair");
        }
        channel_ = channel[0];
        std::vector<std::string> environment = merged(settings.environment);
        std::vector<char*> argv = pointers(arguments);
        std::vector<char*> envp = pointers(environment);
        pid_ = detail::LastingThread::instance().run([&] {
            const pid_t pid = ::fork();
            if (pid == 0) become(argv.data(), envp.data(), channel[1], pipe_ends[1]);
            return pid;
        });
        if (channel[1] >= 0) ::close(channel[1]);
        ::close(pipe_ends[1]);
        int error = 0;
        // The write end closes by itself when the program starts; otherwise it brings the reason.
        const bool failed = ::read(pipe_ends[0], &error, sizeof error) == sizeof error;
        ::close(pipe_ends[0]);
        if (!failed && pid_ > 0) return;
        if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
        throw std::runtime_error("cannot start " + name_ + ": " + std::generic_category().message(error));
    }

    ChildProcess(const ChildProcess&) = delete;
    ChildProcess& operator=(const ChildProcess&) = delete;
    ~ChildProcess() {
        kill();
        if (channel_ >= 0) ::close(channel_);
    }

    [[nodiscard]] pid_t pid() const noexcept { return pid_; }

    /// Whether it is still there, stopped or not.
    [[nodiscard]] bool running() {
        int status = 0;
        if (!reaped_ && ::waitpid(pid_, &status, WNOHANG) == pid_) note_end(status);
        return !reaped_;
    }

    /// Its exit code, or 128 and the number of the signal that ended it; empty if it does not end in time.
    [[nodiscard]] std::optional<int> wait_for_exit(std::chrono::milliseconds patience) {
        if (!poll_until([this] { return !running(); }, patience)) return std::nullopt;
        return exit_code_;
    }

    /// REQUIRES: piped.
    void write_line(const std::string& line) {
        const std::string bytes = line + '\n';
        if (::send(channel_, bytes.data(), bytes.size(), MSG_NOSIGNAL) !=
            static_cast<ssize_t>(bytes.size())) {
            throw std::runtime_error(name_ + " does not listen any more");
        }
    }

    /// The next line of its output. Throws `std::runtime_error` if it ended or does not come in time.
    /// REQUIRES: piped.
    [[nodiscard]] std::string read_line(std::chrono::milliseconds patience) {
        const auto deadline = std::chrono::steady_clock::now() + patience;
        std::size_t end = 0;
        while ((end = output_.find('\n')) == std::string::npos) {
            const auto left =
                std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
            pollfd interest{channel_, POLLIN, 0};
            if (left.count() <= 0 || ::poll(&interest, 1, static_cast<int>(left.count())) == 0) {
                throw std::runtime_error(name_ + " says nothing");
            }
            char buffer[4096];
            const ssize_t got = ::recv(channel_, buffer, sizeof buffer, 0);
            if (got <= 0) throw std::runtime_error(name_ + " has ended");
            output_.append(buffer, static_cast<std::size_t>(got));
        }
        std::string line = output_.substr(0, end);
        output_.erase(0, end + 1);
        return line;
    }

    /// Returns when it really stands still, or has ended.
    void pause() {
        if (paused_ || !running()) return;
        ::kill(pid_, SIGSTOP);
        int status = 0;
        ::waitpid(pid_, &status, WUNTRACED);
        paused_ = WIFSTOPPED(status);
        if (!paused_) note_end(status);
    }

    void resume() {
        if (running()) ::kill(pid_, SIGCONT);
        paused_ = false;
    }

    /// Asks it to end, waits for that, and kills it if it takes too long.
    void terminate() {
        if (!running()) return;
        resume();
        ::kill(pid_, SIGTERM);
        if (!poll_until([this] { return !running(); }, std::chrono::seconds{5})) kill();
    }

    void kill() {
        if (!running()) return;
        ::kill(pid_, SIGKILL);
        int status = 0;
        while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
        }
        note_end(status);
        paused_ = false;
    }

  private:
    static std::vector<std::string> merged(const std::vector<std::string>& added) {
        std::vector<std::string> all = added;
        for (char** each = environ; *each != nullptr; ++each) {
            const std::string_view entry{*each};
            const auto name = entry.substr(0, entry.find('=') + 1);
            const auto same = [&](const std::string& other) { return other.starts_with(name); };
            if (std::ranges::none_of(added, same)) all.emplace_back(entry);
        }
        return all;
    }

    static std::vector<char*> pointers(std::vector<std::string>& strings) {
        std::vector<char*> all;
        for (std::string& each : strings) all.push_back(each.data());
        all.push_back(nullptr);
        return all;
    }

    void note_end(int status) {
        reaped_ = true;
        exit_code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }

    // Runs in the forked child: only what is async-signal-safe.
    [[noreturn]] static void become(char* const* argv, char* const* envp, int channel, int report) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        sigset_t none;
        ::sigemptyset(&none);
        ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
        const int null = ::open("/dev/null", O_RDWR);
        for (int fd = 0; fd < 2; ++fd) ::dup2(channel >= 0 ? channel : null, fd);
        if (channel < 0) ::dup2(null, 2);
#ifdef SYS_close_range
        constexpr unsigned on_exec = 4;  // CLOSE_RANGE_CLOEXEC
        ::syscall(SYS_close_range, 3U, ~0U, on_exec);
#endif
        ::execvpe(argv[0], argv, envp);
        const int error = errno;
        [[maybe_unused]] const ssize_t written = ::write(report, &error, sizeof error);
        ::_exit(127);
    }

    std::string name_;
    pid_t pid_ = -1;
    bool paused_ = false;
    bool reaped_ = false;
    int exit_code_ = 0;
    int channel_ = -1;
    std::string output_;  // read from the channel, and not yet given
};

}  // namespace kunci::test
