//! Flow queues and CoDel that are broken on purpose.

use crate::suite::mutants;

mutants! {
    // Flow queues.
    the_last_of_a_flow_is_first breaks "flow_queues::a_flow_stays_in_order":
        "queue.h",
        "sl_at(s->slot, q->tail)->next = (u16)i;" =>
        "{ sl_at(s->slot, i)->next = q->head; q->head = (u16)i; return; }";
    a_new_policy_turns_flows_round breaks "flow_queues::a_flow_stays_in_order":
        "queue.h",
        "\tif (was_empty)\n\t\tq->head = more->head;" =>
        "\tif (was_empty && q->head > 9) {\n\t\tstruct sl_queue all = *more;\n\t\tu32 i = queue_pop(s, &all);\n\n\t\tsl_at(s->slot, more->tail)->next = (u16)i;\n\t\tq->head = i == more->tail ? (u16)i : all.head;\n\t\tq->tail = (u16)i;\n\t\treturn;\n\t}\n\tif (was_empty)\n\t\tq->head = more->head;";
    what_is_appended_loses_its_tail breaks "conservation::nothing_is_lost":
        "queue.h",
        "q->tail = more->tail;" => ";";
    marks_of_others_stay breaks "conservation::nothing_is_lost":
        "flow_change.h",
        "q->ecn = 0;" => ";";
    marks_are_not_counted breaks "conservation::nothing_is_lost":
        "core.h",
        "k->marked_pkts += taken / SL_FLOW_MARK;" => ";";
    bytes_that_make_room_are_not_counted breaks "conservation::nothing_is_lost":
        "drops.h",
        "k->dropped_bytes += q->len_bytes;" => ";";
    wiping_keeps_what_flows_have_used breaks "conservation::wiped_is_as_good_as_new":
        "flow_change.h",
        "__builtin_memset(flow_at(s, i), 0, sizeof(struct sl_flow_queue));" => ";";
    credit_never_runs_out breaks "flow_queues::privilege_is_bounded":
        "flow_queue.h",
        "f->used_bytes += (s32)bytes;" => ";";
    rounds_give_back_twice_as_much breaks "flow_queues::privilege_is_bounded":
        "flow_hosts.h",
        "gain = flow_gain(now - *round, quantum_bytes, load);" => "gain = 2 * flow_gain(now - *round, quantum_bytes, load);";
    rounds_give_nothing_back breaks "flow_shares::a_flood_starves_no_light_flow":
        "flow_hosts.h",
        "*used_bytes = *used_bytes > (s32)gain ? *used_bytes - (s32)gain : 0;" => ";";
    no_flow_is_sparse breaks "flow_shares::a_flood_starves_no_light_flow":
        "flow_queue.h",
        "if (f->used_bytes + len_bytes <= k->flow_quantum_bytes) {" => "if (0) {";
    a_newcomer_is_dropped_first breaks "flow_shares::a_flood_starves_no_light_flow":
        "core.h",
        "flow_overflow(s, p->class);" => ";";
    swift_goes_before_express breaks "flow_queues::the_privileged_go_first":
        "flow_queue.h",
        "if (fair->sparse_flows)" => "if (fair->sparse_flows && !fair->swift_flows)";
    bulk_goes_before_swift breaks "flow_queues::the_privileged_go_first":
        "flow_queue.h",
        "if (fair->swift_flows)" => "if (fair->swift_flows && !fair->wheel_used)";
    served_flow_stays_first breaks "flow_queues::the_privileged_take_turns":
        "flow_queue.h",
        "\t\tflow_stand(s, k, class, f, i, head->len_bytes);" =>
        "\t\tu16 first = fair->sparse.head;\n\n\t\tflow_stand(s, k, class, f, i, head->len_bytes);\n\t\tif (f->place == SL_FLOW_SPARSE && fair->sparse_flows == 2) {\n\t\t\tfair->sparse.head = (u16)i;\n\t\t\tfair->sparse.tail = f->next = first;\n\t\t}";
    rest_counts_for_nothing breaks "flow_queues::idle_time_repays_debt":
        "flow_queue.h",
        "fair->round += (u32)sl_min(rounds, 1 << 20);" => ";";
    rest_counts_from_the_beginning breaks "flow_queues::idle_time_repays_debt":
        "flow_queue.h",
        "fair->rests_since_ns = now_ns;" => ";";
    first_flow_becomes_second breaks "flow_queues::a_flow_stays_in_order":
        "flow_queue.h",
        "flow_arrive(s, class, alone - 1);\n\t}\n\tflow_arrive(s, class, slot);" =>
        "flow_arrive(s, class, slot);\n\t\tslot = alone - 1;\n\t}\n\tflow_arrive(s, class, slot);";
    new_policy_forgets_a_lone_packet breaks "conservation::nothing_is_lost":
        "flow_change.h",
        "if (fair->alone)" => "if (0)";
    flows_stay_where_a_pifo_comes breaks "conservation::nothing_is_lost":
        "flow_change.h",
        "|| sl_ranks_packets(s->kind) || sl_ranks_packets(f->kind)" => "";
    flows_always_stay breaks "conservation::nothing_is_lost":
        "flow_change.h",
        "if (k->flows != g->flows)" => "return 1;\n\t\tif (k->flows != g->flows)";
    what_rests_pays_by_the_link_alone breaks "flow_queues::idle_time_repays_debt":
        "core.h",
        "u64 cost = sl_max(s->link.cost, k->ceil.cost);" => "u64 cost = s->link.cost;";
    bulk_flows_send_all_they_have breaks "flow_shares::bulk_flows_share":
        "flow_queue.h",
        "if (f->backlog_pkts && f->used_bytes < (s32)k->allowance_bytes)" => "if (f->backlog_pkts)";
    debts_are_forgiven_in_a_round breaks "flow_shares::bulk_flows_share":
        "flow_queue.h",
        "sl_likely(load == 1 && debt < (s32)quantum)" => "load == 1";
    turns_are_of_a_packet breaks "flow_shares::bulk_flows_share":
        "flow_queue.h",
        "debt -= (s32)quantum;" => "debt = -1;";
    hosts_count_for_nothing breaks "flow_shares::hosts_share":
        "flow_hosts.h",
        "return load;" => "return 1;";
    destinations_count_for_nothing breaks "flow_shares::hosts_share":
        "flow_hosts.h",
        "if (k->hosts & SL_HOSTS_DESTINATION) {" => "if (0) {";
    hosts_always_count breaks "flow_shares::hosts_share":
        "flow_hosts.h",
        "f->hosts = k->hosts;" => "f->hosts = ((struct sl_class *)k)->hosts = SL_HOSTS_SOURCE;";
    empty_flow_still_counts_for_its_host breaks "flow_queues::hosts_know_their_bulk_flows":
        "flow_queue.h",
        "flow_count_bulk(s, f, -1);" => ";";
    a_new_policy_remembers_destinations breaks "flow_queues::hosts_know_their_bulk_flows":
        "flow_change.h",
        "__builtin_memset(sl_at(s->dst_hosts.host, i), 0, sizeof(struct sl_host));" => ";";
    the_shortest_gives_way breaks "flow_queues::the_longest_gives_way":
        "flow_sizes.h",
        "size = sl_log2(fair->sizes);" => "size = sl_lowest(fair->sizes);";
    flows_never_go_up breaks "room::the_longest_of_many_gives_way":
        "flow_sizes.h",
        "(f->backlog_bytes >> f->size) >> SL_SIZE_SHIFT" => "0";
    flows_never_go_down breaks "flow_queues::the_longest_gives_way":
        "flow_sizes.h",
        "(!f->backlog_pkts || (f->size > 1 &&" => "(0 && (f->size > 1 &&";
    half_is_rounded_down breaks "flow_queues::the_longest_gives_way":
        "flow_sizes.h",
        "pkts = (flow_at(s, i)->backlog_pkts + 1) / 2;" => "pkts = sl_max(flow_at(s, i)->backlog_pkts / 2, 1);";
    flows_that_grow_are_not_listed breaks "flow_queues::the_longest_gives_way":
        "flow_queue.h",
        "flow_grown(s, class, i);" => ";";
    the_smallest_class_gives_way breaks "room::urgent_classes_find_room":
        "room.h",
        "sl_at(s->large, SL_CLASS_SIZES - 1 - n)" => "sl_at(s->large, n)";
    classes_are_never_large breaks "room::urgent_classes_find_room":
        "core.h",
        "class_grown(s, k, p->class);" => ";";
    the_head_of_a_fifo_gives_way breaks "room::the_longest_of_many_gives_way":
        "drops.h",
        "slot_drop(s, k, slot, SL_DROP_OVERFLOW);" => "(void)slot; slot_drop(s, k, queue_pop(s, &k->queue), SL_DROP_OVERFLOW);";
    the_first_to_leave_a_pifo_gives_way breaks "room::urgent_classes_find_room":
        "pifo.h",
        "bucket = pifo_last(s);" => "bucket = pifo_first(s);";
    no_class_gives_way breaks "room::urgent_classes_find_room":
        "core.h",
        "room_make(s, p->class) == SL_ROOM_OWN" => "0";
    flow_leaves_a_shared_queue breaks "flow_queues::a_flow_stays_in_order":
        "class_flows.h",
        "if (found == ~0u || shared) {" => "if (found == ~0u) {";
    queues_change_hands_with_packets breaks "flow_queues::a_flow_stays_in_order":
        "class_flows.h",
        "if (f->place == SL_FLOW_ABSENT && found == ~0u)" => "if (found == ~0u)";
    source_budgets_are_not_checked breaks "flow_shares::a_source_budget_is_bounded":
        "flow_hosts.h",
        "if (h->used_bytes >= (s32)(SL_BUDGET_ALLOWANCES * k->allowance_bytes))" => "if (0)";
    a_crowd_pays_when_it_is_gone breaks "flow_shares::a_source_budget_is_bounded":
        "flow_hosts.h",
        "h->used_bytes += (s32)len_bytes;" => ";",
        "flow_queue.h",
        "\tif (f->place == SL_FLOW_SPARSE) {" =>
        "\tif (k->hosts & SL_HOSTS_SOURCE)\n\t\tsl_at(s->src_hosts.host, f->src_host)->used_bytes += (s32)bytes;\n\tif (f->place == SL_FLOW_SPARSE) {";

    // CoDel.
    the_interval_is_not_waited_for breaks "codel::acts_as_its_pseudocode":
        "codel.h",
        "c->above_ns = now_ns + interval_ns;" => "c->above_ns = now_ns;";
    a_frame_is_a_queue breaks "codel::acts_as_its_pseudocode":
        "codel.h",
        "|| left_bytes <= SL_CODEL_FRAME_BYTES" => "";
    the_count_does_not_grow breaks "codel::acts_as_its_pseudocode":
        "flow_queue.h",
        "c->count++;" => ";";
    the_root_is_not_approached breaks "codel::acts_as_its_pseudocode":
        "flow_queue.h",
        "codel_newton_step(c);" => ";";
    the_root_is_approached_from_the_wrong_side breaks "codel::acts_as_its_pseudocode":
        "codel.h",
        "(3ULL << 32)" => "(2ULL << 32)";
    dropping_always_begins_anew breaks "codel::acts_as_its_pseudocode":
        "codel.h",
        "if (before > 1 && sl_since(now_ns, c->next_ns) < 16 * interval_ns) {" => "if (0) {";
    dropping_goes_on_from_long_ago breaks "codel::acts_as_its_pseudocode":
        "codel.h",
        "sl_since(now_ns, c->next_ns) < 16 * interval_ns" => "1";
    the_next_drop_is_counted_from_now breaks "codel::acts_as_its_pseudocode":
        "flow_queue.h",
        "\t\t\tif (dropped)\n\t\t\t\tc->next_ns = codel_next(c, interval_ns, c->next_ns);" => "\t\t\tif (dropped)\n\t\t\t\tc->next_ns = codel_next(c, interval_ns, now_ns);";
    what_can_be_marked_is_dropped breaks "codel::acts_as_its_pseudocode":
        "flow_queue.h",
        "\t\tif (q->ecn)\n\t\t\treturn 1;\n" => "";
    good_times_are_not_noticed breaks "codel::acts_as_its_pseudocode":
        "flow_queue.h",
        "f->codel.dropping = 0;" => ";";
}
