//! One suite for both dialects: every method of the trait, and the stories that must hold on each.
//!
//! A dialect's test file says how to open a [`World`] and calls `conformance_suite!(open)`, where
//! `async fn open() -> World`. Each case gets a datastore of its own. What differs between dialects stands in
//! [`Dialect`]; time passes by [`Dialect::pass`], never by waiting.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

pub(crate) mod bulk;
pub(crate) mod cases;
pub(crate) mod claims;
pub(crate) mod control;
pub(crate) mod events;
pub(crate) mod followers;
pub(crate) mod life;
pub(crate) mod listing;
pub(crate) mod logs;
pub(crate) mod minutes;
pub(crate) mod nodes;
pub(crate) mod reading;
pub(crate) mod secrets;
pub(crate) mod services;
pub(crate) mod sessions;
pub(crate) mod submit;
pub(crate) mod time;
pub(crate) mod trail;
pub(crate) mod transfer;
pub(crate) mod views;
pub(crate) mod world;

pub(crate) use world::{Dialect, World};

/// Makes a test of each case.
#[macro_export]
macro_rules! conformance_suite {
    ($open:path) => {
        $crate::conformance_cases! { $open,
            submit: a_job_is_accepted_as_it_was_submitted, a_key_gives_the_job_it_made, another_spec_is_a_conflict,
                a_key_is_the_owners_own, keys_within_one_batch, a_key_used_at_the_same_time_makes_one_job,
                an_unknown_commit_may_be_sent_again, all_or_none, an_unknown_pool_says_which_there_are,
                the_limit_of_an_owner_holds, ten_thousand_in_one_call, what_is_outstanding_makes_it_ready,
                an_artifact_frees_who_waits_for_it, a_tree_is_known_with_all_its_files_or_not_at_all,
                a_job_waits_for_all_its_artifacts, many_artifacts_in_one_call_free_who_waits_for_them;
            life: from_submit_to_end, outputs_are_part_of_the_outcome, a_failure_is_retried_after_its_delay, a_stale_lease_is_refused,
                the_same_report_again_is_already, a_late_outcome_after_lost_is_stale, one_bad_item_fails_no_other,
                nul_and_ten_megabytes_end_a_job_all_the_same, a_claim_can_be_given_back, what_runs_is_reserved;
            claims: no_job_is_claimed_twice, a_claim_names_only_what_waits, every_group_has_a_head,
                one_job_of_b_behind_a_thousand_of_a, heads_come_in_order, a_snapshot_knows_its_limits,
                a_closed_node_gets_no_claim, a_thousand_jobs_in_one_claim_and_one_report;
            control: cancel_in_every_status, cancel_meets_exit_zero, a_stop_is_pending_until_the_end,
                retry_by_hand_begins_a_round, retry_names_the_attempt_seen, a_control_of_nothing_is_not_found;
            services: restarts_are_told_and_kept, a_task_has_no_restarts, a_service_is_stopped_in_every_status,
                a_service_stopped_while_a_drain_evicts_it_is_over;
            secrets: secrets_are_told_to_an_attempt_about_to_start, secrets_go_with_their_job,
                a_job_is_known_again_by_an_earlier_key_of_the_server;
            nodes: a_node_registers_and_is_heard, the_newest_session_wins, a_new_boot_proves_the_old_one_gone,
                two_boots_that_take_turns_are_quarantined, claim_leases_that_run_out_suspend_a_node,
                claims_of_a_worker_that_is_gone_suspend_no_node,
                refusals_do_not_suspend_a_node, a_drain_evicts, what_is_on_a_node_is_known, pools_exist_by_put;
            time: silence_is_judged_while_servers_are_heard, a_stale_stamp_holds_silence_back,
                a_gap_holds_silence_back_for_a_lease, a_step_back_holds_silence_back, a_renewal_keeps_an_attempt,
                a_claim_lease_runs_out, start_within_ends_a_job, run_at_is_kept,
                what_a_step_back_left_far_ahead_is_due, an_exclusive_job_pauses_after_silence;
            cases: pages_show_each_job_once_while_some_come_and_some_go;
            reading: pages_of_a_thousand_while_others_come, every_filter, statuses_are_merged_newest_first,
                a_page_may_be_short_and_go_on, attempts_tell_the_history, the_summary_counts,
                the_classic_questions_at_a_prompt;
            listing: filters_name_lines, filters_count, counts_stop_at_a_bound, a_line_says_where_a_job_is,
                values_complete_a_filter, failures_are_grouped_by_how_they_came,
                what_waits_longest_is_the_first_of_each_group;
            minutes: what_happened_is_counted_by_the_minute, spans_of_minutes_have_their_own,
                several_that_roll_up_count_each_event_once, old_minutes_go, a_quiet_datastore_is_left_alone;
            bulk: everything_that_matches_is_cancelled_once, what_failed_or_was_cancelled_is_retried_once,
                an_action_keeps_to_its_owners, a_key_begins_one_action, a_stopped_action_does_nothing_more,
                several_that_carry_it_out_act_once, what_comes_with_the_action_is_not_touched;
            views: views_are_private_or_shared, a_change_names_what_it_changes;
            events: a_life_as_events, filters_of_events, a_cursor_never_misses_under_concurrent_writers,
                old_events_expire_a_cursor, wake_ups_follow_commits;
            followers: a_follower_is_in_one_hand_at_a_time, a_follower_moves_on_in_its_holder_s_hand_only,
                a_step_back_of_the_clock_lets_go_of_a_follower, events_can_be_followed_by_where_they_lead;
            logs: chunks_append_where_the_stream_ends, a_gap_says_where_to_go_on, only_the_lease_may_append,
                chunks_are_found_by_offset_arrival_and_time,
                old_logs_of_jobs_that_go_on_are_dropped_by_whole_days,
                months_of_old_logs_are_dropped_a_batch_at_a_time;
            sessions: a_token_begins_sessions_that_end, a_login_code_begins_one_session, a_session_goes_with_its_token,
                sessions_hold_on_every_server, what_is_past_its_end_is_swept;
            trail: tokens_count_until_revoked, a_token_may_end, changing_calls_are_audited,
                old_things_are_removed_a_batch_at_a_time, a_lease_may_fetch_what_its_attempt_needs, a_lease_says_what_its_job_says, leases_and_now_are_known,
                artifacts_go_when_nobody_needs_them, a_submit_that_names_a_doomed_artifact_spares_it,
                a_closed_store_says_so;
            transfer: all_of_it_is_the_same_in_either_dialect, what_has_no_end_is_not_kept,
                attempts_that_have_not_ended_are_not_left_behind_unasked;
        }
    };
}

/// Makes the tests of [`conformance_suite`].
#[macro_export]
macro_rules! conformance_cases {
    ($open:path, $($module:ident: $($case:ident),+;)+) => {
        $(mod $module {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                let world = $open().await;
                $crate::conformance::$module::$case(&world).await;
            })+
        })+
    };
}
