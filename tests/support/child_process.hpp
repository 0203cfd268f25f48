#pragma once

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <mutex>
#include <queue>
#include <stdexcept>
#include <stop_token>
#include <string>
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

/// A child process without input or output that dies with this process, however that ends. Its signal mask
/// is empty and it inherits no descriptor. One thread at a time.
class ChildProcess {
  public:
    /// Starts `arguments[0]`, looked up in PATH. Throws `std::runtime_error` if there is no such program.
    explicit ChildProcess(std::vector<std::string> arguments) : name_{arguments.at(0)} {
        int pipe_ends[2];
        if (::pipe2(pipe_ends, O_CLOEXEC) != 0) throw std::runtime_error("child process: pipe2");
        std::vector<char*> argv;
        for (std::string& argument : arguments) argv.push_back(argument.data());
        argv.push_back(nullptr);
        pid_ = detail::LastingThread::instance().run([&] {
            const pid_t pid = ::fork();
            if (pid == 0) become(argv.data(), pipe_ends[1]);
            return pid;
        });
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
    ~ChildProcess() { kill(); }

    [[nodiscard]] pid_t pid() const noexcept { return pid_; }

    /// Whether it is still there, stopped or not.
    [[nodiscard]] bool running() {
        if (!reaped_ && ::waitpid(pid_, nullptr, WNOHANG) == pid_) reaped_ = true;
        return !reaped_;
    }

    /// Returns when it really stands still, or has ended.
    void pause() {
        if (paused_ || !running()) return;
        ::kill(pid_, SIGSTOP);
        int status = 0;
        ::waitpid(pid_, &status, WUNTRACED);
        paused_ = WIFSTOPPED(status);
        reaped_ = !paused_;
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
        while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
        }
        reaped_ = true;
        paused_ = false;
    }

  private:
    // Runs in the forked child: only what is async-signal-safe.
    [[noreturn]] static void become(char* const* argv, int report) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        sigset_t none;
        ::sigemptyset(&none);
        ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
        const int null = ::open("/dev/null", O_RDWR);
        for (int fd = 0; fd < 3; ++fd) ::dup2(null, fd);
#ifdef SYS_close_range
        constexpr unsigned on_exec = 4;  // CLOSE_RANGE_CLOEXEC
        ::syscall(SYS_close_range, 3U, ~0U, on_exec);
#endif
        ::execvp(argv[0], argv);
        const int error = errno;
        [[maybe_unused]] const ssize_t written = ::write(report, &error, sizeof error);
        ::_exit(127);
    }

    std::string name_;
    pid_t pid_ = -1;
    bool paused_ = false;
    bool reaped_ = false;
};

}  // namespace kunci::test
