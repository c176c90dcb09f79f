"""Unit files of many Debian packages, to compare our reading of them with systemd's.

The packages are downloaded, not installed, and only what concerns systemd is unpacked, once, below the cache
directory: about 90 MB from the mirror, a few hundred kB kept. Packages that the mirror no longer has are left
out; the tests say how many units they compared.
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import tempfile
from hashlib import sha256
from pathlib import Path

from tests.helpers.systemd_tree import SUITE, cache_directory

PACKAGES = [
    "accountsservice",
    "acpid",
    "anacron",
    "apache2",
    "apparmor",
    "apt-cacher-ng",
    "at",
    "auditd",
    "autofs",
    "avahi-daemon",
    "bind9",
    "bird2",
    "bluez",
    "btrfsmaintenance",
    "certbot",
    "certmonger",
    "chrony",
    "clamav-daemon",
    "clamav-freshclam",
    "cloud-init",
    "collectd-core",
    "colord",
    "conntrackd",
    "console-setup",
    "containerd",
    "corosync",
    "coturn",
    "cron",
    "ctdb",
    "cups-browsed",
    "cups-daemon",
    "dbus-broker",
    "dhcpcd5",
    "dnsmasq",
    "docker.io",
    "drbd-utils",
    "e2fsprogs",
    "earlyoom",
    "exim4-base",
    "fail2ban",
    "fancontrol",
    "firewalld",
    "freeradius",
    "gearman-job-server",
    "gpm",
    "gpsd",
    "haproxy",
    "haveged",
    "hostapd",
    "ifupdown",
    "irqbalance",
    "isc-dhcp-server",
    "iwd",
    "keepalived",
    "kexec-tools",
    "knot",
    "krb5-admin-server",
    "krb5-kdc",
    "ladvd",
    "libvirt-daemon-system",
    "lightdm",
    "lighttpd",
    "linuxptp",
    "lirc",
    "lldpd",
    "lm-sensors",
    "logrotate",
    "lvm2",
    "lxcfs",
    "man-db",
    "mdadm",
    "memcached",
    "modemmanager",
    "monit",
    "mosquitto",
    "multipath-tools",
    "munin-node",
    "named",
    "nbd-server",
    "netfilter-persistent",
    "network-manager",
    "nfs-common",
    "nfs-kernel-server",
    "nftables",
    "nginx-common",
    "nsd",
    "nslcd",
    "ntpsec",
    "numad",
    "nvme-cli",
    "oddjob",
    "opendkim",
    "openvpn",
    "openssh-server",
    "open-iscsi",
    "open-vm-tools",
    "opensmtpd",
    "packagekit",
    "pacemaker",
    "polkitd",
    "postfix",
    "postgresql-common",
    "power-profiles-daemon",
    "privoxy",
    "prosody",
    "qemu-guest-agent",
    "radvd",
    "rasdaemon",
    "redis-server",
    "rng-tools5",
    "rpcbind",
    "rspamd",
    "rsync",
    "rsyslog",
    "rtkit",
    "samba",
    "smartmontools",
    "snapd",
    "snapper",
    "snmpd",
    "squid",
    "sslh",
    "sssd-common",
    "sssd-kcm",
    "sssd-nss",
    "strongswan-starter",
    "stunnel4",
    "suricata",
    "sysstat",
    "systemd-container",
    "systemd-coredump",
    "systemd-homed",
    "systemd-journal-remote",
    "systemd-oomd",
    "systemd-resolved",
    "systemd-timesyncd",
    "tgt",
    "thermald",
    "tor",
    "transmission-daemon",
    "tuned",
    "udisks2",
    "ufw",
    "unattended-upgrades",
    "unbound",
    "upower",
    "uuid-runtime",
    "uwsgi-core",
    "varnish",
    "vnstat",
    "vsftpd",
    "watchdog",
    "winbind",
    "wireguard-tools",
    "wpasupplicant",
    "wsdd",
    "xinetd",
    "zabbix-agent",
    "zram-tools",
]

_WANTED = ("./lib/systemd/system*", "./usr/lib/systemd/system*", "./etc/systemd*")


def unit_files() -> Path:
    """A directory with usr/lib/systemd/system and etc/systemd as the packages ship them."""
    digest = sha256(f"{SUITE} {' '.join(PACKAGES)}".encode()).hexdigest()[:12]
    made = cache_directory() / f"unit-files-{digest}"
    made.parent.mkdir(parents=True, exist_ok=True)
    with open(made.parent / "unit-files.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            unfinished = Path(tempfile.mkdtemp(prefix="unit-files-", dir=made.parent))
            try:
                _unpack(unfinished)
                shutil.rmtree(unfinished / "debs")
                unfinished.rename(made)
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)
    return made


def _unpack(place: Path) -> None:
    (place / "debs").mkdir()
    (place / "usr/lib").mkdir(parents=True)
    (place / "lib").symlink_to("usr/lib")
    known = _known()
    if len(known) < len(PACKAGES) // 2:  # a machine whose package lists were cleaned away
        subprocess.run(["apt-get", "update", "-qq"], capture_output=True, timeout=120)
        known = _known()
    done = subprocess.run(["apt-get", "download", "-qq", *known], cwd=place / "debs", capture_output=True, timeout=300)
    packages = sorted((place / "debs").glob("*.deb"))
    if not packages:
        raise RuntimeError(f"no package could be downloaded; run apt-get update\n{done.stderr.decode()[-1000:]}")
    for package in packages:
        archive = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE)
        extract = ["tar", "-x", "--wildcards", "--keep-directory-symlink", "--no-same-owner", "-f", "-", *_WANTED]
        subprocess.run(extract, cwd=place, stdin=archive.stdout, stderr=subprocess.DEVNULL)  # most lack some of them
        assert archive.stdout is not None
        archive.stdout.close()
        archive.wait()


def _known() -> list[str]:
    listed = subprocess.run(["apt-cache", "pkgnames"], capture_output=True, text=True, check=True).stdout.split()
    return sorted(set(PACKAGES) & set(listed))
