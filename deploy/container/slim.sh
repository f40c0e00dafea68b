#!/usr/bin/env bash
# Removes from the image what neither the engine nor the Python package uses. The package database keeps the packages that
# remain, for scanners. Run as root in the image.
set -euo pipefail

# Nothing is installed later: neither apt and perl, which other packages' scripts use, nor tools of users and disks.
unused=(adduser apt bsdutils debconf debian-archive-keyring e2fsprogs gpgv libapt-pkg6.0 libext2fs2 liblocale-gettext-perl
  libperl5.36 libprotoc32 libss2 login logsave mount passwd perl perl-base perl-modules-5.36 sysvinit-utils tzdata util-linux util-linux-extra)
installed=()
for package in "${unused[@]}"; do
  [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true) == installed ]] && installed+=("$package")
done
# Their scripts need each other, also when they are removed.
for package in "${installed[@]}"; do rm -f "/var/lib/dpkg/info/$package".{pre,post}rm "/var/lib/dpkg/info/$package":*.{pre,post}rm; done
dpkg --purge --force-depends --force-remove-essential --force-remove-protected "${installed[@]}" >/dev/null 2>&1

# Documentation except licences, translations, and character sets other than the built-in ones.
find /usr/share/doc -mindepth 1 ! -path '/usr/share/doc/teletensor/*' ! -name copyright ! -type d ! -type l -delete
find /usr/share/doc -mindepth 1 -type d -empty -delete
rm -rf /usr/share/{bash-completion,info,lintian,locale,man,perl,perl5,zoneinfo} /usr/lib/x86_64-linux-gnu/{gconv,perl,perl-base}
# Tests and compiler interfaces of NumPy; libraries of gRPC that nothing here loads.
find /usr/lib/python3/dist-packages/numpy -type d -name tests -prune -exec rm -rf {} +
rm -rf /usr/lib/python3/dist-packages/numpy/{f2py,distutils} /usr/lib/python3.11/{idlelib,lib2to3,pydoc_data,ensurepip}
rm -f /usr/lib/x86_64-linux-gnu/libgrpc{_unsecure,++_unsecure,++_alts,++_error_details,_plugin_support,pp_channelz}.so*
rm -rf /var/cache/* /var/lib/apt /var/log/* /etc/apt
# No program gives its caller another user's or group's rights.
find / -xdev -type f -perm /6000 -exec chmod a-s {} +
