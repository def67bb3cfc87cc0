//! Headers that are broken on purpose, each in one place, and the law that finds out. So every law can fail.

use crate::suite::{self, mutants};

/// Cases in which a law must find a counterexample to a mutant.
pub(crate) const CASES: u32 = 40;

mutants! {
    packets_are_not_charged breaks "trees::no_link_exceeds_its_bound":
        "shared_tree.h",
        "x->credit.bytes -= (s32)bytes;" => "x->credit.bytes -= (s32)bytes / 2;";
    credit_is_spent_before_its_time breaks "trees::no_link_exceeds_its_bound":
        "shared_tree.h",
        "if (x->credit.bytes <= 0 || now_ns < x->credit.opens_ns) {" =>
        "if (x->credit.bytes <= 0) {",
        "shared_tree.h",
        "\treturn wake_ns;\n}\n\nSL_FN struct sl_tree_verdict shared_tree_dequeue" =>
        "\treturn x->credit.bytes > 0 ? 0 : wake_ns;\n}\n\nSL_FN struct sl_tree_verdict shared_tree_dequeue";
    debts_beyond_the_burst_are_not_waited_for breaks "trees::long_packets_keep_to_the_rate":
        "shared_credit.h",
        "u64 room = burst > cost ? burst - cost : 0, seen, from;" => "u64 room = burst > cost ? burst - cost : cost, seen, from;";
    trees_want_credit_for_ever breaks "trees::trees_that_run_empty_want_nothing":
        "shared_tree.h",
        "trees_settle(x);\n\t\ttrees_claim(x, l, 0, now_ns);" => "trees_settle(x);";
    idle_trees_keep_credit breaks "trees::trees_that_run_empty_want_nothing":
        "shared_credit.h",
        "c->gave_back_ns = now_ns;\n\treturn 1;" => "return 0;";
    trees_that_end_keep_credit breaks "trees::trees_that_end_leave_nothing_behind":
        "shared_tree.h",
        "\t\tcredit_return(&l->bucket.value, &x->credit, &x->rate);\n\tx->credit.bytes = 0;" => "\t\t;\n\tx->credit.bytes = 0;";
    draws_are_no_service breaks "trees::children_share_by_weight":
        "shared_tree.h",
        "x->service += trees_service(x->sent_bytes, x->drawn_weights) - x->drawn_service;" => "x->service -= x->drawn_service;";
    weights_are_ignored breaks "trees::children_share_by_weight":
        "shared_tree.h",
        "x->drawn_weights = t->link_weights;" => "x->drawn_weights = 1;";
    children_that_leave_still_weigh breaks "trees::children_that_come_back_share_by_weight":
        "tree_nodes.h",
        "t->link_weights -= k->weight;" => ";";
    time_without_packets_is_credit breaks "trees::children_that_come_back_share_by_weight":
        "shared_tree.h",
        "\t\t\tx->service = v.slowest;\n\t\tahead" => "\t\t\t;\n\t\tahead",
        "shared_tree.h",
        "if (ahead > (s64)most)" => "if (0)";
    the_slowest_is_not_waited_for breaks "trees::children_share_by_weight":
        "shared_tree.h",
        "if (!v.weights || claim & 1 || (!v.assured && ahead <= (s64)lag))" => "if (!v.weights || claim & 1 || !v.assured)";
    guarantees_do_not_go_first breaks "trees::guarantees_are_kept":
        "shared_tree.h",
        "v->assured |= claim & 1;" => ";",
        "shared_tree.h",
        "if (!v.weights || claim & 1 || (" => "if (!v.weights || (";
    guarantees_are_service breaks "trees::guarantees_leave_the_rest_by_weight":
        "shared_tree.h",
        "if (!v.assured)\n\t\tx->sent_bytes += bytes;" => "x->sent_bytes += bytes;";
    the_rate_of_the_beginning_stays breaks "trees::another_rate_takes_force":
        "shared_tree.h",
        "if (sl_unlikely(link->cost != x->link_cost || link->burst_ns != x->link_burst_ns))" => "if (!x->link_cost)";
    a_stopped_queue_is_waited_for breaks "trees::stopped_queues_hold_up_no_others":
        "shared_tree.h",
        "if (!claim || sl_since(now_ns, shared_read(&other->asked_ns)) > horizon_ns)" => "if (!claim)";
    others_are_not_looked_at_again breaks "trees::a_link_with_packets_sends_at_its_rate":
        "shared_tree.h",
        "return sl_min(at, now_ns + credit_horizon_ns(r) / 2) + 1;" => "return at + 64 * credit_horizon_ns(r);";
    batches_are_a_frame breaks "trees::fast_links_touch_shared_words_rarely":
        "shared_credit.h",
        "s32 most = (s32)(r->batch_bytes - r->frame_bytes + 1);" => "s32 most = 1;";
}

suite::laws_can_fail!(5, BROKEN.iter());
