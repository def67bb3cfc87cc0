# Starts systemd as the first process of its namespaces, with our units and no others. $1: a directory that outlives the boot, with
# units/, sluice/ (for /etc/sluice), state/ (for /var/lib/sluice), act.sh (what is done once it runs) and out/. $2: the program.
set -e
dir=$1
program=$2
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/systemd/system /run/lock /run/etc /run/bin /var/lib/sluice
touch /run/bin/sluice
mount --bind "$program" /run/bin/sluice
cp -a /etc/. /run/etc
mkdir -p /run/etc/sluice
cp "$dir"/sluice/* /run/etc/sluice
mount --bind /run/etc /etc
mount --bind "$dir/state" /var/lib/sluice
mount -t sysfs sysfs /sys
# As systemd does on a machine, and not in a container.
mount -t bpf -o mode=700 bpf /sys/fs/bpf
mount -t cgroup2 cgroup2 /sys/fs/cgroup
cp -r "$dir"/units/. /run/systemd/system
ip link set lo up
ip link add eth9 type veth peer name eth9p
ip link set eth9 up
ip link set eth9p up
for side in w0 w1; do
	ip link add $side numrxqueues 1 numtxqueues 1 type veth peer name ${side}p numrxqueues 1 numtxqueues 1
	ip link set $side up
	ip link set ${side}p up
done
export container=sluice-test SYSTEMD_UNIT_PATH=/run/systemd/system
exec /lib/systemd/systemd --system --unit=act.service --log-target=console --log-level=notice
