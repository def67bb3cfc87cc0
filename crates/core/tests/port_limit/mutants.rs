//! Cores that are broken on purpose, each in one place, and the law that finds out. So every law can fail.

use crate::suite::{self, mutants};

/// Cases in which a law must find a counterexample to a mutant.
pub(crate) const CASES: u32 = 300;

mutants! {
    a_limit_has_no_upper_bound breaks "bounds::a_limit_keeps_within_its_bounds":
        "port_limit.h",
        "return sl_max(conf->least_bytes, sl_min(bytes, conf->most_bytes));" => "return sl_max(conf->least_bytes, bytes);";
    a_limit_has_no_lower_bound breaks "bounds::a_limit_keeps_within_its_bounds":
        "port_limit.h",
        "return sl_max(conf->least_bytes, sl_min(bytes, conf->most_bytes));" => "return sl_min(bytes, conf->most_bytes);";
    there_is_always_room breaks "bounds::a_packet_goes_beyond_the_limit_at_most":
        "port_limit.h",
        "return port_limit_under_way(l) <= l->limit_bytes;" => "return 1;";
    packets_are_counted_and_not_bytes breaks "bounds::a_packet_goes_beyond_the_limit_at_most":
        "port_limit.h",
        "l->given_bytes += bytes;" => "l->given_bytes++;";
    the_limit_is_to_hold_the_packet_too breaks "bounds::a_packet_goes_beyond_the_limit_at_most":
        "port_limit.h",
        "return port_limit_under_way(l) <= l->limit_bytes;" => "return port_limit_under_way(l) + 1514 <= l->limit_bytes;";
    what_comes_back_counts_as_under_way breaks "bounds::what_comes_back_is_not_under_way":
        "port_limit.h",
        "l->returned_bytes = returned_bytes;" => "l->returned_bytes += came_bytes / 2;";

    the_limit_never_grows breaks "busy::a_slow_port_is_busy":
        "port_limit.h",
        "limit_bytes += port_limit_beyond(returned_bytes, l->then_given_bytes) + l->then_over_bytes;" => ";";
    the_limit_falls_to_one_look breaks "busy::a_slow_port_is_busy":
        "port_limit.h",
        "2 * came_bytes), last_bytes = 0;" => "came_bytes / 2), last_bytes = 0;";
    the_shortest_look_is_taken_for_the_longest breaks "busy::a_slow_port_is_busy":
        "port_limit.h",
        "l->least_slack_bytes = sl_min(l->least_slack_bytes, port_limit_slack(l, came_bytes));" =>
        "l->least_slack_bytes = l->limit_bytes - came_bytes / 4;";
    the_limit_never_falls breaks "busy::a_slow_port_has_little":
        "port_limit.h",
        "limit_bytes = port_limit_beyond(limit_bytes, l->least_slack_bytes);" => ";";
    all_looks_ever_count breaks "busy::a_slow_port_has_little":
        "port_limit.h",
        "limit_bytes = port_limit_beyond(limit_bytes, l->least_slack_bytes);\n\t\t\tl->slack_since_ns = now_ns;\n\t\t\tl->least_slack_bytes = SL_NO_SLACK;" =>
        "limit_bytes = port_limit_beyond(limit_bytes, l->least_slack_bytes);\n\t\t\tl->slack_since_ns = now_ns;";
    the_limit_grows_with_each_look breaks "busy::a_slow_port_has_little":
        "port_limit.h",
        "if ((over_bytes && returned_bytes == l->given_bytes) || (l->then_over_bytes && all_of_then)) {" => "if (over_bytes) {";
    the_limit_grows_by_little breaks "busy::a_port_that_sends_at_once_gets_whole_batches":
        "port_limit.h",
        "limit_bytes += port_limit_beyond(returned_bytes, l->then_given_bytes) + l->then_over_bytes;" => "limit_bytes += 64;";
}

suite::laws_can_fail!(20, BROKEN.iter());
