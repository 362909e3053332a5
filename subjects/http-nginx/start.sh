#!/bin/sh
# HTTP server: nginx, with a generated configuration.
set -eu
usage() { echo "usage: http-nginx -p PORT [-t WORKERS] [-a ADDRESS]" >&2; exit 2; }

port= address=127.0.0.1 workers=$(nproc) # respects the CPU affinity, unlike nginx's `auto`
while getopts a:p:t: flag; do
  case $flag in
    a) address=$OPTARG ;;
    p) port=$OPTARG ;;
    t) workers=$OPTARG ;;
    *) usage ;;
  esac
done
case $port in '' | *[!0-9]*) usage ;; esac
case $address in '' | *[!0-9.]*) usage ;; esac

# Debian installs nginx in a directory that is only in root's PATH.
nginx=$(PATH=$PATH:/usr/sbin:/usr/local/sbin command -v nginx) || { echo "cannot run here: nginx is not installed" >&2; exit 69; }

# The directory for all files that nginx writes, one per port.
place=$(cd "$(dirname "$0")" && pwd)/run/$port
mkdir -p "$place" || { echo "cannot run here: no folder $place for what nginx writes" >&2; exit 69; }
# Workers keep this user, because a container may have no other. They only serve fixed responses from memory.
user=
if [ "$(id -u)" = 0 ]; then user="user root;"; fi
ulimit -n "$(ulimit -Hn)" 2>/dev/null || true
files=$(ulimit -n)
case $files in unlimited | ??????*) files=32768 ;; esac # nginx allocates its connections in advance
if [ "$files" -gt 32768 ]; then files=32768; fi
# From version 1.25.1 one port serves HTTP/1.1 and HTTP/2; before that, HTTP_VERSION decides.
http2= listen=
case $("$nginx" -v 2>&1) in
  *nginx/1.[0-9].* | *nginx/1.1[0-9].* | *nginx/1.2[0-4].* | *nginx/1.25.0*) [ "${HTTP_VERSION-}" != 2 ] || listen=http2 ;;
  *) http2="http2 on;" ;;
esac
cat > "$place/nginx.conf" <<END
daemon off;
$user
worker_processes $workers;
pid $place/pid;
error_log stderr warn;
events {
  worker_connections $files;
}
http {
  access_log off;
  keepalive_requests 1000000000;
  default_type text/plain;
  client_body_temp_path $place/body;
  proxy_temp_path $place/proxy;
  fastcgi_temp_path $place/fastcgi;
  uwsgi_temp_path $place/uwsgi;
  scgi_temp_path $place/scgi;
  server {
    $http2
    listen $address:$port $listen backlog=65535; # the kernel caps it at net.core.somaxconn
    location = / { return 200 "test"; }
    location = /plaintext { return 200 "Hello, World!"; }
    location / { return 404; }
  }
}
END
exec "$nginx" -p "$place" -e stderr -c "$place/nginx.conf"
