// Connections for the benchmarks of the eBPF backend. Built by sandbox.js with gcc.
//
//   traffic serve ADDRESS PORT COUNT     listens on COUNT ports from PORT; sends one byte to each client, and echoes messages of 64 bytes
//   traffic connect ADDRESS PORT N       N connections, one after the other: connect, read one byte, close
//   traffic bulk ADDRESS PORT MIB        one connection that sends MIB mebibytes
//   traffic check THREADS                connects to 10.96.0.1:80 and 10.96.0.2:80 until standard input ends, and checks every endpoint by
//                                        its address and port: those of 10.96.0.S must be 127.S.0.N, port 1000 + N
// Each client prints one line of JSON.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static double cpu_us(void) {
  struct rusage r;
  getrusage(RUSAGE_SELF, &r);
  return (r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1e6 + r.ru_utime.tv_usec + r.ru_stime.tv_usec;
}

static struct sockaddr_in place(const char *ip, int port) {
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
  inet_pton(AF_INET, ip, &a.sin_addr);
  return a;
}

// A reset instead of a goodbye, so that no socket waits for stray packets.
static void close_at_once(int s) {
  struct linger l = {1, 0};
  setsockopt(s, SOL_SOCKET, SO_LINGER, &l, sizeof l);
  close(s);
}

static char is_listener[1 << 20];

static int serve(const char *ip, int port, int count) {
  static char buffer[1 << 18];
  int one = 1, poll = epoll_create1(0);
  for (int i = 0; i < count; i++) {
    struct sockaddr_in a = place(ip, port + i);
    int s = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(s, (void *)&a, sizeof a) || listen(s, 4096)) return perror("listen"), 1;
    is_listener[s] = 1;
    struct epoll_event e = {EPOLLIN, {.fd = s}};
    epoll_ctl(poll, EPOLL_CTL_ADD, s, &e);
  }
  puts("ready");
  fflush(stdout);
  for (;;) {
    struct epoll_event events[64];
    int n = epoll_wait(poll, events, 64, -1);
    for (int i = 0; i < n; i++) {
      int fd = events[i].data.fd;
      if (is_listener[fd]) {
        int s = accept(fd, 0, 0);
        if (s < 0) continue;
        setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        send(s, "x", 1, MSG_NOSIGNAL);
        struct epoll_event e = {EPOLLIN, {.fd = s}};
        epoll_ctl(poll, EPOLL_CTL_ADD, s, &e);
      } else {
        int got = recv(fd, buffer, sizeof buffer, 0);
        if (got <= 0) close(fd);
        else if (got == 64) send(fd, buffer, 64, MSG_NOSIGNAL);
      }
    }
  }
}

static int connect_often(const char *ip, int port, long n) {
  struct sockaddr_in a = place(ip, port);
  long failed = 0;
  double t0 = now_us(), c0 = cpu_us();
  for (long i = 0; i < n; i++) {
    int s = socket(AF_INET, SOCK_STREAM, 0);
    char byte;
    if (connect(s, (void *)&a, sizeof a) || recv(s, &byte, 1, 0) != 1) failed++;
    close_at_once(s);
  }
  printf("{\"connections\":%ld,\"failed\":%ld,\"perSecond\":%.0f,\"cpuUs\":%.2f}\n", n, failed, n / (now_us() - t0) * 1e6,
         (cpu_us() - c0) / n);
  return 0;
}

static int bulk(const char *ip, int port, long mib) {
  static char block[65536];
  struct sockaddr_in a = place(ip, port);
  int s = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(s, (void *)&a, sizeof a)) return perror("connect"), 1;
  double c0 = cpu_us();
  for (long i = 0; i < mib * 16; i++)
    for (long sent = 0; sent < (long)sizeof block;) {
      long r = send(s, block, sizeof block - sent, 0);
      if (r <= 0) return perror("send"), 1;
      sent += r;
    }
  printf("{\"cpuUsPerMib\":%.2f}\n", (cpu_us() - c0) / mib);
  return 0;
}

static volatile int is_over;
static long connects, of_another_service, torn, unresolved, failed;

static void *check(void *number) {
  long t = 0, w = 0, m = 0, u = 0, f = 0;
  for (; !is_over; t++) {
    int service = 1 + ((t + (long)number) & 1);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(80)}, peer;
    a.sin_addr.s_addr = htonl(0x0a600000 + service);
    socklen_t length = sizeof peer;
    int s = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(s, (void *)&a, sizeof a) || getpeername(s, (void *)&peer, &length)) f++;
    else {
      unsigned ip = ntohl(peer.sin_addr.s_addr), port = ntohs(peer.sin_port);
      if (ip >> 16 == 0x0a60) u++;
      else if (ip >> 16 != 0x7f00u + service) w++;
      else if (port != 1000 + (ip & 0xff)) m++;
    }
    close_at_once(s);
  }
  __sync_fetch_and_add(&connects, t);
  __sync_fetch_and_add(&of_another_service, w);
  __sync_fetch_and_add(&torn, m);
  __sync_fetch_and_add(&unresolved, u);
  __sync_fetch_and_add(&failed, f);
  return 0;
}

static int check_all(int threads) {
  pthread_t ids[16];
  char byte;
  for (long i = 0; i < threads; i++) pthread_create(&ids[i], 0, check, (void *)i);
  while (read(0, &byte, 1) > 0) continue;
  is_over = 1;
  for (int i = 0; i < threads; i++) pthread_join(ids[i], 0);
  printf("{\"connects\":%ld,\"ofAnotherService\":%ld,\"torn\":%ld,\"unresolved\":%ld,\"failed\":%ld}\n", connects,
         of_another_service, torn, unresolved, failed);
  return 0;
}

int main(int count, char **words) {
  if (count == 5 && !strcmp(words[1], "serve")) return serve(words[2], atoi(words[3]), atoi(words[4]));
  if (count == 5 && !strcmp(words[1], "connect")) return connect_often(words[2], atoi(words[3]), atol(words[4]));
  if (count == 5 && !strcmp(words[1], "bulk")) return bulk(words[2], atoi(words[3]), atol(words[4]));
  if (count == 3 && !strcmp(words[1], "check")) return check_all(atoi(words[2]));
  fputs("See the beginning of traffic.c.\n", stderr);
  return 2;
}
