"""Units that no plan and no finding tells anybody to stop, disable, mask or restart, and why.

Whoever pastes a command at three in the morning must still have a node afterwards: a way in, a network, a log, storage,
a runtime for the jobs of others. Names are compared without their suffix and without the instance behind "@", so that
docker.socket and getty@tty1.service are covered too.
"""

from __future__ import annotations

import re

_REASONS: dict[str, str] = {
    "it runs the containers and jobs of others": """
        containerd docker dockerd crio cri-o cri-docker podman podman-restart buildkit kubelet kube-proxy k3s k3s-agent
        rke2-agent rke2-server k0scontroller k0sworker microk8s nomad slurmd slurmctld slurmdbd munge lxd lxc incus
        slurmstepd snap.docker.dockerd snap.lxd.daemon cri-dockerd dockershim
        host-containerd host-containers nodeadm-run
        nodeadm-config etcd kube-apiserver kube-scheduler kube-controller-manager konnectivity-agent
        pbs pbs_mom pbs_server pbs_sched condor sge_execd sgeexecd gridengine-exec lsfd lsf ray raylet
        nvidia-container-toolkit""",
    "others reach the node through it": """
        ssh sshd dropbear telnet getty serial-getty console-getty container-getty agetty
        amazon-ssm-agent snap.amazon-ssm-agent.amazon-ssm-agent google-guest-agent google-osconfig-agent
        google-guest-agent-manager walinuxagent waagent qemu-guest-agent open-vm-tools vmtoolsd tailscaled teleport
        cockpit sssd nslcd nscd oslogin""",
    "the network depends on it": """
        networking network networkmanager networkd-dispatcher dhcpcd dhclient wpa_supplicant wicked connman netplan ifup
        network-manager openvswitch-switch ovs-vswitchd ovsdb-server nftables iptables firewalld ufw
        rdma openibd ibacm opensm frr bird bird6 gobgpd exabgp quagga zebra bgpd calico-node calico-felix felix
        flanneld cilium cilium-agent ovn-controller ovn-host weave antrea-agent aws-node ipamd
        strongswan strongswan-starter ipsec charon-systemd libreswan wg-quick openvpn openvpn-client keepalived haproxy
        vrrpd dnsmasq unbound named bind9 coredns node-local-dns iwd modemmanager lldpd lldpad
        mlnx_interface_mgr srp_daemon sssd-nss""",
    "certificates, leases and logs depend on its clock": "chrony chronyd ntp ntpd ntpsec ptp4l phc2sys timemaster",
    "it is the system's own": """
        init dbus dbus-broker dbus-daemon udev polkit rsyslog syslog-ng auditd kmod accounts-daemon upower
        user user-runtime-dir session rescue emergency""",
    "it prepares the node": "cloud-init cloud-init-local cloud-init-main cloud-config cloud-final ignition waagent-apt",
    "disks and file systems depend on it": """
        iscsid iscsi multipathd mdmonitor lvm2-lvmetad lvm2-monitor lvm2-lvmpolld dmeventd rpcbind nfs-client nfs-server
        rpc-statd rpc-gssd autofs zfs-mount zfs-import-cache lustre lnet beegfs-client gpfs ceph mmfsd mmsdrserv
        beegfs-helperd beegfs-storage beegfs-meta beegfs-mgmtd weka weka-agent weka-container glusterd glusterfsd
        moosefs-chunkserver juicefs s3fs goofys mountpoint-s3 vast nvmf-autoconnect nvme-autoconnect cachefilesd
        drbd smbd iscsi-init zed zfs-zed vdo stratisd clvmd corosync pacemaker ocfs2 gfs2 alluxio-worker""",
    "the accelerators depend on it": """
        nvidia-fabricmanager nvidia-persistenced nvidia-imex nvidia-dcgm gdrcopy nvidia-mig-manager nvidia-cdi-refresh
        nvidia-toolkit-firmware nvsm habanalabs neuron-monitor amd-smi rocm-smi""",
}
_BY_STEM = {stem: why for why, stems in _REASONS.items() for stem in stems.split()}
_PREFIXES = {
    "systemd-": "it is the system's own",
    "zombiescope": "it is zombiescope itself",
    "cloud-": "it prepares the node",
    "snap.microk8s.": "it runs the containers and jobs of others",
    "ceph-": "disks and file systems depend on it",
    "lvm2-": "disks and file systems depend on it",
    "google-": "others reach the node through it",
}
_CONTAINER = re.compile(r"(?:docker|cri-containerd|crio|crio-conmon|libpod|libpod-conmon|nerdctl|kubepods\S*)-")
_OF_THE_LABORATORY = "zombiescope-lab-"
"""Its units break the node on purpose: they are there to be stopped."""
_STOPPABLE = (".service", ".socket", ".timer", ".path")
_VALID = re.compile(r"[A-Za-z0-9:_.\\@][-A-Za-z0-9:_.\\@]{0,254}")
"""systemd's own rule for names of units, and no dash in front: that would be an option."""


def protection(unit: str) -> str | None:
    """Why nobody is told to change this unit; None where it may be said."""
    if _VALID.fullmatch(unit) is None:
        return "its name is not a systemd unit name"
    name = unit.lower()
    stem = name.rpartition(".")[0].partition("@")[0]
    if _CONTAINER.match(name):
        return "it is the scope of a container, which its runtime would start again"
    prefixes = {} if name.startswith(_OF_THE_LABORATORY) else _PREFIXES
    by_prefix = next((why for prefix, why in prefixes.items() if name.startswith(prefix)), None)
    if (why := _BY_STEM.get(stem) or by_prefix) is not None:
        return why
    if name.endswith(_STOPPABLE):
        return None
    return "it holds others" if name.endswith(".slice") else "stopping it ends whatever runs in it"
