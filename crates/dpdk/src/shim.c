/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The functions by which Rust calls DPDK, whose own are inline for the most part; dpdk.rs declares them. */
#define ALLOW_EXPERIMENTAL_API /* rte_tm */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_log.h>
#include <rte_mbuf.h>
#include <rte_tm.h>
#include <rte_version.h>

/* A port, as its driver describes it. */
struct sl_port_info {
	char driver[32];
	uint16_t max_rx_queues;
	uint16_t max_tx_queues;
	/* Traffic management (rte_tm): levels of its hierarchy; 0: the driver has none. */
	uint32_t tm_levels;
	uint32_t tm_nodes;
	uint64_t tm_rate_most; /* of a shaper, bytes a second */
};

struct sl_port_counts {
	uint64_t received_pkts;
	uint64_t sent_pkts;
	uint64_t missed_pkts; /* the port had no room for them */
	uint64_t receive_errors;
	uint64_t send_errors;
	uint64_t without_memory;
};

const char *sl_dpdk_version(void)
{
	return rte_version();
}

/* The negative of an errno, or how many arguments were read. */
int sl_dpdk_init(int argc, char **argv)
{
	int read = rte_eal_init(argc, argv);

	return read < 0 ? -rte_errno : read;
}

void sl_dpdk_end(void)
{
	rte_eal_cleanup();
}

/* Adds a device. The number of its port, or the negative of an errno. */
int sl_dpdk_plug(const char *device)
{
	struct rte_dev_iterator all;
	int failed = rte_dev_probe(device), found = -ENODEV;
	uint16_t port;

	if (failed)
		return failed;
	/* The port of this device: the first one, where it has several. */
	RTE_ETH_FOREACH_MATCHING_DEV(port, device, &all)
	{
		found = port;
		rte_eth_iterator_cleanup(&all);
		break;
	}
	return found;
}

int sl_dpdk_port_by_name(const char *name)
{
	uint16_t port;
	int failed = rte_eth_dev_get_port_by_name(name, &port);

	return failed ? failed : port;
}

int sl_dpdk_port_info(uint16_t port, struct sl_port_info *info)
{
	struct rte_tm_capabilities tm;
	struct rte_eth_dev_info dev;
	struct rte_tm_error error;
	int failed = rte_eth_dev_info_get(port, &dev);

	memset(info, 0, sizeof(*info));
	if (failed)
		return failed;
	snprintf(info->driver, sizeof(info->driver), "%s", dev.driver_name);
	info->max_rx_queues = dev.max_rx_queues;
	info->max_tx_queues = dev.max_tx_queues;
	memset(&tm, 0, sizeof(tm));
	if (!rte_tm_capabilities_get(port, &tm, &error)) {
		info->tm_levels = tm.n_levels_max;
		info->tm_nodes = tm.n_nodes_max;
		info->tm_rate_most = tm.shaper_private_rate_max;
	}
	return 0;
}

/* Memory for so many packets; NULL, and the errno in *failed, if there is none. */
struct rte_mempool *sl_dpdk_pool(uint32_t pkts, int *failed)
{
	struct rte_mempool *pool = rte_pktmbuf_pool_create("sluice", pkts, 256, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);

	*failed = pool ? 0 : rte_errno;
	return pool;
}

/* A port begins, with so many queues, of which those to send hold about so many packets each. The negative of an errno. */
int sl_dpdk_start(uint16_t port, uint16_t rx_queues, uint16_t tx_queues, uint16_t descriptors, struct rte_mempool *pool)
{
	struct rte_eth_conf conf = { 0 };
	uint16_t rx = 1024, tx = descriptors, queue;
	int failed = rte_eth_dev_configure(port, rx_queues, tx_queues, &conf);

	if (failed)
		return failed;
	failed = rte_eth_dev_adjust_nb_rx_tx_desc(port, &rx, &tx);
	if (failed)
		return failed;
	for (queue = 0; queue < rx_queues && !failed; queue++)
		failed = rte_eth_rx_queue_setup(port, queue, rx, SOCKET_ID_ANY, NULL, pool);
	for (queue = 0; queue < tx_queues && !failed; queue++)
		failed = rte_eth_tx_queue_setup(port, queue, tx, SOCKET_ID_ANY, NULL);
	if (failed)
		return failed;
	failed = rte_eth_dev_start(port);
	if (failed)
		return failed;
	/* A driver that cannot has nothing to turn on. */
	rte_eth_promiscuous_enable(port);
	return 0;
}

/* The port ends, and its device is gone. */
void sl_dpdk_stop(uint16_t port)
{
	struct rte_eth_dev_info dev;
	int known = !rte_eth_dev_info_get(port, &dev);

	/* Else net_af_packet leaves its interface promiscuous. */
	rte_eth_promiscuous_disable(port);
	rte_eth_dev_stop(port);
	rte_eth_dev_close(port);
	if (known && dev.device)
		rte_dev_remove(dev.device);
}

uint16_t sl_dpdk_receive(uint16_t port, uint16_t queue, struct rte_mbuf **packet, uint16_t n)
{
	return rte_eth_rx_burst(port, queue, packet, n);
}

uint16_t sl_dpdk_send(uint16_t port, uint16_t queue, struct rte_mbuf **packet, uint16_t n)
{
	return rte_eth_tx_burst(port, queue, packet, n);
}

void sl_dpdk_free(struct rte_mbuf *packet)
{
	rte_pktmbuf_free(packet);
}

/* The first segment of a packet: its bytes, and how many. */
uint8_t *sl_dpdk_bytes(struct rte_mbuf *packet, uint32_t *length)
{
	*length = rte_pktmbuf_data_len(packet);
	return rte_pktmbuf_mtod(packet, uint8_t *);
}

uint32_t sl_dpdk_length(const struct rte_mbuf *packet)
{
	return rte_pktmbuf_pkt_len(packet);
}

void sl_dpdk_counts(uint16_t port, struct sl_port_counts *counts)
{
	struct rte_eth_stats stats;

	memset(counts, 0, sizeof(*counts));
	if (rte_eth_stats_get(port, &stats))
		return;
	counts->received_pkts = stats.ipackets;
	counts->sent_pkts = stats.opackets;
	counts->missed_pkts = stats.imissed;
	counts->receive_errors = stats.ierrors;
	counts->send_errors = stats.oerrors;
	counts->without_memory = stats.rx_nombuf;
}
