#!/usr/bin/env bash
# The first process of a rehearsal's machine, in namespaces of its own; the machine ends with it.
# Arguments: the base file system, the machine's folder, its name.
set -euo pipefail

root=$1 machine=$2 name=$3

mount --make-rprivate /
hostname "$name"
# The file system is shared; writes go to the machine's own layer and are not visible outside.
mount -t overlay overlay -o "lowerdir=$root,upperdir=$machine/upper,workdir=$machine/work" "$machine/root"
cd "$machine/root"
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount -t tmpfs tmpfs run
mkdir -p run/sshd var/lib/docker
# Docker's own layers cannot be on top of other layers.
mount --bind "$machine/docker" var/lib/docker
# Not chroot: a process that joins a container's namespaces would see the outer root instead of the container's.
pivot_root . mnt
cd /
umount --lazy /mnt
chown -R eventsql:eventsql /home/eventsql
chmod 700 /home/eventsql/.ssh
ssh-keygen -q -A
dockerd --bridge none --iptables=false --ip-forward=false &
exec /usr/sbin/sshd -D -e -o PasswordAuthentication=no -o PermitRootLogin=no -o UsePAM=no
