# The steps after a reboot: the policy that was kept is up. A wire comes back when its process is killed, and when it hangs.
sluice=/run/bin/sluice
wire=sluice-wire@uplink
# Succeeds if a command fails: `!` alone does not end a script under `set -e`.
fails() { if eval "$1"; then return 1; fi; }
# The process of the wire is another one than $1, and moves packets.
is_new() {
	pid=$(systemctl show -p MainPID --value $wire)
	[ "$pid" != 0 ] && [ "$pid" != "$1" ] && [ "$(systemctl is-active $wire)" = active ] && ! $sluice status w0 | grep -q 'NOT all'
}
comes_back() {
	n=0
	until is_new "$1"; do
		n=$((n + 1))
		[ $n -lt 100 ] || { systemctl status $wire; return 1; }
		sleep 0.1
	done
}
act() {
	set -ex
	test ! -e /run/sluice/eth9.json
	systemctl start sluice@eth9
	$sluice status eth9 | grep 'policy default '
	systemctl start $wire
	is_new 0
	for signal in KILL STOP; do
		first=$(systemctl show -p MainPID --value $wire)
		kill -$signal "$first"
		comes_back "$first"
	done
	systemctl show -p NRestarts --value $wire | grep -qx 2
	systemctl stop $wire
	fails '$sluice status w0'
	ip -d link show w0 | grep 'promiscuity 0'
	set +x
	echo 'the second is well'
}
(act)
systemctl --no-block exit
