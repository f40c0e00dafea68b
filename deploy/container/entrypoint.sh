#!/bin/sh
# Entry point of the engine's image. teletensord requires a token file that only its user can read, and a mounted secret
# is often readable by a group: copies the secret to /run/teletensor/token. Other programs are run as they are.
#   TELETENSOR_TOKEN_SECRET  the mounted secret, /run/secrets/teletensor-token by default
set -eu
secret=${TELETENSOR_TOKEN_SECRET:-/run/secrets/teletensor-token}
if [ "${1:-}" = teletensord ] && [ ! -e /run/teletensor/token ]; then
  if [ -r "$secret" ] && [ -s "$secret" ]; then
    install -m 600 "$secret" /run/teletensor/token
  else
    case " $* " in
      *" --no-auth "* | *" --private "* | *" --help "* | *" --version "*) ;;
      *)
        echo "teletensor-entrypoint: expected the token in $secret, readable by user $(id -u)" >&2
        exit 1
        ;;
    esac
  fi
fi
exec "$@"
