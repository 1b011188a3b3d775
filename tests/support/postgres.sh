# Starts a private PostgreSQL: its directory, its port, and further arguments of the server. The data
# is made if there is none. As root it becomes the user that the package made, for the server refuses
# root.
set -eu
as=
if [ "$(id -u)" = 0 ]; then
    chmod a+x "$1" "$1/.."
    chown postgres "$1"
    as="setpriv --reuid=postgres --regid=postgres --init-groups env HOME=$1"
fi
cd "$1"
port=$2
shift 2
# The server refuses a key that others can read.
test ! -e key.pem || { chmod 600 key.pem; ${as:+chown postgres key.pem}; }
bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)
PATH=${bin:+$bin:}$PATH
test -d data || $as initdb -D data -A trust -U postgres --no-sync -E UTF8 --locale=C.UTF-8 >>log 2>&1
exec $as postgres -D data -p "$port" -c listen_addresses=127.0.0.1 -c unix_socket_directories= "$@" >>log 2>&1
