//! Cores that are broken on purpose, each in one place, and the law that finds out. So every law can fail.

use crate::suite::{self, mutants};

/// Cases in which a law must find a counterexample to a mutant.
pub(crate) const CASES: u32 = 300;

mutants! {
    // Lists.
    packets_come_to_one_place breaks "conservation::nothing_is_lost":
        "port_lists.h",
        "place = (*sl_at(l->first, list) + *pkts) & (SL_BACKPRESSURE_PLACES - 1);" => "place = *sl_at(l->first, list);";
    new_packets_go_before_refused_ones breaks "conservation::classes_keep_their_order":
        "port_lists.h",
        "place = (*sl_at(l->first, list) + *pkts) & (SL_BACKPRESSURE_PLACES - 1);" =>
        "place = *sl_at(l->first, list) = (*sl_at(l->first, list) - 1) & (SL_BACKPRESSURE_PLACES - 1);";
    taken_packets_are_not_counted breaks "conservation::nothing_is_lost":
        "port_lists.h",
        "*sl_at(l->taken_pkts, list) += n;" => ";";
    refusals_are_not_counted breaks "conservation::refusals_are_counted":
        "port_lists.h",
        "*sl_at(l->refused_pkts, list) += *pkts;" => ";";
    a_list_has_no_bound breaks "conservation::lists_keep_within_their_room":
        "level_backpressure.h",
        "*sl_at(b->lists.pkts, v.list) >= *sl_at(b->lists.room_pkts, v.list))" => "0)";
    a_burst_has_no_bound breaks "conservation::lists_keep_within_their_room":
        "level_backpressure.h",
        "if (*sl_at(b->lists.came_pkts, v.list) >= b->lists.burst_pkts ||" => "if (";
    a_lone_packet_leaves_anyway breaks "conservation::lists_keep_within_their_room":
        "level_backpressure.h",
        "ready = hold_back_ready(s);" => "ready = s->ready;";
    classes_that_are_due_join_while_one_is_chosen breaks "conservation::lists_keep_within_their_room":
        "level_backpressure.h",
        "if (sl_unlikely(s->held && now_ns >= s->held_until_ns))" => "if (0)";
    a_new_configuration_is_not_followed breaks "conservation::lists_keep_within_their_room":
        "level_backpressure.h",
        "*sl_at(b->classes, list) |= *sl_at(s->level_classes, i);" => "*sl_at(b->classes, list) |= SL_BIT(i);";

    // Levels.
    a_full_list_holds_all_levels_back breaks "order::lower_levels_do_not_delay":
        "level_backpressure.h",
        "blocked |= *sl_at(b->classes, i);" => "blocked = ~0ULL;";
    held_classes_are_never_let_go breaks "order::a_level_with_room_is_served":
        "level_backpressure.h",
        "ends = b->held & s->held & ~blocked;" => "ends = 0;";
    a_blocked_level_hides_a_ceiling_that_opens breaks "order::a_wait_is_not_too_long":
        "level_backpressure.h",
        "v.verdict.wake_ns = s->held ? s->held_until_ns : now_ns + SL_HOLD_NEVER_NS;" =>
        "v.verdict.wake_ns = now_ns + SL_HOLD_NEVER_NS;";
    a_class_that_pauses_loses_its_credit breaks "order::a_level_keeps_the_order_of_the_scheduler":
        "level_backpressure.h",
        "k->deficit_bytes = deficit_bytes;" => ";";
    disciplines_without_levels_have_several_lists breaks "order::a_level_keeps_the_order_of_the_scheduler":
        "level_backpressure.h",
        "return s->kind == SL_STRICT_PRIORITY ? sl_min(level, b->used - 1) : 0;" => "return sl_min(level, b->used - 1);";
}

suite::laws_can_fail!(20, BROKEN.iter());
