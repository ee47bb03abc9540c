//! The checks that every store passes: each tests sentences of a port's documentation on a fresh store.

/// Asserts that a call fails with this kind of [`plimsoll_engine::StoreError`].
macro_rules! assert_fails {
    ($call:expr, $kind:ident) => {{
        let result = $call.await;
        assert!(matches!(result, Err(plimsoll_engine::StoreError::$kind { .. })), "{result:?}");
    }};
}

pub mod answers;
pub mod artefacts;
pub mod branches;
pub mod history;
pub mod jobs;
pub mod knowledge;
pub mod memory;
pub mod together;

use std::sync::Arc;

use plimsoll_core::MillisSinceEpoch;
use plimsoll_engine::{HistoryStore, KnowledgeStore};

type SharedHistory = Arc<dyn HistoryStore>;
type SharedKnowledge = Arc<dyn KnowledgeStore>;

/// The time of checks to which it does not matter.
const NOW: MillisSinceEpoch = MillisSinceEpoch(10_000);

/// Runs every check of the history port as a test of its own; `$make` is an async function that makes a fresh
/// `Arc<dyn HistoryStore>`, or a guard with a `history` method beside it.
#[macro_export]
macro_rules! history_conformance {
    ($make:path) => {
        $crate::conformance_tests!(history $make {
            appended_messages_come_back_in_order,
            hostile_texts_come_back_as_they_are,
            a_megabyte_comes_back,
            who_said_it_comes_back,
            appending_again_changes_nothing,
            another_content_at_a_position_is_a_conflict,
            a_gap_is_refused,
            a_hash_of_another_content_is_refused,
            the_first_receipt_stays,
            a_later_card_replaces_an_earlier_one,
            messages_are_found_by_a_prefix_of_their_hash,
            sessions_come_newest_first,
            words_are_found_and_nothing_else,
            operators_of_a_query_language_mean_nothing,
            vectors_are_found_by_the_model_that_made_them,
            words_and_vectors_are_fused,
            the_log_returns_the_newest_rows,
            efficiency_is_counted_by_cascade,
            bills_are_summed_by_cascade_and_by_session,
            everything_verifies,
            tenants_never_meet,
            appends_at_once_are_all_kept,
        });
        $crate::conformance_tests!(branches $make {
            a_branch_has_what_it_shares,
            a_branch_goes_on_like_any_session,
            a_branch_of_a_branch_has_all_of_its_past,
            branches_keep_what_they_share_of_a_forgotten_session,
        });
    };
}

/// Runs every check of the knowledge port as a test of its own; see [`history_conformance!`].
#[macro_export]
macro_rules! knowledge_conformance {
    ($make:path) => {
        $crate::conformance_tests!(artefacts $make {
            an_artefact_is_found_by_every_form_of_its_ref,
            accesses_are_counted,
            a_ref_that_is_there_keeps_its_content_and_counters,
            what_is_no_artefact_is_refused,
            refs_are_listed_newest_first,
            refs_past_their_time_are_collected,
        });
        $crate::conformance_tests!(jobs $make {
            a_job_is_one_by_its_key,
            jobs_are_leased_in_order,
            a_job_is_tried_again_and_parked,
            a_lease_that_ended_is_taken_over,
            quotas_hold,
            no_two_callers_get_the_same_job,
        });
        $crate::conformance_tests!(answers $make {
            answers_live_until_their_time,
            similar_answers_share_a_signature_and_a_model,
            answers_are_dropped_by_key_and_by_ref,
            answers_are_listed_newest_first_and_trimmed,
        });
        $crate::conformance_tests!(knowledge $make {
            schemas_are_replaced_and_sorted,
            hostile_ids_and_texts_are_taken_literally,
            tenants_never_meet,
        });
    };
}

/// Runs every check of memory in the knowledge port as a test of its own; see [`history_conformance!`].
#[macro_export]
macro_rules! memory_conformance {
    ($make:path) => {
        $crate::conformance_tests!(memory $make {
            a_record_takes_the_place_of_its_earlier_state,
            records_are_filtered,
            records_are_ranked,
            records_are_stored_together_or_not_at_all,
            a_copy_is_brought_up_to_date_by_what_changed,
            a_source_is_forgotten_with_all_that_came_from_it,
            a_change_is_stored_only_from_the_version_it_was_made_from,
            what_was_forgotten_stays_so,
        });
    };
}

/// Runs every check of both ports together as a test of its own; `$make` makes a pair of them; see
/// [`history_conformance!`].
#[macro_export]
macro_rules! together_conformance {
    ($make:path) => {
        $crate::conformance_tests!(together $make {
            a_session_is_forgotten_everywhere,
            the_history_of_a_session_is_forgotten_by_itself,
            a_user_is_forgotten_and_no_other,
            a_scope_without_parts_is_refused,
            one_tenant_forgets_alone,
        });
    };
}

/// Makes a module of tests; `$make` returns the store and a guard that keeps its files while the check runs.
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_tests {
    ($port:ident $make:path { $($check:ident),* $(,)? }) => {
        mod $port {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $check() {
                    let (store, _guard) = $make().await;
                    $crate::conformance::$port::$check(store).await;
                }
            )*
        }
    };
}
