# Runs a command on a terminal of its own. Usage: terminal.py <columns> <rows> <command> ...
# What the command writes comes out as it is. Lines on standard input: "resize <columns> <rows>", "type <characters, with escapes>".
import fcntl, os, pty, select, struct, sys, termios

columns, rows, *command = sys.argv[1:]
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(command[0], command)


def resize(columns, rows):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack('HHHH', int(rows), int(columns), 0, 0))


def obey(line):
    verb, _, rest = line.strip().partition(' ')
    if verb == 'resize':
        resize(*rest.split())
    elif verb == 'type':
        os.write(terminal, rest.encode().decode('unicode_escape').encode())


resize(columns, rows)
watched = [terminal, sys.stdin.fileno()]
pending = ''
while True:
    ready, _, _ = select.select(watched, [], [])
    if terminal in ready:
        try:
            data = os.read(terminal, 65536)
        except OSError:
            break
        os.write(1, data)
    if sys.stdin.fileno() in ready:
        data = os.read(sys.stdin.fileno(), 4096)
        if not data:
            watched = [terminal]
        *lines, pending = (pending + data.decode()).split('\n')
        for line in lines:
            obey(line)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
