//! Headers that are broken on purpose, each in one place, and the law that finds out. So every law can fail.

use crate::suite::{self, mutants};

/// Cases in which a law must find a counterexample to a mutant.
pub(crate) const CASES: u32 = 40;

mutants! {
    // Credit.
    a_draw_is_no_atomic_operation breaks "credit::no_credit_is_made_or_lost":
        "shared_credit.h",
        "return shared_swap(bucket, seen, sl_max(seen, now) + cost) ? from : SL_SHARED_LOST;" =>
        "shared_write(bucket, sl_max(seen, now) + cost);\n\treturn from;";
    a_lost_draw_counts breaks "credit::no_credit_is_made_or_lost":
        "shared_credit.h",
        "sl_max(seen, now) + cost) ? from : SL_SHARED_LOST;" => "sl_max(seen, now) + cost) ? from : from;";
    credit_comes_back_twice breaks "credit::no_credit_is_made_or_lost":
        "shared_credit.h",
        "shared_add(bucket, -credit_worth(bytes, r->cost));" => "shared_add(bucket, -2 * credit_worth(bytes, r->cost));";
    idle_time_is_saved_up breaks "credit::no_window_has_more_than_its_bound":
        "shared_credit.h",
        "return shared_swap(bucket, seen, sl_max(seen, now) + cost)" => "return shared_swap(bucket, seen, seen + cost)";
    draws_in_advance_may_be_spent_at_once breaks "credit::no_window_has_more_than_its_bound":
        "shared_credit.h",
        "sl_max(seen, now) + cost) ? from : SL_SHARED_LOST;" => "sl_max(seen, now) + cost) ? now : SL_SHARED_LOST;";
    debts_are_forgiven breaks "credit::no_window_has_more_than_its_bound":
        "shared_credit.h",
        "credit_cost((u32)(most - *bytes), r->cost)" => "credit_cost((u32)most, r->cost)";

    // Active classes.
    an_instance_that_leaves_does_not_look_again breaks "active::classes_that_instances_have_are_active":
        "shared_shares.h",
        "if (shared_read(&share->instances))\n\t\tshared_set(&g->active.value, SL_BIT(c));" => "";
    a_class_ends_with_its_first_instance breaks "active::classes_that_instances_have_are_active":
        "shared_shares.h",
        "if (shared_keep(&share->instances, ~SL_BIT(x->number)) & ~SL_BIT(x->number))\n\t\treturn 0;\n\tshared_keep(&g->active.value, ~SL_BIT(c));" =>
        "shared_keep(&share->instances, ~SL_BIT(x->number));\n\tshared_keep(&g->active.value, ~SL_BIT(c));\n\treturn 0;";

    // Links.
    packets_are_not_charged_to_the_link breaks "links::no_link_exceeds_its_bound":
        "shared_dequeue.h",
        "x->credit.bytes -= (s32)bytes;" => "x->credit.bytes -= (s32)bytes / 2;";
    credit_is_spent_before_its_time breaks "links::no_link_exceeds_its_bound":
        "shared_credit.h",
        "c->opens_ns = from > now ? credit_ns(from) : 0;" => "c->opens_ns = 0;";
    debts_beyond_the_burst_are_not_waited_for breaks "links::long_packets_keep_to_the_rate":
        "shared_credit.h",
        "u64 room = burst > cost ? burst - cost : 0, seen, from;" => "u64 room = burst > cost ? burst - cost : cost, seen, from;";
    packets_are_not_charged_to_ceilings breaks "links::no_class_exceeds_its_ceiling":
        "shared_dequeue.h",
        "*sl_at(x->ceiling_bytes, c) -= (s32)bytes;" => ";";
    refused_classes_are_not_let_go breaks "links::a_link_with_packets_sends_at_its_rate":
        "shared_dequeue.h",
        "hold_back_let_go(s, c, now_ns);" => ";";
    credit_is_kept breaks "links::queues_that_run_empty_leave":
        "shared_credit.h",
        "c->gave_back_ns = now_ns;\n\treturn 1;" => "return 0;";
    credit_of_ceilings_is_kept breaks "links::instances_that_end_leave_nothing_behind":
        "shared_dequeue.h",
        "shared_give_back_ceilings(x, l, f, ~0ULL);" => ";";
    credit_outlives_its_rates breaks "links::changes_leave_debts_alone":
        "shared_dequeue.h",
        "x->credit.bytes = keeps_debts ? sl_min(x->credit.bytes, 0) : 0;" => ";";
    changes_forgive_debts breaks "links::changes_leave_debts_alone":
        "shared_dequeue.h",
        "\tshared_forget(x, 1);" => "\tshared_forget(x, 0);";
    classes_are_not_left_at_a_change breaks "links::changes_leave_debts_alone":
        "shared_dequeue.h",
        "u64 gone = x->joined;" => "u64 gone = 0;";
    reports_are_made_twice breaks "links::instances_that_end_leave_nothing_behind":
        "shared_shares.h",
        "x->unreported = x->charged = 0;" => "x->charged = 0;";
    an_instance_without_packets_does_not_leave breaks "links::queues_that_run_empty_leave":
        "shared_dequeue.h",
        "if (sl_unlikely(gone))" => "if (0)";
    weights_are_ignored breaks "links::busy_classes_share_by_weight":
        "shared_shares.h",
        "service = share_service(bytes, k->weight);" => "service = share_service(bytes, 1 + 0 * k->weight);";
    every_class_may_draw breaks "links::busy_classes_share_by_weight":
        "shared_shares.h",
        "if (!v->weights || !virtual_before(v->slowest + lag, service))" => "if (1)";
    time_without_packets_is_credit breaks "links::classes_that_come_back_share_by_weight":
        "shared_shares.h",
        "if (virtual_before(seen, from))\n\t\t\tnext = from;" => "if (0)\n\t\t\tnext = from;",
        "shared_shares.h",
        "if (virtual_before(v->slowest + most, service))" => "if (0)";
    levels_are_ignored breaks "links::urgent_classes_go_first":
        "shared_shares.h",
        "if (level != v->level)" => "if (0)",
        "shared_shares.h",
        "if (v->weights && sl_at(f->classes, c)->level > v->level)" => "if (0)";
    a_lower_level_is_not_found breaks "links::urgent_classes_go_first":
        "shared_shares.h",
        "if (first && level < v->level)" => "if (first && !v->weights)";
    classes_without_packets_hold_up_later_ones breaks "links::urgent_classes_leave_the_rest":
        "shared_dequeue.h",
        "gone = x->joined & ~(wake_ns ? 0 : hold_back_ready(s) | (x->refused & s->held));" => "gone = 0;";
    guarantees_do_not_go_first breaks "links::guarantees_are_kept":
        "shared_shares.h",
        "v->assured |= SL_BIT(c);" => ";";
    guarantees_are_not_charged breaks "links::guarantees_are_kept":
        "shared_shares.h",
        "credit_charge(&share->guarantee, credit_time(now_ns), cost);" => "(void)cost;";
    a_stopped_queue_is_waited_for breaks "links::stopped_queues_hold_up_no_others":
        "shared_shares.h",
        "if (!shared_read(&share->instances) || sl_since(now_ns, shared_read(&share->asked_ns)) > f->horizon_ns)" =>
        "if (!shared_read(&share->instances))";
    batches_are_a_frame breaks "links::fast_links_touch_shared_words_rarely":
        "shared_credit.h",
        "s32 most = (s32)(r->batch_bytes - r->frame_bytes + 1);" => "s32 most = 1;";
}

suite::laws_can_fail!(5, BROKEN.iter());
