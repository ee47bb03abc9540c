//! Runs of cascades: begun, asked, answered, gone on with and stopped.

use serde_json::{Value, json};

use crate::Asking;

const SOURCE: &str = "cascade_id: one\nphases:\n  - name: review\n    instructions: Say hello.\n";

/// Waits for the next events of a run as a page does, without a pause of its own.
async fn next(asking: &Asking, session: &str, from: usize) -> Value {
    let cursor = from.checked_sub(1).map_or(String::new(), |last| format!("&cursor={last}"));
    let path = format!("/cascades/runs/{session}/events?wait=20{cursor}");
    asking.ask("listRunEvents", &path, "").await
}

/// Waits until a run is in a state; each wait ends with a change of the run.
async fn until(asking: &Asking, session: &str, state: &str) -> (Value, Vec<Value>) {
    let mut events = Vec::new();
    loop {
        let found = next(asking, session, events.len()).await;
        events.extend(found["items"].as_array().expect("events").iter().cloned());
        if found["run"]["state"] == state && found["next"].is_null() {
            return (found["run"].clone(), events);
        }
        assert_eq!(found["run"]["state"], "running", "{found}");
    }
}

pub(crate) async fn a_run_asks_and_goes_on(asking: &Asking) {
    let body = json!({"source": SOURCE, "session": "run-a"}).to_string();
    let begun = asking.ask("runCascade", "/cascades/runs", &body).await;
    assert_eq!(
        (begun["session"].as_str(), begun["cascade"].as_str()),
        (Some("run-a"), Some("one"))
    );
    let (run, events) = until(asking, "run-a", "waiting").await;
    assert_eq!(run["question"], json!({"phase": "review", "question": "Is it good?"}));
    assert_eq!(events.len(), 1, "{events:?}");
    let answers = "/cascades/runs/run-a/answers";
    let wrong = json!({"phase": "other", "answer": "good"}).to_string();
    let refused = asking.send("", "POST", &format!("/api/v1{answers}"), &wrong).await;
    assert_eq!(refused.status, 409, "{}", refused.body);
    let body = json!({"phase": "review", "answer": "good"}).to_string();
    asking.ask("answerRun", answers, &body).await;
    let (run, events) = until(asking, "run-a", "ended").await;
    assert_eq!((run["output"].as_str(), run["question"].is_null()), (Some("a good result"), true));
    // What the resumed run tells again is not listed twice.
    assert_eq!(events.len(), 2, "{events:?}");
    let again = asking.send("", "POST", &format!("/api/v1{answers}"), &body).await;
    assert_eq!(again.status, 409, "a run that ended asks nothing: {}", again.body);
    let listed = asking.ask("listRuns", "/cascades/runs", "").await;
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(1));
    let one = asking.ask("getRun", "/cascades/runs/run-a", "").await;
    assert_eq!(one, run);
    // Another tenant sees nothing of it.
    let foreign = asking.send("other", "GET", "/api/v1/cascades/runs/run-a", "").await;
    assert_eq!(foreign.status, 404);
    stopped_and_failed(asking).await;
}

async fn stopped_and_failed(asking: &Asking) {
    let begin = |session: &str, answer: &str| {
        json!({"source": SOURCE, "session": session, "answers": {"review": answer}}).to_string()
    };
    asking.ask("runCascade", "/cascades/runs", &begin("run-b", "never")).await;
    let (run, _) = until(asking, "run-b", "failed").await;
    assert_eq!(run["error"], "phase `review` failed: the person said never");
    asking.ask("runCascade", "/cascades/runs", &begin("run-c", "hold")).await;
    let twice = begin("run-c", "hold");
    let twice = asking.send("", "POST", "/api/v1/cascades/runs", &twice).await;
    assert_eq!(twice.status, 409, "{}", twice.body);
    let stopped = asking.ask("stopRun", "/cascades/runs/run-c", "").await;
    assert_eq!(stopped["state"], "stopped");
    assert_eq!(next(asking, "run-c", 0).await["run"]["state"], "stopped");
}

#[tokio::test]
async fn a_session_with_a_record_goes_on_only_on_request() {
    let asking = Asking::start().await;
    let begin = |session: &str, resume: bool| {
        json!({"source": SOURCE, "session": session, "resume": resume}).to_string()
    };
    let path = "/api/v1/cascades/runs";
    let refused = asking.send("", "POST", path, &begin("agent", false)).await;
    assert_eq!(refused.status, 409, "{}", refused.body);
    let unknown = asking.send("", "POST", path, &begin("nobody", true)).await;
    assert_eq!(unknown.status, 404, "{}", unknown.body);
    let resumed = asking.send("", "POST", path, &begin("agent", true)).await;
    assert_eq!(resumed.status, 200, "{}", resumed.body);
}
