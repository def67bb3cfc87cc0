# The steps of the first boot. Any step that fails is seen in the log: "all is well" is missing.
sluice=/run/bin/sluice
# Waits until a command succeeds.
await() {
	n=0
	until eval "$1"; do
		n=$((n + 1))
		[ $n -lt 200 ] || { echo "in vain: $1"; return 1; }
		sleep 0.1
	done
}
# Succeeds if a command fails: `!` alone does not end a script under `set -e`.
fails() { if eval "$1"; then return 1; fi; }
policy_is() { $sluice status eth9 | grep -q "policy $1 "; }
act() {
	set -ex
	systemctl start sluice@eth9
	policy_is gaming
	# What waits is in a unit of its own; a reload does not confirm it; stopping what asked for it does not end it.
	$sluice apply eth9 default --confirm 2s
	systemctl list-units --no-legend 'sluice-confirm-*' | grep running
	fails 'systemctl reload sluice@eth9'
	policy_is default
	await 'policy_is gaming'
	await '! systemctl list-units --no-legend "sluice-confirm-*" | grep running'
	# Configured anew, a reload applies it.
	sed -i 's/^SLUICE_POLICY=.*/SLUICE_POLICY=server/' /etc/sluice/eth9.conf
	systemctl reload sluice@eth9
	policy_is server
	# What others remove, the service of the timer puts back, in its sandbox.
	systemctl start sluice-ensure.timer
	ip link del "sluice-sp$(cat /sys/class/net/eth9/ifindex)"
	systemctl start sluice-ensure
	fails '$sluice status eth9 | grep NOT'
	# The page, in its sandbox.
	systemctl start sluice-serve
	await 'curl -sf http://127.0.0.1:8080/api/interfaces | grep -q eth9'
	token=$(cat /run/sluice/serve-8080.token)
	curl -sf -X POST -H "Authorization: Bearer $token" -H 'Content-Type: application/json' \
		-d "{\"text\": $($sluice history eth9 1 | jq -Rs .), \"confirm_s\": 60}" http://127.0.0.1:8080/api/interfaces/eth9/apply
	systemctl stop sluice-serve
	$sluice confirm eth9
	$sluice apply eth9 default --at-boot | grep 'at boot this policy holds'
	# Stopped, it is as it was; started again, what was kept comes up.
	systemctl stop sluice@eth9
	tc qdisc show dev eth9 | grep -q noqueue
	systemctl start sluice@eth9
	policy_is default
	set +x
	echo 'all is well'
}
(act)
systemctl --no-block exit
