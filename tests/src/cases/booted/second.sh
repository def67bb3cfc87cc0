# The steps after a reboot: the policy that was kept is up.
act() {
	set -ex
	test ! -e /run/sluice/eth9.json
	systemctl start sluice@eth9
	/run/bin/sluice status eth9 | grep 'policy default '
	set +x
	echo 'the second is well'
}
(act)
systemctl --no-block exit
