//! Cores that are broken on purpose, each in one place, and the law that finds out. So every law can fail.

use crate::{
    builds,
    suite::{self, mutants},
};

/// Cases in which a law must find a counterexample to a mutant.
pub(crate) const CASES: u32 = 150;

mutants! {
    // Queues and counters.
    a_slot_is_given_twice breaks "conservation::nothing_is_lost":
        "pipe_slots.h",
        "t->free = sl_at(t->slot, slot)->next;" => ";";
    the_last_slot_is_not_linked breaks "conservation::nothing_is_lost":
        "pipes.h",
        "sl_at(t->slot, last)->next = slot;" => ";";
    the_first_packet_is_not_announced breaks "conservation::nothing_is_lost":
        "pipes.h",
        "if (!before)\n\t\tpipe_ready(t, p, 1u << queue);" => "";
    a_pipe_stays_in_its_group breaks "conservation::nothing_is_lost":
        "pipe_search.h",
        "*sl_at(t->engaged, word) &= ~SL_BIT(p);" => ";";
    a_pipe_that_is_configured_stays_in_the_wheel breaks "changes::a_faster_pipe_sends_at_once":
        "pipe_change.h",
        "pipe_stop_waiting(t, p);\n\tif (k->shut)" => "if (k->shut)";
    queues_that_are_shut_stay_so breaks "conservation::nothing_is_lost":
        "pipe_credits.h",
        "pipe_ready(t, p, open);" => ";";
    a_shut_queue_is_forgotten_by_a_change breaks "changes::a_faster_pipe_sends_at_once":
        "pipe_change.h",
        "pipe_ready(t, p, k->shut);" => ";";
    a_queue_holds_one_packet_more breaks "conservation::queues_refuse_what_is_beyond_their_limits":
        "pipes.h",
        "if (sl_unlikely(pkts >= limit_pkts))" => "if (sl_unlikely(pkts > limit_pkts))";
    bytes_have_no_limit breaks "conservation::queues_refuse_what_is_beyond_their_limits":
        "pipes.h",
        "else if (sl_unlikely(backlog_bytes >= limit_bytes))" => "else if (0)";
    there_is_one_slot_more breaks "conservation::queues_refuse_what_is_beyond_their_limits":
        "pipe_slots.h",
        "t->fresh < t->slots" => "t->fresh <= t->slots";
    drops_of_a_pipe_are_not_counted breaks "conservation::counters_are_true":
        "pipe_slots.h",
        "(*sl_at(t->dropped_pkts, queue / SL_PIPE_QUEUES))++;" => ";";
    sent_bytes_are_those_of_the_wire breaks "conservation::counters_are_true":
        "pipe_turn.h",
        "queue->sent_bytes += slot_len_bytes(s);" => "queue->sent_bytes += wire;";

    // Priority and classes that are held back.
    the_last_class_goes_first breaks "priority::no_class_overtakes":
        "pipe_turn.h",
        "u32 q = sl_lowest(m), class" => "u32 q = sl_highest(m), class";
    the_mask_is_ignored breaks "priority::held_classes_do_not_send":
        "pipe_turn.h",
        "m = ready & may;\n\tif (sl_unlikely(!m))" => "m = ready;\n\tif (sl_unlikely(!m))";
    the_allowance_is_not_counted breaks "priority::held_classes_do_not_send":
        "pipe_turn.h",
        "call->allowed &= ~class_queues(class);\n\t\t\tcall->queues &= ~class_queues(class);" => "call->allowed &= ~0u;";
    a_vector_leaves_out_an_element breaks "priority::vectors_find_what_the_plain_way_finds":
        "pipe_vectors.h",
        "return ~none;" => "return ~none << 1;";

    // Rates.
    the_port_is_not_charged breaks "rates::nothing_exceeds_its_rate":
        "pipes.h",
        "bucket_charge(&t->bucket, (u32)sent, call->now_ns);" => ";";
    a_subport_is_not_charged breaks "rates::nothing_exceeds_its_rate":
        "pipes.h",
        "bucket_charge(&sub->bucket, (u32)sent, call->now_ns);" => ";";
    a_turn_does_not_end_with_the_bucket breaks "rates::nothing_exceeds_its_rate":
        "pipe_turn.h",
        "&& call->left_bytes > 0 && --run" => "&& --run";
    a_pipe_sends_without_tokens breaks "rates::nothing_exceeds_its_rate":
        "pipe_turn.h",
        "while (m && tat <= until &&" => "while (m &&";
    idle_time_is_saved_up breaks "rates::nothing_exceeds_its_rate":
        "pipe_turn.h",
        "tat = sl_max(k->tat_64ths, now_64ths)" => "tat = k->tat_64ths + 0 * now_64ths";
    debts_are_forgotten_by_a_new_rate breaks "rates::nothing_exceeds_its_rate":
        "pipe_bucket.h",
        "k->tat_64ths = full + pipe_cost(bytes, cost);" => "k->tat_64ths = full;";
    frames_are_not_counted_as_the_link_does breaks "rates::nothing_exceeds_its_rate":
        "pipe_slots.h",
        "return sl_max(len_bytes + (u32)t->overhead_bytes, t->mpu_bytes);" => "return sl_max(len_bytes, t->mpu_bytes);";
    credit_is_saved_up breaks "rates::no_class_exceeds_its_limit":
        "pipe_credits.h",
        "now = sl_min(now, (s32)whole + 1);" => "now = sl_min(now, 4 * (s32)whole + 1);";
    debts_of_classes_are_forgotten breaks "rates::no_class_exceeds_its_limit":
        "pipe_credits.h",
        "sl_min(credit[c], 0) + (s32)bytes;" => "(s32)bytes;";
    a_class_without_credit_goes_on breaks "rates::no_class_exceeds_its_limit":
        "pipe_turn.h",
        "ready &= ~class_queues(class);\n\t\t\t}" => "ready &= ~0u;\n\t\t\t}";
    classes_of_a_subport_are_not_charged breaks "rates::classes_of_subports_reach_their_limit":
        "pipe_subport.h",
        "bucket_charge(b, (u32)room, now_ns);" => ";";
    a_pipe_costs_a_hundredth_more breaks "rates::pipes_reach_their_rate":
        "pipe_turn.h",
        "tat += pipe_cost(wire, k->cost);" => "tat += pipe_cost(wire, k->cost) * 101 / 100;";
    fractions_of_a_byte_are_lost breaks "rates::classes_reach_their_limit":
        "pipe_credits.h",
        "((carried + fraction * passed) >> SL_PIPE_CREDIT_BITS)" => "(0 * carried + (fraction * passed >> SL_PIPE_CREDIT_BITS))";

    // Waiting.
    a_pipe_waits_a_bucket_longer breaks "work::never_idles":
        "wheel_buckets.h",
        "u64 tick = (opens_ns + (1U << SL_WHEEL_TICK_BITS) - 1) >> SL_WHEEL_TICK_BITS;" =>
        "u64 tick = (opens_ns + (3U << SL_WHEEL_TICK_BITS)) >> SL_WHEEL_TICK_BITS;";
    buckets_below_the_hand_are_not_found breaks "work::never_idles":
        "wheel_buckets.h",
        "word = sl_lowest(later ? later : w->words);" => "if (!later)\n\t\t\treturn SL_WHEEL_BUCKETS;\n\t\tword = sl_lowest(later);";
    an_unfinished_call_does_not_say_so breaks "steps::a_search_is_finished_by_later_calls":
        "pipes.h",
        "if (t->unfinished)\n\t\treturn now_ns;" => "";
    the_wheel_is_not_asked_when_to_wake breaks "work::wakes_in_time":
        "pipes.h",
        "first = sl_min(pipe_wheel_next_ns(sl_at(t->wheel, SL_PIPE_TOKENS)), pipe_wheel_next_ns(sl_at(t->wheel, SL_PIPE_CREDITS)));" =>
        "first = pipe_wheel_next_ns(sl_at(t->wheel, SL_PIPE_CREDITS));";
    the_port_is_not_asked_when_to_wake breaks "work::wakes_in_time":
        "pipes.h",
        "port_ns = bucket_opens_ns(&t->bucket);" => "port_ns = now_ns + 1000000;";
    a_word_is_not_searched_again breaks "work::never_idles":
        "pipe_search.h",
        "*sl_at(t->any, word) |= (u16)ready;\n\t*sl_at(t->summary, word >> 6) |= SL_BIT(word);" => "*sl_at(t->any, word) |= (u16)ready;";

    // Sharing.
    a_pipe_has_a_turn_of_a_run breaks "sharing::pipes_share_equally":
        "pipe_groups.h",
        "k->left_bytes = (s16)sl_min(k->left_bytes, 0);" => "k->left_bytes = 0;";
    subports_forget_what_they_owe breaks "sharing::subports_share_equally":
        "pipes.h",
        "if (sub->left_bytes <= 0)\n\t\tsub->left_bytes += SL_SUBPORT_QUANTUM_BYTES;" => "sub->left_bytes = (s32)(1 + (call->wanted - call->got) % 7) * SL_SUBPORT_QUANTUM_BYTES;";
    weights_are_ignored breaks "sharing::best_effort_shares_by_weight":
        "pipe_turn.h",
        "share_of_packet(wire, profile->share_cost[lane], k->sent_pkts)" => "share_of_packet(wire, SL_PIPE_SHARE_COST, k->sent_pkts)";
    shares_are_by_packets breaks "sharing::best_effort_shares_by_weight":
        "pipe_turn.h",
        "share_of_packet(wire, profile->share_cost[lane], k->sent_pkts)" => "share_of_packet(500, profile->share_cost[lane], k->sent_pkts)";
    shares_are_rounded_down breaks "sharing::best_effort_shares_by_weight":
        "pipe_shares.h",
        "(bytes * cost + fraction) >> SL_SHARE_FRACTION" => "(bytes * cost + 0 * fraction) >> SL_SHARE_FRACTION << 0";

    // Cost.
    a_call_wakes_all_that_are_due breaks "steps::each_call_takes_few_steps":
        "pipes.h",
        "#define SL_PIPE_WAKES            SL_PIPE_BATCH" => "#define SL_PIPE_WAKES 1000";
    pipes_without_tokens_cost_nothing breaks "steps::a_search_is_finished_by_later_calls":
        "pipe_groups.h",
        "call->steps += SL_PIPE_STEPS_VAIN;" => ";";
    words_with_held_classes_are_searched_again breaks "steps::a_search_is_finished_by_later_calls":
        "pipe_search.h",
        "*sl_at(t->any, word) &= (u16)~queues;" => ";";

    // CoDel.
    codel_forgets_that_waits_are_short breaks "codel::drops_as_the_rfc_says":
        "pipe_turn.h",
        "waited < profile->codel_target && !watched" => "waited < profile->codel_target";
    codel_drops_at_a_constant_pace breaks "codel::drops_as_the_rfc_says":
        "pipe_codel.h",
        "c.count = sl_min(c.count + 1, 1023u);" => ";";
    every_queue_has_codel breaks "codel::queues_without_codel_do_not_drop":
        "pipe_turn.h",
        "if (codel >> q & 1 && sl_unlikely" => "if (codel && sl_unlikely";

    // Changes.
    pipes_of_another_subport_are_taken breaks "changes::wrong_changes_are_refused":
        "pipe_change.h",
        "if (*sl_at(t->subport_of, word) && *sl_at(t->subport_of, word) != n + 1)" => "if (0)";
    a_subport_moves_with_its_pipes breaks "changes::wrong_changes_are_refused":
        "pipe_change.h",
        "if (pipes_are_configured(t, sub->first_pipe, sub->end_pipe))" => "if (0)";
}

/// The law of vectors finds out that a way of x86 is broken, on a processor that has it.
#[cfg(target_arch = "x86_64")]
fn breaks_a_way(line: &'static str, instead: &'static str) {
    let all_ways = "#if defined(SL_PIPE_ALL_WAYS) && defined(__x86_64__)";
    let edits = [(line, instead), (all_ways, "#if defined(__x86_64__)")];
    let edits = edits.map(|(line, instead)| builds::Edit { header: "pipe_vectors.h", line, instead });
    suite::breaks(&edits, "priority::vectors_find_what_the_plain_way_finds", CASES);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn halves_of_avx2_are_packed_in_turn() {
    if std::is_x86_feature_detected!("avx2") {
        breaks_a_way("_mm256_permute4x64_epi64(_mm256_packs_epi16(low, high), 0xd8)", "_mm256_packs_epi16(low, high)");
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn avx512_finds_nothing_in_the_second_half() {
    if std::is_x86_feature_detected!("avx512bw") {
        breaks_a_way("return low | high << 32;", "return low | (high & 0);");
    }
}

suite::laws_can_fail!(5, BROKEN.iter());
