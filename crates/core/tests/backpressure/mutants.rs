//! Cores that are broken on purpose, each in one place, and the law that finds out. So every law can fail.

use crate::suite::{self, mutants};

/// Cases in which a law must find a counterexample to a mutant.
pub(crate) const CASES: u32 = 150;

mutants! {
    // Lists.
    slots_are_free_too_early breaks "conservation::nothing_is_lost":
        "backpressure.h",
        "got = pipes_take(" => "got = pipes_dequeue(";
    slots_of_taken_packets_stay_taken breaks "conservation::nothing_is_lost":
        "backpressure.h",
        "pipes_give_back(t, list[(first + i) & (SL_BACKPRESSURE_PLACES - 1)].slot);" => ";";
    a_packet_that_was_taken_is_offered_again breaks "conservation::nothing_is_lost":
        "port_lists.h",
        "*pkts -= n;" => "*pkts -= n ? n - 1 : 0;";
    taken_packets_are_not_counted breaks "conservation::nothing_is_lost":
        "port_lists.h",
        "*sl_at(l->taken_pkts, list) += n;" => ";";
    new_packets_go_before_refused_ones breaks "conservation::flows_keep_their_order":
        "port_lists.h",
        "place = (*sl_at(l->first, list) + *pkts) & (SL_BACKPRESSURE_PLACES - 1);" =>
        "place = *sl_at(l->first, list) = (*sl_at(l->first, list) - 1) & (SL_BACKPRESSURE_PLACES - 1);";
    a_list_has_no_bound breaks "conservation::lists_keep_within_their_room":
        "port_lists.h",
        "free = room - sl_min(pkts, room);" => "free = room;";
    a_burst_has_no_bound breaks "conservation::lists_keep_within_their_room":
        "port_lists.h",
        "return sl_min(free, l->burst_pkts);" => "return free;";
    a_class_without_allowance_sends breaks "conservation::lists_keep_within_their_room":
        "pipes.h",
        "if (!*sl_at(allowance->pkts, i))" => "if (0)";
    what_was_refused_counts_as_new breaks "conservation::a_dequeue_says_what_came":
        "port_lists.h",
        "l->came_pkts[i] = 0;" => "l->came_pkts[i] = l->pkts[i];";
    refusals_are_not_counted breaks "conservation::a_dequeue_says_what_came":
        "port_lists.h",
        "*sl_at(l->refused_pkts, list) += *pkts;" => ";";

    // Classes.
    a_full_list_holds_the_class_before_it_back breaks "priority::later_classes_do_not_delay":
        "backpressure.h",
        "allowance->pkts[i] = port_list_allowance(&b->lists, i);" =>
        "allowance->pkts[i] = i < 12 && b->lists.pkts[i + 1] >= b->lists.room_pkts[i + 1] ? 0 : port_list_allowance(&b->lists, i);";
    a_list_is_never_full breaks "priority::a_class_with_room_is_served":
        "backpressure.h",
        "allowance->pkts[i] = port_list_allowance(&b->lists, i);" =>
        "allowance->pkts[i] = port_list_allowance(&b->lists, i) * (b->lists.pkts[i] == 0);";

    // Shares of pipes.
    a_turn_that_pauses_is_over breaks "sharing::pipes_share_a_class_equally":
        "pipe_groups.h",
        "*sl_at(t->owed, p >> 6) |= SL_BIT(p);" => ";";
    a_turn_that_pauses_begins_anew breaks "sharing::pipes_share_a_class_equally":
        "pipe_groups.h",
        "k->left_bytes = (s16)(k->left_bytes - SL_PIPE_QUANTUM_BYTES);" => ";";
    classes_go_on_where_another_one_was breaks "sharing::visits_for_other_classes_change_shares_little":
        "pipe_groups.h",
        "sl_at(sub->cursor, class_of_queue(sl_highest(queues)))" => "sl_at(sub->cursor, 0)";
    a_pipe_that_is_found_sends_all_classes breaks "sharing::visits_for_other_classes_change_shares_little":
        "pipe_groups.h",
        "return (2u << *sl_at(g->last, i)) - 1;" => "return SL_PIPE_ALL_QUEUES + 0 * g->last[i];";
    a_visit_pays_for_a_turn_that_pauses breaks "sharing::visits_for_other_classes_change_shares_little":
        "pipe_turn.h",
        "if (sl_unlikely(*sl_at(t->owed, p >> 6) & SL_BIT(p)))" => "if (0)";
    debts_are_forgotten_between_turns breaks "sharing::pipes_share_classes_equally":
        "pipe_groups.h",
        "k->left_bytes = (s16)sl_min(k->left_bytes, 0);" => "k->left_bytes = 0;";

    pipes_that_wait_lose_the_turn_that_they_are_owed breaks "conservation::pipes_that_are_owed_a_turn_are_found":
        "pipe_groups.h",
        "if (!bits && !engaged)" => "if (!bits)";

    // Cost.
    words_with_held_classes_are_searched breaks "steps::a_round_takes_few_steps":
        "pipe_groups.h",
        "words &= pipes_in_common(sl_at(t->any, section * 64), queues);" => ";";
    pipes_with_held_classes_are_looked_at breaks "steps::a_round_takes_few_steps":
        "pipe_search.h",
        "bits &= pipes_in_common(sl_at(t->ready, word * 64), queues);" => ";";
}

suite::laws_can_fail!(20, BROKEN.iter());
