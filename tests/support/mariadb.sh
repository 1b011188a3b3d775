# Starts a private MariaDB, or MySQL where there is no MariaDB: its directory, its port, and further
# arguments of the server. The data is made if there is none, and `first.sql` is run at each start if
# it is there. As root the server becomes the user that the package made. What it writes is handed to
# the system, which survives the server, and the disk is not waited for. Names of hosts are not looked
# up, so that a user who may come from anywhere is not taken for the anonymous one of this host.
set -eu
cd "$1"
port=$2
shift 2
# A server removes what it finds in its directory for temporary files when it starts.
mkdir -p temporary
as="--tmpdir=$PWD/temporary"
if [ "$(id -u)" = 0 ]; then
    chmod a+x . ..
    chown mysql . temporary
    as="$as --user=mysql"
    test ! -e key.pem || chown mysql ./*.pem
fi
if test -e first.sql; then
    chmod a+r first.sql
    set -- --init-file="$PWD/first.sql" "$@"
fi
PATH=$PATH:/usr/sbin:/usr/local/sbin
if command -v mariadbd >/dev/null; then
    server=mariadbd
    test -d data || mariadb-install-db --no-defaults $as --datadir="$PWD/data" --skip-test-db \
        --auth-root-authentication-method=normal >>log 2>&1
else
    server=mysqld
    set -- --mysqlx=OFF "$@"
    test -d data || mysqld --no-defaults $as --datadir="$PWD/data" --initialize-insecure >>log 2>&1
fi
exec $server --no-defaults $as --datadir="$PWD/data" --socket="$PWD/socket" --pid-file="$PWD/pid" \
    --port="$port" --bind-address=127.0.0.1 --skip-name-resolve --skip-log-bin \
    --innodb-buffer-pool-size=32M --innodb-flush-method=nosync "$@" >>log 2>&1
