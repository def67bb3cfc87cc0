//! Functions that are broken on purpose, each in one place, and the law that finds out. So every law can fail.

use crate::{
    Law, all_laws,
    builds::{self, Edit},
    refute,
};

/// A test for each mutant: the law that must fail; a header of `forward/`, the text that is there once, and what takes its place.
macro_rules! mutants {
    ($($name:ident breaks $law:literal: $header:literal, $line:literal => $instead:literal;)*) => {
        /// The laws that they break.
        const BROKEN: &[&str] = &[$($law),*];

        $(#[test]
        fn $name() {
            breaks(Edit { header: $header, line: $line, instead: $instead }, $law);
        })*
    };
}

mutants! {
    // Translation.
    an_ipv6_host_is_told_of_less_than_its_least_mtu breaks "translation::mtus_differ_by_the_headers":
        "translation.h",
        "return sl_max(mtu + SL_FAMILY_BYTES, SL_IPV6_LEAST_MTU);" => "return mtu + SL_FAMILY_BYTES;";
    an_ipv4_host_is_told_of_the_mtu_of_ipv6 breaks "translation::mtus_differ_by_the_headers":
        "translation.h",
        "SL_LONGEST_PACKET) - SL_FAMILY_BYTES;" => "SL_LONGEST_PACKET);";
    a_prohibited_way_is_none breaks "translation::errors_are_those_of_the_rfc":
        "translation.h",
        "e->code = code == 1 ? 10 : code == 4 ? 3 : 1;" => "e->code = code == 4 ? 3 : 1;";
    // States of TCP.
    acknowledgements_far_away_are_believed breaks "tracking::forged_packets_change_nothing":
        "tracking.h",
        "return p->flags & SL_TCP_ACK && tcp_is_within(p->ack, own->acked - SL_TCP_BEHIND, other->next + SL_TCP_UNSEEN);" =>
        "return !!(p->flags & SL_TCP_ACK);";
    numbers_far_away_are_believed breaks "tracking::forged_packets_change_nothing":
        "tracking.h",
        "|| !tcp_is_within(p->seq, first, last) || !tcp_is_within(end, first, last)" => "";
    a_fin_with_numbers_far_away_counts breaks "tracking::forged_packets_change_nothing":
        "tracking.h",
        "if (tcp_note(own, other, p) && p->flags & SL_TCP_FIN)" => "tcp_note(own, other, p);\n\tif (p->flags & SL_TCP_FIN)";
    resets_near_the_expected_number_count breaks "tracking::a_reset_has_the_expected_number":
        "tracking.h",
        "return p->seq == other->acked ||" =>
        "return tcp_is_within(p->seq, other->acked - SL_TCP_BEHIND, own->next + SL_TCP_LOST) ||";
    resets_without_the_expected_number_count breaks "tracking::forged_packets_change_nothing":
        "tracking.h",
        "return tcp_resets(own, other, p) ? SL_TCP_CLOSED : state;" => "return SL_TCP_CLOSED;";
    resets_after_bytes_in_flight_acknowledge_nothing breaks "tracking::a_reset_has_the_expected_number":
        "tracking.h",
        "(p->seq == own->next && tcp_may_acknowledge(own, other, p))" => "p->seq == own->next";
    resets_after_bytes_in_flight_do_not_count breaks "tracking::a_reset_after_bytes_in_flight_counts":
        "tracking.h",
        "|| (p->seq == own->next && tcp_may_acknowledge(own, other, p))" => "";
    the_first_acknowledgement_is_not_exact breaks "tracking::only_the_first_acknowledgement_establishes":
        "tracking.h",
        "tcp_is_within(p->ack, c->tcp[SL_CLIENT].acked, c->tcp[SL_TARGET].next)" =>
        "tcp_is_within(p->ack, c->tcp[SL_CLIENT].acked - SL_TCP_BEHIND, c->tcp[SL_TARGET].next + SL_TCP_UNSEEN)";
    any_first_acknowledgement_establishes breaks "tracking::forged_packets_change_nothing":
        "tracking.h",
        "tcp_is_within(p->ack, c->tcp[SL_CLIENT].acked, c->tcp[SL_TARGET].next)" => "1";
    the_client_agrees_with_a_target_that_has_not_answered breaks "tracking::nobody_else_establishes":
        "tracking.h",
        "return c->flags & SL_TARGET_ANSWERED && p->flags & SL_TCP_ACK &&" => "return p->flags & SL_TCP_ACK &&";
    a_wrong_acknowledgement_answers_the_syn breaks "tracking::an_answer_acknowledges_the_syn":
        "tracking.h",
        "if (!(p->flags & SL_TCP_ACK) || !tcp_is_within(p->ack, target->acked, client->next))" =>
        "if (!(p->flags & SL_TCP_ACK) || (p->flags & SL_TCP_RST && !tcp_is_within(p->ack, target->acked, client->next)))";
    a_wrong_acknowledgement_refuses_the_syn breaks "tracking::a_refused_connection_is_closed":
        "tracking.h",
        "|| !tcp_is_within(p->ack, target->acked, client->next)" => "";
    a_refusal_is_an_answer breaks "tracking::a_refused_connection_is_closed":
        "tracking.h",
        "\tif (p->flags & SL_TCP_RST)\n\t\treturn SL_TCP_CLOSED;\n" => "";
    a_syn_after_the_answer_undoes_it breaks "tracking::a_syn_counts_until_it_is_answered":
        "tracking.h",
        "c->flags & SL_TARGET_ANSWERED ? state : tcp_open(c, p)" => "tcp_open(c, p)";
    another_syn_does_not_count breaks "tracking::a_syn_counts_until_it_is_answered":
        "tracking.h",
        "c->flags & SL_TARGET_ANSWERED ? state : tcp_open(c, p)" => "state";
    any_reset_of_the_client_ends_the_handshake breaks "tracking::a_reset_has_the_expected_number":
        "tracking.h",
        "p->seq == c->tcp[SL_CLIENT].next ? SL_TCP_CLOSED : state" => "SL_TCP_CLOSED";
    a_closed_connection_is_closing_again breaks "tracking::a_closed_connection_stays_closed":
        "tracking.h",
        "\tif (state == SL_TCP_CLOSED)\n\t\treturn state;\n" => "";
    a_syn_opens_a_closed_connection breaks "tracking::a_closed_connection_stays_closed":
        "tracking.h",
        "\tif (state == SL_TCP_CLOSED)\n\t\treturn state;\n" => "\tif (state == SL_TCP_CLOSED)\n\t\treturn opens ? tcp_open(c, p) : state;\n";
    one_side_closes_for_both breaks "tracking::a_half_closed_connection_is_not_closed":
        "tracking.h",
        "return c->flags & SL_CLIENT_FIN && c->flags & SL_TARGET_FIN ? SL_TCP_CLOSED : SL_TCP_CLOSING;" => "return SL_TCP_CLOSED;";
    a_fin_takes_no_number breaks "tracking::a_reset_after_bytes_in_flight_counts":
        "tracking.h",
        "+ !!(p->flags & SL_TCP_FIN)" => "";
    numbers_do_not_wrap_round breaks "tracking::a_connection_ends_when_its_sides_end_it":
        "tracking.h",
        "return number - first <= last - first;" => "return number >= first && number <= last;";
    a_segment_sent_again_takes_numbers_back breaks "tracking::a_reset_after_bytes_in_flight_counts":
        "tracking.h",
        "own->next = tcp_later(end, own->next);" => "own->next = end;";
    an_old_acknowledgement_takes_the_number_back breaks "tracking::a_reset_has_the_expected_number":
        "tracking.h",
        "own->acked = tcp_later(p->ack, own->acked);" => "own->acked = p->ack;";

    // States of UDP.
    the_target_of_udp_answers_for_both breaks "connections::gives_way_in_order":
        "tracking.h",
        "return from == SL_CLIENT && c->flags & SL_TARGET_ANSWERED" => "return c->flags & SL_TARGET_ANSWERED";
    the_client_of_udp_speaks_for_both breaks "connections::gives_way_in_order":
        "tracking.h",
        "return from == SL_CLIENT && c->flags & SL_TARGET_ANSWERED" => "return from == SL_CLIENT";

    // Places.
    the_second_set_is_not_looked_up breaks "connections::nearly_every_record_is_used":
        "connections.h",
        "return connection_in(table, tuple, hash, second_set(hash));" => "return SL_NO_CONNECTION;";
    entries_elsewhere_are_not_counted breaks "connections::connections_are_found_until_they_give_way":
        "connections.h",
        "\tif (enter)\n\t\t__sync_fetch_and_add(&first->elsewhere, 1);" => "";
    removed_entries_elsewhere_stay_counted breaks "connections::nothing_is_left_of_connections":
        "connections.h",
        "\t\tif (!enter)\n\t\t\t__sync_fetch_and_add(&first->elsewhere, -1);\n" => "";
    entries_without_a_place_stay_counted breaks "connections::nothing_is_left_of_connections":
        "connections.h",
        "\tif (enter)\n\t\t__sync_fetch_and_add(&first->elsewhere, -1);\n\treturn 0;" => "\treturn 0;";
    a_place_of_an_ended_connection_is_left breaks "connections::nothing_is_left_of_connections":
        "connections.h",
        "connection_tuple(&tuple, c, SL_TARGET);\n\tconnection_place(table, number, tuple_hash(table, &tuple), 0);" => "";
    places_of_a_connection_that_gives_way_are_left breaks "connections::connections_are_found_until_they_give_way":
        "connections.h",
        "connection_ended(table, c);\n\t\tconnection_remove(table, c, number);" => "connection_ended(table, c);";
    a_place_of_a_refused_connection_is_left breaks "connections::connections_are_found_until_they_give_way":
        "connections.h",
        "\t\tconnection_place(table, number, tuple_hash(table, &tuple), 0);\n\t\tgoto no_place;" => "\t\tgoto no_place;";
    the_record_of_a_refused_connection_is_not_free breaks "connections::nothing_is_left_of_connections":
        "connections.h",
        "no_place:\n\t*(volatile u32 *)&c->state = claimed & ~0xffu;" => "no_place:";
    records_in_a_row_that_stay_refuse breaks "connections::half_open_connections_fill_no_set":
        "connections.h",
        "hand + i * SL_CONNECTION_LEAP" => "hand";
    a_full_set_refuses breaks "connections::half_open_connections_fill_no_set":
        "connections.h",
        " && connection_make_room(table, like, tick))" => " && 0)";
    the_set_of_a_target_refuses breaks "connections::half_open_connections_fill_no_set":
        "connections.h",
        "ended += connection_make_place(table, like, SL_TARGET, tick);\n\treturn ended + connection_make_place(table, like, SL_TARGET, tick);" =>
        "return ended;";
    the_first_of_a_full_set_gives_way breaks "connections::a_full_set_gives_way_in_order":
        "connections.h",
        "SL_PLACE_WAYS]));\n\t\trank = connection_rank(table, n, tick);\n\t\tif (rank <= highest)" =>
        "SL_PLACE_WAYS]));\n\t\trank = connection_rank(table, n, tick);\n\t\tif (!rank || highest)";
    one_place_is_made_for_two_entries breaks "connections::half_open_connections_fill_no_set":
        "connections.h",
        "return ended + connection_make_place(table, like, SL_TARGET, tick);" => "return ended;";
    a_set_with_one_place_is_not_full breaks "connections::a_full_set_gives_way_in_order":
        "connections.h",
        "if (places_free_at(table, hash) >= SL_SIDES)" => "if (places_free_at(table, hash))";
    answers_are_of_the_client breaks "connections::connections_are_found_until_they_give_way":
        "connections.h",
        "connection_tuple(&answer, c, side ^ 1);" => "connection_tuple(&answer, c, side);";

    // Records.
    a_twin_is_not_detected breaks "connections::there_are_no_twins":
        "connections.h",
        "return found && found != number;" => "return 0;";
    a_twin_of_a_client_is_not_detected breaks "connections::there_are_no_twins":
        "connections.h",
        "connection_is_second(table, c, number, SL_CLIENT) ||" => "";
    a_twin_of_a_target_is_not_detected breaks "connections::there_are_no_twins":
        "connections.h",
        "|| connection_is_second(table, c, number, SL_TARGET)" => "";
    the_serial_does_not_rise breaks "connections::a_serial_tells_connections_apart":
        "connections.h",
        "((state >> 8) + 1) << 8" => "(state >> 8) << 8";
    an_old_state_claims_a_record breaks "connections::a_cpu_that_is_late_changes_nothing":
        "connections.h",
        "if (__sync_val_compare_and_swap(&c->state, state, claimed) != state)\n\t\treturn 0;" => "c->state = claimed;";
    an_old_state_moves_a_connection breaks "connections::a_cpu_that_is_late_changes_nothing":
        "connections.h",
        "if (__sync_val_compare_and_swap(&c->state, state, (state & ~0xffu) | next) != state)" =>
        "c->state = (state & ~0xffu) | next;\n\tif (0)";
    a_cpu_that_is_late_counts_what_it_did_not_move breaks "connections::a_cpu_that_is_late_changes_nothing":
        "connections.h",
        "\t\twas = next;" => "\t\t;";
    // These two let another CPU go on where an atomic operation left no gap.
    two_cpus_claim_a_record breaks "connections::many_cpus_at_once":
        "connections.h",
        "if (__sync_val_compare_and_swap(&c->state, state, claimed) != state)\n\t\treturn 0;" =>
        "extern int sched_yield(void);\n\tif (c->state != state)\n\t\treturn 0;\n\tsched_yield();\n\tc->state = claimed;";
    two_cpus_take_a_place breaks "connections::many_cpus_at_once":
        "connections.h",
        "if (shared_read(&places->way[i]) == old && __sync_val_compare_and_swap(&places->way[i], old, new) == old)\n\t\t\treturn 1;" =>
        "if (shared_read(&places->way[i]) == old) {\n\t\t\textern int sched_yield(void);\n\t\t\tsched_yield();\n\t\t\tplaces->way[i] = new;\n\t\t\treturn 1;\n\t\t}";
    established_connections_give_way breaks "connections::gives_way_in_order":
        "connections.h",
        "return s == SL_TCP_SURPLUS ||" => "return s == SL_TCP_SURPLUS || s == SL_TCP_ESTABLISHED ||";
    closed_connections_do_not_go_first breaks "connections::gives_way_in_order":
        "connections.h",
        "\tif (s == SL_TCP_CLOSED)\n\t\treturn 3;" => "\tif (s == SL_TCP_CLOSED)\n\t\treturn 1;";
    connections_being_opened_do_not_give_way breaks "connections::gives_way_in_order":
        "connections.h",
        "\tif (s == SL_TCP_OPENING || s == SL_UDP_ONE_WAY)" => "\tif (s == SL_UDP_ONE_WAY)";
    udp_that_speaks_gives_way breaks "connections::gives_way_in_order":
        "connections.h",
        "(s == SL_UDP_ANSWERED && silence >= t->ticks[SL_UDP_ONE_WAY])" => "s == SL_UDP_ANSWERED";
    the_longest_silence_does_not_count breaks "connections::a_client_keeps_its_share":
        "connections.h",
        "way << SL_RANK_BITS | sl_min(silence, (1u << SL_RANK_BITS) - 1)" => "way << SL_RANK_BITS | (1000 - silence)";
    the_search_begins_at_the_first_record breaks "connections::nearly_every_record_is_used":
        "connections.h",
        "connection_number(table, hand + i)" => "connection_number(table, 1 + i)";
    time_outs_are_ignored breaks "connections::time_ends_connections":
        "connections.h",
        "\tif (silence >= *sl_at(t->ticks, s))\n\t\treturn 4;\n" => "";
    all_have_the_time_out_of_established_ones breaks "connections::time_ends_connections":
        "connections.h",
        "silence >= *sl_at(t->ticks, s)" => "silence >= t->ticks[SL_TCP_ESTABLISHED]";
    a_packet_does_not_end_the_silence breaks "connections::time_ends_connections":
        "connections.h",
        "\t\tc->last_tick = tick;\n}" => "\t\t;\n}";
    a_clock_that_is_ahead_ends_connections breaks "connections::time_ends_connections":
        "connections.h",
        "return silence < 0 ? 0 : (u32)silence;" => "return (u32)silence;";
    a_syn_of_the_target_begins_anew breaks "connections::a_closed_connection_is_begun_anew":
        "connections.h",
        "connection_state_of(state) == SL_TCP_CLOSED && side == SL_CLIENT &&" => "connection_state_of(state) == SL_TCP_CLOSED &&";
    a_syn_ends_open_connections breaks "connections::a_closed_connection_is_begun_anew":
        "connections.h",
        "return connection_state_of(state) == SL_TCP_CLOSED && side" => "return side";
    a_side_counts_for_the_other breaks "connections::packets_are_counted":
        "connections.h",
        "__sync_fetch_and_add(sl_at(c->bytes, side), bytes);" => "__sync_fetch_and_add(sl_at(c->bytes, side ^ 1), bytes);";
    a_connection_that_ends_is_not_announced breaks "connections::each_end_is_announced":
        "connections.h",
        "connection_ended(table, c);\n\tconnection_remove(" => "connection_remove(";
    a_connection_that_gives_way_is_not_announced breaks "connections::each_end_is_announced":
        "connections.h",
        "connection_ended(table, c);\n\t\tconnection_remove(" => "connection_remove(";

    // Shares of clients.
    a_share_has_no_limit breaks "connections::a_client_keeps_its_share":
        "connections.h",
        "__sync_fetch_and_add(many, 1) >= connections_for_each(table)" => "__sync_fetch_and_add(many, 1) == ~0u";
    connections_beyond_the_share_are_counted breaks "connections::a_client_keeps_its_share":
        "connections.h",
        "\t\t__sync_fetch_and_add(many, -1);\n\t\tnext = SL_TCP_SURPLUS;" => "\t\tnext = SL_TCP_SURPLUS;";
    a_closed_connection_stays_in_the_share breaks "connections::a_client_keeps_its_share":
        "connections.h",
        "if (was == SL_TCP_ESTABLISHED)" => "if (0)";
    an_ended_connection_stays_in_the_share breaks "connections::a_client_keeps_its_share":
        "connections.h",
        "connection_count_client(table, c, -1u);" => ";";

    // Ports.
    the_hosts_own_port_is_kept breaks "ports::source_ports_are_nobody_elses":
        "ports.h",
        "if (port - own.first < own.many)" => "if (0)";
    the_hosts_own_ports_are_tried breaks "ports::source_ports_are_nobody_elses":
        "ports.h",
        "return port < own->first ? port : port + own->many;" => "return port;";
    a_client_that_keeps_its_address_gets_another_port breaks "ports::source_ports_are_nobody_elses":
        "ports.h",
        "if (!ends_are_equal(&c->source, &c->client))" => "if (1)";
    a_taken_port_is_chosen breaks "ports::source_ports_are_nobody_elses":
        "ports.h",
        "\tif (!found)\n\t\treturn 1;" => "\treturn 1;";
    an_open_connection_loses_its_port breaks "ports::source_ports_are_nobody_elses":
        "ports.h",
        "\tif (connection_state_of(state) != SL_TCP_CLOSED)\n\t\treturn 0;\n" => "";
    a_closed_connection_keeps_its_port breaks "ports::a_closed_connection_gives_its_port_away":
        "ports.h",
        "if (connection_state_of(state) != SL_TCP_CLOSED)" => "if (1)";
    a_closed_connection_stays_beside_the_new_one breaks "ports::a_closed_connection_gives_its_port_away":
        "ports.h",
        "\tconnection_end(table, other, found, state);\n" => "";
    ports_that_were_tried_are_tried_again breaks "ports::source_ports_are_nobody_elses":
        "ports.h",
        "\t\tif (i < tried)\n\t\t\tcontinue;\n" => "";
    each_try_is_of_the_same_port breaks "ports::source_ports_are_nobody_elses":
        "ports.h",
        "try * SL_PORT_STEP" => "0 * try";
}

fn law(name: &str) -> &'static Law {
    let mut found = all_laws().filter(|law| law.name.ends_with(&format!("::{name}")));
    found.next().unwrap_or_else(|| panic!("no law is called {name}"))
}

fn breaks(edit: Edit, name: &str) {
    let why = refute(law(name), builds::build(&[edit]), 400);
    println!("{name}: {}", why.expect("the law holds for the mutant"));
}

#[test]
fn the_functions_as_they_are_break_no_law() {
    let unchanged = builds::build(&[]);
    let broken = |law: &Law| refute(law, unchanged, 40).map(|why| format!("{}: {why}\n", law.name));
    let broken: String = all_laws().filter_map(broken).collect();
    assert!(broken.is_empty(), "{broken}");
}

#[test]
fn each_law_is_broken_by_a_mutant() {
    for law in all_laws() {
        assert!(BROKEN.iter().any(|name| law.name.ends_with(&format!("::{name}"))), "{}", law.name);
    }
}
