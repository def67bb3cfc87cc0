/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Trees that share a link, whose calls stop before every access to a shared word. */
static void stepped_yield(void);
#define SL_SHARED_STEP() stepped_yield()
#include "shared_tree.h"

enum stepped_kind { STEPPED_DEQUEUE, STEPPED_STOP };

/* A call: what it is about, and its answer. */
struct stepped_call {
	u32 kind; /* enum stepped_kind */
	u32 pad;
	u64 now_ns;
	struct sl_tree *tree;
	struct sl_tree_part *part;
	struct sl_shared_trees *link;
	struct sl_tree_verdict verdict;
};

static void stepped_make(struct stepped_call *c)
{
	if (c->kind == STEPPED_STOP)
		shared_tree_stop(c->part, c->link, c->now_ns);
	else
		c->verdict = shared_tree_dequeue(c->tree, c->part, c->link, c->now_ns);
}

#include "../shared_credit/coroutines.h"

const struct {
	u32 call_bytes;
	u32 tree_bytes;
	u32 part_bytes;
	u32 link_bytes;
	void (*begin)(u32 place, struct stepped_call *call);
	u32 (*go_on)(u32 place);
} sl_stepped = {
	.call_bytes = sizeof(struct stepped_call),
	.tree_bytes = sizeof(struct sl_tree),
	.part_bytes = sizeof(struct sl_tree_part),
	.link_bytes = sizeof(struct sl_shared_trees),
	.begin = stepped_begin,
	.go_on = stepped_go_on,
};
