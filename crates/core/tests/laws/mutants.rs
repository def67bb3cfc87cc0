//! Cores that are broken on purpose, each in one place, and the law that finds out. So every law can fail.

use crate::suite::{self, mutants};

/// Cases in which a law must find a counterexample to a mutant.
pub(crate) const CASES: u32 = 400;

mod flows;

mutants! {
    // Token buckets.
    the_burst_counts_twice breaks "buckets::no_ceiling_is_exceeded":
        "bucket.h",
        "return b->tat_ns <= now_ns + b->burst_ns;" => "return b->tat_ns <= now_ns + 2 * b->burst_ns;";
    the_burst_is_ignored breaks "work::never_waits_in_vain":
        "bucket.h",
        "return b->tat_ns <= now_ns + b->burst_ns;" => "return b->tat_ns <= now_ns;";
    idle_time_is_saved_up breaks "buckets::the_link_is_never_exceeded":
        "bucket.h",
        "b->tat_ns = now_ns;" => ";";
    fractions_are_lost breaks "buckets::the_link_is_never_exceeded":
        "bucket.h",
        "sum = bytes * b->cost + b->frac;" => "sum = bytes * b->cost;";
    debts_are_forgotten_by_a_new_rate breaks "buckets::no_packet_leaves_without_tokens":
        "bucket.h",
        "b->tat_ns = now_ns + (bytes * cost >> 20);" => "b->tat_ns = now_ns;";
    headers_are_not_charged breaks "buckets::the_link_is_never_exceeded":
        "backlog.h",
        "bucket_charge(&s->link, q->wire_bytes, now_ns);" => "bucket_charge(&s->link, q->len_bytes, now_ns);";
    ceilings_are_not_charged breaks "buckets::no_ceiling_is_exceeded":
        "core.h",
        "bucket_charge(&k->ceil, q->wire_bytes, now_ns);" => ";";
    policed_packets_are_not_charged breaks "buckets::no_ceiling_is_exceeded":
        "core.h",
        "sl_charge_peaked(s, p->class, wire, now_ns);" => ";";
    ceilings_below_a_peak_are_not_charged breaks "buckets::no_ceiling_is_exceeded":
        "ceiling.h",
        "bucket_charge(&k->ceil, bytes, now_ns);" => ";";
    peaks_are_not_charged breaks "buckets::no_peak_is_exceeded":
        "ceiling.h",
        "bucket_charge(&k->peak, bytes, now_ns);" => ";";
    a_ready_class_may_exceed_its_peak breaks "buckets::no_peak_is_exceeded":
        "ceiling.h",
        "|| (bucket_open(&k->ceil, now_ns) && bucket_open(&k->peak, now_ns));" => "|| bucket_open(&k->ceil, now_ns);";
    one_of_two_buckets_is_enough breaks "buckets::no_ceiling_is_exceeded":
        "ceiling.h",
        "(bucket_open(&k->ceil, now_ns) && bucket_open(&k->peak, now_ns));" => "(bucket_open(&k->ceil, now_ns) || bucket_open(&k->peak, now_ns));";
    a_held_class_waits_for_one_of_two_buckets breaks "buckets::no_packet_leaves_without_tokens":
        "ceiling.h",
        "return sl_max(ceil, peak);" => "return sl_min(ceil, peak);";
    a_held_class_waits_too_long_for_its_peak breaks "work::never_waits_in_vain":
        "ceiling.h",
        "return sl_max(ceil, peak);" => "return peak ? k->peak.tat_ns : ceil;";
    policed_packets_may_exceed_their_peak breaks "buckets::no_peak_is_exceeded":
        "ceiling.h",
        "return bucket_open(&k->peak, now_ns) ? SL_DROPS : SL_DROP_PEAK;" => "return SL_DROPS;";
    debts_to_the_peak_are_owed_in_time_and_not_in_bytes breaks "work::never_waits_in_vain":
        "core.h",
        "bucket_configure(&k->peak, g->peak_cost, g->peak_burst_ns, now_ns);" =>
        "k->peak.cost = g->peak_cost, k->peak.burst_ns = g->peak_burst_ns;";

    cells_are_not_filled_up breaks "buckets::the_link_is_never_exceeded":
        "wire.h",
        "(n + 47) / 48 * 53" => "n / 48 * 53";
    segments_have_one_header breaks "buckets::the_link_is_never_exceeded":
        "wire.h",
        "if (sl_likely(segments < 2))" => "if (1)";

    // The fast path of a lone packet.
    a_lone_packet_costs_nothing breaks "lone::equals_the_slow_path":
        "lone.h",
        "sl_pass(s, k, c, q->len_bytes, q->arrived_ns);" => ";";
    a_lone_packet_has_no_flow breaks "lone::equals_the_slow_path":
        "core.h",
        "slot_identify(sl_at(s->slot, slot), p);\n\treturn slot;" => "return slot;";
    a_lone_packet_has_another_flow breaks "lone::flows_may_be_set_late":
        "core.h",
        "slot_identify(sl_at(s->slot, slot), p);\n\treturn slot;" =>
        "slot_identify(sl_at(s->slot, slot), p);\n\tsl_at(s->slot, slot)->flow_hash ^= 1;\n\treturn slot;";
    a_lone_packet_of_a_flow_comes_to_a_fifo breaks "lone::equals_the_slow_path":
        "lone.h",
        "\tif (k->by_flow)\n\t\tflow_enter(" => "\tif (0)\n\t\tflow_enter(";
    a_lone_packet_keeps_an_old_lag breaks "lone::equals_the_slow_path":
        "eevdf.h",
        "virtual_sched(s)->time += bytes * k->virtual_cost;\n\teevdf_class(k)->lag = 0;" => "virtual_sched(s)->time += bytes * k->virtual_cost;";
    a_lone_packet_begins_a_round breaks "lone::equals_the_slow_path":
        "elastic_round_robin.h",
        "if (c <= o->cursor)\n\t\terr_round(s, 0);" => "err_round(s, 0);";
    a_lone_packet_is_not_counted breaks "conservation::nothing_is_lost":
        "lone.h",
        "backlog_begin(s, k, len_bytes);" => "s->backlog_pkts = 1;";
    the_link_is_charged_for_a_lone_packet_too_early breaks "lone::equals_the_slow_path":
        "lone.h",
        "\tsl_pass(s, k, c, q->len_bytes, q->arrived_ns); /* before the link is charged: disciplines ask whether it was idle */\n\tbacklog_end(s, k, q, c, now_ns);" => "\tbacklog_end(s, k, q, c, now_ns);\n\tsl_pass(s, k, c, q->len_bytes, q->arrived_ns);";
    a_lone_packet_exceeds_the_limit breaks "conservation::every_refusal_has_its_reason":
        "lone.h",
        "return k->limit_bytes;" => "return ~0u;";

    // Early drop.
    a_full_class_is_full_too_late breaks "early::one_queue_drops_what_it_would_refuse":
        "early.h",
        "full = u->pkts >= pkts" => "full = u->pkts > pkts";
    bytes_have_no_limit breaks "early::one_queue_drops_what_it_would_refuse":
        "early.h",
        "full = u->pkts >= pkts || (u64)u->bytes + p->len_bytes > bytes;" => "full = u->pkts >= pkts;";
    a_class_that_is_nearly_full_drops breaks "early::one_queue_drops_what_it_would_refuse":
        "early.h",
        "full = u->pkts >= pkts" => "full = u->pkts + 1 >= pkts";
    a_class_drops_for_another_that_gives_way breaks "early::one_queue_drops_what_it_would_refuse":
        "early.h",
        "sl_unlikely(slots < pkts) && early_gives(s, p->class)" => "slots < pkts";
    the_packets_under_way_do_not_count breaks "early::a_batch_passes_as_far_as_there_is_room":
        "early.h",
        "u->pkts++;" => ";";
    the_bytes_under_way_do_not_count breaks "early::a_batch_passes_as_far_as_there_is_room":
        "early.h",
        "u->bytes += p->len_bytes;" => ";";
    packets_under_way_are_forgotten breaks "early::a_batch_passes_as_far_as_there_is_room":
        "underway.h",
        "if (had_pkts != u->had_pkts ||" => "if (had_pkts ||";
    light_flows_are_dropped_early breaks "early::light_flows_pass":
        "early.h",
        "\t\t\treturn f->size >= sl_log2(sizes);" => "\t\t\treturn 1;";
    new_flows_are_dropped_early breaks "early::light_flows_pass":
        "early.h",
        "return (!free || f->shared) && f->size" => "return free || f->size";
    long_flows_pass breaks "early::the_longest_flow_of_a_full_class_does_not_pass":
        "early.h",
        "\t\t\treturn f->size >= sl_log2(sizes);" => "\t\t\treturn 0;";

    // The core.
    bytes_stay_when_packets_leave breaks "conservation::nothing_is_lost":
        "backlog.h",
        "k->backlog_bytes -= q->len_bytes;" => ";";
    cleared_bytes_are_not_counted breaks "conservation::nothing_is_lost":
        "core.h",
        "k->dropped_bytes += k->backlog_bytes;" => ";";
    the_peak_is_not_kept breaks "conservation::nothing_is_lost":
        "backlog.h",
        "k->peak_backlog_bytes = k->backlog_bytes;" => ";";
    wiping_keeps_counters breaks "conservation::wiped_is_as_good_as_new":
        "core.h",
        "__builtin_memset(class_at(s, c), 0, sizeof(struct sl_class));" => ";";
    wiping_keeps_what_the_link_owes breaks "conservation::wiped_is_as_good_as_new":
        "core.h",
        "__builtin_memset(&s->link, 0, sizeof(s->link));" => ";";
    a_new_policy_forgets_the_packets_of_a_pifo breaks "conservation::nothing_is_lost":
        "core.h",
        "sl_dissolve(s);" => ";";
    a_new_policy_does_not_rank_what_is_queued breaks "conservation::nothing_is_lost":
        "core.h",
        "sl_form(s);" => ";";
    a_class_holds_one_packet_more breaks "conservation::every_refusal_has_its_reason":
        "backlog.h",
        "if (k->backlog_pkts >= k->limit_pkts)" => "if (k->backlog_pkts > k->limit_pkts)";
    guarantees_are_ignored breaks "work::guarantees_go_first":
        "core.h",
        "sl_unlikely(first) ? sl_lowest(first) : sl_pick(s)" => "sl_pick(s)";
    borrowed_packets_are_charged_to_the_guarantee breaks "work::guarantees_hold_in_every_window":
        "core.h",
        "if (sl_unlikely(first)) {" => "if (k->rate.cost) {";
    borrowed_packets_use_a_guarantee_up breaks "work::guarantees_go_first":
        "core.h",
        "if (sl_unlikely(first)) {" => "if (k->rate.cost) {";
    the_first_of_the_held_is_not_the_first_to_open breaks "work::never_waits_in_vain":
        "core.h",
        "tournament_put(&s->ceilings, c, opens);" => "tournament_put(&s->ceilings, c, 0 - opens);";
    the_first_that_was_held_is_waited_for breaks "work::never_waits_in_vain":
        "core.h",
        "if (!s->held || opens < s->held_until_ns)" => "if (!s->held)";
    held_classes_are_not_released breaks "work::never_waits_in_vain":
        "core.h",
        "sl_release(s, now_ns);" => ";";
    ready_classes_are_not_held breaks "buckets::no_packet_leaves_without_tokens":
        "core.h",
        "if (sl_likely(class_open(k, now_ns)))" => "if (1)";

    // Queues.
    last_in_is_first_out breaks "order::first_in_first_out":
        "queue.h",
        "sl_at(s->slot, q->tail)->next = (u16)i;" =>
        "{ sl_at(s->slot, i)->next = q->head; q->head = (u16)i; return; }";
    there_is_one_slot_more breaks "conservation::every_refusal_has_its_reason":
        "queue.h",
        "return s->fresh < s->slots" => "return s->fresh <= s->slots";
    a_slot_is_given_twice breaks "conservation::nothing_is_lost":
        "queue.h",
        "s->free = sl_at(s->slot, i)->next;" => ";";

    // Strict priority.
    the_highest_level_goes_first breaks "strict_priority::never_inverts":
        "strict_priority.h",
        "u32 level = sl_lowest(sp_sched(s)->levels);" => "u32 level = 63 - (u32)__builtin_clzll(sp_sched(s)->levels);";
    levels_are_not_charged breaks "strict_priority::shares_a_level_by_quantum":
        "strict_priority.h",
        ".charge = drr_charge," => "";

    // Deficit round robin.
    the_quantum_is_not_added breaks "deficit_round_robin::shares_by_quantum":
        "deficit_round_robin.h",
        "drr_class(k)->deficit_bytes += (s32)k->quantum_bytes;" => ";";
    too_many_rounds_are_skipped breaks "deficit_round_robin::shares_by_quantum":
        "deficit_round_robin.h",
        "rounds = sl_min(rounds," => "rounds = sl_max(rounds + 1,";
    credit_outlives_absence breaks "deficit_round_robin::classes_do_not_starve":
        "deficit_round_robin.h",
        "if (drr_class(k)->deficit_bytes > 0)\n\t\tdrr_class(k)->deficit_bytes = 0;" => ";";
    debt_does_not_outlive_absence breaks "deficit_round_robin::classes_do_not_starve":
        "deficit_round_robin.h",
        "if (drr_class(k)->deficit_bytes > 0)\n\t\tdrr_class(k)->deficit_bytes = 0;" => "drr_class(k)->deficit_bytes = 0;";

    credit_within_a_level_outlives_absence breaks "strict_priority::classes_of_a_level_do_not_starve":
        "strict_priority.h",
        "drr_leave(s," => "(void)(s,";

    // Round robin.
    the_cursor_stays breaks "round_robin::classes_do_not_starve":
        "round_robin.h",
        "rr_sched(s)->cursor = (u8)c;" => ";";
    the_cursor_skips_a_class breaks "round_robin::each_other_class_once":
        "round_robin.h",
        "rr_sched(s)->cursor + 1u" => "rr_sched(s)->cursor + 2u";

    // Virtual time.
    weights_are_ignored breaks "weighted_fair_queuing::shares_by_weight":
        "virtual_time.h",
        "virtual_class(k)->start += bytes * k->virtual_cost;" => "virtual_class(k)->start += (u64)bytes << 32;";
    virtual_times_are_compared_as_numbers breaks "weighted_fair_queuing::serves_the_smallest_start":
        "tournament.h",
        "virtual_before(its, key)" => "its < key";
    keys_are_not_renewed breaks "weighted_fair_queuing::serves_the_smallest_start":
        "tournament.h",
        "*sl_at(t->key, c) = key;" => ";";

    a_higher_root_forgets_the_winner breaks "weighted_fair_queuing::serves_the_smallest_start":
        "tournament.h",
        "t->levels++;\n\t\t*sl_at(t->winner, tournament_root(t)) = best;" => "t->levels++;";
    the_tree_stays_as_deep_as_its_first_class_needs breaks "weighted_fair_queuing::serves_the_smallest_start":
        "tournament.h",
        "if (sl_unlikely(c >> t->levels))" => "if (0)";

    guarantees_drown_their_classes_in_debt breaks "work::debts_to_the_others_are_bounded":
        "virtual_time.h",
        "virtual_class(k)->start = most;" => ";";

    // Weighted fair queueing.
    returning_class_starts_where_it_ended breaks "weighted_fair_queuing::classes_do_not_starve":
        "weighted_fair_queuing.h",
        "virtual_class(k)->start = virtual_resume(" => "(void)virtual_resume(";
    returning_class_starts_at_the_virtual_time breaks "weighted_fair_queuing::returns_at_the_virtual_time_or_its_own_end":
        "weighted_fair_queuing.h",
        "virtual_class(k)->start = virtual_resume(" => "virtual_class(k)->start = virtual_sched(s)->time; (void)virtual_resume(";
    returning_class_starts_too_late breaks "weighted_fair_queuing::packets_leave_by_their_expected_arrival":
        "weighted_fair_queuing.h",
        "virtual_class(k)->start = virtual_resume(" => "virtual_class(k)->start = (k->virtual_cost << 17) + virtual_resume(";
    start_of_a_staying_class_is_not_renewed breaks "weighted_fair_queuing::serves_the_smallest_start":
        "weighted_fair_queuing.h",
        "\telse\n\t\twfq_place(s, c);" => "";
    a_busy_period_never_ends breaks "weighted_fair_queuing::packets_leave_by_their_expected_arrival":
        "weighted_fair_queuing.h",
        "virtual_begin(s, now_ns);" => ";";
    a_busy_period_ends_while_the_link_is_busy breaks "weighted_fair_queuing::packets_leave_by_their_expected_arrival":
        "virtual_time.h",
        "if (s->link.tat_ns <= now_ns)" => "";
    the_greatest_end_is_the_last breaks "weighted_fair_queuing::packets_leave_by_their_expected_arrival":
        "virtual_time.h",
        "if (virtual_before(virtual_sched(s)->end, end))" => "";
    long_packets_cost_no_more breaks "weighted_fair_queuing::keeps_up_with_the_fluid":
        "virtual_time.h",
        "virtual_class(k)->start += bytes * k->virtual_cost;" => "virtual_class(k)->start += 1000 * k->virtual_cost;";
    // Elastic round robin.
    a_surplus_is_kept breaks "elastic_round_robin::shares_by_weight":
        "elastic_round_robin.h",
        "own->surplus_bytes = (u64)-own->left_bytes;" => "own->surplus_bytes = 0;";
    turns_do_not_grow_with_surpluses breaks "elastic_round_robin::shares_by_weight":
        "elastic_round_robin.h",
        "o->surplus_before = o->surplus_most;" => ";";
    a_class_that_joins_waits_for_the_next_round breaks "elastic_round_robin::shares_by_weight":
        "elastic_round_robin.h",
        "if (c > err_sched(s)->cursor)" => "if (0)";
    a_turn_never_ends breaks "elastic_round_robin::classes_do_not_starve":
        "elastic_round_robin.h",
        "own->left_bytes -= bytes;" => ";";
    // EEVDF.
    every_class_is_eligible breaks "eevdf::lags_are_bounded":
        "eevdf.h",
        "\tif (virtual_before(virtual_sched(s)->time, virtual_class(k)->start))\n\t\ttournament_put(" => "\tif (0)\n\t\ttournament_put(",
        "eevdf.h", "if (!virtual_before(virtual_sched(s)->time, virtual_class(sl_at(s->classes, c))->start))" => "if (1)";
    every_class_is_eligible_among_few breaks "eevdf::lags_are_bounded":
        "eevdf.h",
        "\t\tif (virtual_before(now, start)) {" => "\t\tif (0) {";
    the_latest_deadline_goes_first_among_few breaks "eevdf::serves_the_earliest_eligible_deadline":
        "eevdf.h",
        "virtual_before(deadline, first_deadline)" => "virtual_before(first_deadline, deadline)";
    classes_beyond_the_few_are_not_looked_at breaks "eevdf::classes_do_not_starve":
        "eevdf.h",
        "if (eevdf_sched(s)->placed || s->ready >> EEVDF_FEW)" => "if (0)";
    lone_class_keeps_its_old_deadline breaks "eevdf::serves_the_earliest_eligible_deadline":
        "eevdf.h",
        "eevdf_sched(s)->rest = 0;" => "return 0;";
    the_earliest_start_goes_first breaks "eevdf::serves_the_earliest_eligible_deadline":
        "eevdf.h",
        "tournament_put(&eevdf_sched(s)->deadlines, c, eevdf_class(k)->deadline);" => "tournament_put(&eevdf_sched(s)->deadlines, c, virtual_class(k)->start);";
    the_latest_deadline_goes_first breaks "eevdf::classes_do_not_starve":
        "eevdf.h",
        "tournament_put(&eevdf_sched(s)->deadlines, c, eevdf_class(k)->deadline);" => "tournament_put(&eevdf_sched(s)->deadlines, c, 0 - eevdf_class(k)->deadline);";
    requests_are_of_the_next_packet breaks "eevdf::serves_the_earliest_eligible_deadline":
        "eevdf.h",
        "sl_max(next, k->quantum_bytes) * k->virtual_cost" => "next * k->virtual_cost";
    guarantees_are_charged_without_end breaks "eevdf::guarantees_do_not_delay_the_others":
        "eevdf.h",
        "if (!is_alone(s->ready) && virtual_before(virtual_sched(s)->time + bytes" => "if (0 && virtual_before(virtual_sched(s)->time + bytes";
    virtual_time_runs_at_half_its_speed breaks "eevdf::keeps_up_with_the_fluid":
        "eevdf.h",
        "virtual_sched(s)->time += sum / weights;" => "virtual_sched(s)->time += sum / weights / 2;";
    what_division_leaves_over_is_lost breaks "eevdf::lags_sum_to_zero":
        "eevdf.h",
        "eevdf_sched(s)->rest = sum % weights;" => "eevdf_sched(s)->rest = 0;";
    virtual_time_does_not_move_when_a_class_leaves breaks "eevdf::lags_sum_to_zero":
        "eevdf.h",
        "virtual_sched(s)->time += (u64)eevdf_shift(" => "(void)(u64)eevdf_shift(";
    lag_is_forgotten breaks "eevdf::lag_outlives_absence":
        "eevdf.h",
        "eevdf_class(k)->lag = sl_max(sl_min(lag, most), -most);" => "eevdf_class(k)->lag = 0;";
    debt_is_forgotten breaks "eevdf::visitors_take_no_more_than_their_share":
        "eevdf.h",
        "eevdf_class(k)->lag = sl_max(sl_min(lag, most), -most);" => "eevdf_class(k)->lag = sl_max(sl_min(lag, most), 0);";

    // PIFO.
    the_window_does_not_move_back breaks "pifo::leaves_by_rank":
        "pifo.h",
        "\t\tp->base = at;" => "";
    ranks_beyond_the_window_come_round breaks "pifo::is_a_stable_priority_queue":
        "pifo.h",
        "at = p->base + reach;" => ";";
    the_ring_is_searched_from_its_beginning breaks "pifo::leaves_by_rank":
        "pifo.h",
        "w = sl_lowest_from(p->summary, w + 1);" => "w = sl_lowest(p->summary);";
    ceilings_do_not_hold_packets_back breaks "buckets::no_packet_leaves_without_tokens":
        "pifo.h",
        "return k->ceil.cost && !(k->ceiling & SL_CEILING_DROPS);" => "return 0;";
    the_first_of_a_ceiling_goes_to_the_end breaks "order::first_in_first_out":
        "pifo.h",
        "if (pifo_aside(k) && filled & SL_BIT(c)) {" => "if (0) {";
    virtual_time_of_a_pifo_stands_still breaks "pifo::is_a_stable_priority_queue":
        "pifo.h",
        "virtual_advance(s, pifo_sched(s)->ring.base);" => ";";
    a_new_policy_remembers_what_was_attained breaks "pifo::takes_over_what_is_queued":
        "core.h",
        "__builtin_memset(class_at(s, i)->state, 0, sizeof(s->classes[0].state));" => ";";
    a_class_that_was_empty_has_attained_something breaks "pifo::is_a_stable_priority_queue":
        "pifo.h",
        "pifo_class(k)->attained_bytes = 0;" => ";";

    // Rank functions.
    levels_are_reversed breaks "pifo::leaves_by_rank":
        "ranks.h",
        "return k->level;" => "return 63 - k->level;";
    budgets_are_ignored breaks "pifo::leaves_by_rank":
        "ranks.h",
        "return q->arrived_ns + k->budget_ns;" => "return q->arrived_ns;";
    the_longest_goes_first breaks "pifo::leaves_by_rank":
        "ranks.h",
        "return sl_min((u64)q->len_bytes, rank_most(s));" => "return rank_most(s) - sl_min((u64)q->len_bytes, rank_most(s));";
    nothing_is_attained breaks "pifo::leaves_by_rank":
        "ranks.h",
        "pifo_class(k)->attained_bytes += q->len_bytes;" => ";";
    packets_end_where_they_start breaks "pifo::leaves_by_rank":
        "ranks.h",
        "virtual_class(k)->start = rank + bytes * k->virtual_cost;" => "virtual_class(k)->start = rank;";
    heavy_classes_are_forgiven breaks "pifo::heavy_classes_move_on":
        "ranks.h",
        "rank = virtual_resume(" => "rank = k->weight > 1000 ? virtual_sched(s)->time : virtual_resume(";
    a_busy_period_never_ends_for_ranks breaks "pifo::is_a_stable_priority_queue":
        "ranks.h",
        "virtual_begin(s, arrived_ns);" => ";";
    sending_takes_no_time breaks "pifo::leaves_by_rank":
        "ranks.h",
        "- (q->wire_bytes * s->link.cost >> 20)" => "";
}

suite::laws_can_fail!(40, BROKEN.iter().chain(flows::BROKEN));
